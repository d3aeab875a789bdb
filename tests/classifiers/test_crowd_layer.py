"""Crowd layer: its forms, limit cases, checkpoints and early stopping."""

import signal
import subprocess
import sys

import numpy as np
import pytest
import torch

from manyhands import Annotations, load_model
from manyhands._core.progress import listening
from manyhands.classifiers import CrowdLayer
from manyhands.exceptions import ParameterError
from manyhands.heldout import hold_out
from manyhands.nn import train as checkpoints
from manyhands.nn.worker_layers import FORMS
from manyhands.testing.crowds import QUICK, feature_crowd, features_of, with_unlabelled
from manyhands.testing.learners import check_workers_without_labels_change_nothing

pytestmark = pytest.mark.usefixtures("one_thread")


def quick(**changes):
    """A small crowd layer with a seed."""
    return CrowdLayer(**(QUICK | {"random_state": 0} | changes))


@pytest.mark.parametrize("form", sorted({*FORMS} - {"mw"}))
def test_workers_without_labels_change_nothing(form):
    """In the other forms too; their layers stay at the identity, so that the most probable label is the truth."""
    check_workers_without_labels_change_nothing(CrowdLayer(form))
    X, votes, _ = feature_crowd(3)
    confusion = quick(form=form, max_epochs=2).fit(X, with_unlabelled(votes)[:60]).confusion_[-1]
    assert form == "vb" or (confusion.argmax(axis=1) == np.arange(3)).all()


def test_a_worker_who_swaps_two_classes_is_identified():
    """By their confusion matrix and accuracy, among four correct workers."""
    truth = np.arange(120) % 3
    swapped = np.array([1, 0, 2])[truth]
    votes = Annotations.from_matrix(np.column_stack([truth, truth, truth, truth, swapped]))
    model = quick(max_epochs=40, patience=None).fit(features_of(truth), votes)
    assert np.mean(model.predict(features_of(truth, seed=3)) == truth) > 0.95
    assert model.confusion_[4].argmax(axis=1).tolist() == [1, 0, 2]
    assert model.worker_accuracy_.argmin() == 4


def test_early_stopping_uses_held_out_labels():
    """They are a share of the labels and not trained on; without patience all labels are used for training."""
    X, votes, _ = feature_crowd(3)
    training, heldout = hold_out(votes, 0.1, np.random.default_rng(0))
    assert heldout.n_annotations == 30 and training.n_annotations == 270
    assert training.with_more(heldout.item, heldout.worker, heldout.label) == votes
    stopped = quick(max_epochs=200, patience=3).fit(X, votes).history_
    score = [epoch["heldout"] for epoch in stopped]
    assert len(score) < 200 and len(score) - 1 - int(np.argmax(score)) == 3
    assert all("heldout" not in epoch for epoch in quick(patience=None).fit(X, votes).history_)
    assert all("heldout" not in epoch for epoch in quick(validation=0.0).fit(X, votes).history_)


class Interrupted(Exception):
    """Raised in place of the end of the process."""


def interrupt(model, X, votes, epoch):
    """Fit, and interrupt the fit after this epoch."""

    def listener(done, total, what):
        if done == epoch:
            raise Interrupted

    with pytest.raises(Interrupted), listening(listener):
        model.fit(X, votes)


@pytest.mark.slow
def test_a_killed_process_is_resumed_by_another(tmp_path):
    """SIGKILL during a fit, then the same program again: the result of an uninterrupted fit."""
    program = """if True:
        import os, signal, sys
        import torch
        from manyhands.classifiers import CrowdLayer
        from manyhands.nn import train
        from manyhands._core.progress import listening
        from manyhands.testing.crowds import QUICK
        from manyhands.testing.crowds import feature_crowd

        torch.set_num_threads(1)
        train.SECONDS = 0.0
        X, votes, _ = feature_crowd(3)
        model = CrowdLayer(**QUICK | {"dropout": 0.3}, checkpoint=sys.argv[1], random_state=0)
        with listening(lambda done, *_: done == int(sys.argv[2]) and os.kill(os.getpid(), signal.SIGKILL)):
            print(model.fit(X, votes).predict_proba(X).tobytes().hex())
    """
    X, votes, _ = feature_crowd(3)
    command = [sys.executable, "-c", program, str(tmp_path / "kept")]
    first, second = (subprocess.run([*command, epoch], capture_output=True, text=True) for epoch in ("3", "-1"))
    assert first.returncode == -signal.SIGKILL and (first.stdout, second.stderr) == ("", "")
    assert second.stdout.strip() == quick(dropout=0.3).fit(X, votes).predict_proba(X).tobytes().hex()


