"""Checks that every method must pass; the first line of each check states what it requires.

`check_aggregator`, `check_classifier` and `check_representation` run all checks on one method; `aggregator_checks`,
`classifier_checks` and `representation_checks` give them one by one, for pytest:

    @pytest.mark.parametrize("name, check", aggregator_checks())
    def test_my_method(name, check):
        check(MyMethod())

A check fits copies of the given estimator, with `random_state=0` where there is such a parameter, and raises
AssertionError if its requirement is not met. All data are simulated in `testing.small_crowds`. `check_docstring`
compares signature, constraints, docstring and fitted attributes of a class; `check_function_docstring` does so for a
function.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from manyhands.aggregation.base import Aggregator
from manyhands.classifiers.base import CrowdClassifier
from manyhands.estimator import BaseEstimator
from manyhands.testing import (
    aggregator_invariances,
    aggregator_results,
    classifier_estimator_checks,
    classifier_invariances,
    docstring_checks,
    estimator_checks,
    item_order_checks,
    learner_estimator_checks,
    learner_invariances,
    representation_estimator_checks,
    representation_invariances,
    score_checks,
    training_invariances,
)
from manyhands.testing.docstring_checks import check_docstring, check_function_docstring

__all__ = [
    "aggregator_checks",
    "check_aggregator",
    "check_classifier",
    "check_docstring",
    "check_function_docstring",
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
    learner : Embedder
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
    aggregator_invariances.check_results_have_documented_shapes,
    aggregator_invariances.check_posterior_rows_sum_to_one,
    aggregator_invariances.check_predict_equals_fit_on_training_data,
    aggregator_invariances.check_objective_never_decreases,
    aggregator_invariances.check_max_iter_is_respected,
    aggregator_invariances.check_restarts_differ,
    aggregator_invariances.check_same_seed_gives_same_result,
    aggregator_invariances.check_row_order_does_not_matter,
    item_order_checks.check_item_order_does_not_matter_to_aggregators,
    aggregator_invariances.check_worker_names_do_not_matter,
    aggregator_invariances.check_item_names_do_not_matter,
    aggregator_invariances.check_class_names_do_not_matter,
    aggregator_invariances.check_items_and_workers_without_labels_change_nothing,
    aggregator_invariances.check_inputs_are_not_modified,
    aggregator_invariances.check_global_generators_are_not_used,
    aggregator_results.check_unanimous_labels_are_kept,
    aggregator_results.check_known_truth_is_recovered,
    aggregator_results.check_random_workers_have_the_lowest_accuracy,
    aggregator_results.check_many_classes_are_accepted_or_refused_with_a_reason,
    aggregator_results.check_one_more_label_does_not_lower_its_class,
    aggregator_results.check_score_is_higher_for_better_posteriors,
    score_checks.check_scores_of_aggregators_are_probabilities,
    aggregator_results.check_degenerate_crowds_give_finite_results,
    aggregator_results.check_single_labels_are_kept,
    aggregator_results.check_unlabelled_items_get_no_label,
    aggregator_results.check_repeated_labels_are_accepted,
    aggregator_results.check_a_thousand_labels_on_one_item_are_accepted,
    aggregator_results.check_gold_determines_its_items,
    aggregator_results.check_labels_on_gold_items_are_used,
    aggregator_results.check_unknown_gold_is_refused,
    aggregator_results.check_unseen_workers_have_average_accuracy,
    aggregator_results.check_unknown_classes_are_refused,
    aggregator_results.check_invalid_annotations_are_refused,
    estimator_checks.check_clone_and_repr_round_trip,
    estimator_checks.check_copies_are_equal,
    estimator_checks.check_second_fit_is_independent_of_the_first,
    docstring_checks.check_every_parameter_is_documented,
    docstring_checks.check_every_attribute_is_documented,
    docstring_checks.check_use_is_documented,
    estimator_checks.check_every_parameter_is_validated,
    estimator_checks.check_every_parameter_is_read,
)

# Common to classifiers and representation learners.
_LEARNER_CHECKS: tuple[LearnerCheck, ...] = (
    item_order_checks.check_item_order_does_not_matter_to_learners,
    learner_invariances.check_same_seed_gives_same_result,
    learner_invariances.check_global_generators_are_not_used,
    learner_invariances.check_one_spammer_hardly_lowers_accuracy,
    learner_invariances.check_random_workers_have_the_lowest_accuracy,
    learner_invariances.check_sparse_features_equal_dense_features,
    learner_invariances.check_row_getter_equals_array,
    learner_invariances.check_degenerate_crowds_give_finite_results,
    learner_invariances.check_inputs_are_not_modified,
    learner_invariances.check_invalid_features_are_refused,
    learner_invariances.check_columns_in_another_order_are_refused,
    training_invariances.check_held_out_labels_are_not_used_for_training,
    training_invariances.check_resumed_fit_equals_uninterrupted_fit,
    training_invariances.check_workers_without_labels_change_nothing,
    training_invariances.check_perfect_workers_equal_supervised_training,
    training_invariances.check_weight_decay_makes_weights_smaller,
    training_invariances.check_prediction_is_deterministic,
    training_invariances.check_wrapped_estimators_are_seeded,
    learner_estimator_checks.check_clone_and_repr_round_trip,
    docstring_checks.check_every_parameter_is_documented,
    docstring_checks.check_every_attribute_is_documented,
    docstring_checks.check_use_is_documented,
    learner_estimator_checks.check_every_parameter_is_validated,
    learner_estimator_checks.check_every_parameter_is_read,
    learner_estimator_checks.check_second_fit_is_independent_of_the_first,
    learner_estimator_checks.check_copies_predict_the_same,
)

_CLASSIFIER_CHECKS: tuple[ClassifierCheck, ...] = (
    *_LEARNER_CHECKS,
    classifier_invariances.check_results_have_documented_shapes,
    classifier_invariances.check_many_classes_are_accepted,
    classifier_invariances.check_items_without_labels_are_accepted,
    classifier_invariances.check_unseen_workers_and_unused_classes_are_accepted,
    classifier_invariances.check_gold_is_used_for_training,
    classifier_invariances.check_score_is_higher_for_matching_features,
    score_checks.check_scores_of_labels_are_probabilities,
    classifier_estimator_checks.check_grid_search_and_pipeline,
)

_REPRESENTATION_CHECKS: tuple[RepresentationCheck, ...] = (
    *_LEARNER_CHECKS,
    representation_invariances.check_results_have_documented_shapes,
    representation_invariances.check_training_separates_classes,
    representation_invariances.check_any_aggregator_can_be_used,
    representation_invariances.check_many_classes_are_accepted,
    representation_invariances.check_items_without_labels_are_not_used_for_training,
    representation_invariances.check_unused_classes_are_accepted,
    representation_invariances.check_gold_is_used_for_training,
    representation_estimator_checks.check_pipeline_and_grid_search,
)
