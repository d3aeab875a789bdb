"""The base of all estimators: constructor parameters that can be listed, set, validated and printed.

scikit-learn's `clone`, `GridSearchCV` and `Pipeline` ask for the methods below and nothing else. `sklearn.base` itself
is not imported: that takes over a second of CPU, most of the time of `manyhands aggregate` on a small file.
"""

from __future__ import annotations

import inspect
from dataclasses import fields, is_dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Self

from manyhands.exceptions import ParameterError, not_fitted_error
from manyhands.options import with_nested_options
from manyhands.spelling import closest_match, did_you_mean
from manyhands.validation import Constraint, check_parameters


class BaseEstimator:
    """Base of every aggregator, classifier and representation learner.

    The constructor of a subclass names every parameter explicitly and only assigns; `fit` validates the parameters
    against `_constraints`. Attributes that `fit` computes end in an underscore.

    A parameter may itself be an estimator, or a frozen dataclass that groups several options. Parameters of either
    are addressed as `name__parameter` in `set_params`, as in scikit-learn.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {}
    _fit_takes: ClassVar[str] = "(annotations)"

    def __new__(cls, *args: Any, **parameters: Any) -> Self:
        """Refuse parameters that the constructor does not have, with the nearest name, before `__init__` runs."""
        known = cls._parameter_names()
        for name in parameters:
            if name not in known:
                raise ParameterError(f"{cls.__name__} has no parameter {name!r}.{_suggestion(name, known)}")
        return super().__new__(cls)

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Every constructor parameter with its default value, in the order of the signature."""
        parameters = list(inspect.signature(cls.__init__).parameters.values())[1:]  # all but `self`
        return {p.name: p.default for p in parameters if p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)}

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(cls._defaults())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """Return the constructor parameters by name.

        Parameters
        ----------
        deep : bool, default=True
            Also return the parameters of nested estimators and option groups, as `name__parameter`.

        Returns
        -------
        dict of str to object
            Parameter names and their values.
        """
        own = {name: getattr(self, name) for name in self._parameter_names()}
        if not deep:
            return own
        nested = {f"{name}__{inner}": v for name, value in own.items() for inner, v in _nested(value).items()}
        return own | nested

    def set_params(self, **parameters: Any) -> Self:
        """Set constructor parameters by name.

        Parameters
        ----------
        **parameters : object
            New values; `name__parameter` sets one of a nested estimator or option group.

        Returns
        -------
        self
        """
        known = self._parameter_names()
        for name, value in parameters.items():
            outer, _, inner = name.partition("__")
            if outer not in known or (inner and not self._can_set(outer, inner)):
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}.{self._hint(outer, inner)}")
            self._set(outer, inner, value)
        return self

    def _hint(self, outer: str, inner: str) -> str:
        """What to do about an unknown parameter: the nearest name, the known names, or the group that is None."""
        known = self._parameter_names()
        if outer not in known:
            return _suggestion(outer, known)
        if getattr(self, outer) is None:
            return f" {outer!r} is None here; set it to a group of options or an estimator first."
        options = _nested(getattr(self, outer))
        if not options:
            return f" {outer!r} has no parameters of its own."
        found = closest_match(inner, options)
        if found is not None:
            return f" Did you mean {f'{outer}__{found}'!r}?"
        return f" It has: {', '.join(f'{outer}__{option}' for option in options)}."

    def _can_set(self, outer: str, inner: str) -> bool:
        current = getattr(self, outer)
        if _is_options(current):
            return inner in _nested(current)
        return hasattr(current, "set_params")

    def _set(self, outer: str, inner: str, value: Any) -> None:
        current = getattr(self, outer)
        if not inner:
            setattr(self, outer, value)
        elif _is_options(current):
            setattr(self, outer, replace(current, **{inner: value}))
        else:
            current.set_params(**{inner: value})

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = {name: v for name, v in self.get_params(deep=False).items() if repr(v) != repr(defaults[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def _repr_html_(self) -> str:
        """Return what a notebook shows: of a fitted model panels of the HTML report, otherwise what to call."""
        from manyhands.model_html import unfitted_html
        from manyhands.notebook_display import panels_of

        return panels_of("model", self) if self._is_fitted() else unfitted_html(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn asks for before a search or a pipeline; it is loaded by then."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _check_parameters(self) -> None:
        parameters, constraints = with_nested_options(self.get_params(deep=False), self._constraints)
        check_parameters(type(self).__name__, parameters, constraints)

    def _is_fitted(self) -> bool:
        return any(name.endswith("_") and not name.startswith("_") for name in vars(self))

    def _check_fitted(self) -> None:
        if not self._is_fitted():
            raise not_fitted_error(f"This {type(self).__name__} is not fitted yet. Call fit{self._fit_takes} first.")

    if not TYPE_CHECKING:  # a type checker would take every name for an attribute

        def __getattr__(self, name: str) -> Any:
            """Explain why there is no such attribute: the model is not fitted, or the name is misspelt."""
            if name.startswith("_") or hasattr(type(self), name):
                return object.__getattribute__(self, name)  # raises the usual error, or that of a property
            own = type(self).__name__
            if name.endswith("_") and not self._is_fitted():
                raise not_fitted_error(f"This {own} is not fitted yet, so it has no {name}. Call fit{self._fit_takes}.")
            known = [other for other in dir(self) if not other.startswith("_")]
            raise AttributeError(f"{own} has no attribute {name!r}.{did_you_mean(name, known)}", name=name, obj=self)


def _is_options(value: Any) -> bool:
    """Whether a parameter is a group of options: an instance of a frozen dataclass."""
    return is_dataclass(value) and not isinstance(value, type) and not hasattr(value, "get_params")


def _nested(value: Any) -> dict[str, Any]:
    """The parameters of a nested estimator or option group; none for any other value."""
    if _is_options(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if hasattr(value, "get_params") and not isinstance(value, type):
        return dict(value.get_params())
    return {}


def _suggestion(name: str, known: list[str]) -> str:
    return did_you_mean(name, known) or f" It has: {', '.join(known)}."
