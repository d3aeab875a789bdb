"""Panels of the labels that the method gives: how certain they are, which items are hard, what answers allow to say."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from manyhands._core.arrays import Array, Codes
from manyhands.exceptions import ManyhandsError
from manyhands.metrics.vote_patterns import wilson
from manyhands.report.drawing import Dot, Picture, columns, dots, heat_map, lines, ticks
from manyhands.report.run import Bar, ComparedMethods, Notice, Panel, Run, Table, chips, cut, item_texts
from manyhands.report.wording import counted, interval, percent, quoted, share_that, visible
from manyhands.scorecards import ACCUSATIONS
from manyhands.trust.calibration import answers_for
from manyhands.trust.machines import ALL, HUMANS, EffectiveVotes, effective_votes, groups_of

# ----------------------------------------------------------------------------------------------------
# Panels of certainty: the posterior of the labels, and its calibration.

SURE = 0.9  # posterior from which a label counts as sure
_THRESHOLDS = (0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.99)  # of confidence, from that of a tie between two classes
_N_BINS = 10  # of confidence, the usual number; with it bins are a tenth wide
_CLEAR = 0.02  # excess of the posterior over the accuracy that is worth a warning
_CONFIDENCE_COLUMNS = (
    "posterior",
    "items",
    "mean posterior",
    "share right",
    "95% interval",
)  # of the reliability table


def confidence(run: Run) -> Panel:
    """Histogram of the posterior of the labels that nobody gave, and the share above each threshold."""
    confidences = run.confidence[run.open]
    n, sure = len(confidences), int((confidences >= SURE).sum())
    bins = np.linspace(0, 1, 21)
    counts = np.histogram(confidences, bins)[0]
    first = int(np.flatnonzero(counts)[0]) if counts.any() else 0
    names = [f"{low:.2f}" for low in bins[first:-1]]
    above = [(t, int((confidences >= t).sum())) for t in _THRESHOLDS]
    curve = np.linspace(first * 0.05, 1, 41)
    share = [float((confidences >= t).mean()) if n else math.nan for t in curve]
    unsure = n - sure
    all_given = not n and bool(len(run.gold_rows))
    notices: tuple[Notice, ...] = ()
    if unsure:
        severity = "warning" if unsure > 0.2 * n else "note"
        notices = (
            Notice(
                severity,
                f"{counted(unsure, 'label')} {'has' if unsure == 1 else 'have'} a posterior below {SURE}: look "
                "at them, or collect more labels.",
                unsure,
                "hard-items",
            ),
        )
    return Panel(
        "confidence",
        "The class of every labelled item was given."
        if all_given
        else f"{share_that(('has', 'have'), sure, n, 'label')} a posterior of at least {SURE}.",
        "The first picture counts labels by their posterior; the second shows the share of labels that remains if "
        "only those above a threshold are used."
        + (" Items of given classes (gold and answers) are certain, and left out." if len(run.gold_rows) else ""),
        counted(n, "labelled item"),
        (
            columns(names, counts[first:].tolist(), "Number of labels by their posterior", "posterior from", "labels"),
            lines(
                curve.tolist(),
                [("share of labels", share)],
                "Share of labels with a posterior of at least the threshold",
                x_title="threshold",
                y_title="share of labels",
                high=1.0,
                marks=False,
            ),
        ),
        (
            Table(
                "Labels above a threshold",
                ("posterior at least", "labels", "share"),
                tuple((f"{t:g}", count, count / max(n, 1)) for t, count in above),
            ),
        ),
        ("The posterior is the method's own estimate; only items of known class can show whether it is calibrated.",),
        {
            "mean": float(confidences.mean()) if n else None,
            "share_above_0.9": 1.0 if all_given else sure / max(n, 1),
            "n_below_0.9": unsure,
        },
        notices,
    )


def calibration(run: Run) -> Panel:
    """Whether labels of a posterior p are right in a share p of the cases."""
    sure, right, source = _known(run)
    if not len(sure):
        return _unknown(run)
    place = np.minimum((sure * _N_BINS).astype(int), _N_BINS - 1)
    n = np.bincount(place, minlength=_N_BINS)
    hits = np.bincount(place, weights=right, minlength=_N_BINS)
    used = np.flatnonzero(n)
    mean = np.bincount(place, weights=sure, minlength=_N_BINS)[used] / n[used]
    share = hits[used] / n[used]
    low, high = wilson(hits[used], n[used])
    gap = float(np.sum(n[used] * np.abs(share - mean)) / n.sum())
    accuracy, bounds = _accuracy(run, right)
    claimed = float(sure.mean())
    verdict, notices = _claim(accuracy, claimed, bounds)
    rows = tuple(
        (f"{k / _N_BINS:.1f} to {(k + 1) / _N_BINS:.1f}", int(n[k]), float(m), float(s), interval(lo, hi))
        for k, m, s, lo, hi in zip(used, mean, share, low, high)
    )
    picture = lines(
        mean.tolist(),
        [("share right", share.tolist())],
        "Share of right labels against the mean posterior",
        x_title="mean posterior",
        y_title="share right",
        high=1.0,
        bands=[(low.tolist(), high.tolist())],
        diagonal=True,
        joined=False,
        ends=(min(0.5, math.floor(10 * mean.min()) / 10), 1.0),
    )
    return Panel(
        "calibration",
        f"{percent(accuracy, 1)} of the labels are right, {verdict} ({percent(claimed, 1)}).",
        "Each point is a group of labels of similar posterior; on the dashed line they are right as often as "
        "they claim. Lines are 95% intervals.",
        f"{counted(len(right), 'item')} of known class ({source})",
        (picture,),
        (Table("Right labels by posterior", _CONFIDENCE_COLUMNS, rows),),
        (),
        {
            "accuracy": accuracy,
            "claimed": claimed,
            "ece": gap,
            "n": len(right),
            "low": bounds[0],
            "high": bounds[1],
        },
        notices,
    )


def _claim(accuracy: float, claimed: float, bounds: tuple[float, float]) -> tuple[str, tuple[Notice, ...]]:
    """Return how the accuracy compares with the mean posterior, and a warning where the posterior is too high."""
    if bounds[0] <= claimed <= bounds[1]:
        return "as the posterior claims", ()
    if claimed <= accuracy:
        return "more than the posterior claims", ()
    if claimed - accuracy < _CLEAR:
        return "slightly fewer than the posterior claims", ()
    text = f"The posterior claims {percent(claimed)} right labels, the known classes show {percent(accuracy)}: "
    return "fewer than the posterior claims", (Notice("warning", text + "it is too sure.", None, "calibration"),)


def _known(run: Run) -> tuple[Array, Array, str]:
    """Return posterior and correctness of the labels of known items that the fit did not see, and what is known."""
    model, truth_of, source = run.model, run.truth, "truth"
    if not truth_of and run.answers is not None:
        truth_of, source = run.answers.of_kind("random").values, "random answers, not seen by the fit"
        if "calibration_" in vars(model):
            return _heldout(run, truth_of)
        model = getattr(model, "model_", model)
    if not truth_of:
        return np.zeros(0), np.zeros(0), ""
    labels, seen = model.labels_.tolist(), model._gold
    # The method within a calibrated model has the items in an order of its own.
    labelled = dict(zip(run.annotations.item_ids.tolist(), run.labelled.tolist()))
    pairs = [
        (model.posterior_[row].max(), float(labels[row] == truth_of[item]))
        for row, item in enumerate(model.item_ids_.tolist())
        if item in truth_of and item not in seen and labelled[item]
    ]
    points = np.array(pairs, float).reshape(-1, 2)
    return points[:, 0], points[:, 1], source


def _heldout(run: Run, truth_of: Mapping[Any, Any]) -> tuple[Array, Array, str]:
    """Return posterior and correctness of answered items by calibrations that have not seen their answers."""
    calibrated = vars(run.model)["calibration_"]
    items = [item for item in truth_of if item in calibrated.heldout]
    sure = np.array([calibrated.heldout_confidence[item] for item in items], float)
    right = np.array([calibrated.heldout[item] == truth_of[item] for item in items], float)
    return sure, right, "random answers, each left out of the calibration in turn"


def _accuracy(run: Run, right: Array) -> tuple[float, tuple[float, float]]:
    """Return the share of right labels with an interval: as the answers tell it, which the page says once."""
    block = (run.trust or {}).get("accuracy") or {}
    if run.truth or run.answers is None or block.get("value") is None:
        low, high = wilson(right.sum(), len(right))
        return float(right.mean()), (float(low), float(high))
    return float(block["value"]), (float(block["low"]), float(block["high"]))


def _unknown(run: Run) -> Panel:
    """Return the panel that says what is not known, and how many answers would tell it."""
    confidences = run.confidence[run.open]
    claimed = float(confidences.mean()) if len(confidences) else 0.5
    n_items = max(len(confidences), 1)
    within = {points: answers_for(points / 100, n_items) for points in (5, 2)}  # as `estimate_accuracy` says it
    return Panel(
        "calibration",
        "Whether the posterior is calibrated is not known: the class of no item was checked.",
        "Agreement among workers cannot show errors that they make together; only items of known class can.",
        "no item of known class",
        notes=(
            f"The posterior claims that {percent(claimed, 1)} of the labels are right. {counted(within[5], 'answer')} "
            f"of an expert on items drawn at random would tell this to within about 5 percentage points, "
            f"{within[2]:,} to within 2 (of {counted(n_items, 'item')}). To write the questions: "
            f"manyhands ask EXPORT --purpose confidence -n {within[5]} -o questions.csv",
        ),
        values={"claimed": claimed, "n": 0},
        notices=(
            Notice(
                "note", "No class was checked, so accuracy is an estimate of the method itself.", None, "calibration"
            ),
        ),
    )


# ----------------------------------------------------------------------------------------------------
# Panels of items: the hard ones with their votes, and the classes that are confused.

_MOST_ITEMS = 60
_MOST_IN_MAP = 16  # classes in the heat map
_MOST_PAIRS = 12
_N_EXAMPLES = 3
_MOST_WORK = 1_000_000_000  # labels times classes that are counted within the time a page may take
_STANDS_OUT = 2.0  # times the mean share of a wrong class, from which a confusion is worth the title
_FEW = 2  # labels of an item that are few
_SURE = 0.9
_IN_THE_PAGE = "the data of this page (manyhands inspect PAGE --json)"


def hard_items(run: Run) -> Panel | None:
    """The items of the lowest confidence, with their votes and the reason."""
    unsure = np.flatnonzero(run.open & (run.confidence < _SURE))
    contradicted = _contradicted(run)
    if not len(unsure) and not len(contradicted):
        return None
    order = unsure[np.lexsort((unsure, run.confidence[unsure]))]
    chosen = [*contradicted.tolist()[:10], *order.tolist()]
    flagged = _flagged(run)
    field, texts = item_texts(run, chosen[:_MOST_ITEMS])
    rows = tuple(_item_row(run, row, flagged, texts) for row in chosen[:_MOST_ITEMS])
    heads = ("item", *((field,) if texts else ()), "votes", "label", "posterior", "reason")
    reasons: dict[str, int] = {}
    for row in chosen:
        short = _reason(run, row, flagged)[0]
        reasons[short] = reasons.get(short, 0) + 1
    top = max(reasons, key=lambda name: reasons[name])
    notices: tuple[Notice, ...] = ()
    if len(contradicted):
        notices = (
            Notice(
                "warning",
                f"The votes contradict the known class of {counted(len(contradicted), 'item')}: check them.",
                len(contradicted),
                "hard-items",
            ),
        )
    return Panel(
        "hard-items",
        f"{counted(len(chosen), 'item')} {'needs' if len(chosen) == 1 else 'need'} a look; the most frequent "
        f"reason: {top}.",
        "Items whose label is least sure, the least sure first. A chip is a class with its number of votes; the "
        "bar is the posterior of the label.",
        counted(int(run.labelled.sum()), "labelled item"),
        (),
        (
            Table(
                "Items to look at",
                heads,
                rows,
                len(chosen) if len(chosen) > len(rows) else None,
                run.full_labels or _IN_THE_PAGE,
                is_open=True,
            ),
            Table("Reasons", ("reason", "items"), tuple(sorted(reasons.items(), key=lambda entry: -entry[1]))),
        ),
        (),
        {"n": len(chosen), "reasons": reasons, "first": [run.item_name(row) for row in chosen[:5]]},
        notices,
    )


def confusable(run: Run) -> Panel | None:
    """Which classes are labelled as which others, by the posterior, with examples."""
    a = run.annotations
    if a.n_classes < 2 or not a.n_annotations or a.n_classes * a.n_annotations > _MOST_WORK:
        return None
    counts = _confusions(run)
    total = counts.sum(axis=1)
    order = np.argsort(-total, kind="stable")
    shown = order[: min(_MOST_IN_MAP, a.n_classes)]
    rate = counts / np.maximum(total, 1e-12)[:, None]
    away = counts.copy()
    np.fill_diagonal(away, 0)
    pairs = _top_pairs(away)
    if not pairs:
        return None
    first_k, first_c = pairs[0]
    rows = tuple(
        (run.classes[k], run.classes[c], float(away[k, c]), float(rate[k, c]), ", ".join(_examples(run, k, c)) or None)
        for k, c in pairs
    )
    off = np.where(np.eye(len(shown), dtype=bool), np.nan, rate[np.ix_(shown, shown)])
    labels = [run.classes[int(k)] for k in shown]
    left_out = a.n_classes - len(shown)
    return Panel(
        "confusable-classes",
        _most_confused(run, rate, away, first_k, first_c),
        "Each row is a true class by the posterior, each column a label given in its place, in per cent of the "
        "labels on that class. Right labels are left out.",
        counted(a.n_annotations, "label"),
        (
            heat_map(
                off,
                labels,
                labels,
                "Share of labels on a true class that name another class",
                format_cell=lambda v: f"{100 * v:.0f}",
                y_title="true class",
                x_title="label",
                unit="per cent of the row",
            ),
        ),
        (
            Table(
                "Most frequent confusions",
                ("true class", "labelled as", "labels, expected", "share", "items such as"),
                rows,
            ),
        ),
        (
            f"The picture shows the {len(shown)} most frequent classes; {left_out} more are in the table where "
            "they are confused most.",
        )
        if left_out
        else (),
        {"top": [(run.classes[k], run.classes[c], round(float(away[k, c]), 3)) for k, c in pairs[:3]]},
    )


def _most_confused(run: Run, rate: Array, away: Array, k: int, c: int) -> str:
    """Return the most frequent confusion as a sentence, which says so where no pair of classes stands out."""
    usual = away.sum() / max(run.annotations.n_annotations, 1) / max(len(away) - 1, 1)
    sentence = f"{quoted(run.classes[k])} is labelled as {quoted(run.classes[c])} most often"
    share = f"about {counted(round(away[k, c]), 'label')}, {percent(rate[k, c])} of those on it"
    other = _largest_share(run, rate, away, (k, c))
    if len(away) > 2 and rate[k, c] < _STANDS_OUT * usual:
        return f"No two classes are confused much more often than others; {sentence}, {share}.{other}"
    return f"{sentence}: {share}.{other}"


def _largest_share(run: Run, rate: Array, away: Array, most: tuple[int, int]) -> str:
    """Return a sentence on the largest cell of the picture, where that is another one than the most frequent confusion.

    The picture shows shares, and a small class may be confused in a larger share of fewer labels.
    """
    shares = np.where(away >= 0.5, rate, 0.0)
    np.fill_diagonal(shares, 0.0)
    k, c = divmod(int(shares.argmax()), len(shares))
    if (k, c) == most or shares[k, c] <= rate[most]:
        return ""
    n = counted(round(away[k, c]), "label")
    return (
        f" The largest share is of fewer labels: {quoted(run.classes[k])} as {quoted(run.classes[c])}, "
        f"{percent(rate[k, c])} (about {n})."
    )


def _item_row(run: Run, row: int, flagged: Codes, texts: dict[int, str]) -> tuple[Any, ...]:
    """Return the cells of one item."""
    votes = chips(run.classes, run.votes[row].tolist())
    text = (visible(texts.get(row, ""), 160),) if texts else ()
    label = run.classes[run.codes[row]] if run.codes[row] >= 0 else None
    return (run.item_name(row), *text, votes, label, Bar(float(run.confidence[row])), _reason(run, row, flagged)[1])


def _reason(run: Run, row: int, flagged: Codes) -> tuple[str, str]:
    """Return why an item is hard: a short name, and a sentence."""
    votes = run.votes[row]
    n, top = int(votes.sum()), int(votes.max(initial=0))
    if row in run.gold_rows:
        return "known class contradicted", "the votes contradict the known class"
    if (n and top == n and n <= _FEW) or n <= 1:
        return "few labels", f"few labels: {counted(n, 'vote')}, too few to be sure"
    if flagged[row] * 2 >= n:
        return "flagged workers", f"{flagged[row]} of {n} votes are from flagged workers"
    if votes[run.codes[row]] < top:
        return "votes overruled", "the most frequent vote is overruled: its voters are less reliable"
    if (votes == top).sum() > 1:
        return "tied votes", "the votes are tied"
    if top < n:
        return "workers disagree", f"workers disagree: {top} of {n} votes for the label"
    return "unreliable voters", "all votes agree, but their workers are not reliable"


def _contradicted(run: Run) -> Codes:
    """Return gold items on which another class has more votes."""
    rows = run.gold_rows
    if not len(rows):
        return rows
    top = run.votes[rows].max(axis=1)
    return rows[top > run.votes[rows, run.codes[rows]]]


def _flagged(run: Run) -> Codes:
    """Return the number of votes of flagged workers on each item, shape (n_items,)."""
    a = run.annotations
    if run.cards is None:
        return np.zeros(a.n_items, np.int64)
    accused = np.array([any(alert in ACCUSATIONS for alert in alerts) for alerts in run.cards.alerts], bool)
    return np.bincount(a.item[accused[a.worker]], minlength=a.n_items)


def _confusions(run: Run) -> Array:
    """Return expected numbers of labels, shape (true class, label)."""
    a = run.annotations
    cells = [np.bincount(a.label, run.model.posterior_[a.item, k], a.n_classes) for k in range(a.n_classes)]
    return np.array(cells)


def _top_pairs(away: Array) -> list[tuple[int, int]]:
    """Return the most frequent confusions as pairs (true class, label)."""
    flat = np.argsort(-away, axis=None, kind="stable")[:_MOST_PAIRS]
    return [(int(at // len(away)), int(at % len(away))) for at in flat if away.flat[at] >= 0.5]


def _examples(run: Run, k: int, c: int) -> list[str]:
    """Return items that are k by the posterior and have votes for c, those with most such votes first."""
    rows = np.flatnonzero((run.codes == k) & (run.votes[:, c] > 0))
    order = rows[np.lexsort((rows, -run.confidence[rows], -run.votes[rows, c]))]
    return [run.item_name(int(row)) for row in order[:_N_EXAMPLES]]


# ----------------------------------------------------------------------------------------------------
# The panel of methods: how far the labels depend on the method.

_MOST_CHANGED_ITEMS = 50
_Z = 1.959963984540054  # 97.5th percentile of the normal distribution: half of a 95% interval
_HOW_TO_READ_RANKS = (
    "Dots show how far the mean log likelihood of held-out labels is below that of the best method, with 95% intervals "
    "over folds; a method whose interval reaches 0 is not shown to be worse."
)
_METHOD_COLUMNS = {
    "method": "method",
    "rank": "rank",
    "heldout_log_likelihood": "held-out log likelihood",
    "standard_error": "standard error",
    "difference_to_best": "below the best",
    "difference_standard_error": "standard error of the difference",
    "likelihood": "likelihood",
    "mean_confidence": "mean confidence",
    "agreement_with_chosen": "agreement with chosen",
    "gold_accuracy": "accuracy on gold",
}


def methods(run: Run) -> Panel | None:
    """Agreement of methods and the items whose label depends on the method; without a comparison, of majority vote."""
    return _with_vote(run) if run.comparison is None else _compared(run, run.comparison)


def _with_vote(run: Run) -> Panel | None:
    """Compare the labels with the most frequent votes."""
    top = run.votes.max(axis=1)
    rows = np.flatnonzero(run.labelled & (run.codes >= 0) & (run.annotations.n_labels > 0))
    overruled = rows[run.votes[rows, run.codes[rows]] < top[rows]]
    n = len(rows)
    if not n or (type(run.model).__name__ == "MajorityVote" and not len(overruled)):
        return None
    order = overruled[np.lexsort((overruled, -run.confidence[overruled]))]
    table, n_rows = cut(
        [_overruled_row(run, int(row)) for row in order[: _MOST_CHANGED_ITEMS + 1]], _MOST_CHANGED_ITEMS
    )
    n_rows = len(overruled) if len(overruled) > _MOST_CHANGED_ITEMS else None
    share = len(overruled) / n
    title = f"The method overrules the most frequent vote on {counted(len(overruled), 'item')} ({percent(share, 1)})."
    if not len(overruled):
        title = "The method never overrules the most frequent vote."
    return Panel(
        "methods",
        title,
        "Items on which reliable workers outvote a larger number of less reliable ones, the surest first.",
        counted(n, "item"),
        (),
        (
            Table(
                "Items whose most frequent vote is overruled",
                ("item", "votes", "most frequent vote", "label", "posterior"),
                table,
                n_rows,
                run.full_labels,
            ),
        )
        if table
        else (),
        ("manyhands aggregate EXPORT --compare fits and ranks all other methods too.",),
        {"n_overruled": len(overruled)},
    )


def _overruled_row(run: Run, row: int) -> tuple[Any, ...]:
    votes = run.votes[row]
    order = [k for k in np.lexsort((np.arange(len(votes)), -votes)) if votes[k]]
    text = ", ".join(f"{run.classes[k]} {votes[k]}" for k in order)
    return run.item_name(row), text, run.classes[order[0]], run.classes[run.codes[row]], float(run.confidence[row])


def ranked_methods(rows: Sequence[Mapping[str, Any]], n_labels: int, n_folds: int) -> Panel:
    """The ranking of methods by the likelihood of held-out labels, without the labels that they infer."""
    return Panel(
        "methods",
        _best_sentence(rows),
        _HOW_TO_READ_RANKS,
        f"{counted(n_labels, 'label')}, {counted(len(rows), 'method')}",
        _ranking_chart(rows),
        (_ranking_table(rows),),
        (f"Every label is held out once in {n_folds} folds; higher log likelihood is better.",),
        {"best": str(rows[0]["method"])},
    )


def _compared(run: Run, comparison: ComparedMethods) -> Panel:
    """Show the ranking of all methods, their agreement, and the items on which they differ."""
    names = [str(row["method"]) for row in comparison.rows]
    n_items = run.annotations.n_items
    n_differ = len(comparison.differences["item"])
    matrix = _agreement(comparison, names, n_items)
    heads = ("item", "votes", *names)
    cells = zip(*(comparison.differences[name] for name in heads))
    rows, n_rows = cut(
        [tuple(None if cell is None else visible(cell, 60) for cell in row) for row in cells], _MOST_CHANGED_ITEMS
    )
    same = percent(1 - n_differ / max(n_items, 1))
    ranking = _ranking_chart(comparison.rows)
    how = "The map shows the share of items to which two methods give the same label, in per cent."
    return Panel(
        "methods",
        f"{len(names)} methods give the same label to {same} of the items. {_best_sentence(comparison.rows)}",
        f"{how} {_HOW_TO_READ_RANKS}" if ranking else how,
        f"{counted(n_items, 'item')}, {len(names)} methods",
        (_agreement_map(matrix, names), *ranking),
        (_ranking_table(comparison.rows), Table("Items whose label depends on the method", heads, rows, n_rows)),
        ("Held-out log likelihood is a mean over held-out labels in five-fold cross-validation; higher is better.",)
        if ranking
        else (),
        {"best": names[0] if ranking else None, "n_differ": n_differ, "agreement": matrix.round(6).tolist()},
    )


def _best_sentence(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return which method predicts held-out labels best, and how many cannot be told from it."""
    if rows[0]["rank"] is None:
        return "There are too few labels to hold some out, so the methods are not ranked."
    gap = [(row["difference_to_best"], row["difference_standard_error"]) for row in rows[1:]]
    near = sum(difference <= 2 * error for difference, error in gap)
    best = visible(rows[0]["method"], 100)
    if len(rows) == 1:
        return f"{best} is the only method."
    if not near:
        return f"{best} predicts held-out labels best, clearly."
    others = "1 other is" if near == 1 else f"{near} others are"
    return f"{best} predicts held-out labels best; {others} within two standard errors of it."


