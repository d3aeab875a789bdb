"""Model selection without ground truth: cross-validated log-likelihood of held-out annotations.

folds        cross-validation splits: folds of annotations for aggregators, folds of items for classifiers
comparison   `compare`, the one comparison of methods for Python and the command line, and its result `Comparison`
"""

from manyhands.model_selection.comparison import Comparison, compare

__all__ = ["Comparison", "compare"]
