"""Flags of items in labels.csv, and gold labels that the votes contradict."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from manyhands.aggregation.base import Aggregator

_TIE = 1e-9  # sums of weights closer than this are equal


def item_flags(model: Aggregator) -> pl.Series:
    """Return the flags of each item, joined by ";".

    Parameters
    ----------
    model : Aggregator
        A fitted aggregator.

    Returns
    -------
    polars.Series of str, of length n_items
        ``tie``: several classes are equally probable. ``unlabelled``: the item has no labels. ``gold``:
        its class was given. ``unvoted``: no worker of the item gave its label. Null without flags.
    """
    gold = np.isin(np.arange(len(model.item_ids_)), _rows_of_gold(model))
    words = {"tie": model.tied_, "unlabelled": model.unlabelled_, "gold": gold, "unvoted": _unvoted(model) & ~gold}
    joined = (";".join(flag for flag, on in zip(words, row) if on) for row in zip(*words.values()))
    return pl.Series([flags or None for flags in joined], dtype=pl.String)


def _rows_of_gold(model: Aggregator) -> list[int]:
    """Return the positions of the gold items."""
    return [row for row, item in enumerate(model.item_ids_.tolist()) if item in model._gold] if model._gold else []


def _unvoted(model: Aggregator) -> np.ndarray[Any, Any]:
    """Return (n_items,) where no worker of the item gave the label that it gets."""
    votes = model.annotations_
    class_of = {value: k for k, value in enumerate(model.classes_.tolist())}
    code = np.array([class_of.get(label, -1) for label in model.labels_.tolist()])
    voted = np.zeros(votes.n_items, bool)
    voted[votes.item[code[votes.item] == votes.label]] = True
    return (code >= 0) & ~voted


def contradicted_gold(model: Aggregator) -> list[Any]:
    """Return the gold items on which another class has more votes than the known one.

    Parameters
    ----------
    model : Aggregator
        An aggregator fitted with gold.

    Returns
    -------
    list
        Item ids.
    """
    votes = model.annotations_
    weight = np.ones(votes.n_annotations) if votes.weight is None else votes.weight
    class_of = {value: k for k, value in enumerate(model.classes_.tolist())}
    row_of = {item: i for i, item in enumerate(model.item_ids_.tolist())}
    found = []
    for item, value in model._gold.items():
        i = row_of[item]
        own = slice(votes.start[i], votes.start[i + 1])
        counts = np.bincount(votes.label[own], weights=weight[own], minlength=votes.n_classes)
        if counts.max() > counts[class_of[value]] + _TIE:
            found.append(item)
    return found
