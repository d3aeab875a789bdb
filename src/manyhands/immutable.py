"""Objects that hold read-only arrays and never change."""

from __future__ import annotations

from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt


class ImmutableArrays:
    """Base class of objects whose fields are read-only arrays, compared by value.

    Attributes
    ----------
    _fields : tuple of str
        Names of the arrays; everything else is computed from them on first use.
    frame_library : str or None
        Library of the data frame that the arrays were read from; tables of results come back as its frames.
    is_ordered : bool
        Whether the classes are in the order of their grades, from low to high.
    """

    _fields: ClassVar[tuple[str, ...]] = ()
    frame_library: str | None = None
    is_ordered: bool = False

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in self._fields)

    __hash__ = None  # type: ignore[assignment]  # equality is by value, and arrays have no cheap hash

    def __setstate__(self, state: dict[str, npt.NDArray[Any]]) -> None:
        vars(self).update({name: frozen(array) for name, array in state.items()})

    def __getstate__(self) -> dict[str, npt.NDArray[Any]]:
        return {name: getattr(self, name) for name in self._fields}  # cached properties are computed again

    def from_library(self, frame_library: str | None) -> Self:
        """Return the same arrays with a note of the library of the data frame that they were read from.

        Parameters
        ----------
        frame_library : {"pandas", "polars", "pyarrow"} or None
            The library; None changes nothing.

        Returns
        -------
        Self
            A new object with the same arrays, or this one.
        """
        return self if frame_library is None else self._marked(frame_library, self.is_ordered)

    def marked_like(self, other: ImmutableArrays) -> Self:
        """Return the same arrays with what is noted about another object: data frame library, order of classes.

        Parameters
        ----------
        other : ImmutableArrays
            The object from which these arrays come.

        Returns
        -------
        Self
            A new object with the same arrays, or this one.
        """
        if other.frame_library is None and not other.is_ordered:
            return self
        return self._marked(other.frame_library, other.is_ordered)

    def with_ordered_classes(self) -> Self:
        """Return the same arrays with the note that the classes are in the order of their grades, from low to high.

        Returns
        -------
        Self
            A new object with the same arrays.
        """
        return self._marked(self.frame_library, True)

    def _marked(self, frame_library: str | None, is_ordered: bool) -> Self:
        new = type(self).__new__(type(self))
        vars(new).update(vars(self))  # with what was computed from the arrays already
        vars(new).update({"frame_library": frame_library, "is_ordered": is_ordered})
        return new

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
