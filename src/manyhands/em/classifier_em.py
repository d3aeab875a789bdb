"""EM with a classifier where the class frequencies stood: the steps that several methods share; needs no torch.

E   r_ik ~ f_k(x_i) prod_w confusion[w, k, label_iw]
M   confusion[w, k, l] ~ pseudo[k, l] + sum of r_ik over the items that w called l
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from manyhands.annotations import Annotations
from manyhands.em.confusion_em import overrules_the_vote
from manyhands.em.kernels import Array, Packed, PassResult, em_pass, pack, vote_share
from manyhands.em.priors import gold_offset
from manyhands.noise import safe_log

Gold = npt.NDArray[np.int32] | None


def initial_posterior(annotations: Annotations, gold: Gold) -> Array:
    """(n_items, n_classes) where EM begins: the vote shares, gold where it is known, all classes alike elsewhere."""
    share = vote_share(annotations)
    share[annotations.n_labels == 0] = 1.0 / max(annotations.n_classes, 1)
    if gold is not None:
        known = np.flatnonzero(gold >= 0)
        share[known] = np.eye(annotations.n_classes)[gold[known]]
    return share


def posterior_from_gold(annotations: Annotations, gold: Gold, pseudo: float | Array) -> Array | None:
    """(n_items, n_classes) another beginning: what the labels say, by what the gold items alone say of the workers.

    None unless the vote is wrong on most gold items beyond chance; only then may gold know of a better optimum.
    """
    if gold is None or not overrules_the_vote(annotations, gold):
        return None
    on_gold = annotations.keep((gold >= 0)[annotations.item])
    table = log_confusions(pack(on_gold), initial_posterior(on_gold, gold), pseudo)
    return posterior_of(pack(annotations), table, np.zeros((annotations.n_items, annotations.n_classes)), gold)[0]


def guesses(
    annotations: Annotations, gold: Gold, pseudo: float | Array, generators: Iterable[np.random.Generator] = ()
) -> list[Array]:
    """(n_items, n_classes) each, where EM may begin: the votes, gold where it overrules them, a draw per generator."""
    vote, from_gold = initial_posterior(annotations, gold), posterior_from_gold(annotations, gold, pseudo)
    alike = np.ones(annotations.n_classes)
    mixed = [0.5 * vote + 0.5 * rng.dirichlet(alike, annotations.n_items) for rng in generators]
    return [vote, *mixed] if from_gold is None else [vote, from_gold, *mixed]


def log_confusions(packed: Packed, posterior: Array, pseudo: float | Array) -> Array:
    """[worker, truth, label], from what is believed of the items and so many labels more in each cell (above 0)."""
    nothing = np.zeros((packed.n_workers, packed.n_classes, packed.n_classes))
    counts = em_pass(packed, nothing, np.zeros(packed.n_classes), safe_log(posterior)).counts + pseudo
    return np.log(counts) - np.log(counts.sum(axis=2, keepdims=True))


def posterior_of(packed: Packed, log_table: Array, log_proba: Array, gold: Gold) -> tuple[Array, PassResult]:
    """The E step: (n_items, n_classes) the posterior, and all that the pass gives; `log_proba` is log f(x)."""
    known = gold_offset(gold, packed.n_classes)
    offset = log_proba if known is None else log_proba + known
    found = em_pass(packed, log_table, np.zeros(packed.n_classes), offset, want_posterior=True)
    assert found.posterior is not None
    return found.posterior, found


def class_names(confusion: Array) -> npt.NDArray[np.intp]:
    """(n_classes,) which estimated class is which: as they are, unless all workers together do no better than chance.

    Class k under its right name is the estimated class `class_names(confusion)[k]`.
    """
    n_workers, n_classes = confusion.shape[:2]
    if n_classes < 2 or np.trace(confusion, axis1=1, axis2=2).sum() > n_workers:
        return np.arange(n_classes)
    from scipy.optimize import linear_sum_assignment

    assigned: npt.NDArray[np.intp] = linear_sum_assignment(confusion.sum(axis=0).T, maximize=True)[1]
    return assigned
