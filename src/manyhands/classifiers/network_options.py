"""The parameters that all network methods share: architecture, optimizer, early stopping, device, seed."""

from __future__ import annotations

from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

from manyhands.randomness import Seed


@dataclass(frozen=True)
class NetworkOptions:
    """The parameters that all network methods share; `NETWORK_CONSTRAINTS` has their legal values.

    Attributes
    ----------
    backbone : {"mlp", "convnet"} or callable
        Network from features to logits.
    hidden : tuple of int
        Sizes of the hidden layers.
    dropout : float
        Dropout rate of the hidden layers.
    batch_norm : bool
        Batch normalisation of the hidden layers.
    learning_rate : float
        Step size of Adam.
    weight_decay : float
        L2 penalty of Adam on all weights.
    batch_size : int
        Items per mini-batch.
    max_epochs : int
        Maximal number of epochs.
    patience : int or None
        Early stopping: epochs without a higher held-out log-likelihood before training stops.
    validation : float
        Share of the labels held out for early stopping.
    device : str
        Device of torch.
    checkpoint : str, Path or None
        Folder of checkpoints.
    random_state : int, Generator or None
        Seed.
    """

    backbone: Any = "mlp"
    hidden: tuple[int, ...] = (128,)
    dropout: float = 0.5
    batch_norm: bool = False
    learning_rate: float = 1e-3
    weight_decay: float = 0.0
    batch_size: int = 64
    max_epochs: int = 50
    patience: int | None = 10
    validation: float = 0.1
    device: str = "cpu"
    checkpoint: str | Path | None = None
    random_state: Seed = None

    @classmethod
    def of(cls, method: Any) -> NetworkOptions:
        """Read the options from the parameters of a network method.

        Parameters
        ----------
        method : BaseEstimator
            An estimator that has all these parameters.

        Returns
        -------
        NetworkOptions
        """
        return cls(**{option.name: getattr(method, option.name) for option in fields(cls)})