def _ranking_table(rows: Sequence[Mapping[str, Any]]) -> Table:
    """Return the table of all methods."""
    keys = [key for key in _METHOD_COLUMNS if key in rows[0]]
    cells = tuple(tuple(visible(row[key], 100) if key == "method" else row[key] for key in keys) for row in rows)
    return Table("Methods, the best first", tuple(_METHOD_COLUMNS[key] for key in keys), cells, is_open=True)


def _ranking_chart(rows: Sequence[Mapping[str, Any]]) -> tuple[Picture, ...]:
    """Return the differences of held-out log likelihood to the best method; nothing where none is known."""
    if rows[0]["rank"] is None or len(rows) < 2:
        return ()
    points = []
    for row in rows:
        below, error = row["difference_to_best"], row["difference_standard_error"]
        points.append((visible(row["method"], 80), [Dot(below, below - _Z * error, below + _Z * error)]))
    ends = [edge for _, (dot,) in points for edge in (dot.low, dot.high, dot.value) if math.isfinite(edge)]
    scale = ticks(min(ends), max(ends) or 1.0)
    step = scale[1] - scale[0] if len(scale) > 1 else 1.0
    low, high = math.floor(min(ends) / step) * step, math.ceil(max(ends) / step) * step
    label = "Held-out log likelihood of each method below that of the best, with 95% intervals"
    return (dots(points, label, low=low, high=high or step, rule=0.0, x_title="log likelihood below the best"),)


