"""What the judge of CrowdInG knows beside the judged: `python benchmarks/judges.py [--seeds 3]`.

On LabelMe, after so many epochs of a game that nothing stops, on pairs of an item and a worker drawn at random: how
often the discriminator's best-looking label, the classifier's answer and the generator's likeliest label are the true
class; where the classifier is wrong, how often the discriminator prefers the truth to what the classifier says. The
truth is looked at here alone, after the fact.
"""

from __future__ import annotations

import argparse
from unittest.mock import patch

import numpy as np
import torch

from manyhands import CrowdInG, datasets
from manyhands.classifiers.crowding.game import Game
from manyhands.nn.item_worker_pairs import Pairs

_PAIRS = 6000
_EPOCHS = (0, 1, 5, 20, 40)


@torch.no_grad()
def measure(game: Game, X: torch.Tensor, truth: torch.Tensor) -> list[float]:
    """Shares of right answers of discriminator, classifier and generator, and the discriminator's preference."""
    rng = np.random.default_rng(0)
    row, worker = rng.integers(0, len(X), _PAIRS), rng.integers(0, game.generator.n_workers, _PAIRS)
    pairs, right = Pairs(torch.from_numpy(row), torch.from_numpy(worker)), truth[row]
    for module in (game.discriminator, game.network, game.generator):
        module.eval()
    logits = game.discriminator.logits(game.discriminator.see(X), pairs)
    z = game.network(X).softmax(1)
    most_likely = game.generator(game.generator.inputs(X), z, pairs, game.generator.draw_noise(pairs)).argmax(1)
    said = z.argmax(1)[row]
    wrong = said != right
    prefers = logits.gather(1, right.unsqueeze(1)) > logits.gather(1, said.unsqueeze(1))
    shares = [logits.argmax(1) == right, said == right, most_likely == right, prefers.squeeze(1)[wrong]]
    return [float(share.float().mean()) for share in shares]


def follow(decay: float, seed: int, found: dict[int, list[list[float]]]) -> None:
    """Fit, and look on when `_EPOCHS` have ended."""
    crowd = datasets.load("labelme")
    classes = crowd.annotations.classes.tolist()
    truth = torch.tensor([classes.index(value) for value in np.asarray(crowd.y_true).tolist()])
    X = torch.from_numpy(np.asarray(crowd.X)).float()
    played, play = 0, Game.play

    def looked_at(game, batch):  # type: ignore[no-untyped-def]
        nonlocal played
        if played in _EPOCHS:  # a batch is an epoch: 1,000 items in batches of 1,024
            found[played].append(measure(game, X, truth))
        played += 1
        figures = play(game, batch)
        if played == max(_EPOCHS):
            found[played].append(measure(game, X, truth))
        return figures

    with patch.object(Game, "play", looked_at):
        settings = {"patience": None, "pairs_per_label": 8, "discriminator_decay": decay, "random_state": seed}
        CrowdInG.as_published(**settings).fit(crowd.X, crowd.annotations)


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
