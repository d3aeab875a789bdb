"""Fitted scikit-learn estimators as a JSON tree and named arrays, without pickles.

Only the classes listed here can be saved. Loading creates objects of these classes only, from numbers, text and
arrays, so a file from an unknown source runs no code. Not supported: estimators that call a function of the caller,
precomputed kernels and distances, categorical features of HistGradientBoosting, a custom ``init`` of
GradientBoosting, and every class that is not in the list.

Estimators that predict from documented attributes (linear models, naive Bayes, discriminant analysis, scalers,
projections) can be loaded by other versions of scikit-learn; those that predict from private or compiled state only
by the major.minor version that saved them. Random generators become None, and so does the cache folder of a pipeline.
"""

from __future__ import annotations

import inspect
import math
from importlib import import_module
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError

# ----------------------------------------------------------------------------------------------------
# Estimators whose predictions are computed by compiled code that does not check its input.
#
# A wrong child of a tree node, or an array that is too short, would make that code read other memory of the process. So
# whatever comes from a file is checked here before the first prediction.

KINDS = ("Tree", "TreePredictor")  # the first of trees and forests, the second of HistGradientBoosting
_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier")
_FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
_BOOSTED = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")


def refuse_unsupported(name: str, description: dict[str, Any]) -> None:
    """Refuse parameters and attributes that cannot be restored from numbers.

    A precomputed kernel or distance refers to the training rows by number, and a categorical feature to a table of its
    own.
    """
    if "precomputed" in [v for v in (description.get("kernel"), description.get("metric")) if isinstance(v, str)]:
        raise ParameterError(f"A {name} with a precomputed kernel or metric cannot be saved; give it features.")
    if name == "GradientBoostingClassifier" and not (
        description.get("init") is None or isinstance(description["init"], str)
    ):
        raise ParameterError(f"A {name} with an estimator as init cannot be saved; leave out init.")
    ways = [description.get(way) for way in ("_preprocessor", "is_categorical_", "categorical_features")]
    if name == "HistGradientBoostingClassifier" and not all(way is None or isinstance(way, str) for way in ways):
        raise ParameterError(f"A {name} with categorical features cannot be saved; use numbers only.")


def neighbours_to_fit(estimator: Any) -> dict[str, Any]:
    """Return the training data that a fitted KNeighborsClassifier keeps; its search tree is built again from them."""
    if not hasattr(estimator, "_fit_X"):
        return {}
    return {"rows": estimator._fit_X, "labels": estimator.classes_[estimator._y]}


def tree_to_arrays(tree: Any) -> dict[str, Any]:
    """Return the nodes of a tree as bytes without padding between fields, and their values."""
    from numpy.lib.recfunctions import repack_fields

    nodes = tree.__getstate__()["nodes"] if type(tree).__name__ == "Tree" else tree.nodes
    packed = repack_fields(nodes)
    packed = packed.astype(packed.dtype.newbyteorder("<"))
    description = {"nodes": np.frombuffer(packed.tobytes(), np.uint8)}
    if type(tree).__name__ == "Tree":
        description |= {"values": tree.value, "n_features": tree.n_features, "n_classes": tree.n_classes.tolist()}
    return description


