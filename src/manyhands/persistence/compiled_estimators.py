"""Estimators whose predictions are computed by compiled code that does not check its input.

A wrong child of a tree node, or an array that is too short, would make that code read other memory of the process. So
whatever comes from a file is checked here before the first prediction.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands.exceptions import ParameterError

KINDS = ("Tree", "TreePredictor")  # the first of trees and forests, the second of HistGradientBoosting
_TREES = ("DecisionTreeClassifier", "DecisionTreeRegressor", "ExtraTreeClassifier")
_FORESTS = ("RandomForestClassifier", "ExtraTreesClassifier")
_BOOSTED = ("GradientBoostingClassifier", "HistGradientBoostingClassifier")


def refuse_unsupported(name: str, description: dict[str, Any]) -> None:
    """Refuse parameters and attributes that cannot be restored from numbers.

    A precomputed kernel or distance refers to the training rows by number, and a categorical feature to a table of its
    own.

    Parameters
    ----------
    name : str
        Class of the estimator.
    description : dict
        Its parameters and attributes.

    Raises
    ------
    ParameterError
        If one of them is not supported.
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
    """Return the training data that a fitted KNeighborsClassifier keeps; its search tree is built again from them.

    Parameters
    ----------
    estimator : KNeighborsClassifier
        The estimator.

    Returns
    -------
    dict
        ``rows`` and ``labels``; empty if the estimator is not fitted.
    """
    if not hasattr(estimator, "_fit_X"):
        return {}
    return {"rows": estimator._fit_X, "labels": estimator.classes_[estimator._y]}


def tree_to_arrays(tree: Any) -> dict[str, Any]:
    """Return the nodes of a tree as bytes without padding between fields, and their values.

    Parameters
    ----------
    tree : sklearn.tree._tree.Tree or TreePredictor
        The tree.

    Returns
    -------
    dict
        ``nodes``, and for a `Tree` also ``values``, ``n_features`` and ``n_classes``.
    """
    from numpy.lib.recfunctions import repack_fields

    nodes = tree.__getstate__()["nodes"] if type(tree).__name__ == "Tree" else tree.nodes
    packed = repack_fields(nodes)
    packed = packed.astype(packed.dtype.newbyteorder("<"))
    description = {"nodes": np.frombuffer(packed.tobytes(), np.uint8)}
    if type(tree).__name__ == "Tree":
        description |= {"values": tree.value, "n_features": tree.n_features, "n_classes": tree.n_classes.tolist()}
    return description


def tree_from_arrays(kind: str, description: dict[str, Any]) -> Any:
    """Create a tree, checked so that every path ends in a leaf.

    Parameters
    ----------
    kind : {"Tree", "TreePredictor"}
        Class of the tree.
    description : dict
        What `tree_to_arrays` returned.

    Returns
    -------
    sklearn.tree._tree.Tree or TreePredictor
        The tree.

    Raises
    ------
    ValueError
        If a child, a feature or a value is not valid.
    """
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
    """Set the fitted state of an estimator, check it, and create the attributes that were not stored.

    Parameters
    ----------
    name : str
        Class of the estimator.
    estimator : scikit-learn estimator
        A new object with its parameters.
    state : dict
        Its fitted attributes; empty if it was not fitted.

    Returns
    -------
    scikit-learn estimator
        The same object, ready to predict.

    Raises
    ------
    ValueError
        If the attributes are inconsistent.
    """
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
