"""The trainings of CrowdInG after the classifier's: generator, discriminator, then all three in turns."""

from __future__ import annotations

import math

import torch
from torch import nn

from manyhands.classifiers.active_workers import ActiveWorkers
from manyhands.classifiers.crowding.game import Game
from manyhands.classifiers.crowding.options import Adversarial, DiscriminatorTraining, GeneratorTraining
from manyhands.classifiers.crowding.worker_features import standardised_features
from manyhands.classifiers.self_training import HeldoutMetric
from manyhands.classifiers.training_context import TrainingContext
from manyhands.nn.batches import Batch
from manyhands.nn.label_discriminator import Discriminator, label_adjacency
from manyhands.nn.label_generator import Generator
from manyhands.nn.train import History
from manyhands.validation import check_memory

_BYTES = 5000  # memory of a pair in a step of the generator: about nine arrays of 128 numbers, and its distribution


def new_game(
    context: TrainingContext,
    network: nn.Module,
    generator: GeneratorTraining,
    discriminator: DiscriminatorTraining,
    adversarial: Adversarial,
) -> Game:
    """Build the generator and the discriminator beside a pre-trained classifier.

    Parameters
    ----------
    context : TrainingContext
        The context of the fit.
    network : torch.nn.Module
        The classifier, from features to logits.
    generator : GeneratorTraining
        Options of the generator.
    discriminator : DiscriminatorTraining
        Options of the discriminator.
    adversarial : Adversarial
        Options of the adversarial training.

    Returns
    -------
    Game
    """
    crowd = ActiveWorkers.of(context)
    features = standardised_features(crowd)
    known = None if features is None else features[crowd.active]
    sizes = math.prod(context.data.rows.shape), context.n_classes, len(crowd.active)
    if adversarial.epochs > 0:
        _check_pairs(context, len(crowd.active), adversarial)
    made = Generator(*sizes, known, sees_items=generator.sees_items, sees_workers=generator.sees_workers)
    critic = _new_discriminator(context, sizes, known, discriminator)
    networks = network, made.to(context.device), critic.to(context.device)
    return Game(crowd, *networks, adversarial, discriminator, generator.learning_rate)


def _new_discriminator(
    context: TrainingContext,
    sizes: tuple[int, int, int],
    known: torch.Tensor | None,
    options: DiscriminatorTraining,
) -> Discriminator:
    """Return the untrained discriminator; label correlation is that of the training labels."""
    residual, spread = options.correlation == "residual", None
    if options.label_correlation:
        spread = torch.from_numpy(label_adjacency(context.annotations, symmetric=not residual)).float()
    perceptron = options.item_embedding == "perceptron"
    return Discriminator(*sizes, known, spread=spread, residual=residual, perceptron=perceptron)


def _check_pairs(context: TrainingContext, n_workers: int, options: Adversarial) -> None:
    """Refuse all pairs of item and worker where a mini-batch of them does not fit into memory."""
    if options.pairs_per_label is None:
        n_pairs = min(options.batch_size, context.annotations.n_items) * n_workers
        remedy = "Give a number for adversarial__pairs_per_label, or a smaller adversarial__batch_size."
        check_memory(_BYTES * n_pairs, "All pairs of the items of a mini-batch with all workers", remedy)


def pretrain_generator(game: Game, max_epochs: int) -> History:
    """Train the generator on the observed labels; early stopping by the held-out log-likelihood.

    Parameters
    ----------
    game : Game
        The networks.
    max_epochs : int
        Maximal number of epochs.

    Returns
    -------
    list of dict
        The history.
    """
    context = game.crowd.active_context
    return context.train(
        game.pretrain_generator,
        {"generator": game.generator},
        {"adam": game.generator_adam},
        evaluate=context.heldout_score(game.log_label, game.generator),
        batches=context.batches(batch_size=game.options.batch_size),
        max_epochs=max_epochs,
        name="generator",
    )


def play(game: Game, context: TrainingContext) -> History:
    """Train the discriminator, then all three networks in turns.

    Early stopping compares the classifier by its class-balanced held-out log-likelihood; the pre-trained classifier
    itself is a candidate, so that the adversarial training can end where it began. Without it (`early_stopping`) the
    last epoch is kept.

    Parameters
    ----------
    game : Game
        The networks.
    context : TrainingContext
        The context of the fit.

    Returns
    -------
    list of dict
        The history of both.
    """
    batches = context.batches(batch_size=game.options.batch_size)
    modules, optimizers = {"discriminator": game.discriminator}, {"discriminator": game.discriminator_adam}

    def discriminate(batch: Batch) -> dict[str, torch.Tensor]:
        found = game.train_discriminator(game.draw(batch))
        return {f"{name}_start": value for name, value in found.items()}

    before = context.train(
        discriminate,
        modules,
        optimizers,
        batches=batches,
        max_epochs=game.discriminator_options.epochs,
        name="discriminator",
    )
    metric = HeldoutMetric.from_network(context, game.network)
    evaluate = None
    if metric is not None and game.options.early_stopping:
        rows = context.data.rows

        def evaluate() -> float:
            return float(metric.measure(game.network, rows).mean())

    return before + context.train(
        game.step,
        modules | {"network": game.network, "generator": game.generator},
        optimizers | {"network": game.network_adam, "generator": game.generator_adam},
        evaluate=evaluate,
        batches=batches,
        max_epochs=game.options.epochs,
        name="game",
        score_initial_weights=True,
    )
