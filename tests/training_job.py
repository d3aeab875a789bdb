"""What the tests of `train`, `predict` and `evaluate` share: quick methods, and commands that fail as they should."""

from manyhands.cli.app import run

QUICK = ["-m", "two-stage", "--set", "classifier=logistic-regression", "--set", "aggregator=majority-vote"]
NETWORK = ["-m", "crowd-layer", "--set", "max_epochs=3", "--set", "hidden=4"]
MODEL = {"features.json", "manifest.json", "model.json", "model.safetensors"}


def train(*more, features="X.npz", method=QUICK):
    return run(["train", "ratings.csv", "--features", features, *method, "-o", "model", *more])


def fails(capsys, code, sentence, *arguments):
    """The command ends with this code and one line that says this."""
    capsys.readouterr()
    assert run(list(arguments)) == code
    err = capsys.readouterr().err
    assert sentence in err.splitlines()[-1], err
    assert "Traceback" not in err


def arguments(features, *more, method=QUICK):
    return ["train", "ratings.csv", "--features", features, *method, "-o", "bad", *more]
