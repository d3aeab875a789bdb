"""
A text classifier from crowd labels
===================================

Reviews with four labels each by workers of different quality. A classifier that learns the workers jointly is compared
with one that learns from the majority vote.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer

import manyhands as mh
from manyhands.classifiers import Raykar, TwoStage

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
rng = np.random.default_rng(0)

# %%
# Texts of two classes share most of their words, so that one text says little.
good, bad, both = (
    "great love value fast",
    "broken late refund slow",
    "order box blue size gift week colour shop two day",
)
truth = rng.integers(2, size=900)
texts = []
for positive in truth:
    sides = np.where(rng.random(3) < 0.75, positive, 1 - positive)  # a quarter of the words say the opposite
    own = [rng.choice((good if side else bad).split()) for side in sides]
    texts.append(" ".join([*own, *rng.choice(both.split(), 6)]))
X = TfidfVectorizer().fit_transform(texts)
train, test = slice(0, 600), slice(600, 900)

# %%
# Half of the workers guess in half of the cases.
accuracy = np.where(np.arange(20) < 10, 0.55, 0.85)
crowd = mh.simulate.label_items(truth[train], mh.simulate.one_coin(accuracy, 2), 4, random_state=0)

scores = {}
for name, model in {
    "vote, then regression": TwoStage("majority-vote", "logistic-regression"),
    "default, then regression": TwoStage("pooled-dawid-skene", "logistic-regression"),
    "Raykar: jointly": Raykar(standardise=False),
}.items():
    model.fit(X[train], crowd.annotations)
    scores[name] = np.mean(model.predict(X[test]) == truth[test])
    print(f"{name}: {scores[name]:.1%}")

# %%
figure, axes = plt.subplots(figsize=(5, 2), layout="constrained")
axes.barh(list(scores), list(scores.values()), color="#0072b2")
axes.set(xlim=(0.5, 1), xlabel="accuracy on new texts")
plt.show()
