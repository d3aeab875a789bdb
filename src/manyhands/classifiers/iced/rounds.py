"""What ICED does between the network's steps: the warm-up from item to item, then the rounds that infer the truth."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.base import FitResult
from manyhands.classifiers.iced.autoencoder import Decoder, EmbeddingNetwork, learn_again
from manyhands.classifiers.iced.certainty import N_GROUPS, certainty_groups, label_certainty
from manyhands.classifiers.iced.posterior_state import Belief, hard, log_shares
from manyhands.classifiers.iced.synthesis import MOST_CANDIDATES, Recipe, Synthetic, augment, nothing_made, plan, some
from manyhands.classifiers.iced.truth_inference import ShrunkConfusions, Truth, infer_truth
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.classifier_em import Gold, initial_posterior
from manyhands.em.kernels import Array
from manyhands.heldout import worker_confusions
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.inference import as_tensor
from manyhands.nn.losses import soft_cross_entropy
from manyhands.nn.train import History, descend

_REFIT_EPOCHS = 3  # of the decoder in a round
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


class WarmUp:
    """The network learns the vote, from less to more certain items."""

    def __init__(self, context: TrainingContext, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.context, self.network, self.optimizer = context, network, optimizer
        self.items = context.batches().items
        vote = hard(initial_posterior(context.annotations, context.data.gold))
        self.target = torch.from_numpy(vote).float().to(context.device)
        self.share = torch.from_numpy(log_shares(vote[self.items])).float().to(context.device)

    def train(self) -> History:
        """One lesson after the other."""
        history: History = []
        method, modules, optimizers = self.context.method, {"network": self.network}, {"adam": self.optimizer}
        epochs = method.warm_up_epochs * (1 if method.warm_up == "grouped" else N_GROUPS - 1)
        for number, items in enumerate(self.lessons()):
            batches, name = self.context.batches(items), f"warm-up-{number}"
            found = self.context.train(self.step, modules, optimizers, batches=batches, max_epochs=epochs, name=name)
            history += [epoch | {"warm_up_items": float(len(items))} for epoch in found]
        return history

    def lessons(self) -> list[npt.NDArray[np.intp]]:
        """The items of each lesson; one item alone is none."""
        items, group = self.items, self._groups()[self.items]
        lessons = {
            None: [],
            "all": [items],
            "top": [items[group > 0]],
            "grouped": [items[group == number] for number in range(1, N_GROUPS)],
        }
        return [lesson for lesson in lessons[self.context.method.warm_up] if len(lesson) > 1]

    def _groups(self) -> npt.NDArray[np.int64]:
        """(n_items,) from less to more certain by the votes; gold joins the last group, and is no group of its own."""
        annotations, gold = self.context.annotations, self.context.data.gold
        group, voted = np.full(annotations.n_items, N_GROUPS - 1), annotations.n_labels > 0
        group[voted] = certainty_groups(certainty_of(self.context.method, annotations, None)[voted])
        return group if gold is None else np.where(gold >= 0, N_GROUPS - 1, group)

    def step(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Learn the vote of a batch."""
        logits = self.network(self.context.x(batch)) + (self.share if self.context.method.balanced_loss else 0.0)
        return {"warm_up": descend(self.optimizer, soft_cross_entropy(logits, self.target[batch.item]))}


