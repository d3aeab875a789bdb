"""Aggregators as folders: every registered one comes back to the last bit; a changed folder is one sentence."""

import json
import warnings

import numpy as np
import pandas as pd
import pytest
from safetensors.numpy import load, save

import manyhands as mh
from manyhands import registry
from manyhands.exceptions import LimitError, ManyhandsError, NotFittedError, OutputExistsError, ParameterError
from manyhands.persistence import checksum
from manyhands.testing.aggregators import check_copies_are_equal
from manyhands.testing.crowds import assert_equal, assert_same_results

COLUMNS = {
    "task": [f"t{i}" for i in range(30) for _ in range(3)],
    "worker": [f"w{(i + j * (1 + i % 3)) % 7}" for i in range(30) for j in range(3)],
    "label": [("yes" if (i * 7 + j * j * i) % 3 else "no") for i in range(30) for j in range(3)],
}


@pytest.fixture(params=registry.names("aggregator"))
def fitted(request):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return registry.create_seeded(request.param, 0).fit(pd.DataFrame(COLUMNS), {"t3": "yes"})


@pytest.mark.parametrize("name", registry.names("aggregator"))
def test_every_aggregator_round_trips(name):
    """Results, predictions and scores of the registry's aggregators, with gold and items without labels."""
    check_copies_are_equal(registry.create(name))


def test_tables_of_a_loaded_aggregator(fitted, tmp_path):
    """Ids of text, gold, private results: whatever the tables and a second save need."""
    fitted.save(tmp_path / "model")
    again = mh.load_model(tmp_path / "model")
    assert_same_results(fitted, again, "results differ")
    for table in (mh.label_frame, mh.worker_frame, mh.training_frame):
        assert table(again, library="polars").equals(table(fitted, library="polars"))
    assert {n for n in vars(again) if n[0] == "_"} == {n for n in vars(fitted) if n[0] == "_"}
    again.save(tmp_path / "second")
    for name in ("model.json", "model.safetensors"):
        assert (tmp_path / "second" / name).read_bytes() == (tmp_path / "model" / name).read_bytes()


def test_items_that_repeat_or_have_no_labels(tmp_path):
    votes = mh.Annotations.from_triples(["a", "a", "b"], [1, 2, 1], [True, False, True], item_ids=["a", "b", "c"])
    model = mh.DawidSkene(random_state=np.random.default_rng(0)).fit(votes[[0, 0, 1, 2]])
    model.save(tmp_path / "model")
    again = mh.load_model(tmp_path / "model")
    assert again.item_ids_.tolist() == ["a", "a", "b", "c"]
    assert again.labels_.tolist() == model.labels_.tolist() and again.labels_[3] is None
    assert_equal(again.worker_ids_, model.worker_ids_, "workers")


def test_what_cannot_be_saved(tmp_path):
    with pytest.raises(NotFittedError):
        mh.DawidSkene().save(tmp_path / "model")
    votes = mh.Annotations.from_triples([("a", 1), ("a", 1)], [1, 2], [0, 1])
    with pytest.raises(ParameterError, match="is neither text nor a number"):
        mh.MajorityVote().fit(votes).save(tmp_path / "model")
    model = mh.MajorityVote().fit(mh.Annotations.from_matrix([[0, 1], [1, 1]]))
    model.save(tmp_path / "model")
    with pytest.raises(OutputExistsError):
        model.save(tmp_path / "model")
    model.save(tmp_path / "model", force=True)
    model.odd_ = object()
    with pytest.raises(ParameterError, match="The result odd_ is a object, which cannot be saved"):
        model.save(tmp_path / "other")


def places(said, path=()):
    """Every place of a JSON tree but the root."""
    pairs = said.items() if isinstance(said, dict) else enumerate(said) if isinstance(said, list) else ()
    return [place for key, value in pairs for place in ((*path, key), *places(value, (*path, key)))]


JUNK = [None, True, -1, 7, 10**400, float("nan"), "", "os.system", [], {}, [[]], {"record": "Popen", "fields": {}}]
JUNK += [{"array": "codes/item"}, {"ids": {"dtype": "O", "values": []}}, {"list": 3}, {"tuple": [{"dict": {}}]}]


def outcome(folder):
    """The sentence of a refusal, or None where the model was read and predicts."""
    try:
        model = mh.load_model(folder)
    except ManyhandsError as error:
        assert "\n" not in str(error) and len(str(error)) < 500 and str(error).endswith(".")
        return str(error)
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        model.predict(model.annotations_)
    return None


