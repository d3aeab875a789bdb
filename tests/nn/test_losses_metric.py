"""Losses of metric learning compared with plain loops, in limiting cases, and with another library."""

import numpy as np
import pytest
import torch
from hypothesis import given
from pytorch_metric_learning.distances import LpDistance
from pytorch_metric_learning.losses import ContrastiveLoss, LiftedStructureLoss, TripletMarginLoss
from pytorch_metric_learning.reducers import MeanReducer

from manyhands.nn.losses import (
    contrastive_loss,
    lifted_loss,
    mean_l1_distance,
    semi_hard_loss,
    siamese_loss,
    squared_distances,
    triplet_center_loss,
    triplet_loss,
    tuplet_loss,
)
from reference.slow_metric_losses import (
    slow_contrastive,
    slow_lifted,
    slow_mean_l1,
    slow_semi_hard,
    slow_siamese,
    slow_triplet,
    slow_triplet_center,
    slow_tuplet,
)
from strategies import seeds

BATCH_LOSSES = {  # name -> (loss, reference, margin)
    "contrastive": (contrastive_loss, slow_contrastive, 1.5),
    "semi-hard": (semi_hard_loss, slow_semi_hard, 1.0),
    "lifted": (lifted_loss, slow_lifted, 1.0),
}


def batch(seed, n_classes=3):
    """Points with overlapping classes; one class may have a single point."""
    rng = np.random.default_rng(seed)
    return torch.tensor(rng.normal(0, 1, (9, 2))), torch.tensor(rng.integers(0, n_classes, 9))


@pytest.mark.parametrize("name", BATCH_LOSSES)
@given(seeds())
def test_losses_of_a_batch_equal_the_reference(name, seed):
    """With three classes, and with a single one."""
    loss, reference, margin = BATCH_LOSSES[name]
    for n_classes in (1, 3):
        points, target = batch(seed, n_classes)
        expected = reference(points.tolist(), target.tolist(), margin)
        assert loss(points, target, margin).item() == pytest.approx(expected, rel=1e-9, abs=1e-12)


@given(seeds())
def test_the_siamese_loss_equals_the_reference(seed):
    """With three classes, with a single one, and with as many classes as points."""
    weight, bias = torch.tensor([-0.7, 0.4], dtype=torch.float64), torch.tensor(0.3, dtype=torch.float64)
    for n_classes in (1, 3):
        points, target = batch(seed, n_classes)
        for classes in (target, torch.arange(9)):
            expected = slow_siamese(points.tolist(), classes.tolist(), weight.tolist(), bias.item())
            assert siamese_loss(points, classes, weight, bias).item() == pytest.approx(expected, rel=1e-9)


@given(seeds())
def test_the_mean_distance_of_pairs_equals_the_reference(seed):
    """Also with equal points, and with too few points for a pair."""
    points, _ = batch(seed)
    points[4] = points[2]
    for n in (9, 2, 1, 0):
        assert mean_l1_distance(points[:n]).item() == pytest.approx(slow_mean_l1(points[:n].tolist()), abs=1e-12)


def test_the_siamese_loss_is_low_for_separated_classes():
    """Unlike the losses with a margin it never reaches 0; at identical points its gradient is finite."""
    weight, bias = torch.tensor([-5.0, -5.0]), torch.tensor(10.0)
    points = torch.tensor([[0.0, 0.0], [0.0, 0.0], [9.0, 0.0], [9.0, 0.0]], requires_grad=True)
    loss = siamese_loss(points, torch.tensor([0, 0, 1, 1]), weight, bias)
    loss.backward()
    assert 0 < loss.item() < 1e-4 and torch.isfinite(points.grad).all()
    assert siamese_loss(points, torch.tensor([0, 1, 0, 1]), weight, bias).item() > 5


@given(seeds())
def test_losses_of_tuplets_equal_the_reference(seed):
    """Triplets with several negatives, centres, and the confidence inside and outside the exponent."""
    rng = np.random.default_rng(seed)
    anchor, positive, negative = (torch.tensor(rng.normal(0, 1, shape)) for shape in ((5, 2), (5, 2), (5, 3, 2)))
    expected = slow_triplet(anchor.tolist(), positive.tolist(), negative.tolist(), 0.7)
    assert triplet_loss(anchor, positive, negative, 0.7).item() == pytest.approx(expected, rel=1e-9)
    points, target = batch(seed)
    centres = torch.tensor(rng.normal(0, 1, (3, 2)))
    expected = slow_triplet_center(points.tolist(), target.tolist(), centres.tolist(), 1.0)
    assert triplet_center_loss(points, target, centres, 1.0).item() == pytest.approx(expected, rel=1e-9)
    similarity, confidence = torch.tensor(rng.uniform(-1, 1, (6, 4))), torch.tensor(rng.uniform(0.1, 1, (6, 4)))
    for inside in (False, True):
        expected = slow_tuplet(similarity.tolist(), confidence.tolist(), 10.0, inside)
        found = tuplet_loss(similarity, confidence, 10.0, inside=inside)
        assert found.item() == pytest.approx(expected, rel=1e-9)