def tree_from_arrays(kind: str, description: dict[str, Any]) -> Any:
    """Create a tree, checked so that every path ends in a leaf."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.tree._tree import NODE_DTYPE, Tree

    if kind == "Tree":
        nodes = _nodes(description["nodes"], NODE_DTYPE)
        inner = nodes["left_child"] != -1
        depth = _depth(nodes["left_child"], nodes["right_child"], inner)
        tree = Tree(description["n_features"], np.array(description["n_classes"], np.intp), 1)
        _require(
            len(description["n_classes"]) == 1 and description["values"].dtype == np.float64, "the values of a tree"
        )
        _require(_within(nodes["feature"][inner], tree.n_features), "the features of a tree")
        values = np.ascontiguousarray(description["values"])
        _require(bool(np.isfinite(values).all() and not np.isnan(nodes["threshold"]).any()), "the numbers of a tree")
        tree.__setstate__({"max_depth": depth, "node_count": len(nodes), "nodes": nodes, "values": values})
        return tree
    _require(kind == "TreePredictor", "the kind of a tree")
    nodes = _nodes(description["nodes"], PREDICTOR_RECORD_DTYPE)
    _depth(nodes["left"].astype(np.int64), nodes["right"].astype(np.int64), nodes["is_leaf"] == 0)
    _require(not nodes["is_categorical"].any(), "the splits of a tree")
    finite = np.isfinite(nodes["value"]).all() and not np.isnan(nodes["num_threshold"]).any()
    _require(bool(finite), "the numbers of a tree")
    none = np.zeros((0, 8), np.uint32)
    return TreePredictor(nodes, none, none)


def finish(name: str, estimator: Any, state: dict[str, Any]) -> Any:
    """Set the fitted state of an estimator, check it, and create the attributes that were not stored."""
    import sklearn

    if hasattr(estimator, "_parameter_constraints"):
        estimator._validate_params()
    if not state:
        return estimator
    if name == "KNeighborsClassifier":
        return estimator.fit(state["rows"], state["labels"])
    if hasattr(estimator, "__setstate__"):
        # IsotonicRegression builds its function here; versions were compared before.
        estimator.__setstate__(state | {"_sklearn_version": sklearn.__version__})
    else:
        vars(estimator).update(state)
    _check_classes(state)
    if name in (*_TREES, *_FORESTS, *_BOOSTED):
        _check_trees(name, estimator)
    if name == "SVC":
        _check_support_vectors(estimator)
    if name in _BOOSTED:
        estimator._loss = estimator._get_loss(sample_weight=None)
    if name == "HistGradientBoostingClassifier":
        estimator._bin_mapper = _no_categories(estimator.n_features_in_)
    return estimator


def _nodes(content: npt.NDArray[Any], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Return the nodes of a tree as a structured array."""
    from numpy.lib.recfunctions import repack_fields

    packed = repack_fields(dtype).newbyteorder("<")
    _require(content.dtype == np.uint8 and content.ndim == 1 and content.size > 0, "the nodes of a tree")
    return np.frombuffer(content.tobytes(), packed).astype(dtype)


def _depth(left: npt.NDArray[Any], right: npt.NDArray[Any], inner: npt.NDArray[np.bool_]) -> int:
    """Return the depth of a tree; each child must come after its parent and have no other, so there are no cycles."""
    parent = np.flatnonzero(inner)
    child = np.concatenate([left[parent], right[parent]])
    right_order = (child > np.tile(parent, 2)).all() and _within(child, len(left))
    _require(bool(right_order) and len(np.unique(child)) == len(child), "the branches of a tree")
    level, depth = np.zeros(1, np.intp), 0
    while (level := level[inner[level]]).size:
        level, depth = np.concatenate([left[level], right[level]]), depth + 1
    return depth


def _within(index: npt.NDArray[Any], size: int) -> bool:
    """Whether all indices are between 0 and `size` - 1."""
    return bool(((index >= 0) & (index < size)).all())


def _check_classes(state: dict[str, Any]) -> None:
    """Check the classes and the number of features."""
    if "classes_" in state:
        classes = state["classes_"]
        _require(isinstance(classes, np.ndarray) and classes.ndim == 1 and classes.dtype.kind in "iuf", "the classes")
        _require("n_classes_" not in state or state["n_classes_"] == len(classes), "the number of classes")
    n_features = state.get("n_features_in_", 1)
    _require(isinstance(n_features, int) and n_features > 0, "the number of features")


