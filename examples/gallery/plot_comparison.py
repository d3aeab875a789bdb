"""
Beside crowd-kit and cleanlab, on the same data
===============================================

One simulated crowd with features, three packages. Those that are not installed are left out, and named. This is an
illustration on one crowd; seventeen real ones are on the comparison page of the documentation.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd

import manyhands as mh

warnings.simplefilter("ignore")
crowd = {"n_workers": 25, "labels_per_item": 4, "accuracy": 0.7, "bad": "random", "bad_share": 0.3}
data = mh.datasets.make_breast_cancer(**crowd, random_state=0)
votes = data.annotations
frame = pd.DataFrame({"task": votes.item, "worker": votes.worker, "label": votes.label})
X = (data.X - data.X.mean(axis=0)) / data.X.std(axis=0)
accuracy, missing = {}, []

# %%
# manyhands: aggregators, and a classifier that learns the workers jointly.
accuracy["manyhands: vote"] = np.mean(mh.MajorityVote().fit(votes).labels_ == data.y_true)
accuracy["manyhands: default"] = np.mean(mh.PooledDawidSkene().fit(votes).labels_ == data.y_true)
raykar = mh.classifiers.Raykar(standardise=False).fit(X, votes)
accuracy["manyhands: Raykar, features"] = np.mean(raykar.posterior_.argmax(1) == data.y_true)

# %%
# crowd-kit: its Dawid-Skene on the same frame.
try:
    from crowdkit.aggregation import DawidSkene

    labels = DawidSkene(n_iter=20).fit_predict(frame).sort_index().to_numpy()
    accuracy["crowd-kit: Dawid-Skene"] = np.mean(labels == data.y_true)
except ImportError:
    missing.append("crowd-kit")

# %%
# cleanlab: CROWDLAB, with cross-validated probabilities of a logistic regression on the majority vote.
try:
    from cleanlab.multiannotator import get_label_quality_multiannotator, get_majority_vote_label
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import cross_val_predict

    matrix = np.full((votes.n_items, votes.n_workers), np.nan)
    matrix[votes.item, votes.worker] = votes.label
    vote = get_majority_vote_label(pd.DataFrame(matrix))
    proba = cross_val_predict(LogisticRegression(max_iter=200), X, vote, cv=5, method="predict_proba")
    found = get_label_quality_multiannotator(pd.DataFrame(matrix), proba, verbose=False)["label_quality"]
    accuracy["cleanlab: CROWDLAB, features"] = np.mean(found["consensus_label"].to_numpy(int) == data.y_true)
except ImportError:
    missing.append("cleanlab")

# %%
for name, value in accuracy.items():
    print(f"{name}: {value:.1%}")
print("not installed:", ", ".join(missing) or "none")
figure, axes = plt.subplots(figsize=(6, 2.4), layout="constrained")
axes.barh(list(accuracy), list(accuracy.values()), color="#0072b2")
axes.set(xlim=(0.5, 1), xlabel="accuracy of the labels")
plt.show()
