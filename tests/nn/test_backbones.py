"""Networks from features to logits."""

import pytest
import torch
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers import CrowdLayer
from manyhands.exceptions import LimitError, ParameterError
from manyhands.nn.backbones import build, convnet, mlp


def kinds_of(network):
    """The names of the layers, in order."""
    return [type(layer).__name__ for layer in network.modules() if not list(layer.children())]


def test_mlp_has_the_requested_layers():
    """ReLU and dropout behind all layers but the last, batch norm on request; no hidden layer is allowed."""
    assert kinds_of(mlp((5, 4, 3, 2), dropout=0.5, batch_norm=True)) == [
        "Flatten", *["Linear", "BatchNorm1d", "ReLU", "Dropout"] * 2, "Linear",
    ]  # fmt: skip
    assert kinds_of(mlp((5, 2), dropout=0.5)) == ["Flatten", "Linear"]
    assert build("mlp", (2, 3), 4, hidden=(7,))(torch.zeros(6, 2, 3)).shape == (6, 4)


def test_convnet_is_the_four_layers_of_the_paper():
    """32, 32, 64, 64 filters of 3x3, batch norm behind the fourth; 150 x 150 pixels become 7 x 7; then 128 units."""
    network = convnet((3, 150, 150), 2)
    filters = [(m.in_channels, m.out_channels, m.kernel_size) for m in network.modules() if isinstance(m, nn.Conv2d)]
    assert filters == [(3, 32, (3, 3)), (32, 32, (3, 3)), (32, 64, (3, 3)), (64, 64, (3, 3))]
    assert kinds_of(network)[:10] == [*["Conv2d", "ReLU", "MaxPool2d"] * 3, "Conv2d"]
    assert kinds_of(network)[10:13] == ["BatchNorm2d", "ReLU", "MaxPool2d"]
    program = kinds_of(convnet((3, 150, 150), 2, normalised_layer=1))
    assert program[:4] == ["Conv2d", "BatchNorm2d", "ReLU", "MaxPool2d"] and program.count("BatchNorm2d") == 1
    linear = [(m.in_features, m.out_features) for m in network.modules() if isinstance(m, nn.Linear)]
    assert linear == [(64 * 7 * 7, 128), (128, 2)]
    assert build("convnet", (1, 46, 50), 5)(torch.zeros(2, 1, 46, 50)).shape == (2, 5)
    with pytest.raises(ParameterError, match=r"needs images of .*; the rows of X have shape \(4,\)"):
        build("convnet", (4,), 2)


@pytest.mark.parametrize("side", [1, 2, 3, 8, 16, 28, 45])
def test_small_images_are_padded(side):
    """Digits of 8 x 8 pass the same four layers, and are pooled while they have two pixels."""
    network = build("convnet", (1, side, side + 1), 3)
    assert kinds_of(network).count("Conv2d") == 4
    assert network(torch.zeros(2, 1, side, side + 1)).shape == (2, 3)


def test_a_function_may_build_the_network():
    """It gets the number of features, or the shape, and must return a module with one logit per class."""
    calls = []

    def make(size, n_classes):
        calls.append((size, n_classes))
        return nn.Sequential(nn.Flatten(), nn.LazyLinear(n_classes))

    assert build(make, (4,), 3)(torch.zeros(2, 4)).shape == (2, 3)
    assert build(make, (1, 2, 2), 3).training
    assert calls == [(4, 3), ((1, 2, 2), 3)]
    for bad, message in [
        (lambda size, n: "no module", "must make a torch Module; it made str"),
        (lambda size, n: nn.Linear(size, n + 1), r"must give 3 logits per row as a tensor; for 2 rows: \(2, 4\)"),
        (lambda size, n: nn.Linear(size + 1, n), r"cannot take rows of shape \(4,\)"),
    ]:
        with pytest.raises(ParameterError, match=message):
            build(bad, (4,), 3)


def test_a_module_instead_of_a_function_is_refused():
    """The message states what to give instead; a module that does not return a tensor is refused too."""
    with pytest.raises(ParameterError, match="is a module; give a function that makes one"):
        build(nn.Linear(3, 2), (3,), 2)
    with pytest.raises(ParameterError, match="must give 2 logits per row as a tensor; for 2 rows: tuple"):
        build(lambda n, k: nn.LSTM(n, k), (3,), 2)


HUGE = [
    ((10**6, 10**6), "1,000,0"),
    ((10**9,) * 3, "too large"),
    ((10**300,), "more than 10"),
    ((2**31,) * 100, "too large"),
]


@pytest.mark.parametrize(("hidden", "message"), HUGE)
def test_weights_beyond_the_memory_are_refused_before_a_layer_is_made(monkeypatch, hidden, message):
    """The number of weights is computed with integers that do not overflow."""
    monkeypatch.setattr(nn, "Linear", lambda *_: pytest.fail("a layer was made"))
    votes = Annotations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1])
    with pytest.raises(LimitError, match=message):
        CrowdLayer(hidden=hidden).fit([[0.0], [1.0]], votes)
    with pytest.raises(LimitError, match=message):
        build("convnet", (1, 8, 8), 2, hidden=hidden)


def test_thousands_of_layers_are_refused_before_one_is_made(monkeypatch):
    monkeypatch.setattr(nn, "Linear", lambda *_: pytest.fail("a layer was made"))
    votes = Annotations.from_triples([0, 0, 1, 1], [0, 1, 0, 1], [0, 1, 1, 1])
    with pytest.raises(ParameterError, match=r"`hidden` .* must be a tuple of at most 100 whole numbers") as found:
        CrowdLayer(hidden=[1] * 20_000).fit([[0.0], [1.0]], votes)
    assert len(str(found.value)) < 1500
