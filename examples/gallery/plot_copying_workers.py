"""
Workers who copy one another
============================

Three workers copy a fourth. Their agreement looks like skill; it is found because they agree where they are wrong, too.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
rng = np.random.default_rng(0)
n_items = 300
truth = rng.integers(3, size=n_items)


def honest(accuracy):
    return np.where(rng.random(n_items) < accuracy, truth, (truth + rng.integers(1, 3, n_items)) % 3)


source = honest(0.6)
columns = [source, source, source, source, *(honest(0.75) for _ in range(5))]
names = [*(f"copy {i}" for i in range(4)), *(f"worker {i}" for i in range(5))]
annotations = mh.Annotations.from_matrix(np.column_stack(columns), worker_ids=names)

# %%
# With the search for copies and without it.
for found in (True, False):
    model = mh.PooledDawidSkene(detect_collusion=found).fit(annotations)
    print(f"detect_collusion={found}: {np.mean(model.labels_ == truth):.1%} of the labels are right")
    print("  ", *(text for name, text in model.notes_.items() if name in ("copies", "collusion")))
model = mh.PooledDawidSkene().fit(annotations)
cards = mh.score_workers(model)
print([name for name, is_copy in zip(names, cards.flagged("copying")) if is_copy])

# %%
# How often two workers agree where the first of them is wrong: independent workers seldom do.
label = np.column_stack(columns)
agree = np.array(
    [[np.mean(label[label[:, a] != truth, b] == label[label[:, a] != truth, a]) for b in range(9)] for a in range(9)]
)
figure, axes = plt.subplots(figsize=(4.5, 3.6), layout="constrained")
image = axes.imshow(agree, cmap="Blues", vmin=0, vmax=1)
axes.set_xticks(range(9), names, rotation=90)
axes.set_yticks(range(9), names)
figure.colorbar(image, label="agreement on errors")
plt.show()
