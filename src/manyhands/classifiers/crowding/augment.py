"""Imputation with a fitted generator: annotations for others to learn from, workers explained, what to ask next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from manyhands.annotations import Annotations
from manyhands.em.kernels import Array
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.features import Rows
from manyhands.heldout import align
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.inference import as_tensor
from manyhands.nn.item_worker_pairs import Pairs, impute_annotations
from manyhands.nn.label_generator import ClassifierWithGenerator
from manyhands.nn.pseudo_annotations import predict_pseudo_annotations
from manyhands.randomness import torch_seeded
from manyhands.validation import Constraint, check_annotations

_CHUNK = 1024  # items processed together
_DRAWS = 8  # draws of the generator's noise over which its label distribution is averaged

Triples = npt.NDArray[np.int64]  # (n, 3): item, worker, label


class UncertainLabel(NamedTuple):
    """A label that was not given and that the generator predicts with high entropy.

    Attributes
    ----------
    item : object
        Id of the item.
    worker : object
        Id of the worker.
    entropy : float
        Entropy of the predicted label distribution, in nats.
    """

    item: Any
    worker: Any
    entropy: float


class FittedGenerator(NamedTuple):
    """A fitted CrowdInG as the functions of this module need it.

    Attributes
    ----------
    module : ClassifierWithGenerator
        Classifier and generator.
    worker_ids : ndarray
        Workers of the fit.
    classes : ndarray
        Classes of the fit.
    name : str
        Name of the method, for error messages.
    """

    module: ClassifierWithGenerator
    worker_ids: npt.NDArray[Any]
    classes: npt.NDArray[Any]
    name: str

    def aligned(self, rows: Rows, annotations: Annotations) -> Annotations:
        """Return annotations in the codes of the fit; unseen workers are refused.

        Parameters
        ----------
        rows : Rows
            Features of the items.
        annotations : Annotations
            Labels of the same items.

        Returns
        -------
        Annotations
        """
        annotations = check_annotations(annotations)
        if len(rows) != annotations.n_items:
            raise AlignmentError(
                f"X has {len(rows)} rows, but the annotations have {annotations.n_items} items; row i must be item i."
            )
        known = align(annotations, self.worker_ids, self.classes, self.name)
        if known.n_annotations and known.worker.max() == len(self.worker_ids):
            raise AnnotationError(
                f"Some of these labels are by workers that this {self.name} was not fitted with; fit it with them."
            )
        return known


def impute(
    fitted: FittedGenerator,
    rows: Rows,
    known: Annotations,
    per_label: int | None,
    most_likely: bool,
    rng: np.random.Generator,
) -> Triples:
    """Generate annotations for pairs of item and worker without a label.

    Parameters
    ----------
    fitted : FittedGenerator
        The generator.
    rows : Rows
        Features of the items.
    known : Annotations
        Their labels, in the codes of the fit.
    per_label : int or None
        Imputed annotations for each label of a worker; None imputes every pair of an item and an active worker.
    most_likely : bool
        Impute the most probable label instead of one drawn from the distribution.
    rng : numpy.random.Generator
        Draws pairs and labels.

    Returns
    -------
    ndarray of shape (n, 3)
        Item, worker and label codes of the imputed annotations.
    """
    active = np.unique(known.worker).astype(np.intp)
    found = [np.zeros((0, 3), np.int64)]
    with torch_seeded(rng), torch.no_grad():
        impute_batch = _batch_imputer(fitted.module, rows, known, active)
        # Shuffled: otherwise a worker whose items are adjacent would get imputed labels among these items only.
        items, device = np.arange(known.n_items), fitted.module.device
        for batch in AnnotationBatches(known, _CHUNK, rng, items=items, device=device):
            found.append(impute_batch(batch, per_label, most_likely, rng))
    return np.concatenate(found)


def _batch_imputer(
    module: ClassifierWithGenerator, rows: Rows, known: Annotations, active: npt.NDArray[np.intp]
) -> Callable[..., Triples]:
    """Return a function from a mini-batch to the items, workers and labels of its imputed annotations."""
    n_active = len(active)
    place = torch.full((known.n_workers,), -1)
    place[torch.from_numpy(active)] = torch.arange(n_active)
    place = place.to(module.device)
    generator = module.generator.for_workers(torch.from_numpy(active))

    def impute_batch(batch: Batch, per_label: int | None, most_likely: bool, rng: np.random.Generator) -> Triples:
        batch, x = batch._replace(worker=place[batch.worker]), as_tensor(rows, batch.item, module.device)

        def log_labels(pairs: Pairs) -> torch.Tensor:
            found: torch.Tensor = generator(generator.inputs(x), module.proba(x), pairs, generator.draw_noise(pairs))
            return found

        pairs, label = impute_annotations(
            batch, n_active, log_labels, rng, per_label=per_label, most_likely=most_likely
        )
        row, worker, code = (column.cpu().numpy() for column in (*pairs, label))
        return np.column_stack([batch.item[row], active[worker], code])

    return impute_batch


def worker_confusion_by_item(fitted: FittedGenerator, worker: Any, rows: Rows) -> Array:
    """Return the label distribution of a worker on each item, given each possible true class.

    Parameters
    ----------
    fitted : FittedGenerator
        The generator.
    worker : object
        Id of a worker.
    rows : Rows
        Features of the items.

    Returns
    -------
    ndarray of shape (n_rows, n_classes, n_classes)
        Entry [i, truth, label]; rows over labels sum to 1.
    """
    ids = fitted.worker_ids.tolist()
    if worker not in ids:
        raise AnnotationError(f"There is no worker {worker!r} among those that this {fitted.name} was fitted with.")
    n_classes = len(fitted.classes)
    found = np.empty((len(rows), n_classes, n_classes))
    for truth in range(n_classes):
        log_labels = _label_distribution(
            fitted.module, rows, np.array([ids.index(worker)]), partial(_certain_of, truth, n_classes)
        )
        for first in range(0, len(rows), _CHUNK):
            item = np.arange(first, min(first + _CHUNK, len(rows)))
            found[item, truth] = log_labels(item)[:, :, 0].exp().numpy()
    return found / found.sum(axis=2, keepdims=True)


def most_uncertain(
    fitted: FittedGenerator, rows: Rows, known: Annotations, item_ids: list[Any], n: int
) -> list[UncertainLabel]:
    """Return the n labels that were not given and whose predicted distribution has the highest entropy.

    Parameters
    ----------
    fitted : FittedGenerator
        The generator.
    rows : Rows
        Features of the items.
    known : Annotations
        Their labels, in the codes of the fit.
    item_ids : list
        Ids of the items.
    n : int
        How many to return.

    Returns
    -------
    list of UncertainLabel
        The most uncertain first; of workers who have a label in `known`.
    """
    active = np.unique(known.worker).astype(np.intp)
    log_labels = _label_distribution(fitted.module, rows, active, fitted.module.proba)
    best = np.zeros((0, 3))
    for first, _, entropy in predict_pseudo_annotations(log_labels, active, len(fitted.classes), [known]):
        item, column = np.nonzero(np.isfinite(entropy))
        new = np.column_stack([first + item, active[column], entropy[item, column]])
        best = np.concatenate([best, new])
        best = best[np.argsort(-best[:, 2], kind="stable")[:n]]
    worker_ids = fitted.worker_ids.tolist()
    return [UncertainLabel(item_ids[int(i)], worker_ids[int(w)], float(h)) for i, w, h in best]


def _label_distribution(
    module: ClassifierWithGenerator,
    rows: Rows,
    worker: npt.NDArray[np.intp],
    truth: Callable[[torch.Tensor], torch.Tensor],
) -> Callable[[npt.NDArray[np.intp]], torch.Tensor]:
    """Return a function from items to (n_items, n_classes, n_workers) log-probabilities, averaged over the noise."""
    generator = module.generator.for_workers(torch.from_numpy(worker))
    drawn = torch.randn(_DRAWS, generator.n_classes, generator=torch.Generator().manual_seed(0))
    device = module.device

    @torch.no_grad()
    def log_labels(item: npt.NDArray[np.intp]) -> torch.Tensor:
        x = as_tensor(rows, item, device)
        row, column = np.divmod(np.arange(len(item) * len(worker)), len(worker))
        pairs = Pairs(torch.from_numpy(row).to(device), torch.from_numpy(column).to(device))
        inputs, z = generator.inputs(x), truth(x)
        each = [generator(inputs, z, pairs, noise).cpu() for noise in drawn.to(device)]
        log_p = torch.logsumexp(torch.stack(each), 0) - np.log(_DRAWS)
        return log_p.view(len(item), len(worker), -1).transpose(1, 2)

    return log_labels


def _certain_of(truth: int, n_classes: int, x: torch.Tensor) -> torch.Tensor:
    """One-hot class distribution of items that are all of one class, (n_rows, n_classes)."""
    return torch.zeros(len(x), n_classes, device=x.device).index_fill(1, torch.tensor(truth, device=x.device), 1.0)


def check_argument(constraint: Constraint, value: Any, name: str, where: str) -> None:
    """Refuse an argument of a method that its constraint does not allow.

    Parameters
    ----------
    constraint : Constraint
        What the argument may be.
    value : object
        The argument.
    name : str
        Its name.
    where : str
        The method that it was given to.
    """
    if not constraint.allows(value):
        raise ParameterError(f"The parameter {name!r} of {where} must be {constraint}. Got {value!r}.")
