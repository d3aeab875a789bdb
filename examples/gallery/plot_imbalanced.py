"""
An imbalanced crowd: whose class prior?
=======================================

Training items are ten to one, test items are balanced. Much of what methods for imbalanced classes gain is a shift of
the class prior, which any classifier can have.
"""

import warnings

import matplotlib.pyplot as plt

import manyhands as mh
from manyhands.classifiers import PriorAdjusted, Raykar, TwoStage

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
data = mh.simulate.make_long_tail(n_items=800, n_classes=4, random_state=1)
X, annotations = data.X, data.crowd.annotations
print(annotations)

# %%
# Each method as it is, and under a uniform class prior. Nothing else changes: the fit is the same.
methods = {
    "vote, then regression": TwoStage("majority-vote", "logistic-regression"),
    "Raykar": Raykar(),
}
rows = {}
for name, method in methods.items():
    for prior, model in (("as it is", method), ("uniform prior", PriorAdjusted(method))):
        predicted = model.fit(X, annotations).predict(data.X_test)
        rows[f"{name}, {prior}"] = mh.metrics.balanced_accuracy(data.truth_test, predicted)
        print(f"{name}, {prior}: {rows[f'{name}, {prior}']:.1%}")

# %%
figure, axes = plt.subplots(figsize=(5.5, 2.2), layout="constrained")
axes.barh(list(rows), list(rows.values()), color=["#999999", "#0072b2"] * 2)
axes.set(xlim=(0, 1), xlabel="balanced accuracy on balanced test items")
plt.show()
