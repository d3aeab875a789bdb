"""What all aggregators share: stored results, warnings, alignment, worker accuracy."""

import warnings

import numpy as np
import pytest

from manyhands import Annotations, DawidSkene, MajorityVote, registry
from manyhands.aggregation.base import Aggregator, Inference
from manyhands.exceptions import CrowdWarning, ParameterError
from manyhands.testing.crowds import quietly


class FirstClass(Aggregator):
    """The smallest possible method: every item is of the first class."""

    def _infer(self, annotations, gold):
        posterior = np.zeros((annotations.n_items, annotations.n_classes))
        posterior[:, 0] = 1.0
        return Inference(posterior, results={"own_": 1}, notes={"lazy": "It did not look."})


def test_a_new_method_needs_one_function():
    """`_infer` gives a posterior; labels, accuracies, notes and its own results are stored for it."""
    votes = Annotations.from_matrix([[0, 0, 1], [1, 1, 1]])
    with pytest.warns(CrowdWarning, match="lazy: It did not look."):
        model = FirstClass().fit(votes)
    assert model.labels_.tolist() == [0, 0]
    assert model.own_ == 1
    assert model.notes_ == {"lazy": "It did not look."}
    np.testing.assert_allclose(model.worker_accuracy_, np.array([1.7, 1.7, 0.7]) / 3)
    assert (model.n_iter_, model.converged_, model.history_) == (1, True, [])


def test_accuracy_uses_only_items_with_other_labels():
    """A worker with one label on a shared item and many on items of their own is rated by the shared one alone."""
    votes = Annotations.from_triples([0, 0, 0, *range(1, 9)], ["a", "b", "c", *["a"] * 8], [0, 0, 1, *[1] * 8])
    for model in (DawidSkene(max_iter=50), MajorityVote()):
        accuracy = quietly(lambda: model.fit(votes)).worker_accuracy_  # noqa: B023
        p_right = model.posterior_[0, [0, 0, 1]]
        np.testing.assert_allclose(accuracy, (p_right + 0.7) / 2, atol=1e-9)


def test_accuracy_is_the_expected_share_of_right_labels():
    """From expected counts or from the posterior, the same number, with one pseudo-count of accuracy 0.7."""
    rng = np.random.default_rng(0)
    truth = rng.integers(0, 3, 40)
    label = np.where(rng.random((40, 5)) < 0.8, truth[:, None], rng.integers(0, 3, (40, 5)))
    model = DawidSkene().fit(Annotations.from_matrix(label))
    p_right = np.take_along_axis(model.posterior_, label, axis=1)
    np.testing.assert_allclose(model.worker_accuracy_, (p_right.sum(axis=0) + 0.7) / 41, rtol=1e-9)


def test_warnings_point_at_the_caller():
    """The warning's line is the caller's, not one of ours."""
    with pytest.warns(CrowdWarning) as caught:
        MajorityVote().fit(Annotations.from_matrix([[0], [1]]))
    assert caught[0].filename == __file__


def test_a_sound_crowd_gives_no_warning():
    """Without limitations there are no notes and no warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert DawidSkene().fit(Annotations.from_matrix([[0, 0, 1], [1, 1, 1], [0, 0, 0]])).notes_ == {}


def test_prediction_aligns_workers_and_classes_by_name():
    """Other codes, another order, other items: only the names count."""
    rng = np.random.default_rng(1)
    truth = rng.integers(0, 2, 60)
    label = np.where(rng.random((60, 4)) < [0.95, 0.9, 0.8, 0.55], truth[:, None], 1 - truth[:, None])
    workers = ["ann", "bob", "cyd", "dan"]
    model = DawidSkene().fit(Annotations.from_matrix(label, worker_ids=workers))
    expected = model.predict_proba(Annotations.from_triples(["x"] * 3, workers[:3], [0, 1, 1]))
    turned = Annotations.from_triples(
        ["z"] * 3, ["cyd", "bob", "ann"], [1, 1, 0], classes=[1, 0], worker_ids=workers[::-1]
    )
    np.testing.assert_allclose(model.predict_proba(turned), expected, rtol=1e-12)


def test_gold_given_to_fit_is_remembered_for_its_items():
    """At `predict`, a gold item still has its gold class; other items follow their labels."""
    votes = Annotations.from_matrix([[0, 0, 0], *[[1, 1, 1], [0, 0, 0]] * 10], item_ids=["a", *range(20)])
    for model in (MajorityVote(), DawidSkene()):
        model.fit(votes, gold={"a": 1})
        again = Annotations.from_matrix([[0, 0, 0], [0, 0, 0]], item_ids=["a", "new"], classes=[0, 1])
        assert model.predict(again).tolist() == [1, 0]


def test_resampled_items_are_all_gold():
    """A bootstrap draws an item twice; both copies are known."""
    votes = Annotations.from_matrix([[0, 0, 0], [1, 1, 1], [0, 0, 1]])[[0, 0, 1, 2]]
    assert MajorityVote().fit_predict(votes, gold={0: 1}).tolist() == [1, 1, 1, 0]


def test_labels_keep_their_type_unless_one_is_missing():
    """Codes become the caller's own values; None takes the place of a label that does not exist."""
    labels = MajorityVote().fit_predict(Annotations.from_matrix([[3, 3], [5, 5]]))
    assert labels.dtype == np.int64
    labels = MajorityVote().fit(Annotations.from_matrix([[3, 3], [-1, -1], [5, 5]])).labels_
    assert labels.tolist() == [3, None, 5]


def test_a_prior_for_another_number_of_classes_is_refused():
    """The list must have a number for each class of the annotations."""
    with pytest.raises(ParameterError, match="3 numbers, but there are 2 classes"):
        DawidSkene(prior=[1, 1, 1]).fit(Annotations.from_matrix([[0, 1], [1, 1]]))


@pytest.mark.parametrize("method", registry.names("aggregator"))
def test_gold_alone_rates_a_worker(method):
    """One worker, wrong on every gold item: no other worker is needed to see it."""
    votes = Annotations.from_triples(range(60), ["solo"] * 60, [0, 1] * 30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = registry.create(method).fit(votes, gold={i: 1 - i % 2 for i in range(60)})
    assert model.worker_accuracy_[0] < 0.1 and "no_redundancy" not in model.notes_


@pytest.mark.parametrize("method", registry.names("aggregator"))
def test_a_subset_of_the_items_is_predicted_like_the_whole(method):
    """A tie, and an item without labels, have the same class as in `fit`, whatever other items are passed."""
    matrix = [[0, 0, 1], [1, 1, 1], [1, 1, -1], [0, 1, -1], [-1, -1, -1], [1, 1, 1], [0, 0, 0], [1, 1, 1]]
    votes = Annotations.from_matrix(matrix)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = registry.create(method).fit(votes)
    for item in range(len(votes)):
        part = votes[[item, 0]]
        assert np.allclose(model.predict_proba(part)[0], model.posterior_[item], atol=1e-12)
        assert model.predict(part)[0] == model.labels_[item]


@pytest.mark.parametrize("method", registry.names("aggregator"))
def test_a_single_worker_gives_no_certainty(method):
    """Without redundancy the labels stay, the worker has the prior accuracy, and no posterior is near 1."""
    votes = Annotations.from_triples(range(100), ["solo"] * 100, [0] * 60 + [1] * 40)
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model = registry.create(method).fit(votes)
    assert model.labels_.tolist() == [0] * 60 + [1] * 40
    assert model.worker_accuracy_[0] == pytest.approx(0.7)
    if hasattr(model, "confusion_"):
        assert model.posterior_.max() < 0.85 and model.confusion_.max() < 0.95
