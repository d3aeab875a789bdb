"""From (item, worker, label) triples to one label per item, the accuracy of each worker, and notes on the data."""

import warnings

import manyhands as mh

VOTES = [
    ("photo-1", "ann", "cat"),
    ("photo-1", "bob", "cat"),
    ("photo-1", "cy", "dog"),
    ("photo-2", "ann", "dog"),
    ("photo-2", "bob", "dog"),
    ("photo-2", "cy", "dog"),
    ("photo-3", "ann", "cat"),
    ("photo-3", "bob", "cat"),
    ("photo-4", "ann", "dog"),
    ("photo-4", "cy", "dog"),
]

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)  # the same messages are in notes_
votes = mh.Annotations.from_triples(*zip(*VOTES))
model = mh.PooledDawidSkene().fit(votes)

print("Labels, with posterior probability")
for item, label, posterior in zip(model.item_ids_, model.labels_, model.posterior_):
    print(f"  {item}: {label} ({posterior.max():.0%})")

print("Workers, with estimated accuracy")
for worker, accuracy in zip(model.worker_ids_, model.worker_accuracy_):
    print(f"  {worker}: {accuracy:.0%}")

print("Notes")
for code_word, sentence in model.notes_.items():
    print(f"  {code_word}: {sentence}")
