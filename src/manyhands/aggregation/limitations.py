"""Sentences on limitations of a result that apply to all aggregators, by the code of their note."""

NO_REDUNDANCY = "No item has two labels, so nothing can be inferred about any worker; labels stay as given."
SINGLE_CLASS = "Every label names the same class; the posterior rests on the priors."
NOT_CONVERGED = "The method stopped after {} iterations before it converged; raise max_iter."
NO_TRAINING_LABELS = (
    "This model was fitted on labels in shards and does not hold them, so that it cannot score others. It predicts; "
    "fit the method in memory, on a part of the items if need be, to score labels."
)
