"""The training loop: mean losses, early stopping, and resuming from a checkpoint."""

import json
import math

import numpy as np
import pytest
import torch
from safetensors import safe_open

from manyhands._core.progress import listening
from manyhands._core.randomness import torch_seeded
from manyhands.exceptions import TrainingError
from manyhands.nn import train as checkpoints
from manyhands.nn.train import Checkpoint, EarlyStopping, Epochs, descend, train


def test_history_has_mean_losses_and_progress_is_reported():
    """Numbers, tensors and several losses by name; one report per epoch."""
    reports = []
    with listening(lambda *report: reports.append(report)):
        history = train(lambda x: {"a": x, "b": torch.tensor(2.0 * x)}, [1.0, 2.0, 6.0], Epochs(2, what="test"))
    assert history == [{"a": 3.0, "b": 6.0}] * 2
    assert reports == [(1, 2, "test"), (2, 2, "test")]
    assert train(lambda x: x, [4.0], Epochs(1)) == [{"loss": 4.0}]


def test_a_diverged_loss_ends_the_training():
    """The message states the epoch and what to do."""
    with pytest.raises(TrainingError, match="loss became nan in epoch 1; lower learning_rate"):
        train(lambda x: math.nan, [1], Epochs(3))


def test_early_stopping_restores_the_best_weights():
    """Training stops after `patience` epochs without improvement, and the weights of the best epoch are restored."""
    module = torch.nn.Linear(1, 1, bias=False)
    scores = iter([0.1, 0.5, 0.4, 0.5, 0.9])

    def step(batch):
        with torch.no_grad():
            module.weight.fill_(batch["epoch"])
            batch["epoch"] += 1
        return 0.0

    stop = EarlyStopping(lambda: next(scores), {"module": module}, patience=2)
    history = train(step, [{"epoch": 0}], Epochs(10, stop=stop))
    assert [epoch["heldout"] for epoch in history] == [0.1, 0.5, 0.4, 0.5]
    assert module.weight.item() == 1.0


def test_training_stops_when_its_history_says_so():
    """After the epoch after which `until` is true; with early stopping, the best weights are restored all the same."""
    losses = iter([3.0, 2.0, 1.0, 0.5])
    history = train(lambda batch: next(losses), [0], Epochs(4, until=lambda past: past[-1]["loss"] <= 1))
    assert [epoch["loss"] for epoch in history] == [3.0, 2.0, 1.0]
    module, scores = torch.nn.Linear(1, 1, bias=False), iter([0.5, 0.9, 0.1])

    def step(batch):
        with torch.no_grad():
            module.weight.fill_(batch["epoch"])
            batch["epoch"] += 1
        return 0.0

    stop = EarlyStopping(lambda: next(scores), {"module": module}, patience=5)
    assert len(train(step, [{"epoch": 0}], Epochs(9, stop=stop, until=lambda past: len(past) == 3))) == 3
    assert module.weight.item() == 1.0


class Interrupted(Exception):
    """Raised in place of the end of the process."""


def run(folder, *, epochs=6, interrupt_after=None, rate=0.1, optimizer="Adam", bits="PCG64"):
    """Train a network with dropout, shuffling and early stopping; a listener may interrupt it after an epoch."""
    rng = np.random.Generator(getattr(np.random, bits)(0))
    X = np.random.default_rng(1).normal(size=(30, 3)).astype(np.float32)
    y = torch.from_numpy((X[:, 0] > 0).astype(np.int64))

    class Batches:
        def __iter__(self):
            return iter(np.split(rng.permutation(30), 3))

    def listener(done, total, what):
        if done == interrupt_after:
            raise Interrupted

    with torch_seeded(rng), listening(listener):
        network = torch.nn.Sequential(
            torch.nn.Linear(3, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.5), torch.nn.Linear(8, 2)
        )
        own = getattr(torch.optim, optimizer)(network.parameters(), lr=rate)
        counter = torch.nn.Module()
        counter.register_buffer("steps", torch.zeros(1))

        def step(index):
            counter.steps.add_(1)
            return descend(own, torch.nn.functional.cross_entropy(network(torch.from_numpy(X[index])), y[index]))

        stop = EarlyStopping(lambda: -float(network[0].weight.detach().abs().sum()), {"network": network}, patience=4)
        modules = {"network": network, "counter": counter}
        kept = Checkpoint(folder / "t.checkpoint", {"rate": str(rate)}, modules, {"own": own}, rng)
        history = train(step, Batches(), Epochs(epochs, stop=stop, checkpoint=kept))
        after = torch.rand(1).item(), float(rng.random())
    return history, {name: tensor.clone() for name, tensor in network.state_dict().items()}, counter.steps.item(), after


@pytest.mark.parametrize("optimizer, bits", [("Adam", "PCG64"), ("SGD", "MT19937"), ("Adadelta", "Philox")])
@pytest.mark.parametrize("interrupt_after", [1, 3])
def test_an_interrupted_training_resumes_to_the_same_bits(tmp_path, monkeypatch, optimizer, bits, interrupt_after):
    """History, weights, counters and both generators end as in an uninterrupted training."""
    monkeypatch.setattr(checkpoints, "SECONDS", 0.0)
    options = {"optimizer": optimizer, "bits": bits}
    expected = run(tmp_path / "whole", **options)
    with pytest.raises(Interrupted):
        run(tmp_path / "interrupted", interrupt_after=interrupt_after, **options)
    found = run(tmp_path / "interrupted", **options)
    assert found[0] == expected[0] and found[2:] == expected[2:]
    assert all(torch.equal(found[1][name], tensor) for name, tensor in expected[1].items())


def test_a_finished_training_is_not_repeated(tmp_path):
    """Its checkpoint contains the final state: no step is run again."""
    expected = run(tmp_path)
    found = run(tmp_path)
    assert found[0] == expected[0] and found[2:] == expected[2:]


def test_a_checkpoint_of_another_training_is_refused(tmp_path):
    """The message states what differs; a file that is not a checkpoint is refused too."""
    run(tmp_path)
    with pytest.raises(TrainingError, match=r"belongs to another training: rate differ\. Delete the folder"):
        run(tmp_path, rate=0.2)
    (tmp_path / "t.checkpoint").write_bytes(b"nonsense")
    with pytest.raises(TrainingError, match="is not a checkpoint of manyhands"):
        run(tmp_path)


def test_a_checkpoint_is_one_safetensors_file_with_json(tmp_path):
    """The folder contains no other file, and nothing is pickled."""
    run(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["t.checkpoint"]
    with safe_open(tmp_path / "t.checkpoint", "pt") as file:
        assert json.loads(file.metadata()["state"])["over"] is True