def _agreement(comparison: ComparedMethods, names: Sequence[str], n_items: int) -> Array:
    """Return the share of items to which two methods give the same label, shape (methods, methods)."""
    matrix = np.ones((len(names), len(names)))
    for r, one in enumerate(names):
        for c, other in enumerate(names):
            pairs = zip(comparison.differences[one], comparison.differences[other])
            matrix[r, c] = 1 - sum(a != b for a, b in pairs) / max(n_items, 1)
    return matrix


def _agreement_map(matrix: Array, names: Sequence[str]) -> Picture:
    """Return the heat map of the agreement of methods."""
    return heat_map(
        np.where(np.eye(len(names), dtype=bool), np.nan, matrix),
        names,
        names,
        "Share of items with the same label, two methods at a time",
        format_cell=lambda v: f"{100 * v:.0f}",
        y_title="method",
        x_title="other method",
        unit="per cent",
        least=math.floor(20 * float(matrix.min())) / 20,
        most=1.0,
    )


# ----------------------------------------------------------------------------------------------------
# Panels of trust: what the answers of an expert allow to say, and what votes of workers who err together are worth.

_N_BOOTSTRAP = 100  # resamples of an interval: fewer than `agree` takes, since a page has many intervals
_MOST_ROWS = 100
_MOST_IN_CHART = 24
_ACCURACY = ("items labelled", "answers", "share right", "95% interval")
_MOST_LABEL_PAIRS = 2_000_000  # pairs of labels that are compared within the time a page may take
_MOST_CELLS = 5_000_000  # cells of all confusion matrices that are estimated within this time


