"""What a fitted generator of labels is good for: labels for others to learn from, workers explained, what to ask."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.em.kernels import Array
from manyhands.exceptions import AlignmentError, AnnotationError, ParameterError
from manyhands.features import Rows
from manyhands.heldout import align
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.inference import as_tensor
from manyhands.nn.item_worker_pairs import Pairs, fill_in
from manyhands.nn.label_generator import GeneratorBehind
from manyhands.nn.pseudo_annotations import guess_unanswered
from manyhands.randomness import Seed, make_generator, torch_seeded
from manyhands.validation import Constraint, Maybe, Number, check_annotations

_STRETCH = 1024  # items looked at together
_DRAWS = 8  # of the generator's noise, over which its answers are averaged where they are not drawn


Triples = npt.NDArray[np.int64]  # (n, 3): item, worker, label


class Unsure(NamedTuple):
    """An answer that was not given and that the generator cannot foretell."""

    item: Any
    worker: Any
    entropy: float  # in nats


class GeneratedLabels(CrowdClassifier):
    """A classifier whose `module_` has a generator behind it."""

    module_: GeneratorBehind

    def augment(
        self,
        X: Any,
        annotations: Annotations,
        *,
        per_label: int | None = 1,
        most_likely: bool = False,
        random_state: Seed = None,
    ) -> Annotations:
        """These annotations with generated ones among them, for any method to learn from.

        Parameters
        ----------
        X, annotations : items and their labels, by workers who were there when this was fitted
        per_label : for every label that a worker gave, so many generated ones on items that he did not label, chosen
            the likelier the surer the generator is; None fills in every pair of an item and a worker with a label
        likeliest : the most probable label instead of one drawn by its probability
        random_state : seed of what is chosen and drawn
        """
        _refuse_unless(Maybe(Number(whole=True, least=1)), per_label, "per_label", "augment")
        rows, known = self._known(X, annotations)
        rng, active = make_generator(random_state), np.unique(known.worker).astype(np.intp)
        found = [np.zeros((0, 3), np.int64)]
        with torch_seeded(rng), torch.no_grad():
            fill = self._filler(rows, known, active)
            # Shuffled: of a worker whose items stand together, some are then in other stretches than his labels.
            items, device = np.arange(known.n_items), self.module_.device
            for batch in AnnotationBatches(known, _STRETCH, rng, items=items, device=device):
                found.append(fill(batch, per_label, most_likely, rng))
        both = known.with_more(*np.concatenate(found).T)
        ids = {"item_ids": annotations.item_ids, "worker_ids": self.worker_ids_, "classes": self.classes_}
        return Annotations(both.item, both.worker, both.label, **ids)

    def _filler(self, rows: Rows, known: Annotations, active: npt.NDArray[np.intp]) -> Callable[..., Triples]:
        """From a batch of items to the items, workers and labels of what is generated for them."""
        module, n_heard = self.module_, len(active)
        place = torch.full((known.n_workers,), -1)
        place[torch.from_numpy(active)] = torch.arange(n_heard)
        place = place.to(module.device)
        generator = module.generator.for_all(torch.from_numpy(active))

        def fill(batch: Batch, per_label: int | None, most_likely: bool, rng: np.random.Generator) -> Triples:
            batch, x = batch._replace(worker=place[batch.worker]), as_tensor(rows, batch.item, module.device)

            def answers(pairs: Pairs) -> torch.Tensor:
                found: torch.Tensor = generator(
                    generator.inputs(x), module.proba(x), pairs, generator.draw_noise(pairs)
                )
                return found

            pairs, label = fill_in(batch, n_heard, answers, rng, per_label=per_label, most_likely=most_likely)
            row, worker, said = (column.cpu().numpy() for column in (*pairs, label))
            return np.column_stack([batch.item[row], active[worker], said])

        return fill

    def explain_worker(self, worker: Any, X: Any) -> Array:
        """(n_rows, n_classes, n_classes) how this worker would answer on each of these items, were its truth known.

        Entry [i, truth, label] is a probability; a row over labels sums to 1. The row of a truth that features exclude
        is an extrapolation: the generator has hardly met such an item.
        """
        rows = self._like_fitted(X)
        ids = self.worker_ids_.tolist()
        if worker not in ids:
            raise AnnotationError(
                f"There is no worker {worker!r} among those whom this {type(self).__name__} has seen."
            )
        n_classes = len(self.classes_)
        found = np.empty((len(rows), n_classes, n_classes))
        for truth in range(n_classes):
            answers = self._answers(rows, np.array([ids.index(worker)]), partial(_sure_of, truth, n_classes))
            for first in range(0, len(rows), _STRETCH):
                item = np.arange(first, min(first + _STRETCH, len(rows)))
                found[item, truth] = answers(item)[:, :, 0].exp().numpy()
        return found / found.sum(axis=2, keepdims=True)

    def least_sure(self, X: Any, annotations: Annotations, n: int = 10) -> list[Unsure]:
        """The n answers that were not given and that the generator is least sure of, the most open first.

        Asked are the workers who have a label in these annotations.
        """
        _refuse_unless(Number(whole=True, least=1), n, "n", "least_sure")
        rows, known = self._known(X, annotations)
        active = np.unique(known.worker).astype(np.intp)
        answers = self._answers(rows, active, self.module_.proba)
        best = np.zeros((0, 3))
        for first, _, h in guess_unanswered(answers, active, len(self.classes_), [known]):
            item, column = np.nonzero(np.isfinite(h))
            new = np.column_stack([first + item, active[column], h[item, column]])
            best = np.concatenate([best, new])
            best = best[np.argsort(-best[:, 2], kind="stable")[:n]]
        item_ids, worker_ids = annotations.item_ids.tolist(), self.worker_ids_.tolist()
        return [Unsure(item_ids[int(i)], worker_ids[int(w)], float(h)) for i, w, h in best]

    def _answers(
        self, rows: Rows, worker: npt.NDArray[np.intp], truth: Callable[[torch.Tensor], torch.Tensor]
    ) -> Callable[[npt.NDArray[np.intp]], torch.Tensor]:
        """From items to (n_items, n_classes, n_workers) log-probabilities, the generator's noise averaged out."""
        generator = self.module_.generator.for_all(torch.from_numpy(worker))
        drawn = torch.randn(_DRAWS, generator.n_classes, generator=torch.Generator().manual_seed(0))
        device = self.module_.device

        @torch.no_grad()
        def answers(item: npt.NDArray[np.intp]) -> torch.Tensor:
            x = as_tensor(rows, item, device)
            row, column = np.divmod(np.arange(len(item) * len(worker)), len(worker))
            pairs = Pairs(torch.from_numpy(row).to(device), torch.from_numpy(column).to(device))
            inputs, z = generator.inputs(x), truth(x)
            each = [generator(inputs, z, pairs, noise).cpu() for noise in drawn.to(device)]
            log_p = torch.logsumexp(torch.stack(each), 0) - np.log(_DRAWS)
            return log_p.view(len(item), len(worker), -1).transpose(1, 2)

        return answers

    def _known(self, X: Any, annotations: Annotations) -> tuple[Rows, Annotations]:
        """Rows and annotations in the codes of this fit."""
        rows = self._like_fitted(X)
        check_annotations(annotations)
        if len(rows) != annotations.n_items:
            raise AlignmentError(
                f"X has {len(rows)} rows, but the annotations have {annotations.n_items} items; row i must be item i."
            )
        known = align(annotations, self.worker_ids_, self.classes_, type(self).__name__)
        if known.n_annotations and known.worker.max() == len(self.worker_ids_):
            raise AnnotationError(
                f"Some of these labels are by workers whom this {type(self).__name__} has not seen; fit it with them."
            )
        return rows, known


def _sure_of(truth: int, n_classes: int, x: torch.Tensor) -> torch.Tensor:
    """(n_rows, n_classes) z of items that are all of one class."""
    return torch.zeros(len(x), n_classes, device=x.device).index_fill(1, torch.tensor(truth, device=x.device), 1.0)


def _refuse_unless(constraint: Constraint, value: Any, name: str, where: str) -> None:
    if not constraint.allows(value):
        raise ParameterError(f"The parameter {name!r} of {where} must be {constraint}. Got {value!r}.")
