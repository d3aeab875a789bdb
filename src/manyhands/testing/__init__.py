"""Checks that every method must pass; the first line of each check states what it requires.

`check_aggregator`, `check_classifier` and `check_representation` run all checks on one method; `aggregator_checks`,
`classifier_checks` and `representation_checks` give them one by one, for pytest:

    @pytest.mark.parametrize("name, check", aggregator_checks())
    def test_my_method(name, check):
        check(MyMethod())

A check fits copies of the given estimator, with `random_state=0` where there is such a parameter, and raises
AssertionError if its requirement is not met. All data are simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from manyhands.aggregation.base import Aggregator
from manyhands.classifiers.base import CrowdClassifier
from manyhands.estimator import BaseEstimator
from manyhands.testing import aggregators, learners

__all__ = [
    "aggregator_checks",
    "check_aggregator",
    "check_classifier",
    "check_representation",
    "classifier_checks",
    "representation_checks",
]

Check = Callable[[Aggregator], None]
ClassifierCheck = Callable[[CrowdClassifier], None]
RepresentationCheck = Callable[[Any], None]
LearnerCheck = Callable[[BaseEstimator], None]


def check_aggregator(aggregator: Aggregator) -> None:
    """Run every check on an aggregator.

    Parameters
    ----------
    aggregator : Aggregator
        An unfitted aggregator; copies of it are fitted.

    Raises
    ------
    AssertionError
        If a check fails.

    Examples
    --------
    >>> from manyhands import MajorityVote
    >>> check_aggregator(MajorityVote())
    """
    for _, check in aggregator_checks():
        check(aggregator)


def aggregator_checks() -> Iterator[tuple[str, Check]]:
    """Iterate over the checks of aggregators.

    Yields
    ------
    name : str
        Name of the check, without ``check_``.
    check : callable
        Function of an unfitted aggregator that raises AssertionError if the requirement is not met.
    """
    for check in _AGGREGATOR_CHECKS:
        yield check.__name__.removeprefix("check_"), check


def check_classifier(classifier: CrowdClassifier) -> None:
    """Run every check on a classifier.

    Parameters
    ----------
    classifier : CrowdClassifier
        An unfitted classifier; copies of it are fitted, networks with few units and few epochs.

    Raises
    ------
    AssertionError
        If a check fails.
    """
    for _, check in classifier_checks():
        check(classifier)


def classifier_checks() -> Iterator[tuple[str, ClassifierCheck]]:
    """Iterate over the checks of classifiers.

    Yields
    ------
    name : str
        Name of the check, without ``check_``.
    check : callable
        Function of an unfitted classifier that raises AssertionError if the requirement is not met.
    """
    for check in _CLASSIFIER_CHECKS:
        yield check.__name__.removeprefix("check_"), check


def check_representation(learner: Any) -> None:
    """Run every check on a representation learner.

    Parameters
    ----------
    learner : RepresentationLearner or NeuCrowd
        An unfitted representation learner; copies of it are fitted with few units and few epochs.

    Raises
    ------
    AssertionError
        If a check fails.
    """
    for _, check in representation_checks():
        check(learner)


def representation_checks() -> Iterator[tuple[str, RepresentationCheck]]:
    """Iterate over the checks of representation learners.

    Yields
    ------
    name : str
        Name of the check, without ``check_``.
    check : callable
        Function of an unfitted representation learner that raises AssertionError if the requirement is not met.
    """
    for check in _REPRESENTATION_CHECKS:
        yield check.__name__.removeprefix("check_"), check


_AGGREGATOR_CHECKS: tuple[Check, ...] = (
    aggregators.check_results_have_documented_shapes,
    aggregators.check_posterior_rows_sum_to_one,
    aggregators.check_predict_equals_fit_on_training_data,
    aggregators.check_objective_never_decreases,
    aggregators.check_max_iter_is_respected,
    aggregators.check_restarts_differ,
    aggregators.check_same_seed_gives_same_result,
    aggregators.check_row_order_does_not_matter,
    aggregators.check_item_order_does_not_matter_to_aggregators,
    aggregators.check_worker_names_do_not_matter,
    aggregators.check_item_names_do_not_matter,
    aggregators.check_class_names_do_not_matter,
    aggregators.check_items_and_workers_without_labels_change_nothing,
    aggregators.check_inputs_are_not_modified,
    aggregators.check_global_generators_are_not_used,
    aggregators.check_unanimous_labels_are_kept,
    aggregators.check_known_truth_is_recovered,
    aggregators.check_random_workers_have_the_lowest_accuracy,
    aggregators.check_many_classes_are_accepted_or_refused_with_a_reason,
    aggregators.check_one_more_label_does_not_lower_its_class,
    aggregators.check_score_is_higher_for_better_posteriors,
    aggregators.check_scores_of_aggregators_are_probabilities,
    aggregators.check_degenerate_crowds_give_finite_results,
    aggregators.check_single_labels_are_kept,
    aggregators.check_unlabelled_items_get_no_label,
    aggregators.check_repeated_labels_are_accepted,
    aggregators.check_a_thousand_labels_on_one_item_are_accepted,
    aggregators.check_gold_determines_its_items,
    aggregators.check_labels_on_gold_items_are_used,
    aggregators.check_unknown_gold_is_refused,
    aggregators.check_unseen_workers_have_average_accuracy,
    aggregators.check_unknown_classes_are_refused,
    aggregators.check_invalid_annotations_are_refused,
    aggregators.check_clone_and_repr_round_trip,
    aggregators.check_copies_are_equal,
    aggregators.check_second_fit_is_independent_of_the_first,
    aggregators.check_every_parameter_is_validated,
    aggregators.check_every_parameter_is_read,
)

# Common to classifiers and representation learners.
_LEARNER_CHECKS: tuple[LearnerCheck, ...] = (
    learners.check_item_order_does_not_matter_to_learners,
    learners.check_same_seed_gives_same_result,
    learners.check_global_generators_are_not_used,
    learners.check_one_spammer_hardly_lowers_accuracy,
    learners.check_random_workers_have_the_lowest_accuracy,
    learners.check_sparse_features_equal_dense_features,
    learners.check_row_getter_equals_array,
    learners.check_degenerate_crowds_give_finite_results,
    learners.check_inputs_are_not_modified,
    learners.check_invalid_features_are_refused,
    learners.check_columns_in_another_order_are_refused,
    learners.check_held_out_labels_are_not_used_for_training,
    learners.check_resumed_fit_equals_uninterrupted_fit,
    learners.check_workers_without_labels_change_nothing,
    learners.check_perfect_workers_equal_supervised_training,
    learners.check_weight_decay_makes_weights_smaller,
    learners.check_prediction_is_deterministic,
    learners.check_wrapped_estimators_are_seeded,
    learners.check_clone_and_repr_round_trip,
    learners.check_every_parameter_is_validated,
    learners.check_every_parameter_is_read,
    learners.check_second_fit_is_independent_of_the_first,
    learners.check_copies_predict_the_same,
)

_CLASSIFIER_CHECKS: tuple[ClassifierCheck, ...] = (
    *_LEARNER_CHECKS,
    learners.check_classifier_results_have_documented_shapes,
    learners.check_classifier_accepts_many_classes,
    learners.check_items_without_labels_are_accepted,
    learners.check_unseen_workers_and_unused_classes_are_accepted,
    learners.check_classifier_uses_gold,
    learners.check_score_is_higher_for_matching_features,
    learners.check_scores_of_labels_are_probabilities,
    learners.check_grid_search_and_pipeline,
)

_REPRESENTATION_CHECKS: tuple[RepresentationCheck, ...] = (
    *_LEARNER_CHECKS,
    learners.check_embedding_results_have_documented_shapes,
    learners.check_training_separates_classes,
    learners.check_any_aggregator_can_be_used,
    learners.check_embedding_accepts_many_classes,
    learners.check_items_without_labels_are_not_used_for_training,
    learners.check_unused_classes_are_accepted,
    learners.check_embedding_uses_gold,
    learners.check_pipeline_and_grid_search,
)
