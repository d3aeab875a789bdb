"""What skops covers of the scikit-learn estimators that a saved model may hold, and what it lets through.

    pip install skops==0.16.0
    python benchmarks/saved_estimators.py

Every estimator is saved, loaded without trusting any further type, and must predict the same. Then a child of a node of
a decision tree is changed to a node that does not exist, and the file is loaded with the type of trees trusted.
"""

from __future__ import annotations

import io
import subprocess
import sys
import tempfile
import warnings
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import skops.io
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis, QuadraticDiscriminantAnalysis
from sklearn.ensemble import (
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
)
from sklearn.linear_model import LogisticRegression, LogisticRegressionCV, SGDClassifier
from sklearn.naive_bayes import BernoulliNB, ComplementNB, GaussianNB, MultinomialNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, Normalizer, StandardScaler
from sklearn.svm import SVC
from sklearn.tree import DecisionTreeClassifier, ExtraTreeClassifier

ESTIMATORS = (
    LogisticRegression(),
    LogisticRegressionCV(cv=3),
    SGDClassifier(loss="log_loss"),
    GaussianNB(),
    BernoulliNB(),
    MultinomialNB(),
    ComplementNB(),
    LinearDiscriminantAnalysis(),
    QuadraticDiscriminantAnalysis(),
    SVC(probability=True),
    make_pipeline(StandardScaler(), PCA(2), LogisticRegression()),
    make_pipeline(MinMaxScaler(), Normalizer(), GaussianNB()),
    KNeighborsClassifier(),
    MLPClassifier(max_iter=20),
    CalibratedClassifierCV(GaussianNB(), cv=2),
    DecisionTreeClassifier(),
    ExtraTreeClassifier(),
    RandomForestClassifier(5),
    ExtraTreesClassifier(5),
    GradientBoostingClassifier(n_estimators=5),
    HistGradientBoostingClassifier(max_iter=5),
)
LOADED = """
import sys, numpy, skops.io
tree = skops.io.load(sys.argv[1], trusted=["sklearn.tree._tree.Tree"])
print(tree.predict_proba(numpy.ones((2, 4))), tree.predict_proba(-numpy.ones((2, 4))))
"""


def covered(estimator: Any, X: np.ndarray, y: np.ndarray) -> str:
    """Save, load and compare one estimator; what came of it."""
    saved = skops.io.dumps(estimator.fit(X, y))
    unknown = skops.io.get_untrusted_types(data=saved)
    if unknown:
        return "needs trust in " + ", ".join(unknown)
    same = np.array_equal(skops.io.loads(saved, trusted=[]).predict_proba(X), estimator.predict_proba(X))
    return "same predictions" if same else "OTHER PREDICTIONS"


def with_a_wrong_child(saved: bytes) -> bytes:
    """The file of a decision tree whose root has a child far outside of the tree."""
    changed = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(saved)) as before, zipfile.ZipFile(changed, "w") as after:
        for name in before.namelist():
            content = before.read(name)
            if name.endswith(".npy"):
                array = np.load(io.BytesIO(content)).copy()
                if array.dtype.names and "left_child" in array.dtype.names:
                    array["left_child"][0] = 10**7
                    file = io.BytesIO()
                    np.save(file, array)
                    content = file.getvalue()
            after.writestr(name, content)
    return changed.getvalue()


def main() -> None:
    warnings.simplefilter("ignore")
    generator = np.random.default_rng(0)
    X = np.abs(generator.normal(size=(80, 4)))
    y = (X[:, 0] + 0.3 * generator.normal(size=80) > 0.7).astype(int)
    outcomes = {str(estimator): covered(estimator, X, y) for estimator in ESTIMATORS}
    for name, outcome in outcomes.items():
        print(f"{name[:60]:62s}{outcome}")
    n_covered = sum(outcome == "same predictions" for outcome in outcomes.values())
    print(f"{n_covered} of {len(outcomes)} without further trust")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tree.skops"
        path.write_bytes(with_a_wrong_child(skops.io.dumps(DecisionTreeClassifier().fit(X, y))))
        ended = subprocess.run([sys.executable, "-c", LOADED, path], capture_output=True).returncode
    print(f"A tree with a wrong child, loaded and used: exit status {ended}")


if __name__ == "__main__":
    main()
