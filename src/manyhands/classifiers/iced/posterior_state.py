"""What one round infers and the next one uses, as a torch module: checkpoints and early stopping then keep it."""

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


class PosteriorState(nn.Module):
    """Posterior, confusion matrices and class shares; initially those of the majority vote.

    Parameters
    ----------
    annotations : Annotations
        The labels to learn from.
    gold : ndarray of shape (n_items,) or None
        Codes of known classes, -1 where the class is unknown.
    items : ndarray of int
        Items with a label or gold.
    network_trained : bool
        Whether the network was trained on the majority vote already, by a warm-up.

    Attributes
    ----------
    posterior : torch.Tensor of shape (n_items, n_classes)
        Posterior of the real items.
    first_posterior : torch.Tensor of shape (n_items, n_classes)
        The posterior of the first round; NaN before it.
    log_column : torch.Tensor of shape (n_workers + 1, n_classes, n_classes)
        log p(label | truth) as [worker, label, truth]; the last worker is an unseen one.
    log_prior : torch.Tensor of shape (n_classes,)
        Log share of each class among the real items.
    log_training_prior : torch.Tensor of shape (n_classes,)
        Log share of each class among the items that the network was trained on last; NaN if there are none yet.
    n_rounds : torch.Tensor of shape ()
        Number of rounds so far.
    """

    posterior: torch.Tensor
    first_posterior: torch.Tensor
    log_column: torch.Tensor
    log_prior: torch.Tensor
    log_training_prior: torch.Tensor
    n_rounds: torch.Tensor

    def __init__(self, annotations: Annotations, gold: Gold, items: Codes, *, network_trained: bool) -> None:
        super().__init__()
        n_workers, n_classes = annotations.n_workers, annotations.n_classes
        start = initial_posterior(annotations, gold)
        share = torch.from_numpy(log_class_shares(one_hot(start[items]))).float()
        self.register_buffer("posterior", torch.from_numpy(start))
        self.register_buffer("first_posterior", torch.full_like(self.posterior, torch.nan))
        self.register_buffer("log_column", torch.zeros(n_workers + 1, n_classes, n_classes))
        self.register_buffer("log_prior", share)
        unknown = torch.full_like(share, torch.nan)
        self.register_buffer("log_training_prior", share.clone() if network_trained else unknown)
        self.register_buffer("n_rounds", torch.zeros((), dtype=torch.float64))

    def update(self, **values: Array) -> None:
        """Set buffers to new values.

        Parameters
        ----------
        **values : ndarray
            New values by the name of the buffer.
        """
        for name, value in values.items():
            getattr(self, name).copy_(torch.from_numpy(value))

    def most_probable(self, items: Codes) -> npt.NDArray[np.int32]:
        """Return the most probable class of each of these items.

        Parameters
        ----------
        items : ndarray of int of shape (n,)
            Codes of items.

        Returns
        -------
        ndarray of int of shape (n,)
        """
        return pick_classes(self.posterior.cpu().numpy()[items], np.zeros(len(items), bool))[0]

    @property
    def before_first_round(self) -> bool:
        """Whether no round was run yet."""
        return bool(self.first_posterior.isnan().any())

    @property
    def network_trained(self) -> bool:
        """Whether the network was trained on any labels yet."""
        return not bool(self.log_training_prior.isnan().any())


def one_hot(posterior: Array) -> Array:
    """Return 1 for the most probable class of each row, else 0.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        Class probabilities.

    Returns
    -------
    ndarray of shape (n_items, n_classes)
    """
    code, _ = pick_classes(posterior, np.zeros(len(posterior), bool))
    return np.asarray(np.eye(posterior.shape[1])[code])


def log_class_shares(posterior: Array) -> Array:
    """Return the log share of each class, with a pseudo-count of one item per class.

    Parameters
    ----------
    posterior : ndarray of shape (n_items, n_classes)
        Class probabilities or one-hot classes.

    Returns
    -------
    ndarray of shape (n_classes,)

    Examples
    --------
    >>> np.exp(log_class_shares(np.array([[1.0, 0.0], [1.0, 0.0]]))).tolist()
    [0.75, 0.25]
    """
    return np.asarray(np.log((posterior.sum(axis=0) + 1.0) / (len(posterior) + posterior.shape[1])))
