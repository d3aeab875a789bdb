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
from manyhands.persistence import compiled_estimators as compiled

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

# Attributes that only training needs, that `compiled.finish` creates again, and the version, which is stored once.
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
    """Whether an object is of one of the supported classes; subclasses are not.

    Parameters
    ----------
    value : object
        An estimator, or any other object.

    Returns
    -------
    bool
        True if `to_tree` accepts it.
    """
    name = type(value).__name__
    return name in _MODULE and getattr(import_module(_MODULE[name]), name, None) is type(value)


def to_tree(estimator: Any, prefix: str) -> tuple[dict[str, Any], Arrays]:
    """Describe an estimator by a JSON tree and arrays.

    Parameters
    ----------
    estimator : scikit-learn estimator
        Fitted or not.
    prefix : str
        Beginning of the arrays' names.

    Returns
    -------
    tree : dict
        Class, parameters and state as JSON; arrays are referred to by name. Also the version of scikit-learn.
    arrays : dict of str to ndarray
        The arrays.

    Raises
    ------
    ParameterError
        If it, or something in it, cannot be saved without a pickle.
    """
    import sklearn

    arrays: Arrays = {}
    tree = _Writer(prefix, arrays).estimator(estimator)
    return {"scikit_learn": _minor(sklearn.__version__), "estimator": tree}, arrays


def from_tree(description: dict[str, Any], arrays: Arrays) -> Any:
    """Create the estimator that `to_tree` described.

    Parameters
    ----------
    description : dict
        The tree.
    arrays : dict of str to ndarray
        The arrays that it refers to.

    Returns
    -------
    scikit-learn estimator
        The estimator, with its state checked.

    Raises
    ------
    ValueError, TypeError, KeyError
        If the tree is inconsistent, or of an estimator that another version of scikit-learn saved.
    """
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
        compiled.refuse_unsupported(name, parameters | state)
        return made | {"state": {n: self.value(v, f"{name}.{n}") for n, v in state.items()}}

    def state(self, estimator: Any, parameters: dict[str, Any]) -> dict[str, Any]:
        """Return the fitted attributes that prediction needs."""
        if not hasattr(estimator, "get_params"):
            return {n: v for n, v in vars(estimator).items() if n not in parameters}
        if type(estimator).__name__ == "KNeighborsClassifier":
            return compiled.neighbours_to_fit(estimator)
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
        if type(value).__name__ in compiled.KINDS:
            return {"tree": type(value).__name__, **self.value(compiled.tree_to_arrays(value), where)}
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
            return compiled.tree_from_arrays(description["tree"], self.value({"dict": description["dict"]}))
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
        found = getattr(sparse, name)(parts, shape=tuple(description["shape"]))
        found.check_format(full_check=True)  # compiled code does not check indices
        return found

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
        compiled.refuse_unsupported(name, parameters | state)
        estimator = cls(**parameters)
        invalid = [n for n in state if hasattr(cls, n) or n in vars(estimator)]
        if invalid:
            raise ValueError(f"a {name} has no fitted attribute {invalid[0][:60]!r}")
        return compiled.finish(name, estimator, state)


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