def trust(run: Run) -> Panel | None:
    """What the answers of an expert decided, how accurate the labels are, and what is promised.

    Parameters
    ----------
    run : Run
        The run.

    Returns
    -------
    Panel or None
        None without answers.
    """
    block = run.trust
    if not block or not block.get("n_answers"):
        return None
    sentences = [visible(text, 600) for text in block["sentences"]]
    rows = [(f"answers, {kind}", count) for kind, count in block["sampled"].items()]
    rows += [
        (f"{name}: {key.replace('_', ' ')}", _cell(value))
        for name in ("accuracy", "calibration", "guarantee", "sets")
        for key, value in (block.get(name) or {}).items()
        if key != "sentence" and not isinstance(value, dict | list)
    ]
    measured, promised = _measured(block), block.get("guarantee")
    title = visible(str(promised["sentence"]), 300) if promised and "sentence" in promised else sentences[-1]
    return Panel(
        "trust",
        title,
        "What the answers of an expert decide and allow to promise. Answers about items drawn at random measure "
        "accuracy; those about contested items choose the method."
        + (" The picture shows the share of right labels, of all and by label, with 95% intervals" if measured else "")
        + ("; the dashed line is what is promised." if measured and promised else "." if measured else ""),
        counted(int(block["n_answers"]), "answer"),
        _accuracy_chart(measured, promised),
        (
            Table("Answers and what follows from them", ("what", "value"), tuple(rows)),
            *(
                [Table("Share of right labels, by label", _ACCURACY, *cut(_accuracy_rows(measured), _MOST_ROWS))]
                if measured
                else []
            ),
        ),
        tuple(sentence for sentence in sentences if sentence != title),
        {"n_answers": block["n_answers"]},
    )


