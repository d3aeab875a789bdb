"""
A guarantee: which labels stand, and which go to the expert
===========================================================

With answers about random items a bound holds whatever the crowd is like: at most one label in ten is wrong, in 95 % of
draws of the answers.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
crowd = mh.simulate.make_crowd(n_items=600, n_workers=30, n_classes=3, labels_per_item=3, accuracy=0.72, random_state=1)
truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
model = mh.PooledDawidSkene().fit(crowd.annotations)

# %%
# The more answers, the more labels stand.
numbers, shares, errors = [30, 60, 100, 200], [], []
for n in numbers:
    drawn = mh.trust.random_items(crowd.annotations, n=n, random_state=3)
    answers = drawn.answer({item: truth[item] for item in drawn})
    promise = mh.trust.guarantee(model, answers, error=0.10, confidence=0.95)
    stands = np.asarray(promise.stands)
    shares.append(stands.mean())
    errors.append(np.mean(stands & (model.labels_ != crowd.truth)))
    print(f"{n} answers: {stands.mean():.0%} of the labels stand; {errors[-1]:.1%} of all labels are wrong")

# %%
figure, axes = plt.subplots(figsize=(4.4, 2.8), layout="constrained")
axes.plot(numbers, shares, marker="o", label="labels that stand")
axes.plot(numbers, errors, marker="s", label="wrong labels among all")
axes.axhline(0.10, color="#999999", linewidth=1, linestyle="--")
axes.legend(frameon=False)
axes.set(xlabel="answers about random items", ylabel="share of all items", ylim=(0, 1))
plt.show()
