"""What a notebook shows of fitted models, scorecards and comparisons: panels of the report, with short tables.

Worker ids are shown as they are: a notebook shows its owner's own data, as a data frame would. Pseudonyms are for pages
that are passed on.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from manyhands._core.arrays import Array
from manyhands.aggregation.base import Aggregator
from manyhands.annotations import Annotations
from manyhands.comparison import Comparison
from manyhands.estimator import shown_value
from manyhands.report.html import panels_html
from manyhands.report.page import PANELS
from manyhands.report.panels.labels import confidence, ranked_methods
from manyhands.report.panels.summary import learner_summary, learning, summary
from manyhands.report.panels.workers import worker_cards, worker_map
from manyhands.report.run import Panel, Run, Table, make_run
from manyhands.scorecards import Scorecards

SHOWN = ("class-balance", "confidence", "hard-items", "workers")  # of a fitted aggregator
_ALSO_BUILT = ("calibration",)  # what the verdict needs
_MOST_ROWS = 8  # of a table
_MOST_CARDS = 6


def model_html(model: Any) -> str:
    """Return a fitted estimator as panels."""
    kicker = shown_value(repr(model))
    if not isinstance(model, Aggregator):
        return _learner_html(model, kicker)
    run = make_run(model, reveal=True)
    built = {key: PANELS[key](run) for key in PANELS if key in (*SHOWN, *_ALSO_BUILT)}
    panels = {key: panel for key, panel in built.items() if panel is not None}
    head = summary(run, tuple(panels.values()))
    return panels_html([_shortened(panels[key]) for key in SHOWN if key in panels], head, kicker)


def scorecards_html(cards: Scorecards) -> str:
    """Return scorecards as panels."""
    run = Run(model=_labels_of(cards), cards=cards)  # type: ignore[arg-type]
    panels = [worker_map(run), worker_cards(run) if cards.annotations is not None else None]
    return panels_html([_shortened(panel) for panel in panels if panel is not None])


def comparison_html(comparison: Comparison) -> str:
    """Return a comparison as a panel."""
    n_labels, n_folds = int(comparison.n_heldout.sum()), len(comparison.n_heldout)
    return panels_html([ranked_methods(comparison.table(), n_labels, n_folds)])


def _learner_html(model: Any, kicker: str) -> str:
    """Return the panels of a model that learns from features, which keeps its posterior and no labels."""
    run = Run(model=_GivenLabels(_no_labels(model), model.posterior_))  # type: ignore[arg-type]
    sure = confidence(run)
    return panels_html([sure, _shortened(learning(model, run.classes))], learner_summary(model, sure), kicker)


@dataclass(frozen=True, eq=False)
class _GivenLabels:
    """What panels ask of a fitted aggregator, where there are only labels and a posterior."""

    annotations_: Annotations
    posterior_: Array
    notes_: dict[str, str] = field(default_factory=dict)
    _gold: dict[Any, Any] = field(default_factory=dict)

    @property
    def unlabelled_(self) -> npt.NDArray[np.bool_]:
        return np.zeros(len(self.posterior_), bool)

    @property
    def labels_(self) -> npt.NDArray[Any]:
        return self.annotations_.classes[self.posterior_.argmax(axis=1)]


def _labels_of(cards: Scorecards) -> _GivenLabels:
    """Return the labels behind scorecards; none of those that were made without."""
    if cards.annotations is not None and cards.posterior is not None:
        return _GivenLabels(cards.annotations, cards.posterior)
    empty = Annotations([], [], [], item_ids=[], worker_ids=cards.worker_ids, classes=cards.classes)
    return _GivenLabels(empty, np.zeros((0, len(cards.classes))))


def _no_labels(model: Any) -> Annotations:
    """Return annotations without a label, with the items, workers and classes of a model."""
    n_items = len(model.posterior_)
    return Annotations([], [], [], item_ids=range(n_items), worker_ids=model.worker_ids_, classes=model.classes_)


def _shortened(panel: Panel) -> Panel:
    """Return a panel with the first rows of its tables and the first of its parts."""
    parts = tuple(_shortened(part) for part in panel.parts[:_MOST_CARDS])
    notes = panel.notes
    if len(parts) < len(panel.parts):
        notes = (f"{len(parts)} cards are shown here; the HTML report (mh.write_report) shows {len(panel.parts)}.",)
    return replace(panel, table=tuple(map(_first_rows, panel.table)), parts=parts, notes=notes)


def _first_rows(table: Table) -> Table:
    n_rows = table.n_rows or len(table.rows)
    return replace(table, rows=table.rows[:_MOST_ROWS], n_rows=n_rows if n_rows > _MOST_ROWS else None)
