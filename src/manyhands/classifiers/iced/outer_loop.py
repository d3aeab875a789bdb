"""Outer loop (section 2.5 of the paper): before each epoch, synthesise items and infer the true labels."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.iced.autoencoder import Decoder, EmbeddingNetwork, refit_decoder
from manyhands.classifiers.iced.certainty import certainty_by
from manyhands.classifiers.iced.options import Certainty, Synthesis, TruthInference
from manyhands.classifiers.iced.posterior_state import PosteriorState, log_class_shares, one_hot
from manyhands.classifiers.iced.synthesis import (
    MAX_CANDIDATES,
    SyntheticItems,
    augment,
    no_synthetic_items,
    random_subset,
    synthesis_plan,
    synthesise,
)
from manyhands.classifiers.iced.truth_inference import ShrunkConfusions, TruthEstimate, infer_true_labels
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.em.kernels import Array
from manyhands.heldout import worker_confusions
from manyhands.nn.batches import AnnotationBatches, Batch
from manyhands.nn.inference import as_tensor
from manyhands.nn.train import History

_REFIT_EPOCHS = 3  # of the decoder in a round
_BATCH_NORMS = (nn.BatchNorm1d, nn.BatchNorm2d, nn.BatchNorm3d, nn.SyncBatchNorm)


@dataclass(frozen=True)
class LoopOptions:
    """The parameters of ICED that the outer loop uses.

    Attributes
    ----------
    synthesis : Synthesis or None
        Synthetic items; None for none.
    certainty : Certainty
        Label certainty.
    inference : TruthInference
        Truth inference.
    soft_targets : bool
        Whether the network learns the posterior rather than its most probable class.
    balanced_loss : bool
        Whether the log class shares are added to the logits in the loss.
    """

    synthesis: Synthesis | None
    certainty: Certainty
    inference: TruthInference
    soft_targets: bool
    balanced_loss: bool


class OuterLoop:
    """Mini-batches of each epoch; before them, items are synthesised and the true labels are inferred.

    Parameters
    ----------
    context : TrainingContext
        Data, options, generator.
    network : EmbeddingNetwork
        The classifier.
    decoder : Decoder or None
        From embeddings to rows of X.
    options : LoopOptions
        Parameters of the method.
    warmed_up : bool
        Whether the network was trained on the majority vote.

    Attributes
    ----------
    state : PosteriorState
        What was inferred last.
    target : torch.Tensor of shape (n_items + n_points, n_classes)
        Targets of real and synthetic items in this round.
    points : torch.Tensor of shape (n_points, embedding_size)
        Synthetic embeddings of this round.
    metrics : dict of str to float
        Figures of this round for the history.
    """

    target: torch.Tensor
    points: torch.Tensor
    metrics: dict[str, float]

    def __init__(
        self,
        context: TrainingContext,
        network: EmbeddingNetwork,
        decoder: Decoder | None,
        options: LoopOptions,
        *,
        warmed_up: bool,
    ) -> None:
        self.context, self.network, self.decoder, self.options = context, network, decoder, options
        self.decoder_optimizer = None if decoder is None else context.adam(decoder)
        self.has_batch_norm = any(isinstance(module, _BATCH_NORMS) for module in network.modules())
        self.items = context.batches().items
        state = PosteriorState(context.annotations, context.data.gold, self.items, network_trained=warmed_up)
        self.state = state.to(context.device)
        self.noise = ShrunkConfusions(options.inference.smoothing, options.inference.shrinkage)
        if options.synthesis is not None and options.synthesis.first_labels == "inferred":
            self.state.update(posterior=self.infer(context.annotations, None).posterior)
        self.n_at_first = np.bincount(self.state.most_probable(self.items), minlength=context.n_classes)

    def __iter__(self) -> Iterator[Batch]:
        """Run one round, and yield the mini-batches of its epoch."""
        context, before = self.context, self.state.most_probable(self.items)
        embedding, log_proba = self.network.embed_and_classify(context.data.rows)
        made = self.synthesise(context.annotations, embedding, log_proba)
        labels = augment(context.annotations, made)
        posterior = self.infer(labels, log_proba).posterior
        target = posterior if self.options.soft_targets else one_hot(posterior)
        items = self._training_items(labels)
        self._keep_first_posterior(made, log_proba)
        self.target = torch.from_numpy(target).float().to(context.device)
        self.points = torch.from_numpy(made.points).to(context.device)
        self._update_state(posterior, log_class_shares(target[items]))
        self.state.n_rounds += 1
        self._record_metrics(before, posterior, made)
        batch_size = context.options.batch_size
        yield from AnnotationBatches(labels, batch_size, context.rng, items=items, device=context.device)

    def _training_items(self, labels: Annotations) -> npt.NDArray[np.intp]:
        """Real items with a label or gold, and synthetic items with a label."""
        n_items = self.context.annotations.n_items
        return np.append(self.items, n_items + np.flatnonzero(labels.n_labels[n_items:]))

    def _keep_first_posterior(self, made: SyntheticItems, log_proba: torch.Tensor) -> None:
        """In the first round, keep the posterior given all labels, held-out ones included."""
        if self.state.before_first_round:
            labels = self.context.data.annotations
            posterior = self.infer(augment(labels, made), log_proba).posterior[: labels.n_items]
            self.state.update(first_posterior=posterior)

    def _update_state(self, posterior: Array, log_training_prior: Array) -> None:
        """Keep the inference on the real items, and the class shares of the network's training set."""
        annotations = self.context.annotations
        posterior = posterior[: annotations.n_items]
        log_confusion = np.log(worker_confusions(annotations, posterior))
        self.state.update(
            posterior=posterior,
            log_column=log_confusion.transpose(0, 2, 1),
            log_prior=log_class_shares(posterior[self.items]),
            log_training_prior=log_training_prior,
        )

    def _record_metrics(self, before: npt.NDArray[np.int32], posterior: Array, made: SyntheticItems) -> None:
        """Compute the figures of this round for the history."""
        prior = zip(self.context.annotations.classes.tolist(), posterior[self.items].mean(axis=0).tolist())
        self.metrics = {
            "round": float(self.state.n_rounds),
            "agreement": float(np.mean(before == self.state.most_probable(self.items))),
            "n_synthetic": float(len(made.points)),
            **{f"prior {name}": share for name, share in prior},
        }

    def logits_and_targets(self, batch: Batch) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the logits of a mini-batch of real and synthetic items, and their targets.

        Parameters
        ----------
        batch : Batch
            Items below n_items are real, the others synthetic.

        Returns
        -------
        logits : torch.Tensor of shape (n_rows, n_classes)
        target : torch.Tensor of shape (n_rows, n_classes)
        """
        context, n_items = self.context, self.context.annotations.n_items
        real, made = batch.item[batch.item < n_items], batch.item[batch.item >= n_items]
        if self.decoder is None and len(real) == 1 and len(made) and self.has_batch_norm:
            real = real[:0]  # batch normalisation needs more than one row
        x = as_tensor(context.data.rows, real, context.device)
        logits = self.network.logits_of_both(x, self.points[made - n_items], self.decoder)
        return logits, self.target[np.append(real, made)]

    def synthesise(self, annotations: Annotations, embedding: torch.Tensor, log_proba: torch.Tensor) -> SyntheticItems:
        """Generate synthetic items of the classes that are small by the labels inferred last.

        Parameters
        ----------
        annotations : Annotations
            Labels of the real items.
        embedding : torch.Tensor of shape (n_items, embedding_size)
            Their embeddings.
        log_proba : torch.Tensor of shape (n_items, n_classes)
            The network's class log-probabilities.

        Returns
        -------
        SyntheticItems
        """
        options, context, points = self.options.synthesis, self.context, embedding.numpy()
        if options is None:
            # The draw is not used; without it, seeds would give other results on more than MAX_CANDIDATES items.
            random_subset(int(np.count_nonzero(annotations.n_labels)), MAX_CANDIDATES, context.rng)
            return no_synthetic_items(points, context.n_classes)
        predicted = log_proba.argmax(1).numpy() if options.candidates == "agree" else None
        inferred = self.state.most_probable(self.items)
        candidates, n_wanted = synthesis_plan(options.size, self.items, inferred, self.n_at_first, predicted)
        if n_wanted.any() and options.decoder == "refit":
            self._refit_decoder(embedding)
        certainty = certainty_by(self.options.certainty, annotations, context.data.gold)
        return synthesise(options, annotations, points, certainty, candidates, n_wanted, context.rng)

    def _refit_decoder(self, embedding: torch.Tensor) -> None:
        """Train the decoder for a few epochs on the present embeddings."""
        context = self.context
        if self.decoder is None or self.decoder_optimizer is None:
            return
        for _ in range(_REFIT_EPOCHS):
            order = context.rng.permutation(random_subset(len(embedding), MAX_CANDIDATES, context.rng))
            rows, batch_size = context.data.rows, context.options.batch_size
            refit_decoder(self.decoder, self.decoder_optimizer, embedding, rows, order, batch_size)

    def infer(self, labels: Annotations, log_proba: torch.Tensor | None) -> TruthEstimate:
        """Infer the true labels from real and synthetic labels, and from the network where it is used.

        Parameters
        ----------
        labels : Annotations
            Labels of real items, followed by those of synthetic ones.
        log_proba : torch.Tensor of shape (n_items, n_classes) or None
            The network's class log-probabilities of the real items; None to use labels alone.

        Returns
        -------
        TruthEstimate
        """
        options, gold, log_class_proba = self.options.inference, self.context.data.gold, None
        prior = options.prior
        n_synthetic = labels.n_items - self.context.annotations.n_items
        if gold is not None:
            gold = np.append(gold, np.full(n_synthetic, -1, gold.dtype))
        if log_proba is not None and options.use_features and self.state.network_trained:
            real = (log_proba + self.log_shift().cpu()).log_softmax(1).numpy()
            log_class_proba = np.concatenate([real, np.zeros((n_synthetic, labels.n_classes))])
            prior = "uniform"
        hard = options.em == "hard"
        return infer_true_labels(labels, gold, self.noise, prior, hard=hard, log_class_proba=log_class_proba)

    def log_shift(self) -> torch.Tensor:
        """Return what is added to the network's log-probabilities to obtain those under the items' class shares.

        A network with a balanced loss assumes a uniform class prior, another one the class shares of its training set.
        """
        return self.state.log_prior - (0.0 if self.options.balanced_loss else self.state.log_training_prior)

    def result(self, history: History) -> FitResult:
        """Run the last inference, with all labels, and return what was learned.

        Parameters
        ----------
        history : list of dict
            History of all trainings.

        Returns
        -------
        FitResult
            The posterior of an item without label and gold is the network's prediction under the items' class shares.
        """
        labels, gold = self.context.data.annotations, self.context.data.gold
        embedding, log_proba = self.network.embed_and_classify(self.context.data.rows)
        made = self.synthesise(labels, embedding, log_proba)
        truth, original = self.infer(augment(labels, made), log_proba), self.infer(labels, None)
        posterior = truth.posterior[: labels.n_items]
        unlabelled = (labels.n_labels == 0) & (True if gold is None else gold < 0)
        shift = (self.log_shift() if self.state.network_trained else torch.zeros(labels.n_classes)).cpu().double()
        posterior[unlabelled] = (log_proba + shift).softmax(1).numpy()[unlabelled]
        is_first = self.state.before_first_round
        results = {
            "confusion_": truth.confusion,
            "class_prior_": posterior[~unlabelled].mean(axis=0),
            "posterior_original_": original.posterior,
            "posterior_first_": posterior.copy() if is_first else self.state.first_posterior.cpu().numpy(),
            "certainty_": certainty_by(self.options.certainty, labels, gold),
            "log_shift_": shift.numpy(),
            "n_synthetic_": made.n_of_class,
        }
        return FitResult(self.network, history, posterior, results)
