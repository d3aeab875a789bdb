"""A folder that somebody changed: one sentence of ours, or a model that predicts; nothing else ever runs."""

import json
import warnings

import numpy as np
import pytest
from safetensors.numpy import load, save
from sklearn.calibration import CalibratedClassifierCV
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from manyhands import load_model
from manyhands.classifiers import CrowdLayer, TwoStage
from manyhands.exceptions import ManyhandsError, ParameterError
from manyhands.persistence import checksum
from manyhands.representation import Triplet
from manyhands.testing.crowds import feature_crowd

X, VOTES, _ = feature_crowd(3)
QUICK = {"max_epochs": 1, "hidden": (3,), "random_state": 0}
MODELS = {
    "network": lambda: CrowdLayer(batch_norm=True, **QUICK),
    "representation": lambda: Triplet(**QUICK),
    "pipeline": lambda: TwoStage("glad", make_pipeline(StandardScaler(), PCA(2), LogisticRegression())),
    "forest": lambda: TwoStage(classifier=RandomForestClassifier(2, random_state=0)),
    "boosting": lambda: TwoStage(classifier=GradientBoostingClassifier(n_estimators=2, random_state=0)),
    "hist-boosting": lambda: TwoStage(classifier=HistGradientBoostingClassifier(max_iter=2, min_samples_leaf=3)),
    "svc": lambda: TwoStage(classifier=SVC(probability=True, random_state=0)),
    "neighbours": lambda: TwoStage(classifier=KNeighborsClassifier(3)),
    "mlp": lambda: TwoStage(classifier=MLPClassifier((3,), max_iter=2, random_state=0)),
    "calibrated": lambda: TwoStage(classifier=CalibratedClassifierCV(GaussianNB(), cv=2)),
}
JUNK = [None, True, -1, 0, 1, 2, 7, 10**12, 10**400, 1e308, float("nan"), "", "x", "os.system", [], {}, [[]], [-1]]
JUNK += [[10**9, 10**9], {"class": "Popen", "parameters": {"args": "true"}, "state": {}}, {"array": "module/0"}]
JUNK += [
    {"array": "result/posterior_", "transposed": True},
    {"tuple": 3},
    {"dict": [[[], 1]]},
    {"scalar": "O", "value": 1},
]
JUNK += [{"class": "GaussianNB", "parameters": {}, "state": {}}, {"objects": [10**9], "values": []}]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Each model as what was said and the arrays."""
    found = {}
    for name, make in MODELS.items():
        folder = tmp_path_factory.mktemp(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            make().fit(X, VOTES).save(folder)
        found[name] = (folder / "model.json").read_text(), load((folder / "model.safetensors").read_bytes())
    return found


def write(folder, said, arrays):
    """Whoever changes a file can also change its checksum."""
    tensors = save({name: np.array(array, order="C") for name, array in arrays.items()})
    (folder / "model.safetensors").write_bytes(tensors)
    said = {name: value for name, value in said.items() if name != "checksum"}
    (folder / "model.json").write_text(json.dumps(said | {"checksum": checksum(said, tensors)}))


def outcome(folder):
    """The sentence of a refusal, or None where the model was read and predicts."""
    try:
        model = load_model(folder)
    except ManyhandsError as error:
        assert "\n" not in str(error) and len(str(error)) < 500 and str(error).endswith(".")
        return str(error)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if model._row_shape == (4,):
            (model.predict_proba if hasattr(model, "predict_proba") else model.transform)(X)
    return None


def places(said, path=()):
    """Every place of a JSON tree but the root."""
    pairs = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    return [place for key, value in pairs for place in ((*path, key), *places(value, (*path, key)))]


def change(said, rng):
    """Put junk into one place, or take the place away."""
    found = [place for place in places(said) if place[0] not in ("tensors", "schema")]
    *outer, last = found[rng.integers(len(found))]
    inner = said
    for key in outer:
        inner = inner[key]
    choice = rng.integers(len(JUNK) + 3)
    if choice < len(JUNK):
        inner[last] = JUNK[choice]
    elif isinstance(inner, dict) and choice == len(JUNK):
        inner["".join(rng.choice(list("abc_"), 5))] = inner.pop(last)
    else:
        del inner[last]


def change_array(arrays, rng):
    """Other numbers, another shape, another type, or none at all."""
    name = sorted(arrays)[rng.integers(len(arrays))]
    array = arrays.pop(name)
    match rng.integers(6):
        case 0:
            arrays[name] = array[: len(array) // 2] if array.ndim else array
        case 1:
            arrays[name] = array.ravel()
        case 2:
            arrays[name] = array.astype(rng.choice(["f4", "f8", "i8", "u1", "i4"]))
        case 3:
            content = np.frombuffer(array.tobytes(), np.uint8).copy()
            content[rng.integers(max(len(content), 1), size=min(len(content), 9))] = rng.integers(256)
            arrays[name] = np.frombuffer(content.tobytes(), array.dtype).reshape(array.shape)
        case 4:
            arrays[name] = np.concatenate([array, array]) if array.ndim else array


@pytest.mark.filterwarnings("ignore:invalid value encountered in cast")
@pytest.mark.parametrize("name", MODELS)
def test_a_changed_folder_is_refused_or_predicts(name, saved, tmp_path):
    """Sixty changes of each model, two in three of what is said."""
    rng = np.random.default_rng(list(MODELS).index(name))
    text, arrays = saved[name]
    refused = 0
    for turn in range(60):
        said, changed = json.loads(text), dict(arrays)
        if turn % 3:
            change(said, rng)
        else:
            change_array(changed, rng)
        write(tmp_path, said, changed)
        refused += outcome(tmp_path) is not None
    assert refused > 20  # most junk does not fit


@pytest.mark.parametrize("name", ["network", "forest"])
def test_a_folder_that_is_cut_off_is_refused(name, saved, tmp_path):
    """Wherever the cut is, with a checksum of what is left."""
    write(tmp_path, json.loads(saved[name][0]), saved[name][1])
    said, content = json.loads((tmp_path / "model.json").read_text()), (tmp_path / "model.safetensors").read_bytes()
    for length in [0, 1, 7, 8, 9, 100, len(content) // 2, len(content) - 1]:
        (tmp_path / "model.safetensors").write_bytes(content[:length])
        said.pop("checksum")
        said["checksum"] = checksum(said, content[:length])
        (tmp_path / "model.json").write_text(json.dumps(said))
        assert "is not a model that can be read" in outcome(tmp_path)
    for text in [
        "",
        "[]",
        "3",
        "null",
        "{}",
        '{"schema": 2}',
        "[" * 100_000,
        "\ud800".encode("utf-8", "surrogatepass"),
    ]:
        (tmp_path / "model.json").write_bytes(text if isinstance(text, bytes) else text.encode())
        assert "is not a model that can be read" in outcome(tmp_path)


def test_a_class_outside_the_list_is_never_made(saved, tmp_path):
    """Not by a name with dots, not by one that its module has."""
    text, arrays = saved["pipeline"]
    for name in [
        "subprocess.Popen",
        "Popen",
        "FunctionTransformer",
        "sklearn.base.BaseEstimator",
        "Memory",
        3,
        None,
        [],
    ]:
        said = json.loads(text)
        said["module"]["estimator"]["class"] = name
        write(tmp_path, said, arrays)
        assert outcome(tmp_path) is not None
        if isinstance(name, str):
            assert f"a {name!r} is not among the classes that are saved" in outcome(tmp_path)


def test_a_cache_of_pickles_is_forgotten(saved, tmp_path):
    """A pipeline from a stranger reads no folder when it is fitted again."""
    text, arrays = saved["pipeline"]
    said = json.loads(text)
    said["module"]["estimator"]["parameters"]["memory"] = str(tmp_path / "cache")
    write(tmp_path, said, arrays)
    assert load_model(tmp_path).module_.memory is None
    said["module"]["estimator"]["state"]["memory"] = str(tmp_path / "cache")
    write(tmp_path, said, arrays)
    assert "a Pipeline has no fitted attribute 'memory'" in outcome(tmp_path)


@pytest.mark.parametrize("name", ["network", "representation"])
def test_weights_of_another_network_are_refused_when_read(name, saved, tmp_path):
    """Of another shape or type, missing, too many, or of a size that no memory has."""
    text, arrays = saved[name]
    weights = sorted(n for n in arrays if n.startswith("module/"))
    for weight in weights:
        bad = [np.zeros((9, 9), np.float32), arrays[weight].astype(np.float64), None]
        for array in bad:
            write(tmp_path, json.loads(text), {n: a for n, a in (arrays | {weight: array}).items() if a is not None})
            assert "are not those of the network that it describes" in outcome(tmp_path)
    write(tmp_path, json.loads(text), arrays | {"module/more": np.zeros(3)})
    assert "the weights 'more' are not those" in outcome(tmp_path)
    said = json.loads(text)
    said["parameters"]["hidden"] = [500, 500]
    write(tmp_path, said, arrays)
    assert "are not those of the network" in outcome(tmp_path)
    for hidden, sentence in (([10**7, 10**7], "something in it is too large"), ([1] * 20_000, "at most 100 whole")):
        said["parameters"]["hidden"] = hidden
        write(tmp_path, said, arrays)
        assert sentence in outcome(tmp_path)


@pytest.mark.parametrize("name", ["forest", "boosting", "hist-boosting"])
def test_a_tree_never_points_outside(name, saved, tmp_path):
    """A child beyond the last node, a way round in circles, a feature that is not there: none is followed."""
    from sklearn.ensemble._hist_gradient_boosting.common import PREDICTOR_RECORD_DTYPE
    from sklearn.tree._tree import NODE_DTYPE

    dtype = PREDICTOR_RECORD_DTYPE if name == "hist-boosting" else NODE_DTYPE
    left, feature = ("left", "feature_idx") if name == "hist-boosting" else ("left_child", "feature")
    packed = np.dtype([(n, dtype[n]) for n in dtype.names])
    text, arrays = saved[name]
    key = next(n for n in arrays if n.startswith("module/") and arrays[n].dtype == np.uint8 and arrays[n].ndim == 1)
    assert len(arrays[key]) % packed.itemsize == 0
    for field, value in [(left, 10**6), (left, 0), (left, 2), (feature, 4), (feature, 10**6)]:
        nodes = np.frombuffer(arrays[key].tobytes(), packed).copy()
        nodes[field][0] = value
        write(tmp_path, json.loads(text), arrays | {key: np.frombuffer(nodes.tobytes(), np.uint8)})
        assert f"something is wrong with the {'branches' if field == left else 'features'} of a tree" in outcome(
            tmp_path
        )


def test_a_first_guess_of_another_width_is_refused(saved, tmp_path):
    """The compiled sum over the trees would be written beyond it."""
    text, arrays = saved["boosting"]
    guess = json.loads(text)["module"]["estimator"]["state"]["init_"]["state"]
    for name in ("class_prior_", "classes_"):
        key = guess[name]["array"]
        write(tmp_path, json.loads(text), arrays | {key: arrays[key][:-1]})
        assert outcome(tmp_path) is not None
    said = json.loads(text)
    said["module"]["estimator"]["state"]["init_"] = {"class": "GaussianNB", "parameters": {}, "state": {}}
    write(tmp_path, said, arrays)
    assert "something is wrong with the initial estimator" in outcome(tmp_path)


def test_support_vectors_that_do_not_fit_are_refused(saved, tmp_path):
    """Compiled code would read beyond each of these."""
    text, arrays = saved["svc"]
    state = json.loads(text)["module"]["estimator"]["state"]
    names = ["support_vectors_", "_dual_coef_", "_n_support", "_intercept_", "_probA", "_probB", "support_"]
    for key in [state[name]["array"] for name in names]:
        write(tmp_path, json.loads(text), arrays | {key: arrays[key][:-1]})
        assert "something is wrong with the support vectors" in outcome(tmp_path)


def test_a_network_method_with_a_classifier_is_refused(saved, tmp_path):
    """Before it predicts."""
    said, arrays = json.loads(saved["network"][0]), saved["network"][1]
    said["module"] = json.loads(saved["mlp"][0])["module"]
    write(tmp_path, said, arrays | {n: a for n, a in saved["mlp"][1].items() if n.startswith("module/")})
    assert "is not a model that can be read" in outcome(tmp_path)


def test_a_checkpoint_of_a_stranger_is_forgotten(saved, tmp_path):
    """A fit would write to that folder, and empty it."""
    text, arrays = saved["network"]
    said = json.loads(text)
    assert "checkpoint" not in said["parameters"]
    said["parameters"]["checkpoint"] = "/somewhere"
    write(tmp_path, said, arrays)
    assert load_model(tmp_path).checkpoint is None


def test_results_do_not_replace_methods(saved, tmp_path):
    """An array by the name of a method, of a private attribute, or in another shape."""
    text, arrays = saved["network"]
    for name in ["predict", "_new_module", "__class__", "_row_shape", "module_x"]:
        write(tmp_path, json.loads(text), arrays | {f"result/{name}": np.zeros(3)})
        assert "is not the name of a result" in outcome(tmp_path)
    for name in ["posterior_", "worker_accuracy_", "_confusions", "_shares"]:
        write(tmp_path, json.loads(text), arrays | {f"result/{name}": np.zeros((2, 2))})
        assert f"{name} is float64 of shape (2, 2), not floats of" in outcome(tmp_path)
    said = json.loads(text)
    for dtype in ["<U2000000000", "V8", "O,O", "M8[s]", 3]:
        said["classes"]["dtype"] = dtype
        write(tmp_path, said, arrays)
        with pytest.raises(ParameterError, match="is not a model that can be read"):
            load_model(tmp_path)


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("number", [np.nan, np.inf, -np.inf])
def test_numbers_that_are_not_finite(saved, tmp_path, name, number):
    """In every array that a model has, be it a weight, a result, or something a scikit-learn classifier learnt."""
    text, arrays = saved[name]
    said, n_tried = json.loads(text), 0
    for key, array in arrays.items():
        if array.dtype.kind == "f" and array.size:
            changed = array.copy()
            changed.flat[array.size // 2] = number
            write(tmp_path, said, arrays | {key: changed})
            refused = outcome(tmp_path)
            assert refused is not None or is_for_the_report(said, key), key
            n_tried += 1
    assert n_tried >= 2


def is_for_the_report(said, key):
    """Whether an array is one that a prediction does not look at, and a fit may leave without a number."""
    text = json.dumps(said)
    return any(f'"{name}": {{"array": "{key}"' in text for name in ("train_score_", "explained_variance_ratio_"))


@pytest.mark.parametrize("name", ["network", "representation", "pipeline"])
def test_results_of_another_shape_or_type(saved, tmp_path, name):
    text, arrays = saved[name]
    for key in [key for key in arrays if key.startswith("result/") and arrays[key].ndim]:
        array, shown = arrays[key], key.removeprefix("result/")
        wrong = [array[:-1], array[..., :-1], array[None], array.ravel()[:1], np.zeros_like(array, np.int64)]
        wrong += [np.zeros_like(array, bool), array[()][..., None]]
        wrong += [array + 7] if shown != "confidence_" else []
        for changed in wrong:
            if changed.shape[1:] == array.shape[1:] and shown in ("posterior_",) and changed.dtype == array.dtype:
                continue  # fewer items, or a number that is none of its kind: looked at below
            write(tmp_path, json.loads(text), arrays | {key: changed})
            assert shown in (outcome(tmp_path) or "it was read"), (key, changed.shape, changed.dtype)
    write(tmp_path, json.loads(text), arrays | {"result/posterior_": arrays["result/posterior_"] - 0.5})
    assert "posterior_ has numbers that are not between 0 and 1" in outcome(tmp_path)
    write(tmp_path, json.loads(text), arrays | {"result/extra_": np.zeros(3)})
    assert "'extra_' is not the name of a result" in outcome(tmp_path)


def test_trees_with_numbers_that_are_none(saved, tmp_path):
    """Their nodes are bytes, in which a threshold or a leaf may be NaN."""
    text, arrays = saved["hist-boosting"]
    for key, array in arrays.items():
        if array.dtype == np.uint8 and array.size > 100:
            write(tmp_path, json.loads(text), arrays | {key: with_first_double(array, np.nan)})
            assert "the numbers of a tree" in outcome(tmp_path)
            return
    pytest.fail("there was no tree")


def with_first_double(content, number):
    """The bytes of nodes, of which each begins with its value."""
    changed = content.copy()
    changed[:8] = np.frombuffer(np.float64(number).tobytes(), np.uint8)
    return changed
