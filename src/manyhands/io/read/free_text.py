"""Labels that cannot be classes although they are text: sentences, nearly all different, or marks written as JSON."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import orjson

from manyhands.io.messages import shorten
from manyhands.io.read import exact_json
from manyhands.io.read.other_kinds import OtherKinds, kind_of_mark

_FEWEST = 20  # labels below which nothing is concluded from their number of classes
_DIFFERENT = 0.6  # share of labels that occur once, from which on sentences are free text
_ALL_DIFFERENT = 0.9  # the same for labels of a word or two
_WORDS = 3  # words of a sentence
_LOOKED_AT = 200  # texts that are looked at


def refuse_labels(classes: npt.NDArray[Any], counts: npt.NDArray[np.int64], source: str, question: str) -> str | None:
    """Return why the labels of a question are not classes, if so.

    Parameters
    ----------
    classes : ndarray of shape (n_classes,)
        The classes that were read.
    counts : ndarray of shape (n_classes,) of int
        Number of labels of each.
    source : str
        Name of the file.
    question : str
        The question.

    Returns
    -------
    str or None
        One sentence on what the labels are, and what can be read instead; None for labels that may be classes.
    """
    if not len(classes) or not all(isinstance(name, str) for name in classes[:_LOOKED_AT]):
        return None
    marks = _marks(classes, counts, question)
    if marks is not None:
        return marks.refusal(source)
    n_once, n_labels = int((counts == 1).sum()), int(counts.sum())
    if n_labels < _FEWEST or n_once < _DIFFERENT * n_labels:
        return None
    texts = [str(name) for name in classes[counts == 1][:_LOOKED_AT]]
    n_sentences = sum(len(text.split()) >= _WORDS for text in texts)
    all_different = n_once >= _ALL_DIFFERENT * n_labels and not all(map(_is_number, texts))
    if 2 * n_sentences < len(texts) and not all_different:
        return None
    return (
        f"{source}: the labels of {question!r} look like free text: {n_once} of {n_labels} occur only once, such as "
        f"{shorten(texts[0])!r}. manyhands compares classes that workers choose from a list; group the texts into "
        f"classes with --map FILE (columns from,to), or name the column of classes with --label or --question."
    )


def _marks(classes: npt.NDArray[Any], counts: npt.NDArray[np.intp], question: str) -> OtherKinds | None:
    """Return what marks of parts of items most labels are, if so."""
    written = [at for at, name in enumerate(classes[:_LOOKED_AT]) if str(name).lstrip()[:1] in ("[", "{")]
    if 2 * counts[written].sum() < counts[:_LOOKED_AT].sum():
        return None
    found = OtherKinds()
    for at in written:
        try:
            kind = kind_of_mark(exact_json.loads(str(classes[at])))
        except orjson.JSONDecodeError:
            kind = None
        if kind is not None:
            found.add(kind, question)
    return found or None


def _is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True
