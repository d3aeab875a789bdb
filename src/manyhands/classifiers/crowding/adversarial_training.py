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
    spread = None
    if discriminator.label_correlation:
        spread = torch.from_numpy(label_adjacency(context.annotations)).float()
    made = Generator(*sizes, known, sees_items=generator.sees_items, sees_workers=generator.sees_workers)
    critic = Discriminator(*sizes, known, spread=spread)
    networks = network, made.to(context.device), critic.to(context.device)
    return Game(crowd, *networks, adversarial, discriminator, generator.learning_rate)


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
    itself is a candidate, so that the adversarial training can end where it began.

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
    if metric is not None:
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
