"""The base of all estimators: constructor parameters that can be listed, set, validated and printed.

Groups of options come first, then `BaseEstimator`, then what notebooks show of estimators.
scikit-learn's `clone`, `GridSearchCV` and `Pipeline` ask for the methods below and nothing else. `sklearn.base` itself
is not imported: that takes over a second of CPU, most of the time of `manyhands aggregate` on a small file.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields, is_dataclass, replace
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from manyhands._core.html_tables import facts, page
from manyhands._core.html_tables import shown_value as shown_value  # also imported from here
from manyhands._core.spelling import closest_match, did_you_mean
from manyhands.exceptions import ParameterError, not_fitted_error
from manyhands.validation import Constraint, check_parameters

# ----------------------------------------------------------------------------------------------------
# Groups of options: frozen dataclasses as constructor parameters, and their validation.
#
# A method with many parameters groups those that belong to one step of its algorithm, such as ``ICED(synthesis=...)``.
# A group is a frozen dataclass derived from `OptionGroup`; its fields are addressed as in scikit-learn's nested
# estimators: ``set_params(synthesis__n_neighbors=3)``.


class OptionGroup:
    """Base of all groups of options.

    A subclass is a frozen dataclass, ``@dataclass(frozen=True, repr=False)``, with a default for each field and one
    constraint per field in `_constraints`. The constructor only assigns; the `fit` of the method validates.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {}

    def __new__(cls, *args: Any, **options: Any) -> Self:
        """Refuse options that the group does not have, with the nearest name, before `__init__` runs."""
        names = list(cls._constraints)
        for name in options:
            if name not in names:
                hint = did_you_mean(name, names) or f" It has: {', '.join(names)}."
                raise ParameterError(f"{cls.__name__} has no option {name!r}.{hint}")
        return super().__new__(cls)

    def __repr__(self) -> str:
        values = ((field, getattr(self, field.name)) for field in fields(self))  # type: ignore[arg-type]
        changed = [f"{field.name}={value!r}" for field, value in values if repr(value) != repr(field.default)]
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass(frozen=True)
class Options:
    """A constraint: an instance of a group of options whose values are all allowed.

    Attributes
    ----------
    group : type
        The class of the group.
    optional : bool, default=False
        Whether None is allowed, which leaves out the step that the group describes.
    """

    group: type[OptionGroup]
    optional: bool = False

    def allows(self, value: Any) -> bool:
        """Return whether a value is such a group, or None where it is optional."""
        if value is None:
            return self.optional
        constraints = self.group._constraints.items()
        return type(value) is self.group and all(c.allows(getattr(value, name)) for name, c in constraints)

    def __str__(self) -> str:
        """Return the end of a sentence that begins with "must be"."""
        return f"{'None or ' if self.optional else ''}a group of options {self.group.__name__}(...)"


def with_nested_options(
    parameters: Mapping[str, Any], constraints: Mapping[str, Constraint]
) -> tuple[dict[str, Any], dict[str, Constraint]]:
    """Add the options of each group as parameters of their own, so that a message names the option that is wrong."""
    values, rules = dict(parameters), {}
    for name, constraint in constraints.items():
        value = parameters.get(name)
        if isinstance(constraint, Options) and type(value) is constraint.group:
            for option, inner in constraint.group._constraints.items():
                values[f"{name}__{option}"] = getattr(value, option)
                rules[f"{name}__{option}"] = inner
        rules[name] = constraint
    return values, rules


