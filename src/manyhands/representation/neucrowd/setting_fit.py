"""One setting of NeuCrowd: the embeddings are trained, and the logistic regression is fitted on them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult
from manyhands.representation.label_confidence import label_confidence
from manyhands.representation.neucrowd.ensemble import fit_heads, member_training_sets
from manyhands.representation.neucrowd.member_training import (
    EmbeddingOptions,
    MemberTraining,
    safe_shares,
    train_members,
)
from manyhands.representation.neucrowd.options import LogisticHead, SafetyAwareSampling
from manyhands.representation.neucrowd.sampler import TupletSampler
from manyhands.representation.training_set import TrainingSet


@dataclass(frozen=True)
class Setting:
    """Parameters of NeuCrowd beside those of its networks.

    Attributes
    ----------
    labels : str or Aggregator
        The aggregator that gives items their classes.
    sizes : sequence of int
        Sizes of the members' embeddings.
    options : EmbeddingOptions
        Parameters of the embedding.
    head : LogisticHead
        Options of the logistic regression.
    new_sampler : callable (size) -> TupletSampler, or None
        Returns an untrained sampling network; None trains without one.
    holds_out : bool
        Whether each of several members holds out items of its own.
    """

    labels: Any
    sizes: Sequence[int]
    options: EmbeddingOptions
    head: LogisticHead
    new_sampler: Callable[[int], TupletSampler] | None
    holds_out: bool


class SettingFit(NamedTuple):
    """What a setting gave.

    Attributes
    ----------
    result : FitResult
        Networks, history and fitted attributes.
    score : float
        Mean log-likelihood of the held-out items' classes by the logistic regression.
    """

    result: FitResult
    score: float


def fit_setting(setting: Setting, context: TrainingContext) -> SettingFit:
    """Train the embeddings of one setting, and fit the logistic regression on them.

    Parameters
    ----------
    setting : Setting
        The parameters.
    context : TrainingContext
        Data, held-out labels of a single member, generator and options of the networks.

    Returns
    -------
    SettingFit
    """
    module: Any = context.network()  # a mean of `EmbeddingClassifier`
    embedders = [network.inputs.embedder for network in module.networks]
    training_sets = member_training_sets(context, setting.labels, len(setting.sizes), holds_out=setting.holds_out)
    members = [
        MemberTraining(setting.options, training_set, embedder, size, setting.new_sampler)
        for training_set, embedder, size in zip(training_sets, embedders, setting.sizes)
    ]
    history = train_members(members)
    whole = TrainingSet(replace(context, annotations=context.data.annotations, heldout=None), setting.labels)
    confidence = label_confidence(whole, setting.options.confidence.kind, shrink=setting.options.confidence.shrink)
    safety, head = setting.options.safety or SafetyAwareSampling(), setting.head
    safe = safe_shares(safety, whole, embedders, confidence)
    chosen = fit_heads(module.networks, training_sets, whole, soft_targets=head.soft_targets, grid=head.grid)
    results = {
        "aggregator_": whole.aggregator,
        "confidence_": confidence,
        "safe_": safe,
        "C_": chosen.C,
        "samplers_": [member.sampler for member in members if member.sampler is not None],
    }
    fitted = FitResult(module, history, whole.aggregator.posterior_, results, whole.aggregator.notes_)
    return SettingFit(fitted, chosen.score)
