"""What `em.copies` computes for all pairs of workers at once, one pair and one item at a time."""

from itertools import combinations
from math import exp, log


def common_items(votes):
    """{(x, y): [(label of x, label of y), ...]} of every two workers, on items with at least three labels."""
    by_item = {}
    for item, worker, label in zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()):
        by_item.setdefault(item, {})[worker] = label
    found = {}
    for labels in by_item.values():
        for x, y in combinations(sorted(labels), 2) if len(labels) > 2 else ():
            found.setdefault((x, y), []).append((labels[x], labels[y]))
    return found


def log_ratio(p, equal, rate):
    """L(rate) of one pair from p and whether the labels are equal, item by item."""
    return sum(log(rate / one + 1 - rate) if same else log(1 - rate) for one, same in zip(p, equal))


def p_equal(log_prior, others, table_x, table_y, x, y):
    """p(equal) on one item: `others` has the log p(label | truth) of each label that counts, without x and y."""
    score = [prior + sum(term[k] for term in others) for k, prior in enumerate(log_prior)]
    truth = [exp(value - max(score)) for value in score]
    found = 0.0
    for mine, other, label in ((table_x, table_y, x), (table_y, table_x, y)):
        given = [t * mine[k][label] for k, t in enumerate(truth)]
        found = max(found, sum(g * other[k][label] for k, g in enumerate(given)) / sum(given))
    return min(max(found, 0.01), 0.99)
