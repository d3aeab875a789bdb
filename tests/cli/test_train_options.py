"""What the user of `train` asks for: methods, settings, folders; what cannot be is refused before the work."""

import json

import numpy as np
import pytest

import manyhands as mh
from manyhands.cli.app import run
from manyhands.cli.options import parse_settings
from manyhands.exceptions import ParameterError
from training_job import QUICK, arguments, fails, train


def test_settings_are_typed_by_what_they_may_be():
    """The same text is a number, a size or a name, as the parameter has it."""
    settings = ["hidden=8", "patience=none", "batch_norm=TRUE", "learning_rate=1", "checkpoint=5", "random_state=7"]
    found = parse_settings(["crowd-layer"], settings)["crowd-layer"]
    assert found == {
        "hidden": (8,),
        "patience": None,
        "batch_norm": True,
        "learning_rate": 1,
        "checkpoint": "5",
        "random_state": 7,
    }
    assert parse_settings(["crowd-layer"], ["hidden="]) == {"crowd-layer": {"hidden": ()}}


def test_a_setting_is_for_the_methods_that_have_it(capsys):
    """Those that have it not are named; a setting for one method wins, wherever it stands."""
    methods = ["raykar", "crowd-layer", "two-stage"]
    found = parse_settings(methods, ["two-stage.max_epochs=3", "max_epochs=2", "raykar.ridge=5"])
    assert found == {"raykar": {"ridge": 5}, "crowd-layer": {"max_epochs": 2}, "two-stage": {"max_epochs": 3}}
    assert "max_epochs is set for crowd-layer, two-stage; raykar has no such parameter." in capsys.readouterr().err
    with pytest.raises(ParameterError, match=r"raykar has no parameter 'no'.*crowd-layer has no parameter 'no'"):
        parse_settings(methods, ["no=1"])
    with pytest.raises(ParameterError, match="raykar has no parameter 'max_epochs'"):
        parse_settings(methods, ["raykar.max_epochs=2"])
    with pytest.raises(
        ParameterError, match=r"is for mbem, which is not one of the methods to train: raykar, crowd-layer"
    ):
        parse_settings(methods, ["mbem.max_epochs=2"])


def test_methods_of_other_kinds_can_be_chosen_among(job, capsys):
    """A setting that only one of them has does not stand in the way."""
    methods = ["-m", "raykar", "-m", "crowd-layer", "--set", "max_epochs=2", "--set", "crowd-layer.hidden=4"]
    assert train("--choose", "--json", method=methods) == 0
    assert {row["method"] for row in json.loads(capsys.readouterr().out)["methods"]} == {"raykar", "crowd-layer"}


