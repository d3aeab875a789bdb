"""What every method must satisfy: one function with a sentence for each promise.

`check_aggregator`, `check_classifier` and `check_representation` run all checks on one method; `aggregator_checks`,
`classifier_checks` and `representation_checks` hand them out one by one, for pytest:

    @pytest.mark.parametrize("name, check", aggregator_checks())
    def test_my_method(name, check):
        check(MyMethod())

A check fits copies of what it is given, with `random_state=0` where there is such a parameter, and raises
AssertionError where a promise is broken. All data are simulated in `testing.crowds`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from manyhands.aggregation.base import Aggregator
from manyhands.classifiers.base import CrowdClassifier
from manyhands.estimator import BaseEstimator
from manyhands.representation.base import RepresentationLearner
from manyhands.testing import aggregator_answers as answers
from manyhands.testing import aggregator_invariances as promises
from manyhands.testing import classifier_estimator_checks as classifier_estimator
from manyhands.testing import classifier_invariances as classifier_promises
from manyhands.testing import docstring_checks as docstrings
from manyhands.testing import estimator_checks as estimator
from manyhands.testing import learner_estimator_checks as learner_estimator
from manyhands.testing import learner_invariances as learner_promises
from manyhands.testing import representation_estimator_checks as representation_estimator
from manyhands.testing import representation_invariances as representation_promises
from manyhands.testing import training_invariances as training_promises
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
RepresentationCheck = Callable[[RepresentationLearner], None]
LearnerCheck = Callable[[BaseEstimator], None]


def check_aggregator(aggregator: Aggregator) -> None:
    """Run every check on an aggregator.

    >>> from manyhands import MajorityVote
    >>> check_aggregator(MajorityVote())
    """
    for _, check in aggregator_checks():
        check(aggregator)


def aggregator_checks() -> Iterator[tuple[str, Check]]:
    """(name, check) for every check; a check takes an unfitted aggregator."""
    for check in _AGGREGATOR_CHECKS:
        yield check.__name__.removeprefix("check_"), check


def check_classifier(classifier: CrowdClassifier) -> None:
    """Run every check on a classifier; networks are made small and are trained for a few epochs."""
    for _, check in classifier_checks():
        check(classifier)


def classifier_checks() -> Iterator[tuple[str, ClassifierCheck]]:
    """(name, check) for every check; a check takes an unfitted classifier."""
    for check in _CLASSIFIER_CHECKS:
        yield check.__name__.removeprefix("check_"), check


def check_representation(learner: RepresentationLearner) -> None:
    """Run every check on a learner of representations, made small and trained for a few epochs."""
    for _, check in representation_checks():
        check(learner)


def representation_checks() -> Iterator[tuple[str, RepresentationCheck]]:
    """(name, check) for every check; a check takes an unfitted learner of representations."""
    for check in _REPRESENTATION_CHECKS:
        yield check.__name__.removeprefix("check_"), check


_AGGREGATOR_CHECKS: tuple[Check, ...] = (
    promises.check_results_have_their_shapes,
    promises.check_posterior_rows_sum_to_one,
    promises.check_predict_repeats_fit,
    promises.check_objective_never_falls,
    promises.check_a_limit_of_passes_is_honoured,
    promises.check_restarts_differ,
    promises.check_same_seed_same_result,
    promises.check_order_of_rows_does_not_matter,
    promises.check_worker_names_do_not_matter,
    promises.check_item_names_do_not_matter,
    promises.check_class_names_do_not_matter,
    promises.check_silence_changes_nothing,
    promises.check_inputs_stay_as_they_were,
    promises.check_global_generators_stay_as_they_were,
    answers.check_unanimous_labels_come_back,
    answers.check_planted_truth_is_recovered,
    answers.check_bad_workers_are_seen,
    answers.check_many_classes_or_a_clear_refusal,
    answers.check_one_more_vote_does_not_hurt_its_class,
    answers.check_score_prefers_the_better_posterior,
    answers.check_thin_crowds_are_survived,
    answers.check_a_lone_label_is_kept,
    answers.check_unlabelled_items_get_no_label,
    answers.check_repeated_pairs_are_legal,
    answers.check_a_thousand_labels_on_one_item,
    answers.check_gold_wins,
    answers.check_answers_on_gold_items_count,
    answers.check_unknown_gold_is_refused,
    answers.check_an_unseen_worker_counts_as_an_average_one,
    answers.check_an_unknown_class_is_refused,
    answers.check_what_is_no_crowd_is_refused,
    estimator.check_clone_and_repr_round_trip,
    estimator.check_pickle_round_trip,
    estimator.check_a_second_fit_forgets_the_first,
    docstrings.check_every_parameter_is_documented,
    docstrings.check_every_attribute_is_documented,
    docstrings.check_use_is_documented,
    estimator.check_every_parameter_is_validated,
    estimator.check_every_parameter_is_read,
)

# What classifiers and learners of representations have in common.
_LEARNER_CHECKS: tuple[LearnerCheck, ...] = (
    learner_promises.check_same_seed_same_result,
    learner_promises.check_global_generators_stay_as_they_were,
    learner_promises.check_a_spammer_does_little_harm,
    learner_promises.check_bad_workers_are_seen,
    learner_promises.check_sparse_rows_are_dense_rows,
    learner_promises.check_a_getter_of_rows_is_an_array,
    learner_promises.check_thin_crowds_are_survived,
    learner_promises.check_inputs_stay_as_they_were,
    learner_promises.check_bad_rows_are_refused,
    training_promises.check_held_out_labels_teach_nothing,
    training_promises.check_a_killed_fit_goes_on_with_the_same_result,
    training_promises.check_a_silent_worker_changes_nothing,
    training_promises.check_perfect_workers_are_training_on_the_truth,
    training_promises.check_prediction_is_at_rest,
    training_promises.check_what_is_wrapped_is_seeded,
    learner_estimator.check_clone_and_repr_round_trip,
    docstrings.check_every_parameter_is_documented,
    docstrings.check_every_attribute_is_documented,
    docstrings.check_use_is_documented,
    learner_estimator.check_every_parameter_is_validated,
    learner_estimator.check_every_parameter_is_read,
    learner_estimator.check_a_second_fit_forgets_the_first,
    learner_estimator.check_copies_answer_the_same,
)

_CLASSIFIER_CHECKS: tuple[ClassifierCheck, ...] = (
    *_LEARNER_CHECKS,
    classifier_promises.check_results_have_their_shapes,
    classifier_promises.check_many_classes,
    classifier_promises.check_items_without_labels_are_accepted,
    classifier_promises.check_unseen_workers_and_classes,
    classifier_promises.check_gold_teaches,
    classifier_promises.check_score_prefers_the_right_rows,
    classifier_estimator.check_search_and_pipeline,
)

_REPRESENTATION_CHECKS: tuple[RepresentationCheck, ...] = (
    *_LEARNER_CHECKS,
    representation_promises.check_results_have_their_shapes,
    representation_promises.check_training_draws_classes_together,
    representation_promises.check_any_aggregator_gives_the_classes,
    representation_promises.check_many_classes,
    representation_promises.check_items_without_labels_teach_nothing,
    representation_promises.check_a_class_nobody_chose_is_harmless,
    representation_promises.check_gold_teaches,
    representation_estimator.check_pipeline_and_search,
)
