"""Self-Crowd's choice, one pair at a time, as the paper tells it."""

import math


def slow_quotas(available, total):
    """t_c ~ 1 / N'_c; who cannot give his share gives all, and the others share what is left, one by one."""
    wanted = min(total, sum(available))
    quota = [0] * len(available)
    for c, n in enumerate(available):  # every class that is there gets one, rarest first, while there is any
        quota[c] = 1 if n else 0
    if sum(quota) > wanted:
        return None  # fewer than classes: not told by the paper
    while sum(quota) < wanted:  # the next one goes to whoever is furthest below his share
        open_classes = [c for c, n in enumerate(available) if quota[c] < n]
        c = min(open_classes, key=lambda c: (quota[c] + 0.5) * available[c])
        quota[c] += 1
    return quota


def slow_guesses(log_answers, n_items, workers, answered):
    """Every pair without an answer: (item, worker, likeliest label, entropy)."""
    found = []
    for item in range(n_items):
        for place, worker in enumerate(workers):
            if (item, worker) in answered:
                continue
            logs = [row[place] for row in log_answers[item]]
            label = max(range(len(logs)), key=lambda k: logs[k])
            found.append((item, worker, label, -math.fsum(math.exp(value) * value for value in logs)))
    return found


def slow_choice(guesses, ties, quotas, *, by_class=True):
    """The surest guesses of each class within its quota; among equals, the lowest tie. Sorted by item and worker."""
    chosen = []
    for c, quota in enumerate(quotas):
        of_class = [(g[3], t, g) for g, t in zip(guesses, ties) if not by_class or g[2] == c]
        chosen += [g for _, _, g in sorted(of_class)[:quota]]
    return sorted(chosen)
