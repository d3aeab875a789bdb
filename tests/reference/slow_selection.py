"""Reference implementation of Self-Crowd's selection of pseudo-annotations, one pair at a time, as in the paper."""

import math


def slow_quotas(available, total):
    """Quotas t_c ~ 1 / N'_c; a class with fewer pairs than its quota gives all, and the rest goes to the others."""
    wanted = min(total, sum(available))
    quota = [0] * len(available)
    for c, n in enumerate(available):  # every class with pairs gets one
        quota[c] = 1 if n else 0
    if sum(quota) > wanted:
        return None  # fewer than there are classes: not defined by the paper
    while sum(quota) < wanted:  # the next one goes to the class furthest below its share
        open_classes = [c for c, n in enumerate(available) if quota[c] < n]
        c = min(open_classes, key=lambda c: (quota[c] + 0.5) * available[c])
        quota[c] += 1
    return quota


def slow_pseudo_annotations(log_answers, n_items, workers, answered):
    """Every pair without a label: (item, worker, most likely label, entropy)."""
    found = []
    for item in range(n_items):
        for place, worker in enumerate(workers):
            if (item, worker) in answered:
                continue
            logs = [row[place] for row in log_answers[item]]
            label = max(range(len(logs)), key=lambda k: logs[k])
            found.append((item, worker, label, -math.fsum(math.exp(value) * value for value in logs)))
    return found


def slow_choice(candidates, ties, quotas, *, by_class=True):
    """The pseudo-annotations of least entropy of each class within its quota, sorted by item and worker."""
    chosen = []
    for c, quota in enumerate(quotas):
        of_class = [(g[3], t, g) for g, t in zip(candidates, ties) if not by_class or g[2] == c]
        chosen += [g for _, _, g in sorted(of_class)[:quota]]
    return sorted(chosen)