def _check_trees(name: str, estimator: Any) -> None:
    """Check that trees have as many features, classes and members as their ensemble states."""
    from sklearn.ensemble._hist_gradient_boosting.predictor import TreePredictor
    from sklearn.tree._tree import Tree

    n_features = estimator.n_features_in_
    if name in _TREES:
        tree = estimator.tree_
        n_values = estimator.n_classes_ if name.endswith("Classifier") else 1
        _require(type(tree) is Tree and tree.n_features == n_features, "the tree")
        _require(tree.n_classes.tolist() == [n_values] and estimator.n_outputs_ == 1, "the outputs of a tree")
        return
    n_trees = 1 if len(estimator.classes_) == 2 else len(estimator.classes_)
    if name in _BOOSTED:
        _require(type(estimator.n_trees_per_iteration_) is int, "the number of trees")
        _require(estimator.n_trees_per_iteration_ == n_trees, "the number of trees")
    if name == "HistGradientBoostingClassifier":
        trees = [tree for turn in estimator._predictors for tree in turn]
        _require(all(len(turn) == n_trees for turn in estimator._predictors), "the number of trees")
        _require(all(type(t) is TreePredictor for t in trees), "the trees")
        inner = [t.nodes["feature_idx"][t.nodes["is_leaf"] == 0] for t in trees]
        _require(all(_within(feature, n_features) for feature in inner), "the features of a tree")
        return
    kinds = {"RandomForestClassifier": _TREES[0], "ExtraTreesClassifier": _TREES[2], _BOOSTED[0]: _TREES[1]}
    if name in _BOOSTED:
        _require(estimator.estimators_.shape[1:] == (n_trees,), "the number of trees")
        _check_initial_estimator(estimator)
    trees = list(np.ravel(np.array(estimator.estimators_, object)))
    _require(all(type(t).__name__ == kinds[name] and t.n_features_in_ == n_features for t in trees), "the trees")
    _require(name in _BOOSTED or all(t.n_classes_ == estimator.n_classes_ for t in trees), "the trees")


def _check_initial_estimator(estimator: Any) -> None:
    """Check the initial estimator of gradient boosting.

    The compiled sum over the trees is written into the array of initial predictions, so its width must be right.
    """
    initial = estimator.init_
    if initial != "zero":
        _require(type(initial).__name__ == "DummyClassifier" and initial.strategy == "prior", "the initial estimator")
        prior, shape = initial.class_prior_, (len(estimator.classes_),)
        _require(
            isinstance(prior, np.ndarray) and prior.shape == initial.classes_.shape == shape, "the initial estimator"
        )
        _require(initial._strategy == "prior" and initial.n_outputs_ == 1, "the initial estimator")


def _check_support_vectors(estimator: Any) -> None:
    """Check the shapes of the arrays of a support vector classifier."""
    from scipy.sparse import issparse

    vectors, dual, per_class = estimator.support_vectors_, estimator._dual_coef_, estimator._n_support
    n, n_classes = vectors.shape[0], len(estimator.classes_)
    n_pairs = n_classes * (n_classes - 1) // 2
    fits = per_class.shape == (n_classes,) and per_class.sum() == n and (per_class >= 0).all()
    fits = fits and dual.shape == (n_classes - 1, n) and estimator.support_.shape == (n,)
    fits = fits and estimator._intercept_.shape == (n_pairs,) and vectors.shape[1] == estimator.n_features_in_
    fits = fits and estimator._probA.shape == estimator._probB.shape and estimator._probA.size in (0, n_pairs)
    fits = fits and estimator.shape_fit_[1:] == (estimator.n_features_in_,)
    sparse = issparse(vectors)
    fits = fits and estimator._sparse is sparse is issparse(dual) and (not sparse or dual.nnz == dual.shape[0] * n)
    _require(bool(fits), "the support vectors")


def _no_categories(n_features: int) -> Any:
    """Return a bin mapper that has no categorical features, which is all that a prediction asks of it."""
    from sklearn.ensemble._hist_gradient_boosting.binning import _BinMapper

    mapper = _BinMapper()
    mapper.is_categorical_ = np.zeros(n_features, np.uint8)
    mapper.bin_thresholds_ = []
    return mapper


def _require(valid: bool, what: str) -> None:
    """Raise a ValueError that names the wrong part, unless it is valid."""
    if not valid:
        raise ValueError(f"something is wrong with {what}")


