"""Plain-loop versions of certainty and synthesis, on nested lists."""

import math


def slow_certainty(labels, n_classes, epsilon, smoothing):
    """1 / (half the mean squared distance of one-hot labels from their mean + epsilon), with pseudo-counts.

    A vote of weight `smoothing` for every class counts in the mean and in the distances.
    """
    votes = [(k, 1.0) for k in labels] + [(k, smoothing) for k in range(n_classes)]
    total = math.fsum(weight for _, weight in votes)
    mean = [math.fsum(w for k, w in votes if k == c) / total for c in range(n_classes)]
    squared = [math.fsum(((k == c) - mean[c]) ** 2 for c in range(n_classes)) for k, _ in votes]
    variance = math.fsum(w * d for (_, w), d in zip(votes, squared)) / total / 2
    return 1 / (variance + epsilon)


def slow_nearest(points, query, k, *, itself=None):
    """Indices of the k nearest points, the nearest first; `itself` is excluded."""
    distance = [(math.dist(query, point), j) for j, point in enumerate(points) if j != itself]
    return [j for _, j in sorted(distance)[:k]]


def slow_interpolate(point, other, delta):
    """point + delta (other - point)."""
    return [a + delta * (b - a) for a, b in zip(point, other)]


def slow_labels(triples, neighbours, worker):
    """Labels of a worker on the neighbours, the nearest first."""
    return [label for j in neighbours for item, w, label in triples if item == j and w == worker]


def slow_mode(labels):
    """The most frequent label; ties go to that of the nearest."""
    return max(labels, key=lambda label: (labels.count(label), -labels.index(label)))


def slow_hard_em(matrix, n_classes, smoothing, prior):
    """Classification EM on a full items x workers matrix, from the vote: (classes, confusion[w][k][l]).

    `prior` is "uniform", "estimated" (with a pseudo-count of `smoothing` items of each class) or "uniform-start", which
    is uniform in the first pass and estimated in all others.
    """
    n_workers, n_passes = len(matrix[0]), 0
    answer = [max(range(n_classes), key=row.count) for row in matrix]
    while True:
        n_passes += 1
        estimated = prior == "estimated" or (prior == "uniform-start" and n_passes > 1)
        confusion = [[[smoothing] * n_classes for _ in range(n_classes)] for _ in range(n_workers)]
        size = [smoothing if estimated else 1.0] * n_classes
        for row, k in zip(matrix, answer):
            size[k] += estimated
            for w, label in enumerate(row):
                confusion[w][k][label] += 1
        confusion = [[[cell / math.fsum(row) for cell in row] for row in table] for table in confusion]
        before = answer
        answer = [
            max(
                range(n_classes),
                key=lambda k: math.log(size[k]) + math.fsum(math.log(confusion[w][k][v]) for w, v in enumerate(row)),
            )
            for row in matrix
        ]
        if answer == before and (estimated or prior == "uniform"):
            return answer, confusion
