"""
Ordered classes: grades with bias
=================================

Workers grade too high or too low, each in their own way. A model that knows the order of the grades makes smaller
errors.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
crowd = mh.simulate.make_ordinal_crowd(n_items=400, n_workers=25, bias_sd=0.8, random_state=0)
votes = crowd.annotations
mean = np.bincount(votes.item, votes.label) / np.maximum(votes.n_labels, 1)

ordinal = mh.OrdinalDawidSkene().fit(votes)
error = {
    "mean of labels": np.abs(np.rint(mean) - crowd.truth).mean(),
    "majority vote": np.abs(mh.MajorityVote().fit(votes).labels_ - crowd.truth).mean(),
    "default": np.abs(mh.PooledDawidSkene().fit(votes).labels_ - crowd.truth).mean(),
    "ordinal, median": np.abs(ordinal.median_ - crowd.truth).mean(),
}
for name, value in error.items():
    print(f"{name}: mean absolute error {value:.3f}")

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.6), layout="constrained")
left.barh(list(error), list(error.values()), color="#0072b2")
left.set(xlabel="mean absolute error, in grades")
right.scatter(ordinal.bias_, ordinal.spread_, color="#0072b2")
right.axvline(0, color="#999999", linewidth=1)
right.set(xlabel="bias of a worker, in grades", ylabel="spread")
plt.show()
