"""What a method believes between rounds, as a module, so that checkpoints and early stopping keep it."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.annotations import Annotations
from manyhands.em.classifier_em import Gold, initial_posterior
from manyhands.em.decisions import pick_classes
from manyhands.em.kernels import Array
from manyhands.nn.batches import Codes


class Belief(nn.Module):
    """Posterior, confusion matrices and class shares, which begin with the vote.

    Parameters
    ----------
    annotations, gold : the labels to learn from; (n_items,) codes, -1 where the truth is not known
    items : those with a label or gold
    taught : whether the network has learnt the vote already
    """

    posterior: torch.Tensor  # (n_items, n_classes)
    first: torch.Tensor  # the same in the first round; NaN before
    log_column: torch.Tensor  # (n_workers + 1, label, truth) log p(label | truth); last, a worker never seen
    log_real: torch.Tensor  # (n_classes,) log share of each class among the items
    log_learnt: torch.Tensor  # (n_classes,) and among all that the network learnt from last; NaN if it never did

    def __init__(self, annotations: Annotations, gold: Gold, items: Codes, *, taught: bool) -> None:
        super().__init__()
        n_workers, n_classes = annotations.n_workers, annotations.n_classes
        start = initial_posterior(annotations, gold)
        share = torch.from_numpy(log_shares(hard(start[items]))).float()
        self.register_buffer("posterior", torch.from_numpy(start))
        self.register_buffer("first", torch.full_like(self.posterior, torch.nan))
        self.register_buffer("log_column", torch.zeros(n_workers + 1, n_classes, n_classes))
        self.register_buffer("log_real", share)
        self.register_buffer("log_learnt", share.clone() if taught else torch.full_like(share, torch.nan))

    def keep(self, **values: Array) -> None:
        """New values of buffers, by their names."""
        for name, value in values.items():
            getattr(self, name).copy_(torch.from_numpy(value))

    def answer(self, items: Codes) -> npt.NDArray[np.int32]:
        """(n,) the most probable class of each of these items."""
        return pick_classes(self.posterior.cpu().numpy()[items], np.zeros(len(items), bool))[0]

    @property
    def is_new(self) -> bool:
        """Whether there was no round yet."""
        return bool(self.first.isnan().any())

    @property
    def has_taught(self) -> bool:
        """Whether the network has learnt anything of it."""
        return not bool(self.log_learnt.isnan().any())


def hard(posterior: Array) -> Array:
    """1 for the most probable class of each row."""
    code, _ = pick_classes(posterior, np.zeros(len(posterior), bool))
    return np.asarray(np.eye(posterior.shape[1])[code])


def log_shares(posterior: Array) -> Array:
    """(n_classes,) the log share of each class, with one item more of each.

    >>> np.exp(log_shares(np.array([[1.0, 0.0], [1.0, 0.0]]))).tolist()
    [0.75, 0.25]
    """
    return np.asarray(np.log((posterior.sum(axis=0) + 1.0) / (len(posterior) + posterior.shape[1])))
