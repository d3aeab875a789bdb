"""
Fifty answers: what is the confidence worth?
============================================

Workers err on the same hard items, so that the posterior is too certain. Fifty answers about random items mend it,
and say how accurate the labels are.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
crowd = mh.simulate.make_crowd(
    n_items=1000, n_workers=40, n_classes=3, kind="difficulty", accuracy=0.75, random_state=2
)
annotations = crowd.annotations
truth = dict(zip(annotations.item_ids.tolist(), crowd.truth.tolist()))

# %%
# The expert answers fifty items that were drawn at random.
drawn = mh.trust.random_items(annotations, n=50)
answers = drawn.answer({item: truth[item] for item in drawn})
before = mh.DawidSkene().fit(annotations)
after = mh.calibrate(before, answers)
print(after.calibration_)
print(mh.trust.estimate_accuracy(before, answers))

# %%
# Of labels with a confidence of .8, four in five should be right. Items that were answered are left out.
others = np.array([item not in set(drawn) for item in annotations.item_ids.tolist()])
figure, axes = plt.subplots(figsize=(3.6, 3.4), layout="constrained")
axes.plot([0.3, 1], [0.3, 1], color="#999999", linewidth=1)
for name, model, mark in (("before", before, "o"), ("after 50 answers", after, "s")):
    confidence = model.posterior_[others].max(axis=1)
    right = model.labels_[others] == crowd.truth[others]
    parts = np.array_split(np.argsort(confidence, kind="stable"), 8)
    axes.plot([confidence[p].mean() for p in parts], [right[p].mean() for p in parts], marker=mark, label=name)
    error = sum(abs(confidence[p].mean() - right[p].mean()) * len(p) for p in parts) / len(right)
    print(f"{name}: calibration error {error:.3f}")
axes.legend(frameon=False)
axes.set(xlabel="confidence", ylabel="share of right labels", xlim=(0.3, 1.02), ylim=(0.3, 1.02))
plt.show()
