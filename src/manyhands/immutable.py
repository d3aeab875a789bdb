"""Objects that hold read-only arrays and never change."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt


class ImmutableArrays:
    """Base class of objects whose fields are read-only arrays, compared by value.

    Attributes
    ----------
    _fields : tuple of str
        Names of the arrays; everything else is computed from them on first use.
    """

    _fields: ClassVar[tuple[str, ...]] = ()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self._fields)

    __hash__ = None  # type: ignore[assignment]  # equality is by value, and arrays have no cheap hash

    def __setstate__(self, state: dict[str, npt.NDArray[Any]]) -> None:
        vars(self).update({name: frozen(array) for name, array in state.items()})

    def __getstate__(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in self._fields}  # cached properties are computed again

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable, so {name!r} cannot be set; build new ones.")

    def __delattr__(self, name: str) -> None:
        raise AttributeError(f"{type(self).__name__} are immutable, so {name!r} cannot be deleted.")


def frozen(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Make an array read-only.

    Parameters
    ----------
    array : ndarray
        Changed in place.

    Returns
    -------
    ndarray
        The same array.
    """
    array.setflags(write=False)
    return array