REQUESTS = "_metadata_request"  # the attribute from which scikit-learn's `clone` copies requests for metadata


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
        names = cls._parameter_names()
        for name in parameters:
            if name not in names:
                raise ParameterError(f"{cls.__name__} has no parameter {name!r}.{_suggestion(name, names)}")
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
        names = self._parameter_names()
        for name, value in parameters.items():
            outer, _, inner = name.partition("__")
            if outer not in names or (inner and not self._can_set(outer, inner)):
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}.{self._hint(outer, inner)}")
            self._set(outer, inner, value)
        return self

    def _hint(self, outer: str, inner: str) -> str:
        """What to do about an unknown parameter: the nearest name, the known names, or the group that is None."""
        names = self._parameter_names()
        if outer not in names:
            return _suggestion(outer, names)
        if getattr(self, outer) is None:
            return f" {outer!r} is None here; set it to a group of options or an estimator first."
        options = _nested(getattr(self, outer))
        if not options:
            return f" {outer!r} has no parameters of its own."
        nearest = closest_match(inner, options)
        if nearest is not None:
            return f" Did you mean {f'{outer}__{nearest}'!r}?"
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
        return panels_of("model", self) if self._is_fitted() else unfitted_html(self)

    def __sklearn_tags__(self) -> Any:
        """Return the tags that scikit-learn asks for before a search or a pipeline; it is loaded by then.

        No method is called a classifier: searches would then stratify their folds by a target with one class per item,
        which annotations are not, and a tuning of thresholds would compare predictions with them as if they were truth.
        """
        from sklearn.utils import InputTags, Tags, TargetTags

        has_annotations = TargetTags(required=False, one_d_labels=False, two_d_labels=False)
        return Tags(estimator_type=None, target_tags=has_annotations, input_tags=InputTags(two_d_array=False))

    def get_metadata_routing(self) -> Any:
        """Return which arguments of `fit` and `score` scikit-learn's pipelines and searches are asked to pass on.

        Returns
        -------
        sklearn.utils.metadata_routing.MetadataRequest
            What `set_fit_request` and `set_score_request` set; None for all other arguments.
        """
        from sklearn.utils.metadata_routing import MetadataRequest

        own = vars(self).get(REQUESTS)
        request = MetadataRequest(owner=type(self).__name__)
        for method in ("fit", "score"):
            chosen = {} if own is None else getattr(own, method).requests
            for name in self._arguments(method):
                getattr(request, method).add_request(param=name, alias=chosen.get(name))
        # `Pipeline.score` passes `sample_weight=None` on and demands that its last step knows the name; a value other
        # than None is still refused.
        request.score.add_request(param="sample_weight", alias=None)
        return request

    def set_fit_request(self, **requests: bool | str | None) -> Self:
        """Ask scikit-learn's pipelines and searches to pass arguments of their `fit` on to this `fit`.

        Parameters
        ----------
        **requests : bool, str or None
            By argument of `fit`, such as ``gold=True``: True passes it on, False does not, a text passes on the
            argument of that name, and None makes it an error to give one.

        Returns
        -------
        self
        """
        return self._set_requests("fit", requests)

    def set_score_request(self, **requests: bool | str | None) -> Self:
        """Ask scikit-learn's pipelines and searches to pass arguments on to this `score`.

        Parameters
        ----------
        **requests : bool, str or None
            By argument of `score`, such as ``ids=True``; the values are those of `set_fit_request`.

        Returns
        -------
        self
        """
        return self._set_requests("score", requests)

    def _set_requests(self, method: str, requests: Mapping[str, bool | str | None]) -> Self:
        """Store requests for metadata as scikit-learn's own estimators do."""
        import sklearn

        if not sklearn.get_config()["enable_metadata_routing"]:
            raise ParameterError(
                f"set_{method}_request has no effect while scikit-learn passes no metadata on. Call "
                f"sklearn.set_config(enable_metadata_routing=True) first."
            )
        found, known = self.get_metadata_routing(), self._arguments(method)
        for name, alias in requests.items():
            if name not in known:
                raise ParameterError(
                    f"{method} of {type(self).__name__} has no argument {name!r} that can be passed on."
                    f"{_suggestion(name, known)}"
                )
            getattr(found, method).add_request(param=name, alias=alias)
        setattr(self, REQUESTS, found)
        return self

    def _arguments(self, method: str) -> list[str]:
        """The arguments of a method beside features and labels."""
        function = getattr(type(self), method, None)
        names = [] if function is None else list(inspect.signature(function).parameters)[1:]
        return [name for name in names if name not in ("X", "annotations")]

    def check_parameters(self) -> None:
        """Raise a ParameterError unless every parameter is a value that it may have."""
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
            names = [other for other in dir(self) if not other.startswith("_")]
            raise AttributeError(f"{own} has no attribute {name!r}.{did_you_mean(name, names)}", name=name, obj=self)


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


def _suggestion(name: str, names: list[str]) -> str:
    return did_you_mean(name, names) or f" It has: {', '.join(names)}."


# ----------------------------------------------------------------------------------------------------
# What a notebook shows of models that are not fitted: what to call.


def unfitted_html(model: Any) -> str:
    """Return an estimator that is not fitted as HTML: its parameters and what to call."""
    return page(shown_value(repr(model)), facts({"not fitted": f"call fit{model._fit_takes}"}))


# ----------------------------------------------------------------------------------------------------
# What a notebook shows of fitted models, scorecards and comparisons: the panels of the HTML report.
#
# The panels are in `report`, which is above all of these, so it is reached by name, as `frames` reaches `io`:
# `_PLACES` is all that is reached in this way. An error of a panel is not caught. A notebook prints it with its
# traceback and shows the text form of the object below, so that nothing is hidden and nothing is lost.

_PLACES = {
    "model": ("manyhands.report.notebook", "model_html"),
    "scorecards": ("manyhands.report.notebook", "scorecards_html"),
    "comparison": ("manyhands.report.notebook", "comparison_html"),
}


def panels_of(kind: Literal["model", "scorecards", "comparison"], value: Any) -> str:
    """Return the panels of the report that show an object."""
    module, name = _PLACES[kind]
    return str(getattr(import_module(module), name)(value))
