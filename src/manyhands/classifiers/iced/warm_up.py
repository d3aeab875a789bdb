"""Warm-up (section 2.4 of the paper): the network learns the majority vote, from less to more certain items."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn

from manyhands.classifiers.iced.certainty import certainty_by
from manyhands.classifiers.iced.certainty_groups import N_GROUPS, certainty_groups, stratified_groups
from manyhands.classifiers.iced.options import Certainty, WarmUp
from manyhands.classifiers.iced.posterior_state import log_class_shares, one_hot
from manyhands.classifiers.training_context import TrainingContext
from manyhands.em.classifier_em import initial_posterior
from manyhands.nn.batches import Batch
from manyhands.nn.losses import soft_cross_entropy
from manyhands.nn.train import History, descend


class WarmUpTraining:
    """Training of the network on the majority vote, group after group.

    Parameters
    ----------
    context : TrainingContext
        Data, options, generator.
    network : torch.nn.Module
        From features to logits.
    optimizer : torch.optim.Optimizer
        The optimizer of the network, which the later rounds use too.
    options : WarmUp or None
        Which items, and how long; None for no warm-up.
    certainty : Certainty
        Options of the label certainty.
    balanced_loss : bool
        Whether the log class shares are added to the logits in the loss.
    """

    def __init__(
        self,
        context: TrainingContext,
        network: nn.Module,
        optimizer: torch.optim.Optimizer,
        options: WarmUp | None,
        certainty: Certainty,
        *,
        balanced_loss: bool,
    ) -> None:
        self.context, self.network, self.optimizer = context, network, optimizer
        self.options, self.certainty, self.balanced_loss = options, certainty, balanced_loss
        self.items = context.batches().items
        vote = one_hot(initial_posterior(context.annotations, context.data.gold))
        self.target = torch.from_numpy(vote).float().to(context.device)
        self.log_share = torch.from_numpy(log_class_shares(vote[self.items])).float().to(context.device)

    def train(self) -> History:
        """Train on one stage after the other.

        Returns
        -------
        list of dict
            The history, with the loss "warm_up" and the number of items "warm_up_items"; empty without a warm-up.
        """
        if self.options is None:
            return []
        history: History = []
        modules, optimizers = {"network": self.network}, {"adam": self.optimizer}
        epochs = self.options.epochs * (1 if self.options.kind == "grouped" else N_GROUPS - 1)
        for number, items in enumerate(self.stages()):
            batches, name = self.context.batches(items, self.options.batch_size), f"warm-up-{number}"
            found = self.context.train(self.step, modules, optimizers, batches=batches, max_epochs=epochs, name=name)
            history += [epoch | {"warm_up_items": float(len(items))} for epoch in found]
        return history

    def stages(self) -> list[npt.NDArray[np.intp]]:
        """Return the items of each stage; a stage of a single item is left out."""
        items, group = self.items, self._groups()[self.items]
        stages = {
            "all": [items],
            "top": [items[group > 0]],
            "grouped": [items[group == number] for number in range(1, N_GROUPS)],
        }
        return [] if self.options is None else [stage for stage in stages[self.options.kind] if len(stage) > 1]

    def _groups(self) -> npt.NDArray[np.int64]:
        """Group of each item by the certainty of its votes; gold is in the last group, and forms no group itself."""
        annotations, gold = self.context.annotations, self.context.data.gold
        group, voted = np.full(annotations.n_items, N_GROUPS - 1), annotations.n_labels > 0
        certainty = certainty_by(self.certainty, annotations)[voted]
        if self.options is not None and self.options.stratified:
            vote = initial_posterior(annotations, None)[voted].argmax(axis=1)
            group[voted] = stratified_groups(certainty, vote, self.context.rng)
        else:
            group[voted] = certainty_groups(certainty)
        return group if gold is None else np.where(gold >= 0, N_GROUPS - 1, group)

    def step(self, batch: Batch) -> dict[str, torch.Tensor]:
        """Take one optimisation step on a mini-batch.

        Parameters
        ----------
        batch : Batch
            Items and their labels.

        Returns
        -------
        dict of str to torch.Tensor
            The loss "warm_up": cross-entropy to the majority vote.
        """
        logits = self.network(self.context.x(batch)) + (self.log_share if self.balanced_loss else 0.0)
        return {"warm_up": descend(self.optimizer, soft_cross_entropy(logits, self.target[batch.item]))}
