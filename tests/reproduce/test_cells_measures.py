"""What is measured of a fitted method, by hand."""

import numpy as np
import pytest

from manyhands import Annotations
from manyhands.classes import estimated_shares, shift_prior
from manyhands.reproduce.cells import Part, auc, planted_figures, predicted_figures, rare_recall, recorded_figures

VOTES = Annotations.from_matrix(np.zeros((6, 2), int), classes=[0, 1, 2])


class Fitted:
    """A method that is fitted, as far as figures go."""

    classes_ = np.array([0, 1, 2])

    def __init__(self, **attributes):
        self.posterior_ = np.full((6, 3), 1 / 3)
        vars(self).update(attributes)


def part(truth):
    return Part(None, VOTES, None if truth is None else np.array(truth))


def test_recall_of_the_class_that_is_rarest_in_training():
    """Not of the one that is rarest in the test part; unknown truth does not count."""
    trained, test, label = part([0, 0, 1, -1, -1, 0]), np.array([0, 1, 1, 1, 1]), np.array([0, 1, 0, 1, 1])
    assert rare_recall(trained, test, label) == 0.75
    assert rare_recall(part([0, 0, 0, 1, 1, 1]), test, label) == (1 + 0.75) / 2
    assert np.isnan(rare_recall(part([0, 0, 0, 0, 0, 2]), test, label))  # nobody of it is tested on
    assert np.isnan(rare_recall(part(None), test, label)) and np.isnan(rare_recall(part([-1] * 6), test, label))


def test_recall_of_a_rare_class_that_is_text():
    """None is an unknown truth there."""
    y = np.array(["cat", "cat", "dog", None, None, None], object)
    assert rare_recall(Part(None, VOTES, y), np.array(["dog", "cat"], object), np.array(["dog", "dog"], object)) == 1


def test_area_under_the_curve_is_scikit_learns():
    """One against the rest, averaged; classes that the test part lacks are left out."""
    from sklearn.metrics import roc_auc_score

    rng = np.random.default_rng(0)
    truth, proba = rng.integers(0, 3, 80), rng.dirichlet(np.ones(3), 80).round(1)
    proba /= proba.sum(1, keepdims=True)
    assert auc(truth, proba, np.arange(3)) == pytest.approx(roc_auc_score(truth, proba, multi_class="ovr"))
    padded = np.column_stack([proba, np.zeros(80)])
    assert auc(truth, padded, np.arange(4)) == auc(truth, proba, np.arange(3))
    assert np.isnan(auc(np.zeros(5, int), proba[:5], np.arange(3)))


def test_area_under_the_curve_of_two_classes_is_that_of_the_second():
    """One figure, with nothing averaged."""
    truth, second = np.array([0, 1, 1, 0]), np.array([0.2, 0.2, 0.9, 0.8])
    assert auc(truth, np.column_stack([1 - second, second]), np.arange(2)) == (0.5 + 0 + 1 + 1) / 4
    assert auc(truth, np.column_stack([second, second]), np.arange(2)) == (0.5 + 0 + 1 + 1) / 4


def test_numbers_of_the_last_round():
    """What is no number, or has no name that a table could give, is left out."""
    rounds = [{"heldout": -1.0, "gone": 3.0}, {"heldout": -0.5, "n_selected": np.int64(7), "counts": [1, 2], "a b": 1}]
    assert recorded_figures(Fitted(rounds_=rounds), part(None)) == {"round.heldout": -0.5, "round.n_selected": 7.0}
    assert recorded_figures(Fitted(rounds_=[]), part(None)) == {} == recorded_figures(Fitted(), part(None))


def test_what_was_noted_last_in_training():
    """Under each name, whenever that was; an aggregator's history has no names."""
    history = [{"warm_up_items": 5.0, "loss": 2.0}, {"loss": 1.0, "prior a": 0.5}]
    found = recorded_figures(Fitted(history_=history), part(None))
    assert found == {"history.warm_up_items": 5.0, "history.loss": 1.0}
    assert recorded_figures(Fitted(history_=np.array([1.0, 2.0])), part(None)) == {}


def test_further_posteriors_are_labels_too():
    """Each has its accuracy on the training items of known truth; what has another shape is none."""
    first = np.eye(3)[[0, 1, 2, 0, 1, 2]]
    model = Fitted(posterior_first_=first, posterior_of_batch_=first[:2], posterior_kind_="soft")
    assert recorded_figures(model, part([0, 1, 1, -1, -1, -1])) == {"label_accuracy.first": 2 / 3}
    assert recorded_figures(model, part(None)) == {}


def test_estimates_of_simulated_workers_and_items():
    """Expertise by the method's own estimate, its confusion matrices or its posterior; difficulty by ranks."""
    planted = {"expertise": np.full((2, 3), 0.5), "difficulty": np.arange(6.0)}
    there = Part(None, VOTES, np.zeros(6, int), planted=planted)
    result = Fitted(expertise_=np.full((2, 3), 0.75), difficulty_=np.arange(6.0) ** 2)
    assert planted_figures(result, there) == {"expertise_error": 0.25, "difficulty_rank": pytest.approx(1)}
    assert planted_figures(Fitted(confusion_=np.full((2, 3, 3), 0.4)), there) == {"expertise_error": pytest.approx(0.1)}
    sure = Fitted(posterior_=np.eye(3)[[0] * 6], difficulty_=np.zeros(6))
    found = planted_figures(sure, there)
    assert found["difficulty_rank"] == 0 and found["expertise_error"] > 0.1
    assert planted_figures(result, part([0] * 6)) == {}


def test_how_far_expected_accuracies_are_off():
    """In ten parts by what is expected; items of unknown truth do not count."""
    there = part([0, 0, 0, 1, 1, -1])  # all labels say 0
    assert planted_figures(Fitted(item_accuracy_=np.array([1.0, 1, 1, 0, 0, 0.7])), there) == {"difficulty_error": 0}
    halves = planted_figures(Fitted(item_accuracy_=np.array([0.9, 0.9, 0.9, 0.2, 0.2, 0.7])), there)
    assert halves["difficulty_error"] == pytest.approx(0.6 * 0.1 + 0.4 * 0.2)


def test_figures_under_a_uniform_prior():
    """The same fit with other decisions, beside the figures as they are."""
    posterior = np.eye(3)[[0, 0, 0, 0, 1, 2]]
    proba = np.array([[0.6, 0.3, 0.1], [0.9, 0.05, 0.05]])
    model = Fitted(
        posterior_=posterior,
        predict_proba=lambda X: proba,
        _uniform_prior_proba=lambda proba: shift_prior(proba, estimated_shares(posterior)),
    )
    there = Part(None, VOTES, np.array([0, 0, 0, 0, 1, 1]), np.zeros((2, 1)), np.array([1, 0]))
    found, _ = predicted_figures(model, there, "two")
    assert (found["accuracy"], found["accuracy.uniform_prior"]) == (0.5, 1.0)
    assert (found["balanced_accuracy.uniform_prior"], found["macro_f1.uniform_prior"]) == (1.0, 1.0)
    assert (found["rare_recall"], found["rare_recall.uniform_prior"]) == (0.0, 1.0)
