"""`--device` of `train`, `predict`, `evaluate`, `leaderboard` and `reproduce`."""

import json

import pytest
import torch

import manyhands as mh
from manyhands.cli.app import run
from manyhands.jobs.train import _device_of
from manyhands.nn import backbones
from training_job import NETWORK, arguments, fails, train


@pytest.fixture
def two_gpus(monkeypatch):
    """A machine that has two GPUs by name; what runs on them runs on the CPU."""
    real = backbones.choose_device
    monkeypatch.setattr(backbones, "available_devices", lambda: ["cpu", "cuda:0", "cuda:1"])
    monkeypatch.setattr(
        backbones, "choose_device", lambda name: torch.device("cpu") if name == "cuda:1" else real(name)
    )


def test_the_device_is_that_of_the_method_and_in_the_summary(job, capsys):
    """It is a parameter of the saved model; the CPU gives the model that there is without the option."""
    assert train("-q", method=NETWORK) == 0
    plain = (job / "model" / "model.safetensors").read_bytes()
    capsys.readouterr()
    assert train("--device", "cpu", "--json", "--force", method=NETWORK) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["device"], result["parameters"]["device"]) == ("cpu", "cpu")
    assert (job / "model" / "model.safetensors").read_bytes() == plain
    assert train("--force", method=NETWORK) == 0
    assert "with 3 features, standardised, on cpu" in capsys.readouterr().err


def test_a_model_of_another_device_predicts_here(job, two_gpus, capsys):
    """The name is saved with the model; prediction is on the CPU unless a device is given."""
    assert train("--device", "cuda:1", "-q", method=NETWORK) == 0
    assert json.loads((job / "model" / "model.json").read_text())["parameters"]["device"] == "cuda:1"
    tables = []
    for more in ([], ["--device", "cuda:1"], ["--device", "cpu"]):
        capsys.readouterr()
        assert run(["predict", "model", "--features", "X.npz", *more]) == 0
        tables.append(capsys.readouterr().out)
    assert tables[0] == tables[1] == tables[2] and len(tables[0].splitlines()) == 41
    assert run(["evaluate", "model", "--features", "X.npz", "--truth", "truth.csv", "--device", "cpu", "-q"]) == 0


@pytest.mark.parametrize("wrapper", [[], ["-m", "prior-adjusted", "--set", "classifier=spee-lfc-d"]])
def test_network_and_noise_layer_are_moved(wrapper, job, monkeypatch):
    """Torch's device `meta`, which has no memory, takes the place of a GPU."""
    prefix = "classifier__" if wrapper else ""
    small = ["--set", f"{prefix}max_epochs=1", "--set", f"{prefix}hidden=2"]
    assert train("-q", *small, method=wrapper or ["-m", "spee-lfc-d"]) == 0
    monkeypatch.setattr(backbones, "choose_device", torch.device)
    model = mh.load_model("model", device="meta")
    inner = getattr(model, "classifier_", model)
    found = {str(p.device) for part in (model.module_, inner._noise_layer) for p in part.parameters()}
    assert found == {"meta"}
    assert _device_of(model) == "meta" and _device_of(mh.load_model("model")) == "cpu"


def test_a_wrapped_method_gets_the_device(job, two_gpus, capsys):
    method = ["-m", "prior-adjusted", "--set", "classifier=aggnet", "--set", "classifier__max_epochs=1"]
    assert train("--device", "cuda:1", "--json", method=method) == 0
    assert "device='cuda:1'" in json.loads(capsys.readouterr().out)["parameters"]["classifier"]
    assert mh.load_model("model", device="cpu").classifier_.device == "cuda:1"


@pytest.mark.parametrize(
    ("more", "method", "sentence"),
    [
        (["--device", "gpu"], NETWORK, "The device must be 'auto', 'cpu', 'cuda', 'cuda:1' or another device of torch"),
        (["--device", "cuda:7"], NETWORK, "'cuda:7', which torch cannot use here"),
        (["--device", "cuda:7"], NETWORK, "this machine has cpu, cuda:0, cuda:1."),
        (["--device", "cpu"], ["-m", "raykar"], "raykar: no network is trained, so leave out the device"),
        (["--device", "cpu", "--set", "device=auto"], NETWORK, "is 'auto' among its parameters and 'cpu' by --device"),
    ],
)
def test_a_device_that_cannot_be_used_is_refused_before_the_work(more, method, sentence, job, two_gpus, capsys):
    fails(capsys, 2, sentence, *arguments("no-such.npz", *more, method=method))
    assert not (job / "bad").exists()


def test_methods_without_a_network_are_named(job, capsys):
    """Of several methods, those with a network get the device."""
    quick = ["-m", "raykar", "-m", "crowd-layer", "--set", "crowd-layer.max_epochs=1", "--set", "crowd-layer.hidden=2"]
    assert train("--device", "cpu", "--choose", method=quick) == 0
    sentence = "note: the device is set for crowd-layer; no network is trained by raykar."
    assert sentence in capsys.readouterr().err


def test_prediction_refuses_a_device_it_cannot_use(job, capsys):
    predict = ["predict", "model", "--features", "X.npz", "--device"]
    assert train("-q") == 0
    fails(capsys, 2, "model is a model of two-stage, which has no network: leave out the device", *predict, "cpu")
    fails(capsys, 2, "'xpu:9', which torch cannot use here", *predict, "xpu:9")
    evaluate = ["evaluate", "model", "--features", "X.npz", "--truth", "truth.csv", "--device"]
    fails(capsys, 2, "'xpu:9', which torch cannot use here", *evaluate, "xpu:9")


def test_a_leaderboard_checks_the_device_before_it_measures(tmp_path, capsys):
    board = ["leaderboard", "--quick", "-o", str(tmp_path / "rows"), "--only", "labelme"]
    fails(capsys, 2, "raykar: no network is trained", *board, "--only", "raykar", "--device", "cpu")
    triplet = ["--only", "triplet, then logistic regression"]
    fails(capsys, 2, "'xpu:9', which torch cannot use here", *board, *triplet, "--device", "xpu:9")
    assert not list(tmp_path.glob("rows/*"))


@pytest.mark.slow
def test_a_row_of_a_table_names_its_device(tmp_path, capsys):
    """It is part of the row and of the command, but not of the key: a run without it measures nothing again."""
    blobs = 'name = "blobs"\nmake = "make_blobs"\narguments = { n_items = 60, n_workers = 6, n_test = 40 }\n'
    row = 'name = "net"\nmethod = "crowd-layer"\n'
    heading = 'title = "Small"\npaper = "Nobody"\nnumber = "1"\nseeds = 1\nmetrics = ["accuracy"]\n'
    (tmp_path / "small.toml").write_text(f"{heading}[[datasets]]\n{blobs}quick = {{ items = 30 }}\n[[rows]]\n{row}")
    command = ["reproduce", str(tmp_path / "small.toml"), "--quick", "--seeds", "1", "-o", str(tmp_path), "--json"]
    assert run([*command, "--device", "cpu"]) == 0
    assert "--device cpu" in capsys.readouterr().out
    (path,) = tmp_path.glob("*.jsonl")
    assert json.loads(path.read_text())["device"] == "cpu"
    assert run(command) == 0 and len(path.read_text().splitlines()) == 1
