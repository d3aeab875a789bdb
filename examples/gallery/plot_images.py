"""
Images: a crowd layer
=====================

Digits labelled by twenty workers, a quarter of whom always give one class. A network with a noise layer for each worker
finds out who they are while it learns.
"""

import warnings

import matplotlib.pyplot as plt
import numpy as np

import manyhands as mh

warnings.simplefilter("ignore", mh.exceptions.CrowdWarning)
data = mh.datasets.make_digits(n_workers=20, labels_per_item=3, bad="constant", bad_share=0.25, random_state=0)

# %%
# Networks need torch; without it the regression with confusion matrices stands for it.
try:
    from manyhands.classifiers import CrowdLayer

    model = CrowdLayer(init="dawid-skene", max_epochs=15, learning_rate=3e-3, random_state=0)
    model.fit(data.X / 16, data.annotations)
except mh.exceptions.MissingExtraError:
    from manyhands.classifiers import Raykar

    model = Raykar(standardise=False).fit(data.X / 16, data.annotations)
predicted = model.predict(data.X_test / 16)
print(f"{type(model).__name__}: {np.mean(predicted == data.y_test):.1%} of new images are right")

# %%
# The confusion matrix of a good worker has a diagonal, that of a bad one a column.
bad = np.flatnonzero(data.extra["is_bad"])[0]
good = np.flatnonzero(~data.extra["is_bad"])[0]
figure, axes = plt.subplots(1, 3, figsize=(8, 2.6), layout="constrained")
axes[0].imshow(np.hstack(data.X_test[:4].reshape(4, 8, 8)), cmap="gray_r")
axes[0].set(title=f"predicted {' '.join(map(str, predicted[:4]))}", xticks=[], yticks=[])
for place, worker, name in ((axes[1], good, "a good worker"), (axes[2], bad, "gives one class")):
    place.imshow(model.confusion_[worker], cmap="Blues", vmin=0, vmax=1)
    place.set(title=name, xlabel="label", ylabel="truth")
plt.show()