def _measured(block: Mapping[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the accuracy of all labels and of those of each class, as the answers measure it; empty without any."""
    accuracy = block.get("accuracy") or {}
    if accuracy.get("value") is None:
        return []
    return [
        ("all labels", accuracy),
        *((visible(name, 60), one) for name, one in (accuracy.get("classes") or {}).items()),
    ]


def _accuracy_rows(measured: Sequence[tuple[str, Mapping[str, Any]]]) -> list[tuple[Any, ...]]:
    return [(name, one["n_answers"], one["value"], interval(one["low"], one["high"])) for name, one in measured]


def _accuracy_chart(
    measured: Sequence[tuple[str, Mapping[str, Any]]], promised: Mapping[str, Any] | None
) -> tuple[Picture, ...]:
    """Return the shares of right labels with their intervals, and the promised share as a line."""
    if not measured:
        return ()
    rows = [(name, [Dot(one["value"], one["low"], one["high"])]) for name, one in measured[:_MOST_IN_CHART]]
    low = min(0.8, math.floor(min(dot.low for _, (dot,) in rows) * 5) / 5)
    rule = None if not promised else 1 - float(promised["error"])
    title = "share of right labels"
    return (dots(rows, "Share of right labels with 95% intervals", low=low, rule=rule, x_title=title),)


def correlated_workers(run: Run) -> Panel | None:
    """Whether workers err together, and how many independent votes their votes are worth."""
    votes = _effective_votes(run)
    measurable = [one for one in votes if math.isfinite(one.correlation)]
    if not measurable:
        return None
    one = measurable[0]
    copying = _copying(run)
    tables = [_votes_table(votes)]
    if copying:
        tables.append(Table("Workers flagged as copying", ("worker", "shares labels with"), *cut(copying, _MOST_ROWS)))
    name = "the workers" if one.group == ALL else one.group
    worth = f"are worth {one.effective_votes:.1f} independent ones."
    notices: tuple[Notice, ...] = ()
    if one.effective_votes < 0.75 * one.votes and one.correlation_low > 0:
        text = f"Workers err together: {one.votes:.1f} votes {worth}"
        notices = (Notice("warning", text, None, "correlated-workers"),)
    rows = [(g.group, [Dot(g.correlation, g.correlation_low, g.correlation_high)]) for g in measurable]
    lows = [math.floor(g.correlation_low * 5) / 5 for g in measurable if math.isfinite(g.correlation_low)]
    return Panel(
        "correlated-workers",
        f"Nothing shows that {name} err together: {one.votes:.1f} votes on an item count in full."
        if one.correlation_low <= 0 and one.effective_votes >= 0.95 * one.votes
        else f"{one.votes:.1f} votes of {name} on an item {worth}",
        "Correlation of the errors of two workers on the same item, with a 95% interval over items: 0 if they "
        "err independently, 1 if always together.",
        f"{one.n_pairs:,} pairs of labels",
        (
            dots(
                rows,
                "Correlation of errors, with 95% intervals",
                low=min([0.0, *lows]),
                rule=0.0,
                x_title="correlation of errors",
            ),
        ),
        tuple(tables),
        (),
        {
            "correlation": one.correlation,
            "effective_votes": one.effective_votes,
            "votes": one.votes,
            "n_copying": len(copying),
        },
        notices,
    )


def _effective_votes(run: Run) -> list[EffectiveVotes]:
    """Return what the votes of each group are worth; empty where workers cannot be compared in the time of a page."""
    a = run.annotations
    n_pairs = int((a.n_labels.astype(float) * (a.n_labels - 1)).sum() / 2)
    too_large = n_pairs > _MOST_LABEL_PAIRS or a.n_workers * a.n_classes**2 > _MOST_CELLS
    if (run.reading is not None and not run.reading.workers_known) or not n_pairs or too_large:
        return []
    kinds = {} if run.reading is None else run.reading.kinds
    groups = groups_of(a.worker_ids.tolist(), kinds) if kinds else None
    reference = HUMANS if groups and HUMANS in groups else None
    try:
        return effective_votes(a, groups, reference=reference, n_bootstrap=_N_BOOTSTRAP)
    except ManyhandsError:
        return []


def _copying(run: Run) -> tuple[tuple[str, str], ...]:
    """Return the workers that are flagged as copying, each with those whose labels they share."""
    if run.cards is None:
        return ()
    flagged = [w for w, alerts in enumerate(run.cards.alerts) if "copying" in alerts]
    return tuple((run.workers[w], ", ".join(run.workers[p] for p in run.cards.partners[w][:5])) for w in flagged)


def _votes_table(votes: list[EffectiveVotes]) -> Table:
    """Return the table of all groups."""
    head = ("group", "workers", "votes per item", "correlation of errors", "95% interval")
    rows = (
        (
            g.group,
            g.n_workers,
            g.votes,
            g.correlation if math.isfinite(g.correlation) else None,
            interval(g.correlation_low, g.correlation_high),
            g.effective_votes if math.isfinite(g.effective_votes) else None,
            interval(g.low, g.high, 1),
        )
        for g in votes
    )
    return Table("What the votes are worth", (*head, "effective votes", "95% interval "), tuple(rows))


def _cell(value: Any) -> Any:
    return value if value is None or isinstance(value, str | int | float) else visible(value, 100)
