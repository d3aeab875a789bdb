"""
Language models as judges: what are six votes worth?
====================================================

Models of one family err on the same items. Their votes are worth fewer independent ones than there are models.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
rng = np.random.default_rng(0)

# %%
# Four people who err independently, and six models that mostly err where their common ancestor errs.
n_items, n_classes = 400, 3
truth = rng.integers(n_classes, size=n_items)
wrong = (truth + rng.integers(1, n_classes, n_items)) % n_classes
ancestor = np.where(rng.random(n_items) < 0.75, truth, wrong)
votes = np.empty((n_items, 10), int)
for person in range(4):
    votes[:, person] = np.where(
        rng.random(n_items) < 0.8, truth, (truth + rng.integers(1, n_classes, n_items)) % n_classes
    )
for machine in range(4, 10):
    votes[:, machine] = np.where(rng.random(n_items) < 0.9, ancestor, rng.integers(n_classes, size=n_items))
names = [*(f"person {i}" for i in range(4)), *(f"model {i}" for i in range(6))]
annotations = mh.Annotations.from_matrix(votes, worker_ids=names)

# %%
# The number of independent votes, with 95% intervals over items.
worth = mh.trust.effective_votes(annotations, {"humans": names[:4], "machines": names[4:]})
for group in worth:
    print(f"{group.group}: {group.votes:.0f} votes are worth {group.effective_votes:.1f}")

# %%
# Votes that count as what they are worth do not outvote people.
weighted = mh.trust.down_weight_families(annotations, {"humans": names[:4], "machines": names[4:]})
accuracy = {
    "vote": np.mean(mh.MajorityVote().fit(annotations).labels_ == truth),
    "vote, down-weighted": np.mean(mh.MajorityVote().fit(weighted).labels_ == truth),
}
print({name: f"{value:.1%}" for name, value in accuracy.items()})

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(7, 2.4), layout="constrained")
left.bar([group.group for group in worth], [group.votes for group in worth], color="#cccccc", label="votes")
left.bar(
    [group.group for group in worth],
    [group.effective_votes for group in worth],
    color="#0072b2",
    width=0.5,
    label="worth",
)
left.legend(frameon=False)
left.set(ylabel="votes per item")
right.bar(list(accuracy), list(accuracy.values()), color="#0072b2")
right.set(ylim=(0.5, 1), ylabel="accuracy")
plt.show()
