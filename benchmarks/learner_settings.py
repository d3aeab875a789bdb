"""The methods with features that are measured, and the five settings of which held-out annotations select one.

All networks are `mlp` with 128 hidden units, Adam, at most 50 epochs, and stop by held-out labels: their defaults. Each
method has its defaults and four other settings, no more and no fewer than any other.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sklearn.linear_model import LogisticRegression

from manyhands import registry

Settings = dict[str, Any]
FASTER: Settings = {"learning_rate": 3e-3}
LONGER: Settings = {"max_epochs": 200}
INITIALISED: Settings = {"init": "dawid-skene"}  # noise layers start at confusion matrices of an aggregator
_STRENGTHS = tuple({"classifier": LogisticRegression(C=C, max_iter=1000)} for C in (1.0, 0.1, 0.01, 0.001, 0.0001))
_NETWORKS: tuple[Settings, ...] = (FASTER, LONGER, {"dropout": 0.2}, {"hidden": (256,)})
_EMBEDDINGS: tuple[Settings, ...] = (FASTER, LONGER, {"labels": "one-coin"}, {"dropout": 0.5})


@dataclass(frozen=True)
class Candidate:
    """A method under the name that papers use, and its settings."""

    method: str
    settings: tuple[Settings, ...]
    always: Settings

    def make(self, choice: int, seed: int) -> Any:
        """The method with one of its settings; a learner of representations is followed by logistic regression."""
        parameters = self.always | self.settings[choice]
        model = registry.create(self.method, **parameters)
        if "random_state" in model.get_params(deep=False):
            model.set_params(random_state=seed)
        if self.method in registry.names("classifier"):
            return model
        from sklearn.pipeline import make_pipeline

        labels = parameters.get("labels", "majority-vote")
        second = registry.create("two-stage", aggregator=labels, classifier="logistic-regression", random_state=seed)
        return make_pipeline(model, second)

    def text(self, choice: int) -> str:
        """A setting as text."""
        changed = {name: getattr(value, "C", value) for name, value in self.settings[choice].items()}
        return ", ".join(f"{'C' if name == 'classifier' else name}={v}" for name, v in changed.items()) or "defaults"


def _linear(aggregator: str, **always: Any) -> Candidate:
    return Candidate("two-stage", _STRENGTHS, {"aggregator": aggregator} | always)


def _two_stage(aggregator: str, **always: Any) -> Candidate:
    return Candidate("two-stage", ({}, *_NETWORKS), {"aggregator": aggregator} | always)


def _of(method: str, *settings: Settings, **always: Any) -> Candidate:
    return Candidate(method, ({}, *settings), always)


CANDIDATES: dict[str, Candidate] = {
    "MV+LR": _linear("majority-vote"),
    "SoftProb": _linear("majority-vote", soft=True),
    "EM+LR": _linear("one-coin"),
    "GLAD+LR": _linear("glad"),
    "D&S+LR": _linear("dawid-skene"),
    "MV+DNN": _two_stage("majority-vote"),
    "D&S+DNN": _two_stage("dawid-skene"),
    "soft D&S+DNN": _two_stage("dawid-skene", soft=True),
    "soft default aggregator+DNN": _two_stage(registry.DEFAULT, soft=True),
    "crowd-layer": _of("crowd-layer", FASTER, LONGER, {"form": "vw-b"}, INITIALISED),
    "spee-lfc": _of("spee-lfc", FASTER, LONGER, {"diagonal": 0.9}, INITIALISED),
    "trace-reg": _of("trace-reg", FASTER, LONGER, {"penalty": 0.1}, INITIALISED),
    "conal": _of("conal", FASTER, LONGER, {"unit_items": False}, INITIALISED),
    "aggnet": _of("aggnet", FASTER, LONGER, {"smoothing": 0.01}, {"smoothing": 1.0}),
    "mbem": _of("mbem", FASTER, LONGER, {"rounds": 5}, {"smoothing": 1.0}),
    "max-mig": _of("max-mig", FASTER, LONGER, {"prior": "uniform"}, {"aggregator_learning_rate": 1e-3}),
    "doctor-net": _of("doctor-net", FASTER, LONGER, {"weights": "uniform"}, {"weight_learning_rate": 0.1}),
    "raykar": _of("raykar", {"ridge": 1.0}, {"ridge": 10.0}, {"ridge": 100.0}, {"standardise": False}),
    "cpc": _of("cpc", {"eta": 0.1}, {"eta": 10.0}, {"eta": 100.0}, {"edges": "target"}),
    "contrastive": _of("contrastive", *_EMBEDDINGS),
    "triplet": _of("triplet", *_EMBEDDINGS),
    "triplet, semi-hard": _of("triplet", *_EMBEDDINGS, selection="semi-hard"),
    "lifted": _of("lifted", *_EMBEDDINGS),
    "center": _of("center", *_EMBEDDINGS),
    "rll": _of("rll", *_EMBEDDINGS),
}
