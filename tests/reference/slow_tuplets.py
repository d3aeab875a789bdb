"""Plain-loop versions of safe items and the pool of tuplets, on nested lists."""

import math

from reference.slow_metric_losses import slow_squared


def slow_neighbours(points, i, k):
    """The k nearest of the other points, or all of them."""
    others = sorted((slow_squared(points[i], other), j) for j, other in enumerate(points) if j != i)
    return [j for _, j in others[:k]]


def slow_safe(points, code, assurance, k, margin, rival):
    """Whether neighbours of the own class have more confidence than the others together, or than any other class."""
    safe = []
    for i, own in enumerate(code):
        support = dict.fromkeys(code, 0.0)
        for j in slow_neighbours(points, i, k):
            support[code[j]] += assurance[j]
        others = [total for name, total in support.items() if name != own]
        against = math.fsum(others) if rival == "all" else max(others, default=0.0)
        safe.append(support[own] > against + margin)
    return safe


def slow_pool(code, safe, drawn, least):
    """The safe items and those that were drawn; all items of a class that has fewer than `least` of these."""
    pool = [i in drawn or ok for i, ok in enumerate(safe)]
    size = {own: sum(of == own for of, ok in zip(code, pool) if ok) for own in code}
    return [ok or size[own] < least for own, ok in zip(code, pool)]
