"""Reference implementations of NeuCrowd's safe items and sampling pool, on nested lists."""

import math

from reference.slow_metric_losses import slow_squared


def slow_neighbours(points, i, k):
    """The k nearest of the other points, or all of them."""
    others = sorted((slow_squared(points[i], other), j) for j, other in enumerate(points) if j != i)
    return [j for _, j in others[:k]]


def slow_safe(points, code, assurance, k, margin, rival):
    """Whether the confidence in neighbours of the own class exceeds that in other classes, all or the strongest."""
    safe = []
    for i, own in enumerate(code):
        total = dict.fromkeys(code, 0.0)
        for j in slow_neighbours(points, i, k):
            total[code[j]] += assurance[j]
        others = [confidence for name, confidence in total.items() if name != own]
        against = math.fsum(others) if rival == "all" else max(others, default=0.0)
        safe.append(total[own] > against + margin)
    return safe


def slow_pool(code, safe, drawn, least):
    """The safe items and the drawn ones; all items of a class that has fewer than `least` of these."""
    pool = [i in drawn or ok for i, ok in enumerate(safe)]
    size = {own: sum(of == own for of, ok in zip(code, pool) if ok) for own in code}
    return [ok or size[own] < least for own, ok in zip(code, pool)]
