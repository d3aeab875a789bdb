"""Noise layers against plain loops, and their limit cases."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from manyhands.nn import worker_layers
from manyhands.nn.batches import Batch
from manyhands.nn.worker_layers import FORMS, Confusion, CrowdLogits
from reference.slow_networks import slow_confusion, slow_crowd_log_label, slow_mixture_log_label, slow_softmax
from strategies import seeds

pytestmark = pytest.mark.fast

SIZES = {"n_workers": 5, "n_classes": 3}


def random_batch(seed, n_rows=6, n_labels=20):
    """log p(k | x) of some rows, and labels on them by four of the five workers."""
    rng = np.random.default_rng(seed)
    log_proba = torch.tensor(rng.normal(size=(n_rows, 3))).log_softmax(1)
    row, worker, label = (torch.tensor(rng.integers(0, n, n_labels)) for n in (n_rows, 4, 3))
    return log_proba, Batch(np.arange(n_rows), row, worker, label)


def perturbed(layer, seed):
    """The layer in double precision, with noise added to its initial weights."""
    generator = torch.Generator().manual_seed(seed % 2**31)
    layer = layer.double()
    with torch.no_grad():
        for parameter in layer.parameters():
            parameter += torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    return layer


def triples_of(batch):
    """(row, worker, label) as plain integers."""
    return list(zip(batch.row.tolist(), batch.worker.tolist(), batch.label.tolist()))


def matrices_of(layer):
    """W and b of every worker, whatever the form of the crowd layer."""
    n = layer.n_classes
    eye = np.eye(n)
    weight = None if layer.weight is None else layer.weight.detach().numpy()
    full = {
        "mw": lambda: weight.reshape(-1, n, n),
        "vb": lambda: np.repeat(eye[None], layer.n_workers, 0),
    }.get(layer.form, lambda: eye * weight[:, None, :])()
    bias = np.zeros((layer.n_workers, n)) if layer.bias is None else layer.bias.detach().numpy()
    return full.tolist(), bias.tolist()


@pytest.mark.parametrize("form", FORMS)
@given(seeds())
def test_crowd_layer_equals_plain_loops(form, seed):
    """Log-probabilities of labels and confusion matrices of every form."""
    log_proba, batch = random_batch(seed)
    layer = perturbed(CrowdLogits(**SIZES, form=form), seed)
    matrices, biases = matrices_of(layer)
    expected = slow_crowd_log_label(log_proba.exp().tolist(), triples_of(batch), matrices, biases)
    np.testing.assert_allclose(layer(log_proba, batch).detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    rows = [[slow_softmax(np.add(row, b).tolist()) for row in m] for m, b in zip(matrices, biases)]
    np.testing.assert_allclose(layer.float().confusion(), rows, rtol=1e-4)


@pytest.mark.parametrize("rows", ["softmax", "softplus"])
@given(seeds())
def test_confusion_equals_plain_loops(rows, seed):
    """Log-probabilities of labels, confusion matrices, and the mean trace over the workers of the mini-batch."""
    log_proba, batch = random_batch(seed)
    layer = perturbed(Confusion(**SIZES, rows=rows), seed)
    free = layer.weight.detach().view(5, 3, 3).transpose(1, 2).tolist()  # stored with the label first
    confusions = [slow_confusion(matrix, rows) for matrix in free]
    expected = slow_mixture_log_label(log_proba.exp().tolist(), triples_of(batch), confusions)
    np.testing.assert_allclose(layer(log_proba, batch).detach().numpy(), expected, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(layer.confusion(), confusions, rtol=1e-9)
    present = sorted(set(batch.worker.tolist()))
    trace = np.mean([sum(confusions[w][k][k] for k in range(3)) for w in present])
    log_label, found = layer.with_trace(log_proba, batch)
    assert torch.equal(log_label, layer(log_proba, batch)) and found.item() == pytest.approx(trace, rel=1e-9)


@pytest.mark.parametrize("rows", ["softmax", "softplus"])
@given(seeds())
def test_results_do_not_depend_on_which_workers_share_a_batch(rows, seed):
    """A mini-batch with all workers uses the whole table, others copy the rows of their workers: values agree."""
    log_proba, batch = random_batch(seed)
    batch.worker[:4] = torch.arange(4)
    layer = perturbed(Confusion(4, 3, rows), seed)
    one_by_one = [Batch(batch.item, *(column[i : i + 1] for column in batch[1:4])) for i in range(20)]
    found = torch.cat([layer(log_proba, single) for single in one_by_one])
    torch.testing.assert_close(found, layer(log_proba, batch))
    (gradient,) = torch.autograd.grad(found.sum(), layer.weight)
    (expected,) = torch.autograd.grad(layer(log_proba, batch).sum(), layer.weight)
    torch.testing.assert_close(gradient, expected)


@pytest.mark.parametrize("rows", ["softmax", "softplus"])
def test_the_trace_of_an_empty_batch_is_zero(rows):
    """A mini-batch with gold but no labels adds 0 to the loss and to every gradient, not NaN."""
    layer, none = Confusion(**SIZES, rows=rows), torch.zeros(0, dtype=torch.long)
    log_label, trace = layer.with_trace(torch.zeros(2, 3), Batch(np.arange(2), none, none, none))
    (log_label.sum() + trace).backward()
    assert log_label.shape == (0,) and trace == 0 and (layer.weight.grad == 0).all()


@pytest.mark.parametrize("n_classes", [3, 40])
def test_batched_products_of_rows_and_matrices(n_classes):
    """Both by `torch.bmm` and by multiply-and-sum."""
    rows, matrices = torch.rand(5, n_classes).double(), torch.rand(5, n_classes, n_classes).double()
    expected = torch.stack([row @ matrix for row, matrix in zip(rows, matrices)])
    torch.testing.assert_close(worker_layers._batched_product(rows, matrices), expected)


@given(st.integers(2, 8), st.floats(0.3, 0.99))
def test_confusion_starts_at_the_given_diagonal(n_classes, diagonal):
    """For softmax and softplus; the initial matrices of Tanno et al. are close to the identity."""
    for rows in ("softmax", "softplus"):
        found = Confusion(2, n_classes, rows, diagonal).confusion()
        np.testing.assert_allclose(found.diagonal(axis1=1, axis2=2), diagonal, rtol=1e-4)
    assert Confusion(2, 8, "softplus", None).confusion()[0, 0, 0] == pytest.approx(0.965, abs=0.005)


def test_the_penalty_lowers_the_diagonal():
    """A step down the gradient of the mean trace makes the diagonal smaller."""
    layer = Confusion(3, 4, "softplus", None)
    before = layer.confusion().trace(axis1=1, axis2=2)
    of_all = Batch(np.arange(3), torch.arange(3), torch.arange(3), torch.zeros(3, dtype=torch.long))
    layer.with_trace(torch.zeros(3, 4), of_all)[1].backward()
    with torch.no_grad():
        layer.weight -= layer.weight.grad
    assert (layer.confusion().trace(axis1=1, axis2=2) < before).all()


def test_vw_is_mw_with_off_diagonals_frozen():
    """A weight per class and a matrix whose other cells stay 0 are trained to the same probabilities."""
    log_proba, batch = random_batch(0)
    vector, matrix = (CrowdLogits(**SIZES, form=form).double() for form in ("vw", "mw"))
    diagonal = torch.eye(3, dtype=torch.float64).flatten()
    for layer in (vector, matrix):
        optimizer = torch.optim.Adam(layer.parameters(), 0.1)
        for _ in range(20):
            optimizer.zero_grad()
            (-layer(log_proba, batch).mean()).backward()
            if layer is matrix:
                layer.weight.grad *= diagonal
            optimizer.step()
    assert not torch.allclose(vector.weight, torch.ones_like(vector.weight), atol=0.1)
    torch.testing.assert_close(matrix.weight.view(5, 3, 3).diagonal(dim1=1, dim2=2), vector.weight)
    torch.testing.assert_close(matrix(log_proba, batch), vector(log_proba, batch))


@pytest.mark.parametrize("layer", [CrowdLogits(**SIZES), Confusion(**SIZES), Confusion(**SIZES, rows="softplus")])
def test_a_worker_outside_the_batch_has_no_gradient(layer):
    """Only the parameters of the batch's workers change."""
    log_proba, batch = random_batch(1)
    layer(log_proba.float(), batch).sum().backward()
    assert (layer.weight.grad[4] == 0).all() and (layer.weight.grad[:4].abs().sum(1) > 0).all()