def test_checkpoints_belong_to_one_fit(tmp_path, monkeypatch):
    """A fit with other features, labels, gold or parameters starts anew and keeps other files and checkpoints."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    X, votes, truth = feature_crowd(3)
    (tmp_path / "thesis.checkpoint").write_text("mine")
    interrupt(quick(checkpoint=tmp_path), X, votes, 2)
    fewer = votes.keep(np.arange(votes.n_annotations) > 0)
    gold = {votes.item_ids[0]: votes.classes[truth[0]]}
    others = [({}, (X + 1, votes)), ({}, (X, fewer)), ({}, (X, votes, gold)), ({"learning_rate": 0.5}, (X, votes))]
    for change, arguments in others:
        model, alone = (quick(checkpoint=folder, **change).fit(*arguments) for folder in (tmp_path, None))
        assert model.history_ == alone.history_
    assert len([*tmp_path.glob("*/training.checkpoint")]) == 1
    assert quick(checkpoint=tmp_path).fit(X, votes).history_ == quick().fit(X, votes).history_
    assert [path.name for path in tmp_path.iterdir()] == ["thesis.checkpoint"]
    with pytest.raises(ParameterError, match="with a checkpoint needs a random_state"):
        quick(checkpoint=tmp_path, random_state=None).fit(X, votes)


def test_a_custom_backbone_can_be_resumed(tmp_path, monkeypatch):
    """A function is identified by its name, not by its address, which differs between processes."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    X, votes, _ = feature_crowd(3)

    def made():
        def backbone(n_features, n_classes):
            return torch.nn.Linear(n_features, n_classes)

        return quick(backbone=backbone, checkpoint=tmp_path)

    interrupt(made(), X, votes, 2)
    made().fit(X, votes)
    assert not [*tmp_path.iterdir()]


def test_gold_is_used_for_classes_that_no_worker_gives():
    """Where every worker confuses two classes, gold separates them; on items without labels too."""
    truth = np.arange(90) % 3
    label = np.minimum(truth, 1)
    votes = Annotations.from_matrix(np.column_stack([label, label]), classes=[0, 1, 2])
    gold = {i: int(truth[i]) for i in range(45)}
    model = quick(max_epochs=60, patience=None).fit(features_of(truth), votes, gold)
    assert np.mean(model.predict(features_of(truth, seed=3)) == truth) > 0.9
    some = votes.keep(votes.item >= 45)
    model = quick(max_epochs=60, patience=None).fit(features_of(truth), some, gold)
    assert np.mean(model.predict(features_of(truth, seed=3)) == truth) > 0.9


def test_images_and_a_custom_backbone(tmp_path):
    """Rows of any shape are passed to the caller's network; saving it is refused with a reason."""
    from torch import nn

    X, votes, _ = feature_crowd(2)
    model = quick(backbone=lambda shape, n: nn.Sequential(nn.Flatten(), nn.Linear(4, n)))
    model.fit(X.reshape(-1, 1, 2, 2), votes)
    assert model.predict_proba(X.reshape(-1, 1, 2, 2)).shape == (60, 2)
    with pytest.raises(ParameterError, match="made by a function of yours cannot be made again"):
        model.save(tmp_path / "model")
    assert not (tmp_path / "model").exists()


def test_an_unavailable_device_is_refused():
    """With the name of the parameter."""
    X, votes, _ = feature_crowd(2)
    with pytest.raises(ParameterError, match="`device` is 'xpu:7', which torch cannot use here"):
        quick(device="xpu:7").fit(X, votes)


def test_invalid_model_folders_are_refused(tmp_path):
    """A folder without a model, a file of another model, a broken file."""
    X, votes, _ = feature_crowd(2)
    quick().fit(X, votes).save(tmp_path / "a")
    quick(random_state=1).fit(X, votes).save(tmp_path / "b")
    (tmp_path / "a" / "model.safetensors").write_bytes((tmp_path / "b" / "model.safetensors").read_bytes())
    with pytest.raises(ParameterError, match="was changed since it was saved"):
        load_model(tmp_path / "a")
    (tmp_path / "b" / "model.json").write_text("{")
    with pytest.raises(ParameterError, match="is not a model that can be read"):
        load_model(tmp_path / "b")
    with pytest.raises(ParameterError, match=r"it has no model\.json"):
        load_model(tmp_path)
