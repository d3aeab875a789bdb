"""
A first export: labels and a map of workers
===========================================

A small export of Label Studio becomes labels with a confidence, and a picture of the workers.
"""

import warnings
from pathlib import Path

import matplotlib.pyplot as plt

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)  # the same messages are in notes_

# %%
# The ledger says what became of every row: drafts and skipped tasks are no labels.
places = [Path("export.json"), *(Path(*[".."] * up, "examples", "export.json") for up in range(6))]
export = next(path for path in places if path.is_file())
reading = mh.io.read_export(export, question="sentiment")
annotations = reading.annotations
print(annotations)

# %%
# The default method infers the labels.
model = mh.PooledDawidSkene().fit(annotations)
for item, label, posterior in list(zip(model.item_ids_, model.labels_, model.posterior_))[:5]:
    print(f"item {item}: {label} ({posterior.max():.0%})")

# %%
# One of the eight workers guesses. The lines are 95% intervals; ``mh.plots.workers(model)`` is the picture of the
# report.
cards = mh.score_workers(model)
figure, axes = plt.subplots(figsize=(5, 3), layout="constrained")
for card in cards:
    accused = bool(set(card.alerts) & set(mh.scorecards.ACCUSATIONS))
    color, mark = ("#c44e00", "s") if accused else ("#0072b2", "o")
    axes.plot([card.n_labels] * 2, [card.accuracy_low, card.accuracy_high], color=color, linewidth=1)
    axes.plot(card.n_labels, card.accuracy, color=color, marker=mark)
    print(card.worker, f"{card.accuracy:.2f}", *card.alerts)
axes.set(xlabel="labels of the worker", ylabel="accuracy", ylim=(0, 1))
plt.show()