Arrays = dict[str, npt.NDArray[Any]]
_MODULE = {  # of each class that may be saved
    "BernoulliNB": "sklearn.naive_bayes",
    "ComplementNB": "sklearn.naive_bayes",
    "DummyClassifier": "sklearn.dummy",
    "GaussianNB": "sklearn.naive_bayes",
    "KFold": "sklearn.model_selection",
    "LabelBinarizer": "sklearn.preprocessing",
    "LinearDiscriminantAnalysis": "sklearn.discriminant_analysis",
    "LogisticRegression": "sklearn.linear_model",
    "LogisticRegressionCV": "sklearn.linear_model",
    "MaxAbsScaler": "sklearn.preprocessing",
    "MinMaxScaler": "sklearn.preprocessing",
    "MultinomialNB": "sklearn.naive_bayes",
    "Normalizer": "sklearn.preprocessing",
    "PCA": "sklearn.decomposition",
    "Pipeline": "sklearn.pipeline",
    "QuadraticDiscriminantAnalysis": "sklearn.discriminant_analysis",
    "SGDClassifier": "sklearn.linear_model",
    "StandardScaler": "sklearn.preprocessing",
    "StratifiedKFold": "sklearn.model_selection",
    "TruncatedSVD": "sklearn.decomposition",
}
_OF_ONE_VERSION = {  # their predictions use state that scikit-learn does not document
    "CalibratedClassifierCV": "sklearn.calibration",
    "DecisionTreeClassifier": "sklearn.tree",
    "DecisionTreeRegressor": "sklearn.tree",
    "ExtraTreeClassifier": "sklearn.tree",
    "ExtraTreesClassifier": "sklearn.ensemble",
    "GradientBoostingClassifier": "sklearn.ensemble",
    "HistGradientBoostingClassifier": "sklearn.ensemble",
    "IsotonicRegression": "sklearn.isotonic",
    "KNeighborsClassifier": "sklearn.neighbors",
    "LinearSVC": "sklearn.svm",
    "MLPClassifier": "sklearn.neural_network",
    "RandomForestClassifier": "sklearn.ensemble",
    "SVC": "sklearn.svm",
    "_CalibratedClassifier": "sklearn.calibration",
    "_SigmoidCalibration": "sklearn.calibration",
    "_TemperatureScaling": "sklearn.calibration",
}
_MODULE |= _OF_ONE_VERSION

# Attributes that only training needs, that `finish` creates again, and the version, which is stored once.
_NOT_KEPT = {"_sklearn_version", "_loss_function_", "_expanded_class_weight", "_optimizer", "_random_state", "_rng"}
_NOT_KEPT |= {"_best_coefs", "_best_intercepts", "_sample_weight", "_loss", "_bin_mapper", "_feature_subsample_rng"}
_NOT_KEPT |= {"_label_encoder", "_scorer", "_tree"}
# Attributes that describe training and may be NaN: the average of an empty set, the best of no loss.
_NOT_FOR_PREDICTION = {"explained_variance_ratio_", "scores_", "best_loss_", "loss_", "loss_curve_", "oob_score_"}
_NOT_FOR_PREDICTION |= {"validation_scores_", "best_validation_score_", "oob_decision_function_", "oob_improvement_"}
_NOT_FOR_PREDICTION |= {"oob_scores_", "train_score_", "validation_score_", "missing_values", "coefs_paths_"}
_FORGOTTEN = {"memory"}  # parameters that name a folder of pickles
_PLAIN = bool | int | float | str | None


def can_be_saved(value: Any) -> bool:
    """Whether an object is of one of the supported classes; subclasses are not."""
    name = type(value).__name__
    return name in _MODULE and getattr(import_module(_MODULE[name]), name, None) is type(value)


def to_tree(estimator: Any, prefix: str) -> tuple[dict[str, Any], Arrays]:
    """Describe an estimator by a JSON tree and arrays."""
    import sklearn

    arrays: Arrays = {}
    tree = _Writer(prefix, arrays).estimator(estimator)
    return {"scikit_learn": _minor(sklearn.__version__), "estimator": tree}, arrays


def from_tree(description: dict[str, Any], arrays: Arrays) -> Any:
    """Create the estimator that `to_tree` described."""
    return _Reader(description["scikit_learn"], arrays).value(description["estimator"])


def _minor(version: str) -> str:
    """Return major.minor of a version."""
    return ".".join(version.split(".")[:2])


