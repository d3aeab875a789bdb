"""A representation learner with logistic regression on its embedding; held-out items choose C and the setting.

It gives other representation learners what `NeuCrowd` does for itself, so that tables compare losses rather than
searches: the same held-out items stop the training, choose C among decades, and choose one of a few settings.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, ClassVar, NamedTuple

import numpy as np
from torch import nn

from manyhands.annotations import Annotations
from manyhands.classifiers.base import CrowdClassifier
from manyhands.classifiers.network import context_for, train_network
from manyhands.classifiers.training_context import TrainingContext
from manyhands.classifiers.training_data import FitResult, TrainingData
from manyhands.nn.backbones import Ensemble
from manyhands.representation.base import RepresentationLearner
from manyhands.representation.neucrowd.embedding_classifier import fit_transform, transform
from manyhands.representation.neucrowd.ensemble import fit_heads, item_folds
from manyhands.representation.neucrowd.linear_head import ChosenC, EmbeddingClassifier, HeadInput
from manyhands.representation.training_set import TrainingSet
from manyhands.validation import Constraint, Number


class HeldoutRegression(CrowdClassifier):
    """Embedding by a representation learner, and logistic regression with C chosen on held-out items.

    It is used by the tables of `manyhands reproduce` and is not a method of the registry, so it cannot be saved.

    Parameters
    ----------
    learner : RepresentationLearner
        The learner, with its parameters and its `random_state`.
    settings : sequence of mapping of str to object, default=({},)
        Changes of the learner's parameters to choose from. Each is trained; the one whose regression has the highest
        log-likelihood on held-out items is kept. Without held-out items the first is used.
    heldout_share : float, default=0.2
        Approximate share of the items whose labels are held out (one of a whole number of equal parts).

    Attributes
    ----------
    C_ : float
        C of the logistic regression, on inputs of total variance 1.
    setting_ : mapping of str to object
        The setting that was chosen.
    """

    _constraints: ClassVar[dict[str, Constraint]] = {"heldout_share": Number(least=0, most=0.5)}

    def __init__(
        self,
        learner: RepresentationLearner,
        settings: Sequence[Mapping[str, Any]] = ({},),
        heldout_share: float = 0.2,
    ) -> None:
        self.learner = learner
        self.settings = settings
        self.heldout_share = heldout_share

    transform = transform
    fit_transform = fit_transform

    def _trains_network(self) -> bool:
        return False  # the learner does

    def _check_parameters(self) -> None:
        super()._check_parameters()
        self.learner._check_parameters()

    def _learn(self, context: TrainingContext) -> FitResult:
        return train_network(_SearchedLearner(self), context.data)


class _Fit(NamedTuple):
    """The network of one setting, its regression's C and score, and the learner's result."""

    network: EmbeddingClassifier
    chosen: ChosenC
    result: FitResult


class _SearchedLearner:
    """The hooks of a network method that trains one learner per setting."""

    def __init__(self, method: HeldoutRegression) -> None:
        self.method, self.learner = method, method.learner

    def __getattr__(self, name: str) -> Any:
        return getattr(self.learner, name)  # the options of the network are the learner's

    def get_params(self, deep: bool = True) -> dict[str, Any]:
        return self.learner.get_params(deep)

    def _new_module(self, row_shape: tuple[int, ...], n_classes: int, n_workers: int) -> nn.Module:
        return self.learner._new_module(row_shape, n_classes, n_workers)

    def _uses_heldout(self) -> bool:
        return True

    def _hold_out(
        self, data: TrainingData, share: float, rng: np.random.Generator
    ) -> tuple[Annotations, Annotations | None]:
        """Hold out a share of the items, as NeuCrowd does; the learner's own share of labels is not used."""
        share = self.method.heldout_share
        return item_folds(data, max(round(1 / share), 2), rng)[0] if share else (data.annotations, None)

    def _learn(self, context: TrainingContext) -> FitResult:
        settings = self.method.settings if context.heldout is not None else self.method.settings[:1]
        fits = [_fit(self._changed(setting), context, f"setting {n} ") for n, setting in enumerate(settings)]
        best = int(np.argmax([fit.chosen.score for fit in fits]))
        network, chosen, result = fits[best]
        results = {**result.results, "C_": chosen.C, "setting_": dict(settings[best])}
        return replace(result, module=Ensemble([network]), results=results)

    def _changed(self, setting: Mapping[str, Any]) -> RepresentationLearner:
        """A new learner with these parameters changed."""
        return type(self.learner)(**self.learner.get_params(deep=False)).set_params(**setting)


def _fit(learner: RepresentationLearner, context: TrainingContext, stage: str) -> _Fit:
    """Train a learner, and fit the regression on its embedding."""
    own = context_for(learner, context, stage)
    result = learner._learn(own)
    labels: Any = learner.labels  # type: ignore[attr-defined]
    whole = TrainingSet(replace(own, annotations=own.data.annotations, heldout=None), labels)
    network = EmbeddingClassifier(HeadInput(result.module, 0), learner.embedding_size, own.n_classes)
    return _Fit(network, fit_heads([network], [TrainingSet(own, labels)], whole), result)