def test_the_identity_leaves_probabilities_unchanged():
    """A confusion matrix near the identity gives log p(label | x)."""
    log_proba, batch = random_batch(2)
    found = Confusion(**SIZES, diagonal=1 - 1e-7)(log_proba.float(), batch)
    torch.testing.assert_close(found, log_proba.float()[batch.row, batch.label], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("layer", [*FORMS, "softmax", "softplus"])
@given(seeds())
def test_the_label_distribution_agrees_with_observed_labels(layer, seed):
    """Each label of each worker on each row has the log-probability that `forward` gives it as an observed label."""
    log_proba, _ = random_batch(seed)
    made = CrowdLogits(**SIZES, form=layer) if layer in FORMS else Confusion(**SIZES, rows=layer)
    made = perturbed(made, seed)
    worker = torch.tensor([0, 2, 3])
    row, label, place = (torch.from_numpy(codes.ravel()) for codes in np.indices((6, 3, 3)))
    expected = made(log_proba, Batch(np.arange(6), row, worker[place], label))
    torch.testing.assert_close(made.label_distribution(worker)(log_proba).flatten(), expected)


@pytest.mark.parametrize("form", FORMS)
def test_a_single_class_gives_finite_weights(form):
    """Although the probability of a wrong label is 0."""
    layer = CrowdLogits(2, 1, form)
    layer.initialise_at(np.ones((2, 1, 1)))
    assert all(bool(parameter.isfinite().all()) for parameter in layer.parameters())