def test_by_default_the_layers_start_at_dawid_skene(job, capsys):
    """The default is spee-lfc that starts at dawid-skene, which settings may change; by its name it is the paper's."""
    quick = ["--set", "max_epochs=1", "--json"]
    for more, start in (([], "dawid-skene"), (["-m", "spee-lfc"], "identity"), (["--set", "init=wawa"], "wawa")):
        assert train("--force", *quick, method=more) == 0
        result = json.loads(capsys.readouterr().out)
        assert result["method"] == "spee-lfc"
        assert (result["parameters"]["init"], result["parameters"]["max_epochs"]) == (start, 1)
    assert run(["train", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.replace("│", " ").split())
    assert "Default: spee-lfc with init=dawid-skene." in shown


def test_a_representation_is_no_classifier(job, capsys):
    fails(
        capsys,
        2,
        "triplet learns a representation and predicts no labels",
        *arguments("X.npz", method=["-m", "triplet"]),
    )


@pytest.mark.parametrize("out", ["afile", "afile/sub", "/proc/none"])
def test_a_folder_that_cannot_be_is_noticed_before_the_work(out, job, capsys, monkeypatch):
    """With --force, too."""
    (job / "afile").write_text("mine")
    monkeypatch.setattr("manyhands.jobs.train.fit_classifier", lambda *_: pytest.fail("it was trained"))
    command = ["train", "ratings.csv", "--features", "X.npz", *QUICK, "--force", "-o", out]
    fails(capsys, 2, "othing can be written to", *command)
    assert (job / "afile").read_text() == "mine"


@pytest.mark.parametrize("out", ["afile/p.csv", "/proc/none/p.csv", "folder.csv"])
def test_a_table_that_cannot_be_is_noticed_before_the_work(out, job, capsys, monkeypatch):
    assert train("-q") == 0
    (job / "afile").touch()
    (job / "folder.csv").mkdir()
    monkeypatch.setattr("manyhands.io.feature_pipeline.load_folder", lambda *_: pytest.fail("the model was loaded"))
    command = ["predict", "model", "--features", "X.npz", "--force", "-o", out]
    fails(capsys, 2, "is a folder" if out == "folder.csv" else "othing can be written to", *command)


def test_ids_and_positions_contradict_each_other(job, capsys):
    """And ids in two places are reported."""
    (job / "ids.txt").write_text("".join(f"i{k}\n" for k in range(40)))
    ids = ["--feature-ids", "ids.txt"]
    sentence = "--rows-in-order matches rows by position, --feature-ids by id"
    fails(capsys, 2, sentence, *arguments("X.npz", *ids, "--rows-in-order"))
    assert train("-q", *ids) == 0
    assert "The ids in X.npz are not used; those of ids.txt replace them" in capsys.readouterr().err


def test_a_bad_number_is_named_as_in_the_file(job, capsys):
    """The row before matching, and the item."""
    with np.load("X.npz") as arrays:
        X, ids = arrays["X"][::-1].copy(), arrays["ids"][::-1]
    X[30, 1] = np.nan
    np.savez("bad.npz", X=X, ids=ids)
    fails(capsys, 3, "in row 30 (item 'i9'); fill or drop it", *arguments("bad.npz"))
    np.save("bad.npy", X)
    fails(capsys, 3, "in row 30; fill or drop it", *arguments("bad.npy", "--rows-in-order"))


def test_one_item_and_one_row_without_the_other(job, capsys):
    """Sentences that are right for one, too."""
    with np.load("X.npz") as arrays:
        ids = arrays["ids"].astype("U10")
        ids[0] = "other"
        np.savez("part.npz", X=arrays["X"], ids=ids)
    assert train("-q", features="part.npz") == 0
    message = capsys.readouterr().err
    assert message.splitlines()[:2] == [
        "note: left out: 1 item without features.",
        "note: left out: 1 row of part.npz without a label and without gold.",
    ]


def test_features_are_standardised_by_default(job, capsys):
    """It is printed, and saved with the model."""
    assert train("--json") == 0
    assert json.loads(capsys.readouterr().out)["standardised"] is True
    with np.load("X.npz") as arrays:
        kept = json.loads((job / "model" / "features.json").read_text())
        np.testing.assert_allclose(kept["scale"]["mean"], arrays["X"].mean(axis=0))
        np.testing.assert_allclose(kept["scale"]["std"], arrays["X"].std(axis=0))
    assert train("--force") == 0
    assert "40 items with 3 features, standardised" in capsys.readouterr().err
    assert train("--force", "--no-standardise") == 0
    assert "40 items with 3 features, not standardised" in capsys.readouterr().err
    assert json.loads((job / "model" / "features.json").read_text())["scale"] is None
    assert train("--force", "--no-standardise", "--json") == 0
    assert json.loads(capsys.readouterr().out)["standardised"] is False


def test_features_are_as_the_published_method_expects_them(job, capsys):
    """Of self-crowd as they are; standardised where that is asked for, and where it is compared with other methods."""
    few = ["-m", "self-crowd", "--set", "self-crowd.rounds=1", "--set", "self-crowd.max_epochs=1"]
    for more, expected in [([], False), (["--standardise"], True), (["--no-standardise"], False)]:
        assert train(*more, "--force", method=few) == 0
        scale = "standardised" if expected else "not standardised"
        assert f"3 features, {scale} (self-crowd expects features as they are)" in capsys.readouterr().err
        assert (json.loads((job / "model" / "features.json").read_text())["scale"] is not None) is expected
    assert train("--choose", "--force", "--json", method=[*few, "-m", "raykar"]) == 0
    assert json.loads(capsys.readouterr().out)["standardised"] is True


def test_parameters_of_a_wrapped_classifier(job, capsys):
    """`classifier__name`, with the types of the classifier that is named; others are refused with their names."""
    wrap = ["-m", "prior-adjusted", "--set", "classifier=two-stage", "--set", "prior=3,1"]
    more = ["--set", "classifier__classifier=logistic-regression", "--set", "classifier__soft=true"]
    assert train("--json", method=[*wrap, *more]) == 0
    model = mh.load_model("model")
    assert model.classifier_.soft is True and model.prior == (3, 1)
    sentence = "prior-adjusted has no parameter 'classifier__depth'"
    fails(capsys, 2, sentence, *arguments("X.npz", method=[*wrap, "--set", "classifier__depth=3"]))
