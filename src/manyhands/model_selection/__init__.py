"""Choose among methods and settings by held-out annotations."""

from manyhands.model_selection.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
