"""
A method of your own
====================

An aggregator in thirty lines. It derives from ``Aggregator``, and works in Python, in ``compare`` and in the checks of
``manyhands.testing``; with a line in the entry points of a package of its own it has a name on the command line too.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.validation import Number

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)

# %%
# The constructor assigns, ``_constraints`` says what is legal, ``_infer`` is the method, and ``_posterior`` applies
# what was fitted.


class TrustTheBusy(Aggregator):
    """Vote in which workers with many labels count more."""

    _constraints = {"power": Number(least=0)}

    def __init__(self, power: float = 0.5) -> None:
        self.power = power

    def _infer(self, annotations, gold):
        n_labels = np.bincount(annotations.worker, minlength=annotations.n_workers)
        self._weight = np.append(n_labels, n_labels.mean()) ** self.power  # the last: workers that fit did not see
        return Inference(self._posterior(annotations, gold))

    def _posterior(self, annotations, gold):
        votes = np.full((annotations.n_items, annotations.n_classes), 1e-9)
        np.add.at(votes, (annotations.item, annotations.label), self._weight[annotations.worker])
        if gold is not None:
            votes[gold >= 0] = np.eye(annotations.n_classes)[gold[gold >= 0]]
        return votes / votes.sum(axis=1, keepdims=True)


# %%
# It stands beside the others at once: ranked by the likelihood of held-out labels, without truth.
crowd = mh.simulate.make_crowd(n_items=400, n_workers=30, n_classes=3, bad="random", bad_share=0.3, random_state=0)
found = mh.compare([TrustTheBusy(), "majority-vote", "wawa", "pooled-dawid-skene"], crowd.annotations, verbose=0)
print(found)

# %%
powers = [0, 0.25, 0.5, 1, 2]
accuracy = [np.mean(TrustTheBusy(power).fit(crowd.annotations).labels_ == crowd.truth) for power in powers]
figure, axes = plt.subplots(figsize=(4.4, 2.6), layout="constrained")
axes.plot(powers, accuracy, marker="o")
axes.set(xlabel="power", ylabel="accuracy")
plt.show()