def write(folder, said, arrays):
    """Whoever changes a file can also change its checksum."""
    tensors = save({name: np.array(array, order="C") for name, array in arrays.items()})
    (folder / "model.safetensors").write_bytes(tensors)
    said = {name: value for name, value in said.items() if name != "checksum"}
    (folder / "model.json").write_text(json.dumps(said | {"checksum": checksum(said, tensors)}))


@pytest.mark.parametrize("name", ["vote-difficulty-em", "pooled-dawid-skene"])
def test_a_changed_folder_is_refused_or_predicts(name, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        registry.create(name).fit(pd.DataFrame(COLUMNS)).save(tmp_path / "model")
    folder, rng, refused = tmp_path / "model", np.random.default_rng(0), 0
    text, arrays = (folder / "model.json").read_text(), load((folder / "model.safetensors").read_bytes())
    for _ in range(120):
        said, changed = json.loads(text), dict(arrays)
        if rng.random() < 0.6:
            found = [place for place in places(said) if place[0] not in ("checksum", "schema")]
            *outer, last = found[rng.integers(len(found))]
            inner = said
            for key in outer:
                inner = inner[key]
            inner[last] = JUNK[rng.integers(len(JUNK))]
        else:
            key = sorted(changed)[rng.integers(len(changed))]
            array = changed.pop(key)
            others = [array[:0], array.reshape(-1)[:1], array * 0 - 5, array.astype(np.float32) + np.nan]
            changed |= {} if rng.random() < 0.2 else {key: others[rng.integers(len(others))]}
        write(folder, said, changed)
        refused += outcome(folder) is not None
    assert refused > 80


# Result -> changes of its array that a loaded model would notice only later.
LATE = {
    "_class_totals": [lambda a: a.astype(bool), lambda a: a[:-1], lambda a: a * np.nan],
    "_log_prior": [lambda a: a[None]],
    "_weight": [lambda a: a[:-1]],
    "_ability": [lambda a: a[:-1]],
    "_workers/ability": [lambda a: a[:-1]],
    "confusion_": [lambda a: a[:-1], lambda a: a + np.nan, lambda a: a + 7],
    "collusion_group_": [lambda a: a[:-1], lambda a: a[:, None], lambda a: a.astype(float)],
}


def test_arrays_that_would_fail_later_are_refused(fitted, tmp_path):
    """Those of the private results, of unseen workers, and of tables and scores."""
    fitted.save(tmp_path / "model")
    text, arrays = (tmp_path / "model" / "model.json").read_text(), (tmp_path / "model" / "model.safetensors")
    arrays = load(arrays.read_bytes())
    for name, changes in LATE.items():
        key = f"result/{name}"
        for change in changes if key in arrays else ():
            write(tmp_path / "model", json.loads(text), arrays | {key: change(arrays[key])})
            assert "is not a model that can be read" in (outcome(tmp_path / "model") or "it was read"), key


def test_an_order_of_other_classes_is_refused(tmp_path):
    """Tables of a loaded model look the classes up in it."""
    mh.OrdinalDawidSkene().fit(mh.Annotations.from_matrix([[0, 1, 2], [1, 1, 2], [0, 0, 2]])).save(tmp_path / "model")
    assert outcome(tmp_path / "model") is None
    text, arrays = (tmp_path / "model" / "model.json").read_text(), (tmp_path / "model" / "model.safetensors")
    arrays = load(arrays.read_bytes())
    for order in ([0, 1, 7], [0, 1, 1], [0, 1], [[0, 1, 2]]):
        write(tmp_path / "model", json.loads(text), arrays | {"result/order_": np.array(order)})
        assert "is not a model that can be read" in (outcome(tmp_path / "model") or "it was read"), order


@pytest.mark.parametrize("name", ["model.json", "model.safetensors"])
def test_sparse_files_are_refused_before_they_are_read(name, tmp_path):
    """Five gigabytes that take no space on the disk."""
    mh.MajorityVote().fit(mh.Annotations.from_matrix([[0, 1], [1, 1]])).save(tmp_path / "model")
    with open(tmp_path / "model" / name, "r+b") as file:
        file.truncate(5 << 30)
    with pytest.raises((LimitError, ParameterError), match=r"has 5\.4 GB; at most|has 5,368,709,120 bytes"):
        mh.load_model(tmp_path / "model")


def test_a_truncated_folder(tmp_path):
    mh.MajorityVote().fit(mh.Annotations.from_matrix([[0, 1], [1, 1]])).save(tmp_path / "model")
    said = json.loads((tmp_path / "model" / "model.json").read_text())
    (tmp_path / "model" / "model.json").write_text(json.dumps(said | {"method": "dawid-skene"}))
    with pytest.raises(ParameterError, match="changed since it was saved"):
        mh.load_model(tmp_path / "model")
