"""What makes an object an estimator in scikit-learn's eyes, without importing scikit-learn.

`sklearn.base` costs over a second of CPU at import; `manyhands aggregate` on a small file would spend most of its
time there. `sklearn.base.clone`, `GridSearchCV` and `Pipeline` only ask for the methods below.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from manyhands.exceptions import NotFittedError, ParameterError
from manyhands.validation import Constraint, check_parameters


class BaseEstimator:
    """Constructor parameters that can be listed, set, checked and printed."""

    _constraints: ClassVar[dict[str, Constraint]] = {}
    _fit_takes: ClassVar[str] = "(annotations)"

    @classmethod
    def _defaults(cls) -> dict[str, Any]:
        """Every constructor parameter with its default; what `**others` passes up is the next class's to name."""
        found: dict[str, Any] = {}
        for owner in cls.__mro__[:-1]:  # all but `object`
            if "__init__" in vars(owner):
                parameters = list(inspect.signature(owner.__init__).parameters.values())[1:]  # type: ignore[misc]
                named = {p.name: p.default for p in parameters if p.kind is not p.VAR_KEYWORD}
                found |= {name: default for name, default in named.items() if name not in found}
                if all(p.kind is not p.VAR_KEYWORD for p in parameters):
                    break
        return found

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return list(cls._defaults())

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor parameters by name; `deep` adds those of wrapped estimators as `name__parameter`."""
        own = {name: getattr(self, name) for name in self._parameter_names()}
        wrapped = {n: v for n, v in own.items() if deep and hasattr(v, "get_params") and not isinstance(v, type)}
        return own | {f"{name}__{inner}": v for name, e in wrapped.items() for inner, v in e.get_params().items()}

    def set_params(self, **parameters: Any) -> Self:
        """Set constructor parameters by name; `name__parameter` sets one of a wrapped estimator."""
        known = self._parameter_names()
        for name, value in parameters.items():
            outer, _, inner = name.partition("__")
            if outer not in known or (inner and not hasattr(getattr(self, outer), "set_params")):
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}. It has: {', '.join(known)}.")
            if inner:
                getattr(self, outer).set_params(**{inner: value})
            else:
                setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = self._defaults()
        changed = {name: v for name, v in self.get_params(deep=False).items() if repr(v) != repr(defaults[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn's own machinery asks before a search or a pipeline; it is loaded by then."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self.get_params(deep=False), self._constraints)

    def _check_fitted(self) -> None:
        if not any(name.endswith("_") and not name.startswith("_") for name in vars(self)):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet. Call fit{self._fit_takes} first.")
