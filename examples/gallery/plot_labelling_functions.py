"""
Labelling functions: silence is information
===========================================

Functions that give one class or nothing. Dawid-Skene cannot learn from such workers; the default recognises them.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
rng = np.random.default_rng(3)
truth = rng.integers(2, size=600)
functions = [(0, 0.6, 0.05), (0, 0.3, 0.1), (0, 0.15, 0.02), (1, 0.5, 0.2), (1, 0.3, 0.05), (1, 0.7, 0.3)]
labels = np.full((600, len(functions)), -1)
for column, (of_class, hit, false) in enumerate(functions):
    fires = rng.random(600) < np.where(truth == of_class, hit, false)
    labels[fires, column] = of_class
annotations = mh.Annotations.from_matrix(labels)
covered = annotations.n_labels > 0
print(f"{covered.mean():.0%} of the items have a label")

# %%
# The same six functions, read by five methods; on covered items.
methods = [mh.MajorityVote(), mh.Wawa(), mh.DawidSkene(), mh.MACE(), mh.PooledDawidSkene()]
accuracy = {}
for method in methods:
    fitted = method.fit(annotations)
    accuracy[type(method).__name__] = np.mean(fitted.labels_[covered] == truth[covered])
    print(f"{type(method).__name__}: {accuracy[type(method).__name__]:.1%}")
print(fitted.notes_["one_class_workers"])

# %%
figure, axes = plt.subplots(figsize=(5, 2.3), layout="constrained")
axes.barh(list(accuracy), list(accuracy.values()), color="#0072b2")
axes.set(xlim=(0.4, 1), xlabel="accuracy on items with a label")
plt.show()
