"""Self-Crowd's pseudo-annotations of the rarest class: `python benchmarks/pseudo_annotations.py [--seeds 3]`.

For each crowd of the tables self-crowd/two-classes and self-crowd/imbalanced, with `SelfCrowd.plus`: the number of
pseudo-annotations of the rarest class after four rounds, the share of them on items of that class, and the share of
workers whose accuracy is below one half.
"""

from __future__ import annotations

import argparse

import numpy as np

from manyhands import SelfCrowd
from manyhands.reproduce import load_table
from manyhands.reproduce.cells import make_part


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    tables = [load_table(name) for name in ("self-crowd/two-classes", "self-crowd/imbalanced")]
    print("| crowd | pseudo-annotations of the rarest class | on its items | by workers below one half |")
    print("| --- | --- | --- | --- |")
    for table, dataset in [(one, dataset) for one in tables for dataset in one.datasets]:
        found = []
        for seed in table.seed_list[: given.seeds]:
            part = make_part(dataset, seed, table.first_seed)
            model = SelfCrowd.plus(round_patience=None, random_state=seed).fit(part.X, part.annotations)
            classes = part.annotations.classes.tolist()
            truth = np.array([classes.index(value) for value in np.asarray(part.y_train).tolist()])
            rare = np.bincount(truth, minlength=len(classes)).argmin()
            right = truth[part.annotations.item] == part.annotations.label
            n_of_worker = np.bincount(part.annotations.worker, minlength=part.annotations.n_workers)
            accuracy = np.bincount(part.annotations.worker, right, part.annotations.n_workers) / np.maximum(
                n_of_worker, 1
            )
            pseudo = model.pseudo_annotations_
            is_rare = pseudo.label == rare
            found.append(
                [
                    is_rare.sum(),
                    np.mean(truth[pseudo.item[is_rare]] == rare),
                    np.mean(accuracy[pseudo.worker[is_rare]] < 0.5),
                ]
            )
        n, on_its_items, below = np.mean(found, axis=0)
        print(f"| {dataset.name} | {n:.0f} | {on_its_items:.2f} | {below:.2f} |", flush=True)


if __name__ == "__main__":
    main()