def all_losses(points):
    """Every loss of four points of two classes, by name."""
    target = torch.tensor([0, 0, 1, 1])
    positive, negative = points[[1, 0, 3, 2]], points[torch.tensor([[2, 3], [2, 3], [0, 1], [0, 1]])]
    centres = points[[0, 2]]
    distance = (points.unsqueeze(1) - torch.cat([positive.unsqueeze(1), negative], 1)).square().sum(2)
    found = {name: loss(points, target, margin) for name, (loss, _, margin) in BATCH_LOSSES.items()}
    found["triplet"] = triplet_loss(points, positive, negative, 1.0)
    found["center"] = triplet_center_loss(points, target, centres, 1.0)
    found["tuplet"] = tuplet_loss(1 - distance.clamp(min=1e-12).sqrt(), torch.ones(4, 3), 2.0)
    return found


def test_separated_classes_have_no_loss():
    """Classes collapsed to points far apart: 0, except for tuplets, whose softmax never reaches 1."""
    points = torch.tensor([[0.0, 0.0], [0.0, 0.0], [9.0, 0.0], [9.0, 0.0]], dtype=torch.float64)
    found = all_losses(points)
    assert {name: loss.item() for name, loss in found.items() if name != "tuplet"} == dict.fromkeys(
        ("contrastive", "semi-hard", "lifted", "triplet", "center"), 0.0
    )
    assert 0 < found["tuplet"].item() < 1e-6


def test_mixed_classes_have_a_loss():
    """Every loss is positive for interleaved classes."""
    points = torch.tensor([[0.0, 0.0], [1.0, 0.0], [0.1, 0.0], [0.9, 0.0]])
    assert all(loss.item() > 0.1 for loss in all_losses(points).values())


@pytest.mark.parametrize("name", [*BATCH_LOSSES, "triplet", "center", "tuplet"])
def test_gradients_are_finite_where_points_are_identical(name):
    """The square root has no gradient at 0; no NaN results."""
    points = torch.full((4, 3), 0.5, requires_grad=True)
    loss = all_losses(points)[name]
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(points.grad).all()


@pytest.mark.parametrize("name", BATCH_LOSSES)
def test_a_batch_without_pairs_has_no_loss(name):
    """A single point, or two identical points of one class: 0, with a gradient of 0."""
    for n in (1, 2):
        points = torch.zeros((n, 3), requires_grad=True)
        loss = BATCH_LOSSES[name][0](points, torch.zeros(n, dtype=torch.long), 1.0)
        loss.backward()
        assert loss.item() == 0 and (points.grad == 0).all()


def test_one_centre_and_no_negatives_have_no_loss():
    """With a single class the loss is 0, and has a gradient."""
    points = torch.randn(4, 3, requires_grad=True)
    loss = triplet_center_loss(points, torch.zeros(4, dtype=torch.long), points[:1], 1.0)
    loss = loss + triplet_loss(points, points, points[np.zeros((4, 0), int)], 1.0)
    loss = loss + tuplet_loss(points[:, :1], torch.ones(4, 1), 10.0)
    loss.backward()
    assert loss.item() == 0 and (points.grad == 0).all()


def test_huge_distances_do_not_overflow():
    """The lifted loss takes the logarithm of a sum of exponentials, which would underflow or overflow by itself."""
    points, target = batch(0)
    for scale in (1e-3, 1e4):
        assert torch.isfinite(lifted_loss(points.float() * scale, target, 1.0))


def test_pytorch_metric_learning_where_it_has_the_published_loss():
    """Triplet and lifted loss, without normalisation and with the plain mean."""
    points, target = batch(3)
    plain = {"reducer": MeanReducer()}
    theirs = LiftedStructureLoss(distance=LpDistance(normalize_embeddings=False), **plain)
    assert lifted_loss(points, target, 1.0).item() == pytest.approx(theirs(points, target).item(), rel=1e-6)
    theirs = TripletMarginLoss(1.0, distance=LpDistance(normalize_embeddings=False, power=2), **plain)
    anchor, positive, negative = torch.tensor([[0, 1, 2], [1, 2, 3], [4, 5, 6]])
    expected = theirs(points, indices_tuple=(anchor, positive, negative))
    found = triplet_loss(points[anchor], points[positive], points[negative].unsqueeze(1), 1.0)
    assert found.item() == pytest.approx(expected.item(), rel=1e-6)


def test_pytorch_metric_learning_where_it_has_not():
    """Its contrastive loss has no D^2 and (m - D)^2, and its distances between identical points are not 0."""
    points, target = torch.tensor([[0.0, 0.0], [0.5, 0.0], [0.9, 0.0]]), torch.tensor([0, 0, 1])
    ours = contrastive_loss(points, target, 1.0).item()
    assert ours == pytest.approx((0.25 + 0.01 + 0.36) / 3)
    for power in (1, 2):
        distance = LpDistance(normalize_embeddings=False, power=power)
        theirs = ContrastiveLoss(distance=distance, reducer=MeanReducer())(points, target).item()
        assert abs(theirs - ours) > 0.1
    twice = torch.randn(32, 32, generator=torch.Generator().manual_seed(0)).repeat(2, 1)
    apart = LpDistance(normalize_embeddings=False)(twice).diagonal(32)
    assert (squared_distances(twice, twice).diagonal(32) == 0).all() and apart.max() > 1e-4
