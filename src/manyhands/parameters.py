"""What makes an object an estimator in scikit-learn's eyes, without importing scikit-learn.

`sklearn.base` costs over a second of CPU at import; `manyhands aggregate` on a small file would spend most of its
time there. `sklearn.base.clone`, `GridSearchCV` and `Pipeline` only ask for the methods below.
"""

from __future__ import annotations

import inspect
from typing import Any, ClassVar, Self

from manyhands.exceptions import NotFittedError, ParameterError
from manyhands.validation import Constraint, check_parameters


class Parameters:
    """Constructor parameters that can be listed, set, checked and printed."""

    _constraints: ClassVar[dict[str, Constraint]] = {}

    @classmethod
    def _parameter_names(cls) -> list[str]:
        return [name for name in inspect.signature(cls).parameters]

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        """The constructor parameters by name; `deep` is scikit-learn's and changes nothing here."""
        return {name: getattr(self, name) for name in self._parameter_names()}

    def set_params(self, **parameters: Any) -> Self:
        """Set constructor parameters by name."""
        known = self._parameter_names()
        for name, value in parameters.items():
            if name not in known:
                raise ParameterError(f"{type(self).__name__} has no parameter {name!r}. It has: {', '.join(known)}.")
            setattr(self, name, value)
        return self

    def __repr__(self) -> str:
        defaults = {name: p.default for name, p in inspect.signature(type(self)).parameters.items()}
        changed = {name: v for name, v in self.get_params().items() if repr(v) != repr(defaults[name])}
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in changed.items())})"

    def __sklearn_tags__(self) -> Any:
        """What scikit-learn's own machinery asks before a search or a pipeline; it is loaded by then."""
        from sklearn.utils import Tags, TargetTags

        return Tags(estimator_type=None, target_tags=TargetTags(required=False))

    def _check_parameters(self) -> None:
        check_parameters(type(self).__name__, self.get_params(), self._constraints)

    def _check_fitted(self) -> None:
        if not any(name.endswith("_") and not name.startswith("_") for name in vars(self)):
            raise NotFittedError(f"This {type(self).__name__} is not fitted yet. Call fit(annotations) first.")
