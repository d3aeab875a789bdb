"""Long tables: one row per judgement, with a column each for item, worker and label.

Such a table may be CSV, TSV, Parquet, XLSX, a data frame, JSON lines or a list of flat objects. A column of times
decides which of two answers is the later one, a column of gold labels gives known answers, and a column that names the
question separates several questions.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import polars as pl

from manyhands.exceptions import AnnotationError, ParameterError, UnknownColumnsError
from manyhands.io.documents import FRAME, Document, Records, Table, Words, as_text
from manyhands.io.judgements import (
    BOXES,
    ORDER,
    SPANS,
    ColumnOptions,
    Judgements,
    OtherKinds,
    column_hint,
    find_column,
    find_seconds,
    find_verdicts,
    note_unused,
    parse_decimals,
    parse_times,
    single_column,
)
from manyhands.io.messages import argument, counted, find_question, listed, normalise_name, shorten
from manyhands.io.text_tables import Locate

if TYPE_CHECKING:
    from manyhands.trust.machines import WorkerKind

_STRONG = {  # unambiguous names of columns, the most usual first
    "item": "item task item_id task_id unit unit_id example example_id post_id comment_id document_id doc_id text_id "
    "sentence_id image_id image_name instance_id tweet_id sample_id",
    "worker": "worker annotator worker_id annotator_id rater rater_id coder coder_id labeler labeller labeler_id judge "
    "performer worker_name annotator_name rater_name annotator_email worker_email rater_email coder_email",
    "label": "label answer response annotation judgment judgement label_name",
}
CONTENTS = ("image", "sample", "instance", "document", "sentence")  # contents of an item, used if there is no id
_WEAK = {  # ambiguous names, used if there is no unambiguous one
    "item": f"question question_id id {' '.join(CONTENTS)}",
    "worker": "user user_id username user_name email",
    "label": "class class_name category rating value vote",
}
_RARE = {  # used if there is neither; the most usual one of them. Judgements of language models have such names.
    "item": "prompt_id record_id row_id review_id case_id ticket_id message_id conversation_id chat_id prompt",
    "worker": "judge_model judge_name model model_name",
    "label": "verdict decision choice judge_label",
}
_OTHERS = {
    "time": "timestamp submitted_at created_at submitted date",
    "gold": "gold gold_label golden truth ground_truth true_label",
    "question": "question attribute field",
}
_NEEDED = ("item", "worker", "label")
COMMON_NAMES = {role: tuple(f"{_STRONG[role]} {_WEAK[role]}".split()) for role in _NEEDED}
COMMON_NAMES |= {role: tuple(names.split()) for role, names in _OTHERS.items()}


def recognise(document: Document) -> str | None:
    """Recognise long tables; any table that no other format recognised is taken for one.

    If columns are missing, the error message of `read` names them.
    """
    if isinstance(document, Table):
        return "long"
    if isinstance(document, Words):
        return "long" if _covers(document.rows[0]) else None
    if isinstance(document, Records):
        return "long" if document.objects and _covers(list(document.first), rare=True) else None
    return None


def has_roles(header: Sequence[str]) -> bool:
    """Whether a header names item, worker and label in the usual words."""
    return _covers(header)


def read(document: Document, format_name: str, options: ColumnOptions) -> Judgements:
    """Read the rows of a table as judgements."""
    table, options = _spread_probabilities(as_table(document), options)
    named = {role: name for role in _NEEDED if (name := getattr(options, role)) is not None}
    place = {role: find_column(table.header, name, role, table.name) for role, name in named.items()}
    _refuse_missing(table, named)
    for role in _NEEDED:
        if role not in place:
            place[role] = single_column(table.header, _find_common(table.header, role, rare=True), role, table.name)
    if options.time is not None:
        place["time"] = find_column(table.header, options.time, "time", table.name)
    if options.weight is not None:
        place["weight"] = find_column(table.header, options.weight, "weight", table.name)
    for role in ("time", "gold", "question"):
        places = _most_usual(table.header, role)
        if role not in place and len(places) == 1 and places[0] not in place.values():
            place[role] = places[0]
    table, question, questions = _one_question(table, place, options)
    if options.verdicts is not None and options.weight is not None:
        _refuse_weighted_verdicts(table.name)
    verdicts = find_verdicts(table, place, options.verdicts) if options.weight is None else None
    unused = {} if options.weight is None else note_unused(table, place)
    label = table.column(place["label"]) if verdicts is None else verdicts.label
    place |= {} if verdicts is None else {ORDER: verdicts.at}
    refusal = _refuse_parts(table, place["item"], place["worker"])
    mapping = {role: table.header[at] for role, at in place.items() if role != "question"}
    time, notes = parse_times(table.column(place["time"])) if "time" in place else (None, {})
    seconds, seconds_mapping, unread = find_seconds(table, place.values(), options.seconds)
    return Judgements(
        table.name,
        format_name,
        item=table.column(place["item"]),
        worker=table.column(place["worker"]),
        answers={} if refusal else {question: label},
        reason=pl.Series(["region"], dtype=pl.String).new_from_index(0, len(table)) if refusal else None,
        time=time,
        seconds=seconds,
        mapping=mapping | seconds_mapping,
        gold={question: gold_of(table.column(place["item"]), table.column(place["gold"]))} if "gold" in place else {},
        notes=notes | unread | unused | (document.notes if isinstance(document, Records) else {}),
        refusal=refusal,
        other_columns=table.frame,
        questions=questions,
        files=((table.name, len(table), table.locate),),
        kinds=kinds_of_workers(table, table.column(place["worker"])),
        weight=_read_weights(table, place.get("weight"), place["label"]),
        swapped=None if verdicts is None else verdicts.swapped,
        names_first=None if verdicts is None else verdicts.names_first,
    )


def as_table(document: Document) -> Table:
    """Return a document as a table: flat objects become rows, and words become cells."""
    if isinstance(document, Table):
        return document
    if isinstance(document, Words):
        header, rows = document.rows[0], document.rows[1:]
        uneven = next((at for at, row in enumerate(rows, start=2) if len(row) != len(header)), None)
        if uneven is not None:
            raise AnnotationError(
                f"{document.name}, line {uneven}: {len(rows[uneven - 2])} words where the header has {len(header)}."
            )
        columns = {str(at): [row[at] for row in rows] for at in range(len(header))}
        return Table(document.name, pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)), header)
    if isinstance(document, Records) and document.objects:
        return objects_as_table(document.name, document.objects)
    raise AnnotationError(f"{document.name} is not a table with one row per judgement. See docs/formats.md.")


def objects_as_table(name: str, objects: Sequence[dict[str, Any]]) -> Table:
    """Return a list of objects as rows; every key that any of them has is a column."""
    header = list(dict.fromkeys(key for entry in objects for key in entry))
    columns = {str(at): [as_text(entry.get(key)) for entry in objects] for at, key in enumerate(header)}
    return Table(name, pl.DataFrame(columns, schema=dict.fromkeys(columns, pl.String)), header)


def gold_of(items: pl.Series, gold: pl.Series) -> dict[str, tuple[str, ...]]:
    """Return the items with a known answer."""
    right_answers = pl.DataFrame({"item": items, "gold": gold}).drop_nulls().unique(maintain_order=True)
    answers_of: dict[str, tuple[str, ...]] = {}
    for item, answer in right_answers.iter_rows():
        if answer.strip():
            answers_of[item] = (*answers_of.get(item, ()), answer)
    return answers_of


def _covers(header: Sequence[str], *, rare: bool = False) -> bool:
    """Whether a header has a column for item, worker and label."""
    return all(_find_common(header, role, rare=rare) for role in _NEEDED)


def _find_common(header: Sequence[str], role: str, *, rare: bool = False) -> list[int]:
    """Return the columns with a usual name for a role; ambiguous names only if there is no unambiguous one."""
    for names in (_STRONG[role], _WEAK[role]):
        wanted = {normalise_name(name) for name in names.split()}
        places = [at for at, name in enumerate(header) if normalise_name(name) in wanted]
        if places:
            return places
    names_there = [normalise_name(name) for name in header]
    places_there = (names_there.index(name) for name in map(normalise_name, _RARE[role].split()) if name in names_there)
    return list(places_there)[:1] if rare else []


def _most_usual(header: Sequence[str], role: str) -> list[int]:
    """Return the columns whose name is the most usual one for a role."""
    names = [normalise_name(name) for name in header]
    for wanted in COMMON_NAMES[role]:
        places = [at for at, name in enumerate(names) if name == normalise_name(wanted)]
        if places:
            return places
    return []


def _refuse_missing(table: Table, named: Mapping[str, str]) -> None:
    """Refuse a table that lacks columns, and name all of them with the options that would name them."""
    missing = [role for role in _NEEDED if role not in named and not _find_common(table.header, role, rare=True)]
    if not missing:
        return
    columns = "Column" if len(missing) == 1 else "Columns"
    roles = " and ".join(f"the {role}" for role in missing)
    verb = "is" if len(missing) == 1 else "are"
    near: dict[str, str] = {}
    for role in missing:  # a column that is suggested for one role is not suggested for another
        name_near = _nearest([name for name in table.header if name not in near.values()], role)
        near |= {} if name_near is None else {role: name_near}
    place_of = {role: at for role in _NEEDED for at in _find_common(table.header, role)[:1]}
    if "label" in missing and "label" not in near and "item" in place_of:
        name_near = _guess_label(table, place_of["item"], place_of.values())
        near |= {} if name_near is None else {"label": name_near}
    if len(missing) > 1 and set(near) != set(missing):
        near = _guess_by_content(table, missing, named, place_of) or near
    if set(near) == set(missing):
        near |= _guess_time(table, {*named.values(), *near.values()})
    near = {role: name for role, name in near.items() if shorten(name) == name}  # others cannot be typed
    remedy = _name_in_python(missing, near) if table.name == FRAME else _name_arguments(missing, near)
    raise UnknownColumnsError(
        f"{columns} for {roles} {verb} not in {table.name}. It has: {listed(table.header)}. {remedy}",
        near if set(near) >= set(missing) else None,
    )


def _guess_time(table: Table, taken: Collection[str]) -> dict[str, str]:
    """Return the column of times, which decide which answer counts, where just one holds dates and none is known."""
    if _most_usual(table.header, "time"):
        return {}
    found = []
    for at, name in enumerate(table.header):
        texts = table.column(at).head(_ROWS_LOOKED_AT).drop_nulls().str.strip_chars()
        texts = texts.filter(texts != "")
        is_number = texts.str.contains(r"^[-+]?\d+([.,]\d+)?$").any()  # such as seconds since 1970, or anything else
        if len(texts) and not is_number and name not in taken and not parse_times(texts)[1]:
            found.append(name)
    return {"time": found[0]} if len(found) == 1 else {}


def _name_arguments(missing: Sequence[str], near: Mapping[str, str]) -> str:
    """Return how to name missing columns of a file, with the columns that are probably meant."""
    remedy = column_hint(missing[0])
    if len(missing) > 1:
        *first, last = [f"`{role}=`" for role in missing]
        remedy = f"Name them with {', '.join(first)} and {last}."
    if "worker" in missing:
        remedy += ' If each worker has a column, name them all: `worker="ann,bob"`.'
    return remedy + (f" Perhaps {', '.join(argument(*one) for one in near.items())}?" if near else "")


def _name_in_python(missing: Sequence[str], near: Mapping[str, str]) -> str:
    """Return how to name missing columns of a data frame, with the columns that are probably meant."""
    options_text = ", ".join(f"{role}={near[role]!r}" if role in near else f"{role}=..." for role in missing)
    several = ' If each worker has a column, name them all: worker="ann,bob".' if "worker" in missing else ""
    return f"Name the columns: mh.read_annotations(df, {options_text}).{several}"


def _nearest(header: Sequence[str], role: str) -> str | None:
    """Return the column whose name resembles a usual name of the role; those that name another role are left out."""
    taken = {at for other in _NEEDED for at in _find_common(header, other)}
    free = [name for at, name in enumerate(header) if at not in taken]
    return _nearest_name(free, _STRONG[role].split())


def _one_question(
    table: Table, place: dict[str, int], options: ColumnOptions
) -> tuple[Table, str, dict[str, int] | None]:
    """Return the rows of the selected question, its name, and the number of rows of each; blank lines are kept."""
    label_name = table.header[place["label"]]
    if "question" not in place:
        return table, label_name, None
    column = table.column(place["question"]).fill_null("").str.strip_chars()
    counts = {name: n for name, n in column.value_counts().iter_rows() if name}
    names = sorted(counts)
    if len(names) < 2 and options.question is None:
        return table, label_name, None
    question, _ = find_question(options.question, names, table.name)
    nameless = (column == "") & ~table.blank_lines()
    if nameless.any():
        raise AnnotationError(
            f"{table.place(int(nameless.arg_true()[0]))}: the question "
            f"({table.header[place['question']]}) is blank. Fill it in or remove the row."
        )
    chosen = (column == question) | (column == "")
    rows = Table(table.name, table.frame.filter(chosen), table.header, _located(table.locate, chosen.arg_true()))
    return rows, question, counts


def _located(locate: Locate | None, rows: pl.Series) -> Locate | None:
    """Return how to find the rows of a table of which only some are left."""
    return None if locate is None else lambda row: locate(int(rows[row]))


# ----------------------------------------------------------------------------------------------------
# Which column of a table may be meant, judged by its name or content: for error messages only.

_MOST_CLASSES = 30  # distinct values of a column of labels; more are texts or numbers
_ROWS_LOOKED_AT, _COLUMNS_LOOKED_AT = 2000, 12  # of a table whose columns are guessed
_FEWEST_ROWS = 6  # fewer say nothing
_MOSTLY = 0.9  # share of rows in which a worker labels an item for the first time
_ALIKE = 0.75  # similarity (difflib) from which on a column is suggested: 'annotatr' and 'annotator' have 0.94
_COMPARED = 4  # usual names to which others are compared letter by letter


def _guess_label(table: Table, item: int, taken: Collection[int]) -> str | None:
    """Return the one column that may hold labels: few values, which differ between rows about one item."""
    free = [at for at in range(len(table.header)) if at not in taken and table.header[at].strip()]
    if not free or not len(table):
        return None
    columns = [table.column(at).rename(str(at)) for at in free]
    rows = pl.DataFrame([table.column(item).rename("item"), *columns])
    within = rows.group_by("item").agg(pl.exclude("item").n_unique()).select(pl.exclude("item").max()).row(0)
    n_values = rows.select(pl.exclude("item").n_unique()).row(0)
    fits = [
        at for at, most, n in zip(free, within, n_values) if most > 1 and 1 < n <= min(_MOST_CLASSES, len(rows) / 2)
    ]
    return table.header[fits[0]] if len(fits) == 1 else None


def _guess_by_content(
    table: Table, missing: Sequence[str], named: Mapping[str, str], place_of: Mapping[str, int]
) -> dict[str, str] | None:
    """Return the columns that may be meant by what they hold: no pair of item and worker twice, and few labels.

    Of several combinations, the one in which fewest pairs repeat, with the most items and the fewest labels; None where
    no combination looks like judgements.
    """
    head = table.frame.head(_ROWS_LOOKED_AT)
    n_rows = len(head)
    n_values = [head.to_series(at).drop_nulls().n_unique() for at in range(len(table.header))]
    places = dict(place_of) | {role: table.header.index(name) for role, name in named.items() if name in table.header}
    free = [at for at, n in enumerate(n_values) if n > 1 and table.header[at].strip() and at not in places.values()]
    choices = {
        role: free[:_COLUMNS_LOOKED_AT] if role in missing else [places[role]]
        for role in _NEEDED
        if role in missing or role in places
    }
    if set(choices) != set(_NEEDED) or n_rows < _FEWEST_ROWS:
        return None
    best: tuple[float, int, int, int] | None = None
    roles: dict[str, str] | None = None
    for item, worker in ((i, w) for i in choices["item"] for w in choices["worker"] if i != w):
        if not n_values[worker] <= n_values[item] < n_rows or n_values[worker] == n_rows:
            continue
        n_pairs = head.select(pl.struct(pl.nth(item), pl.nth(worker)).n_unique()).item()
        if n_pairs < _MOSTLY * n_rows:
            continue
        for label in choices["label"]:
            if label in (item, worker) or n_values[label] > min(_MOST_CLASSES, n_rows // 2):
                continue
            rank = (-n_pairs, -n_values[item], n_values[label], label)
            if best is None or rank < best:
                best, roles = (
                    rank,
                    {
                        role: table.header[at]
                        for role, at in (("item", item), ("worker", worker), ("label", label))
                        if role in missing
                    },
                )
    return roles


def _nearest_name(names: Sequence[str], usual: Sequence[str]) -> str | None:
    """Return the name that contains a usual one as a word, or differs from one by a letter or two."""
    for name in names:
        if set(re.split(r"[\s_.-]+", name.lower())) & set(usual):
            return name
    for word in usual[:_COMPARED]:
        matches = get_close_matches(word, [name.lower() for name in names], n=1, cutoff=_ALIKE)
        if matches:
            return next(name for name in names if name.lower() == matches[0])
    return None


# ----------------------------------------------------------------------------------------------------
# Long tables whose rows label parts of items: spans with start and end, boxes with corners or sizes.

_PLACES = (
    ("start end", SPANS),
    ("begin end", SPANS),
    ("start_offset end_offset", SPANS),
    ("start_char end_char", SPANS),
    ("token_start token_end", SPANS),
    ("span_start span_end", SPANS),
    ("xmin ymin xmax ymax", BOXES),
    ("x1 y1 x2 y2", BOXES),
    ("x y width height", BOXES),
    ("x y w h", BOXES),
    ("left top width height", BOXES),
)


def _refuse_parts(table: Table, item: int, worker: int) -> str | None:
    """Return why the labels of a table are not those of whole items, if so.

    Columns called start and end may be times. So the table is refused only if these columns are numbers, and differ
    between rows of one worker about one item: otherwise all but one of these labels would be left out as repeated.
    """
    names = [normalise_name(name) for name in table.header]
    for keys, kind in _PLACES:
        wanted = [normalise_name(key) for key in keys.split()]
        if all(name in names for name in wanted):
            columns = [names.index(name) for name in wanted]
            if _differ(table, columns, [item, worker]):
                kinds = OtherKinds()
                kinds.add(kind, f"columns {listed([table.header[at] for at in columns])}")
                return kinds.refusal(table.name)
    return None


def _differ(table: Table, columns: Sequence[int], keys: Sequence[int]) -> bool:
    """Whether columns are whole numbers that differ between two rows with the same keys."""
    numbers = [table.column(at).cast(pl.Float64, strict=False).rename(f"n{at}") for at in columns]
    if any(number.null_count() for number in numbers) or not len(table):
        return False
    rows = pl.DataFrame([*numbers, *(table.column(at).rename(f"k{at}") for at in keys)])
    several = rows.group_by([f"k{at}" for at in keys]).agg(pl.struct([n.name for n in numbers]).n_unique().alias("n"))
    return bool((several["n"] > 1).any())


# ----------------------------------------------------------------------------------------------------
# Columns of weights: one with the weight of each label, or one of probabilities for each class.

LABEL, WEIGHT = "label of label-probs", "probability"
_PREFIX = "p_"  # of the columns of probabilities in labels.csv


def _spread_probabilities(table: Table, options: ColumnOptions) -> tuple[Table, ColumnOptions]:
    """Return a table with one row for each class of each row, where the caller names columns of probabilities."""
    if options.label_probs is None:
        return table, options
    names = [name.strip() for name in options.label_probs.split(",") if name.strip()]
    if options.label is not None or options.weight is not None:
        raise ParameterError("`label_probs` names the columns of all classes: leave out `label` and `weight`.")
    if len(set(names)) < 2 or len(set(names)) < len(names):
        raise ParameterError(
            f"`label_probs` is {shorten(options.label_probs)!r}; it must name two or more columns, one per class, "
            f"separated by commas."
        )
    places = [find_column(table.header, name, "label-probs", table.name) for name in names]
    names_there = [table.header[at] for at in places]
    has_prefix = all(name.startswith(_PREFIX) and len(name) > len(_PREFIX) for name in names_there)
    classes = [name.removeprefix(_PREFIX) for name in names_there] if has_prefix else names_there
    others = [at for at in range(len(table.header)) if at not in places]
    n, k = len(table), len(places)
    rows = pl.Series(range(n), dtype=pl.UInt32).repeat_by(k).explode() if n else pl.Series([], dtype=pl.UInt32)
    columns = [table.column(at).gather(rows) for at in others]
    columns += [
        pl.Series(classes * n, dtype=pl.String),
        pl.DataFrame([table.column(at).alias(str(j)) for j, at in enumerate(places)]).transpose().unpivot()["value"]
        if n
        else pl.Series([], dtype=pl.String),
    ]
    frame = pl.DataFrame([column.alias(str(at)) for at, column in enumerate(columns)])
    locate = table.locate
    spread = Table(
        table.name,
        frame,
        [*(table.header[at] for at in others), LABEL, WEIGHT],
        None if locate is None else lambda row: locate(row // k),
        notes=table.notes,
    )
    return spread, replace(options, label=LABEL, weight=WEIGHT)


def _read_weights(table: Table, at: int | None, label: int) -> pl.Series | None:
    """Return the weight of each row."""
    if at is None:
        return None
    text = table.column(at)
    weight = parse_decimals(text.str.strip_chars())
    has_label = (table.column(label).fill_null("").str.strip_chars() != "").fill_null(False)
    wrong = (has_label & ~((weight >= 0) & weight.is_finite()).fill_null(False)).arg_true()
    if len(wrong):
        row = int(wrong[0])
        cell = "blank" if text[row] is None else repr(shorten(text[row]))
        raise AnnotationError(
            f"{table.place(row)}: the weight ({table.header[at]}) is {cell}, but it must be a number of at least 0; "
            f"{len(wrong)} such row(s)."
        )
    return weight.fill_null(0.0)


def _refuse_weighted_verdicts(source: str) -> None:
    """Refuse verdicts with weights: the weights of two orders cannot be kept apart."""
    raise ParameterError(
        f"{source}: `verdicts` is about labels without weights, since weighted labels of two orders of presentation "
        f"cannot be kept apart: leave out `weight` and `label_probs`."
    )


def refuse_unused(options: ColumnOptions, format_name: str, source: str) -> None:
    """Refuse weights, verdicts and columns of times for a format that has none, rather than ignore them."""
    if options.verdicts is not None and format_name != "long":
        raise AnnotationError(
            f"{source} was read as {format_name}, which has no order of presentation. `verdicts` is for tables with "
            f'one row per judgement (`format="long"`).'
        )
    named = next((role for role in ("time", "seconds") if getattr(options, role) is not None), None)
    if named is not None and format_name != "long":
        raise AnnotationError(
            f"{source} was read as {format_name}, whose times are where the format has them. `{named}` is for tables "
            f'with one row per judgement (`format="long"`).'
        )
    if format_name == "long":
        return
    if options.weight is not None or options.label_probs is not None:
        raise AnnotationError(
            f"{source} was read as {format_name}, which has no weights of labels. `weight` and `label_probs` are for "
            f'tables with one row per judgement (`format="long"`).'
        )


# ----------------------------------------------------------------------------------------------------
# Columns that say what a worker is: a person or a machine, and which model, prompt and run.

COLUMN_NAMES = {
    "kind": "kind worker_kind annotator_kind worker_type annotator_type",
    "family": "family model_family worker_family",
    "model": "model model_name",
    "prompt": "prompt prompt_name prompt_id",
    "run": "run run_id run_name",
}


def kinds_of_workers(table: Table, workers: pl.Series) -> dict[str, WorkerKind]:
    """Return what a table says of each worker, if it has a column of kinds."""
    columns = {role: at for role in COLUMN_NAMES if (at := find_named(table, COLUMN_NAMES[role])) is not None}
    if "kind" not in columns:
        return {}
    from manyhands.trust.machines import WorkerKind, kind_from_word  # only few tables have such a column

    words = table.column(columns["kind"]).drop_nulls().unique().to_list()
    if not words or any(kind_from_word(word) is None for word in words if word.strip()):
        return {}  # another kind of thing
    rows = pl.DataFrame([workers.rename("worker"), *(table.column(at).rename(role) for role, at in columns.items())])
    kind_of: dict[str, WorkerKind] = {}
    for row in rows.unique(maintain_order=True).iter_rows(named=True):
        worker, kind = row["worker"], kind_from_word(row["kind"] or "")
        if worker is None or kind is None:
            continue
        more = {role: (row[role] or "").strip() for role in columns if role != "kind"}
        if kind_of.setdefault(worker, WorkerKind(kind, **more)).kind != kind:
            raise AnnotationError(
                f"{table.name}: the worker {shorten(worker)!r} is a person in some rows and a machine in others "
                f"({table.header[columns['kind']]}). Give the two different ids."
            )
    return kind_of


def find_named(table: Table, names: str) -> int | None:
    """Return the column with one of these names."""
    header = [normalise_name(name) for name in table.header]
    places = [header.index(name) for name in map(normalise_name, names.split()) if name in header]
    return places[0] if places else None


# ----------------------------------------------------------------------------------------------------
# Rows of a table that repeat its header, as in files that were joined: they are blank lines, not judgements.

_FEWEST = 2  # columns of a header that is recognised


def blank_repeated_headers(table: Table) -> Table:
    """Return the table with rows that repeat the header as blank lines, and a note on them."""
    names = [name for name in table.header if name.strip()]
    if len(names) < _FEWEST or table.typed is not None or not len(table):
        return table
    first = table.header.index(names[0])
    if not (table.column(first) == names[0]).any():  # by far the most usual case
        return table
    repeats = pl.Series([True]).new_from_index(0, len(table))
    for at, name in enumerate(table.header):
        if name.strip():
            repeats = repeats & (table.column(at) == name).fill_null(False)
    if not repeats.any():
        return table
    where = table.place(int(repeats.arg_true()[0]))
    n_lines = int(repeats.sum())
    verbs = ("repeats", "counts as a blank line") if n_lines == 1 else ("repeat", "count as blank lines")
    note = f"{counted(n_lines, 'line')} {verbs[0]} the header ({where}), and {verbs[1]}."
    blank = table.frame.select(pl.when(~repeats).then(pl.col(name)).alias(name) for name in table.frame.columns)
    return replace(table, frame=blank, notes=table.notes | {"repeated_header": note})