class Rounds:
    """The batches of an epoch, before which items are synthesised and the truth is inferred."""

    target: torch.Tensor  # (n_items + n_points, n_classes) of this round
    points: torch.Tensor  # (n_points, embedding_size)
    figures: dict[str, float]  # for the history

    def __init__(
        self, context: TrainingContext, network: EmbeddingNetwork, decoder: Decoder | None, *, taught: bool
    ) -> None:
        self.method, self.context, self.network, self.decoder = context.method, context, network, decoder
        self.refit = None if decoder is None else context.adam(decoder)
        self.compares_rows = any(isinstance(module, _BATCH_NORMS) for module in network.modules())
        self.items = context.batches().items
        self.belief = Belief(context.annotations, context.data.gold, self.items, taught=taught).to(context.device)
        method = self.method
        self.size, self.must_agree = method.size, method.candidates == "agree"
        self.recipe = Recipe(method.delta, method.delta_noise, method.n_neighbors, method.synthetic_labels)
        self.noise = ShrunkConfusions(method.smoothing, method.shrinkage)
        self.by_vote = np.bincount(self.belief.answer(self.items), minlength=context.n_classes)

    def __iter__(self) -> Iterator[Batch]:
        context, before = self.context, self.belief.answer(self.items)
        embedding, log_proba = self.network.look(context.data.rows)
        made = self.synthesise(context.annotations, embedding, log_proba)
        labels = augment(context.annotations, made)
        posterior = self.infer(labels, log_proba).posterior
        target = posterior if self.method.soft else hard(posterior)
        items = self._to_learn(labels)
        self._keep_first(made, log_proba)
        self._set_lessons(target, made)
        self._believe(posterior, log_shares(target[items]))
        self._tell(before, posterior, made)
        yield from AnnotationBatches(labels, self.method.batch_size, context.rng, items=items, device=context.device)

    def _to_learn(self, labels: Annotations) -> npt.NDArray[np.intp]:
        """The real items of which anything is known, and the synthetic ones that somebody labels."""
        n_items = self.context.annotations.n_items
        return np.append(self.items, n_items + np.flatnonzero(labels.n_labels[n_items:]))

    def _keep_first(self, made: Synthetic, log_proba: torch.Tensor) -> None:
        """In the first round, what all labels say by now, those held out among them."""
        if self.belief.is_new:
            labels = self.context.data.annotations
            self.belief.keep(first=self.infer(augment(labels, made), log_proba).posterior[: labels.n_items])

    def _set_lessons(self, target: Array, made: Synthetic) -> None:
        """What `lesson` hands out in this round."""
        self.target = torch.from_numpy(target).float().to(self.context.device)
        self.points = torch.from_numpy(made.points).to(self.context.device)

    def _believe(self, posterior: Array, log_learnt: Array) -> None:
        """Keep what was inferred of the real items, and the shares of the classes that the network learns from."""
        annotations = self.context.annotations
        posterior = posterior[: annotations.n_items]
        log_confusion = np.log(worker_confusions(annotations, posterior))
        self.belief.keep(
            posterior=posterior,
            log_column=log_confusion.transpose(0, 2, 1),
            log_real=log_shares(posterior[self.items]),
            log_learnt=log_learnt,
        )

    def _tell(self, before: npt.NDArray[np.int32], posterior: Array, made: Synthetic) -> None:
        """Figures of this round for the history."""
        prior = zip(self.context.annotations.classes.tolist(), posterior[self.items].mean(axis=0).tolist())
        self.figures = {
            "agreement": float(np.mean(before == self.belief.answer(self.items))),
            "n_synthetic": float(len(made.points)),
            **{f"prior {name}": share for name, share in prior},
        }

    def lesson(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """What the network says of a batch of real and synthetic items, and what it should say."""
        context, n_items = self.context, self.context.annotations.n_items
        real, made = batch.item[batch.item < n_items], batch.item[batch.item >= n_items]
        if self.decoder is None and len(real) == 1 and len(made) and self.compares_rows:
            real = real[:0]  # batch norm cannot read a row alone
        x = as_tensor(context.data.rows, real, context.device)
        return self.network.read(x, self.points[made - n_items], self.decoder), self.target[np.append(real, made)]

    def synthesise(self, annotations: Annotations, embedding: torch.Tensor, log_proba: torch.Tensor) -> Synthetic:
        """Synthetic items of the classes that are small by the present belief."""
        method, context, points = self.method, self.context, embedding.numpy()
        if not method.synthesis:
            # Nobody asks for this draw, but without it seeds would mean something else on more items than that.
            some(int(np.count_nonzero(annotations.n_labels)), MOST_CANDIDATES, context.rng)
            return nothing_made(points, context.n_classes)
        said = log_proba.argmax(1).numpy() if self.must_agree else None
        candidates, n_wanted = plan(self.size, self.items, self.belief.answer(self.items), self.by_vote, said)
        if n_wanted.any():
            self._refit(embedding)
        certainty = certainty_of(method, annotations, context.data.gold)
        return self.recipe.make(annotations, points, certainty, candidates, n_wanted, context.rng)

    def _refit(self, embedding: torch.Tensor) -> None:
        """Bring the decoder up to date, if it is to be."""
        method, context = self.method, self.context
        if method.decoder != "refit" or self.decoder is None or self.refit is None:
            return
        for _ in range(_REFIT_EPOCHS):
            order = context.rng.permutation(some(len(embedding), MOST_CANDIDATES, context.rng))
            learn_again(self.decoder, self.refit, embedding, context.data.rows, order, method.batch_size)

    def infer(self, labels: Annotations, log_proba: torch.Tensor | None) -> Truth:
        """Dawid-Skene on real and synthetic labels, and on what the network says of the real items."""
        method, gold, prior, evidence = self.method, self.context.data.gold, self.method.prior, None
        n_more = labels.n_items - self.context.annotations.n_items
        if gold is not None:
            gold = np.append(gold, np.full(n_more, -1, gold.dtype))
        if log_proba is not None and method.features_in_inference and self.belief.has_taught:
            seen = (log_proba + self.shift().cpu()).log_softmax(1).numpy()
            evidence, prior = np.concatenate([seen, np.zeros((n_more, labels.n_classes))]), "uniform"
        return infer_truth(labels, gold, self.noise, prior, hard=method.em == "hard", evidence=evidence)

    def shift(self) -> torch.Tensor:
        """From what the network says to what it would say of a world with classes as frequent as among the items."""
        return self.belief.log_real - (0.0 if self.method.balanced_loss else self.belief.log_learnt)

    def learned(self, history: History) -> FitResult:
        """What all labels say at the end; of an item without any, what the network says where it is from."""
        labels, gold = self.context.data.annotations, self.context.data.gold
        embedding, log_proba = self.network.look(self.context.data.rows)
        made = self.synthesise(labels, embedding, log_proba)
        truth, original = self.infer(augment(labels, made), log_proba), self.infer(labels, None)
        posterior = truth.posterior[: labels.n_items]
        silent = (labels.n_labels == 0) & (True if gold is None else gold < 0)
        shift = (self.shift() if self.belief.has_taught else torch.zeros(labels.n_classes)).cpu().double()
        posterior[silent] = (log_proba + shift).softmax(1).numpy()[silent]
        results = {
            "confusion_": truth.confusion,
            "class_prior_": posterior[~silent].mean(axis=0),
            "posterior_original_": original.posterior,
            "posterior_first_": posterior.copy() if self.belief.is_new else self.belief.first.cpu().numpy(),
            "certainty_": certainty_of(self.method, labels, gold),
            "log_shift_": shift.numpy(),
            "n_synthetic_": made.n_of_class,
        }
        return FitResult(self.network, history, posterior, results)


def certainty_of(method: Any, annotations: Annotations, gold: Gold) -> Array:
    """(n_items,) the certainty of each item, by the parameters of an ICED."""
    return label_certainty(annotations, gold, floor=method.certainty_floor, smoothing=method.certainty_smoothing)
