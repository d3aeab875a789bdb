"""A simulated crowd with a colluding group: which workers collude, and how accurate the others are."""

import warnings

import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)  # the same messages are in notes_
crowd = mh.simulate.make_crowd(
    n_items=400,
    n_workers=20,
    n_classes=3,
    labels_per_item=6,
    spread=0.1,
    bad="colluding",
    bad_share=0.3,
    random_state=0,
)
votes = crowd.annotations
model = mh.PooledDawidSkene().fit(votes)

correct = crowd.truth[votes.item] == votes.label
true_accuracy = np.bincount(votes.worker, weights=correct) / np.bincount(votes.worker)  # the crowd is simulated

print("worker  type   p(type)  accuracy  true  remark")
for w in range(votes.n_workers):
    kind = model.worker_types_[w].argmax()
    remark = "colluding group" if model.collusion_group_[w] else ""
    print(
        f"{model.worker_ids_[w]:>6}  {model.types_[kind]:<5}  {model.worker_types_[w, kind]:7.2f}  "
        f"{model.worker_accuracy_[w]:8.2f}  {true_accuracy[w]:4.2f}  {remark}"
    )

vote = mh.MajorityVote().fit(votes)
for name, fitted in (("majority vote", vote), ("pooled Dawid-Skene", model)):
    print(f"{name}: {np.mean(fitted.labels_ == crowd.truth):.1%} of the labels are correct")
for sentence in model.notes_.values():
    print(sentence)
