"""The networks of NeuCrowd: from features to an embedding, or to the input of the sampling network."""

from __future__ import annotations

from torch import nn

from manyhands.classifiers.network_options import NetworkOptions
from manyhands.nn.backbones import build

ACTIVATIONS: dict[str, type[nn.Module]] = {"tanh": nn.Tanh, "sigmoid": nn.Sigmoid, "relu": nn.ReLU}


def new_network(
    options: NetworkOptions, activation: str, row_shape: tuple[int, ...], size: int, *, dropout: float
) -> nn.Module:
    """Return a new network from features to vectors.

    Parameters
    ----------
    options : NetworkOptions
        Backbone, hidden layers and batch normalisation.
    activation : {"tanh", "sigmoid", "relu"}
        Activation of the hidden layers.
    row_shape : tuple of int
        Shape of one row of X.
    size : int
        Length of the output.
    dropout : float
        Dropout rate of the hidden layers.

    Returns
    -------
    torch.nn.Module
    """
    return build(
        options.backbone,
        row_shape,
        size,
        hidden=options.hidden,
        dropout=dropout,
        batch_norm=options.batch_norm,
        activation=ACTIVATIONS[activation],
    )


def new_embedder(options: NetworkOptions, activation: str, row_shape: tuple[int, ...], size: int) -> nn.Module:
    """Return a new network from features to an embedding.

    Parameters
    ----------
    options : NetworkOptions
        Backbone, hidden layers, dropout and batch normalisation.
    activation : {"tanh", "sigmoid", "relu"}
        Activation of the hidden layers; "tanh" and "sigmoid" also bound the embedding, followed by dropout.
    row_shape : tuple of int
        Shape of one row of X.
    size : int
        Size of the embedding.

    Returns
    -------
    torch.nn.Module
    """
    network = new_network(options, activation, row_shape, size, dropout=options.dropout)
    if activation == "relu":
        return network
    dropout = [nn.Dropout(options.dropout)] if options.dropout else []
    return nn.Sequential(network, ACTIVATIONS[activation](), *dropout)
