"""
Items of different difficulty
=============================

The reference data of difficulty EM: two Gaussian classes, five workers who err more near the boundary. The method
estimates how difficult each item is, and discounts errors on hard ones.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh
from manyhands.classifiers import Raykar

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
data = mh.simulate.make_difficulty_gaussians()
annotations, truth = data.crowd.annotations, data.crowd.truth

# %%
# Adaptive difficulty EM beside the same model without difficulty.
adaptive = mh.DifficultyEM().fit(data.X, annotations)
original = Raykar().fit(data.X, annotations)
for name, model in (("Adaptive", adaptive), ("Original EM", original), ("vote", mh.MajorityVote().fit(annotations))):
    print(f"{name}: {np.mean(model.posterior_.argmax(1) == truth):.1%} of the labels are right")

# %%
# Difficult items lie between the classes, where labels are close to chance.
figure, axes = plt.subplots(figsize=(4.6, 3.6), layout="constrained")
points = axes.scatter(*data.X.T, c=adaptive.difficulty_, cmap="viridis", s=8)
axes.plot([-4, 4], [4, -4], color="black", linewidth=1)
axes.set(xlabel="first feature", ylabel="second feature", xlim=(-4, 4), ylim=(-4, 4))
figure.colorbar(points, label="estimated difficulty")
plt.show()
