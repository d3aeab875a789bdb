"""The ensemble of NeuCrowd: sizes of the members' embeddings, held-out items of each, and their classifiers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from manyhands.annotations import Annotations
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import TrainingData
from manyhands.exceptions import ParameterError
from manyhands.heldout import split_items
from manyhands.representation.neucrowd.linear_head import (
    GRIDS,
    ChosenC,
    EmbeddingClassifier,
    Split,
    choose_C,
    cross_validation_splits,
    regressions,
)
from manyhands.representation.training_set import TrainingSet

_MIN_ITEMS = 5  # of a fold; with fewer, early stopping would be a matter of chance


def member_sizes(embedding_size: int, n_members: int) -> list[int]:
    """Return the sizes of the members' embeddings, which differ by at most 1 and sum to `embedding_size`.

    Parameters
    ----------
    embedding_size : int
        Size of the whole embedding.
    n_members : int
        Number of members.

    Returns
    -------
    list of int
    """
    if n_members > embedding_size:
        raise ParameterError(
            f"The embedding_size {embedding_size} is divided among {n_members} members; raise it to that, or have "
            f"fewer members."
        )
    each, more = divmod(embedding_size, n_members)
    return [each + (m < more) for m in range(n_members)]


def item_folds(
    data: TrainingData, n_folds: int, rng: np.random.Generator
) -> list[tuple[Annotations, Annotations | None]]:
    """Split the labels by items: for each fold, the labels of the other items, and the held-out labels of its own.

    Parameters
    ----------
    data : TrainingData
        Labels and gold. Items with gold are in no fold, since gold is always trained on.
    n_folds : int
        Number of folds.
    rng : numpy.random.Generator
        Draws the folds.

    Returns
    -------
    list of (Annotations, Annotations or None)
        All labels and None where a fold would have fewer than five items.
    """
    votes = data.annotations
    fold = split_items(votes, n_folds, rng, None if data.gold is None else data.gold >= 0)
    if len(np.unique(votes.item[fold >= 0])) < _MIN_ITEMS * n_folds:
        return [(votes, None)] * n_folds
    return [(votes.keep(np.flatnonzero(fold != m)), votes.keep(np.flatnonzero(fold == m))) for m in range(n_folds)]


def member_training_sets(
    context: TrainingContext, labels: Any, n_members: int, *, holds_out: bool
) -> list[TrainingSet]:
    """Return the training set of each member.

    Parameters
    ----------
    context : TrainingContext
        Data and generator; of a single member also its held-out labels.
    labels : str or Aggregator
        The aggregator.
    n_members : int
        Number of members.
    holds_out : bool
        Whether each of several members holds out all labels of a part of the items; every item is then held out once.

    Returns
    -------
    list of TrainingSet
    """
    if n_members == 1 or not holds_out:
        return [TrainingSet(context, labels)] * n_members  # the same object: the truth is inferred once for all
    parts = item_folds(context.data, n_members, context.rng)
    return [TrainingSet(replace(context, annotations=kept, heldout=left), labels) for kept, left in parts]


def fit_heads(
    networks: Sequence[EmbeddingClassifier],
    members: Sequence[TrainingSet],
    whole: TrainingSet,
    *,
    soft_targets: bool = False,
    grid: str = "decades",
) -> ChosenC:
    """Fit the logistic regression of each member to all items.

    Parameters
    ----------
    networks : sequence of EmbeddingClassifier
        The networks of the members; their last layers are set.
    members : sequence of TrainingSet
        What each member was trained on. C is chosen by the items that a member was not trained on, or by
        cross-validation where there are none.
    whole : TrainingSet
        All items and labels.
    soft_targets : bool, default=False
        Whether targets are the aggregator's posterior rather than its most probable class.
    grid : {"decades", "fine"}, default="decades"
        Values of C to choose from.

    Returns
    -------
    ChosenC
        The common C, and its held-out log-likelihood.
    """
    posterior = whole.aggregator.posterior_[whole.items]
    target = posterior if soft_targets else np.eye(posterior.shape[1])[whole.target]
    inputs = [network.inputs.fit_ratio(whole.context.data.rows, whole.items) for network in networks]
    splits: list[Split] = []
    for embedding, member in zip(inputs, members):
        train = np.isin(whole.items, member.items)
        if train.all():
            splits += cross_validation_splits(embedding, target, whole.context.rng)
        else:
            splits += [Split(embedding, np.flatnonzero(train), np.flatnonzero(~train))]
    chosen = choose_C(splits, target, GRIDS[grid])
    for network, embedding in zip(networks, inputs):
        network.set_head(regressions(embedding, target, (chosen.C,))[0])
    return chosen