class _Writer:
    """Turns an estimator into a JSON tree; arrays are collected in `arrays` under numbered names."""

    def __init__(self, prefix: str, arrays: Arrays) -> None:
        self.prefix, self.arrays = prefix, arrays

    def estimator(self, estimator: Any) -> dict[str, Any]:
        """Describe an estimator: its class, the parameters that differ from their defaults, and its fitted state."""
        name = type(estimator).__name__
        if not can_be_saved(estimator):
            raise ParameterError(
                f"A {name} cannot be saved without a pickle; networks and the usual scikit-learn classifiers can. "
                f"Use one of these, or keep the model with joblib yourself."
            )
        parameters = _parameters(estimator)
        defaults = {p.name: p.default for p in inspect.signature(type(estimator).__init__).parameters.values()}
        changed = {n: v for n, v in parameters.items() if n not in _FORGOTTEN and not _same(v, defaults[n])}
        made = {"class": name, "parameters": {n: self.value(v, f"{name}.{n}") for n, v in changed.items()}}
        state = self.state(estimator, parameters)
        refuse_unsupported(name, parameters | state)
        return made | {"state": {n: self.value(v, f"{name}.{n}") for n, v in state.items()}}

    def state(self, estimator: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        if not hasattr(estimator, "get_params"):
            return {n: v for n, v in vars(estimator).items() if n not in parameters}
        if type(estimator).__name__ == "KNeighborsClassifier":
            return neighbours_to_fit(estimator)
        fresh = vars(type(estimator)(**parameters))
        return {n: v for n, v in estimator.__getstate__().items() if n not in fresh and n not in _NOT_KEPT}

    def value(self, value: Any, where: str) -> Any:
        """Describe a parameter or an attribute."""
        if isinstance(value, np.generic) and value.dtype.kind in "biuf":
            return {"scalar": value.dtype.str, "value": value.item()}
        if isinstance(value, _PLAIN):
            return value
        if isinstance(value, np.random.RandomState | np.random.Generator):
            return None  # its state changed during the fit
        if isinstance(value, list):
            return [self.value(v, where) for v in value]
        if isinstance(value, tuple):
            return {"tuple": [self.value(v, where) for v in value]}
        if isinstance(value, dict):
            return {"dict": [[self.value(k, where), self.value(v, where)] for k, v in value.items()]}
        if isinstance(value, np.ndarray):
            return self.array(value, where)
        if type(value).__name__ in ("csr_matrix", "csr_array"):
            parts = [self.array(part, where) for part in (value.data, value.indices, value.indptr)]
            return {type(value).__name__: parts, "shape": list(value.shape)}
        if type(value).__name__ in KINDS:
            return {"tree": type(value).__name__, **self.value(tree_to_arrays(value), where)}
        if hasattr(value, "get_params") or can_be_saved(value):
            return self.estimator(value)
        raise ParameterError(f"{where} is a {type(value).__name__}, which cannot be saved without a pickle.")

    def array(self, value: npt.NDArray[Any], where: str) -> dict[str, Any]:
        """Store an array, with its order in memory."""
        if value.dtype.kind == "O":
            return {"objects": list(value.shape), "values": [self.value(v, where) for v in value.ravel()]}
        if value.dtype.kind not in "biuf":
            raise ParameterError(f"{where} is an array of {value.dtype}, which cannot be saved without a pickle.")
        key = f"{self.prefix}/{len(self.arrays)}"
        # Matrix products differ in their last bits by the order in memory, so the order is kept.
        transposed = value.flags.f_contiguous and not value.flags.c_contiguous
        self.arrays[key] = value.T if transposed else value
        return {"array": key, "transposed": transposed}


class _Reader:
    """Creates objects from a JSON tree; `version` is the major.minor version of scikit-learn that saved it."""

    def __init__(self, version: str, arrays: Arrays) -> None:
        self.version, self.arrays = version, arrays

    def value(self, description: Any) -> Any:
        """Create a value from its description."""
        if isinstance(description, _PLAIN):
            return description
        if isinstance(description, list):
            return [self.value(v) for v in description]
        if "class" in description:
            return self.estimator(description)
        if "array" in description:
            array = self.arrays[description["array"]]
            return array.T if description["transposed"] else array
        if "tuple" in description:
            return tuple(self.value(v) for v in _list(description["tuple"]))
        if "tree" in description:
            return tree_from_arrays(description["tree"], self.value({"dict": description["dict"]}))
        if "dict" in description:
            return {self.value(k): self.value(v) for k, v in _list(description["dict"])}
        if "scalar" in description:
            return _scalar(description["scalar"], description["value"])
        if "objects" in description:
            return _object_array(description["objects"], [self.value(v) for v in _list(description["values"])])
        return self.sparse(description)

    def sparse(self, description: dict[str, Any]) -> Any:
        """Create a sparse matrix, with its indices checked."""
        from scipy import sparse

        name = "csr_matrix" if "csr_matrix" in description else "csr_array"
        parts = tuple(self.value(part) for part in _list(description[name]))
        matrix = getattr(sparse, name)(parts, shape=tuple(description["shape"]))
        matrix.check_format(full_check=True)  # compiled code does not check indices
        return matrix

    def estimator(self, description: dict[str, Any]) -> Any:
        """Create an estimator of a listed class, and set its state."""
        import sklearn

        name, here = description["class"], _minor(sklearn.__version__)
        if name not in _MODULE:
            raise ValueError(f"a {str(name)[:60]!r} is not among the classes that are saved")
        if name in _OF_ONE_VERSION and self.version != here:
            raise ValueError(f"scikit-learn {str(self.version)[:20]} wrote its {name}, and this is {here}; train again")
        cls = getattr(import_module(_MODULE[name]), name)
        parameters = {n: self.value(v) for n, v in description["parameters"].items() if n not in _FORGOTTEN}
        state = {n: self.value(v) for n, v in description["state"].items()}
        for what, value in (parameters | state).items():
            if what not in _NOT_FOR_PREDICTION:
                _refuse_not_finite(value, f"{name}.{what}"[:60], "log_" in what)
        refuse_unsupported(name, parameters | state)
        estimator = cls(**parameters)
        invalid = [n for n in state if hasattr(cls, n) or n in vars(estimator)]
        if invalid:
            raise ValueError(f"a {name} has no fitted attribute {invalid[0][:60]!r}")
        return finish(name, estimator, state)


def _refuse_not_finite(value: Any, where: str, is_log: bool) -> None:
    """Refuse NaN and infinities in numbers and arrays; a log-probability may be minus infinity."""
    if isinstance(value, list | tuple):
        for entry in value:
            _refuse_not_finite(entry, where, is_log)
    elif isinstance(value, dict):
        _refuse_not_finite(list(value.values()), where, is_log)
    else:
        numbers = np.asarray(getattr(value, "data", value) if hasattr(value, "indptr") else value)
        invalid = ~np.isfinite(numbers) if numbers.dtype.kind == "f" else np.zeros(1, bool)
        if (invalid & ~np.isneginf(numbers)).any() if is_log and invalid.any() else invalid.any():
            raise ValueError(f"{where} has numbers that are not finite")


def _parameters(estimator: Any) -> dict[str, Any]:
    """Return the constructor parameters of an estimator."""
    if hasattr(estimator, "get_params"):
        return dict(estimator.get_params(deep=False))
    names = list(inspect.signature(type(estimator).__init__).parameters)[1:]
    return {name: getattr(estimator, name) for name in names}


def _same(value: Any, default: Any) -> bool:
    """Whether a parameter has its default value."""
    return value is default or (
        isinstance(value, _PLAIN | tuple) and type(value) is type(default) and bool(value == default)
    )


def _list(description: Any) -> list[Any]:
    """Return a list, or refuse anything else."""
    if not isinstance(description, list):
        raise TypeError("a list was expected")
    return description


def _scalar(dtype: Any, value: Any) -> Any:
    """Create a NumPy scalar."""
    if np.dtype(dtype).kind not in "biuf" or not isinstance(value, bool | int | float):
        raise ValueError("a number was expected")
    return np.dtype(dtype).type(value)


def _object_array(shape: Any, values: list[Any]) -> npt.NDArray[np.object_]:
    """Create an array of Python objects."""
    if math.prod(_list(shape)) != len(values):
        raise ValueError(f"{len(values)} values are not an array of shape {shape}")
    array = np.empty(len(values), object)
    array[:] = values
    return array.reshape(shape)
