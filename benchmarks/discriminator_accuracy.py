"""Accuracy of the networks of CrowdInG: `python benchmarks/discriminator_accuracy.py [--seeds 3]`.

On LabelMe, after some epochs of adversarial training without early stopping, on random pairs of an item and a worker:
how often the label that looks most authentic to the discriminator, the class that the classifier predicts and the most
probable label of the generator are the true class; and where the classifier is wrong, how often the discriminator
prefers the true class to the predicted one. The ground truth is used for this evaluation alone.
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np
import torch

from manyhands import CrowdInG, datasets
from manyhands.classifiers.crowding_game import Game, Pairs

_PAIRS = 6000
_EPOCHS = (0, 1, 5, 20, 40)


@torch.no_grad()
def measure(game: Game, X: torch.Tensor, truth: torch.Tensor) -> list[float]:
    """Accuracies of discriminator, classifier and generator, and how often the discriminator prefers the truth."""
    rng = np.random.default_rng(0)
    row, worker = rng.integers(0, len(X), _PAIRS), rng.integers(0, game.generator.n_workers, _PAIRS)
    pairs, right = Pairs(torch.from_numpy(row), torch.from_numpy(worker)), truth[row]
    for module in (game.discriminator, game.network, game.generator):
        module.eval()
    logits = game.discriminator.logits(game.discriminator.inputs(X), pairs)
    z = game.network(X).softmax(1)
    most_likely = game.generator(game.generator.inputs(X), z, pairs, game.generator.draw_noise(pairs)).argmax(1)
    predicted = z.argmax(1)[row]
    wrong = predicted != right
    prefers = logits.gather(1, right.unsqueeze(1)) > logits.gather(1, predicted.unsqueeze(1))
    shares = [logits.argmax(1) == right, predicted == right, most_likely == right, prefers.squeeze(1)[wrong]]
    return [float(share.float().mean()) for share in shares]


def follow(decay: float, seed: int, found: dict[int, list[list[float]]]) -> None:
    """Fit, and measure after each of `_EPOCHS`."""
    crowd = datasets.load("labelme")
    classes = crowd.annotations.classes.tolist()
    truth = torch.tensor([classes.index(value) for value in np.asarray(crowd.y_true).tolist()])
    X = torch.from_numpy(np.asarray(crowd.X)).float()
    n_steps, step = 0, Game.step

    def measured_step(game, batch):  # type: ignore[no-untyped-def]
        nonlocal n_steps
        if n_steps in _EPOCHS:  # a batch is an epoch: 1,000 items in batches of 1,024
            found[n_steps].append(measure(game, X, truth))
        n_steps += 1
        figures = step(game, batch)
        if n_steps == max(_EPOCHS):
            found[n_steps].append(measure(game, X, truth))
        return figures

    with patch.object(Game, "step", measured_step):
        model = CrowdInG(patience=None, random_state=seed)
        model.set_params(adversarial__pairs_per_label=8, discriminator__weight_decay=decay)
        model.fit(crowd.X, crowd.annotations)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    print("| decay | epoch | discriminator | classifier | generator | prefers truth |")
    print("| --- | --- | --- | --- | --- | --- |")
    for decay in (0.01, 0.0):
        found: dict[int, list[list[float]]] = {epoch: [] for epoch in _EPOCHS}
        for seed in range(3000, 3000 + given.seeds):
            follow(decay, seed, found)
        for epoch, seeds in found.items():
            shares = " | ".join(f"{share:.3f}" for share in np.mean(seeds, axis=0))
            print(f"| {decay:g} | {epoch} | {shares} |", flush=True)


if __name__ == "__main__":
    main()
