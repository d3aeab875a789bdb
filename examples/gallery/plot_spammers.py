"""
How many bad workers can a method bear?
=======================================

Accuracy of four methods as the share of colluding workers grows.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
shares = [0.0, 0.1, 0.2, 0.3, 0.4, 0.5]
methods = {
    "majority vote": mh.MajorityVote,
    "Wawa": mh.Wawa,
    "Dawid-Skene": mh.DawidSkene,
    "default": mh.PooledDawidSkene,
}
accuracy = {name: [] for name in methods}
for share in shares:
    crowds = [
        mh.simulate.make_crowd(
            n_items=200, n_workers=30, n_classes=4, bad="colluding", bad_share=share, random_state=seed
        )
        for seed in range(3)
    ]
    for name, method in methods.items():
        accuracy[name].append(np.mean([np.mean(method().fit(c.annotations).labels_ == c.truth) for c in crowds]))

# %%
figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
for (name, values), mark in zip(accuracy.items(), "osD^"):
    axes.plot(shares, values, marker=mark, label=name)
    print(name, *(f"{value:.2f}" for value in values))
axes.legend(frameon=False)
axes.set(xlabel="share of colluding workers", ylabel="accuracy", ylim=(0, 1))
plt.show()
