"""A fit with an expert's answers, and the block ``trust`` of summary.json.

Contested answers decide which method is followed. Random answers calibrate its posterior, estimate its accuracy, and
carry guarantees. All of this needs a fit that has not seen the answers; in the result every answered item is certain.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.io.messages import shorten
from manyhands.io.read.answer_files import describe_answers
from manyhands.trust.accuracy_estimate import estimate_accuracy
from manyhands.trust.answers import RANDOM, Answers
from manyhands.trust.calibrated_model import CalibratedAggregator
from manyhands.trust.candidates import registry_name
from manyhands.trust.guarantee import guarantee, parse_promise
from manyhands.trust.label_sets import label_sets, parse_sets
from manyhands.trust.recalibration import calibrate
from manyhands.trust.selection import Selection, select_by_answers


@dataclass(frozen=True)
class Promises:
    """What is to be promised about the labels.

    Attributes
    ----------
    guarantee : str or None, default=None
        Such as "error<=5% at 95%".
    sets : str or None, default=None
        Coverage of label sets, such as "90%".
    """

    guarantee: str | None = None
    sets: str | None = None

    def check(self, has_answers: bool) -> None:
        """Refuse promises that cannot be read, or without answers; no file is opened.

        Parameters
        ----------
        has_answers : bool
            Whether files of answers are given.

        Raises
        ------
        ParameterError
            If a promise is not of the right form, or there are no answers.
        """
        if self.guarantee is not None:
            parse_promise(self.guarantee)
        if self.sets is not None:
            parse_sets(self.sets)
        if self and not has_answers:
            raise ParameterError(
                "A promise needs answers about random items: draw them with manyhands ask --purpose confidence, and "
                "give them with --answers."
            )

    def __bool__(self) -> bool:
        return self.guarantee is not None or self.sets is not None


NO_PROMISES = Promises()


@dataclass(frozen=True, eq=False)
class AnsweredFit:
    """A fitted model and what the answers say about it.

    Attributes
    ----------
    model : Aggregator
        The fitted method.
    method : str
        Its registry name.
    gold : dict of item to class
        Everything that is certain in the result.
    trust : dict
        The block ``trust`` of summary.json.
    columns : dict of str to list
        Further columns of labels.csv, in the order of the items.
    """

    model: Aggregator
    method: str
    gold: dict[Any, Any]
    trust: dict[str, Any]
    columns: dict[str, list[Any]] = field(default_factory=dict)


def fit_with_answers(
    annotations: Annotations,
    method: str,
    gold: Mapping[Any, Any],
    answers: Answers | None,
    random_state: int,
    promises: Promises = NO_PROMISES,
) -> AnsweredFit:
    """Fit a method, or the one that the answers select, and say what the answers allow to say.

    Parameters
    ----------
    annotations : Annotations
        The crowd's labels.
    method : str
        Registry name; answers select another one only if this is the default.
    gold : mapping of item to class
        Known classes.
    answers : Answers or None
        Answers of an expert.
    random_state : int
        Seed.
    promises : Promises, default=Promises()
        What is to be promised. The labels are then those of the method: a calibration could change them.

    Returns
    -------
    AnsweredFit
        The fitted model, and the block ``trust``.

    Raises
    ------
    AnnotationError
        If an answer contradicts the gold, or a promise has no random answers.
    """
    known = dict(gold)
    if answers is None:
        plain: Aggregator = registry.create_seeded(method, random_state)
        plain.fit(annotations, gold=known or None)
        return AnsweredFit(plain, method, known, _block(plain, None, accuracy=estimate_accuracy(plain)))
    _refuse_contradiction(known, answers)
    random = answers.of_kind(RANDOM)
    decisive = answers.part(item for item in answers.values if item not in random.values)
    selection: Selection | None = None
    if method == registry.DEFAULT and len(decisive):
        model = select_by_answers(annotations, decisive, gold=known, random_state=random_state)
        selection = model.selection_
        method = registry_name(selection.method)
    else:
        created: Aggregator = registry.create_seeded(method, random_state)
        gold = known | dict(decisive.values)
        model = CalibratedAggregator(created, None, tuple(decisive.values)).fit(annotations, gold or None)
    every = known | dict(answers.values)
    promised, columns = _promise(model, random, promises)
    figures: dict[str, Any] = {"selection": selection} | promised
    if not len(random):
        figures["accuracy"] = estimate_accuracy(model)
        return AnsweredFit(model, method, every, _block(model, answers, **figures), columns)
    calibrated = calibrate(model, random)
    figures["calibration"] = calibrated.calibration_
    figures["accuracy"] = estimate_accuracy(model if promises else calibrated, random)
    as_it_is = CalibratedAggregator(model.model, model.parameters, (*model.hidden, *random.values))
    result = as_it_is.fit(annotations, every) if promises else calibrated
    block = _block(result, answers, **figures)
    block["calibration"]["applied"] = not promises
    return AnsweredFit(result, method, every, block, columns)


def _promise(model: Aggregator, random: Answers, promises: Promises) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Return what can be promised about a model, and the columns of labels.csv that show it."""
    found: dict[str, Any] = {}
    columns: dict[str, list[Any]] = {}
    if promises.guarantee is not None:
        error, confidence = parse_promise(promises.guarantee)
        found["guarantee"] = guarantee(model, random, error=error, confidence=confidence)
        columns["stands"] = ["yes" if stands else "expert" for stands in found["guarantee"].stands.tolist()]
    if promises.sets is not None:
        coverage, confidence = parse_sets(promises.sets)
        found["sets"] = label_sets(model, random, coverage=coverage, confidence=confidence)
        columns["label_set"] = ["; ".join(map(str, labels)) for labels in found["sets"].as_lists()]
    return found, columns


def _block(model: Aggregator, answers: Answers | None, **found: Any) -> dict[str, Any]:
    """The block ``trust``: what is known of the answers, and every result as values and as a sentence."""
    base = model.model if isinstance(model, CalibratedAggregator) else model
    sentences = []
    if answers is not None:
        sentences.append(f"{describe_answers(answers)} of an expert are certain in the result.")
    order = ("selection", "calibration", "accuracy", "guarantee", "sets")
    given = {name: found.get(name) for name in order}
    sentences.extend(str(value) for value in given.values() if value is not None)
    return {
        "temper": getattr(base, "temper", None),
        "n_answers": 0 if answers is None else len(answers),
        "sampled": {} if answers is None else answers.kinds,
        **{name: None if value is None else value.as_dict() for name, value in given.items()},
        "sentences": sentences,
    }


def _refuse_contradiction(gold: Mapping[Any, Any], answers: Answers) -> None:
    """Refuse an item whose gold and answer differ."""
    for item, label in answers.values.items():
        if gold.get(item, label) != label:
            raise AnnotationError(
                f"{shorten(str(item))!r} is {shorten(str(gold[item]))!r} in the gold and {shorten(str(label))!r} in "
                f"the answers. Correct one of them."
            )
