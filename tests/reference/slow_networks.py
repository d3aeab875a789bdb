"""Reference implementations of losses and noise layers, on nested lists."""

import math

from reference.slow import normalised


def slow_softmax(row):
    """Softmax of one row."""
    top = max(row)
    return normalised([math.exp(value - top) for value in row])


def slow_soft_cross_entropy(logits, target):
    """Mean over rows of -sum_k target[k] log softmax(logits)[k]."""
    rows = [-math.fsum(t * math.log(p) for t, p in zip(ts, slow_softmax(row))) for row, ts in zip(logits, target)]
    return math.fsum(rows) / len(rows)


def slow_gold_cross_entropy(logits, gold):
    """Mean of -log softmax(logits)[gold] over the rows whose gold is not -1; 0 without any."""
    known = [-math.log(slow_softmax(row)[k]) for row, k in zip(logits, gold) if k >= 0]
    return math.fsum(known) / max(len(known), 1)


def slow_crowd_logits(proba, matrix, bias):
    """Logits p W + b of one worker."""
    n = len(proba)
    return [math.fsum(proba[k] * matrix[k][label] for k in range(n)) + bias[label] for label in range(n)]


def slow_crowd_log_label(proba, triples, matrices, biases):
    """log softmax(p W_w + b_w)[label] of each (row, worker, label)."""
    return [
        math.log(slow_softmax(slow_crowd_logits(proba[row], matrices[w], biases[w]))[label])
        for row, w, label in triples
    ]


def slow_confusion(free, rows):
    """Confusion matrix of one worker from free parameters: rows by softmax, or by softplus divided by its sum."""
    if rows == "softmax":
        return [slow_softmax(row) for row in free]
    return [normalised([math.log1p(math.exp(value)) for value in row]) for row in free]


def slow_mixture_log_label(proba, triples, confusions):
    """log sum_k p(k | x) C_w[k][label] of each (row, worker, label)."""
    return [
        math.log(math.fsum(p * confusions[w][k][label] for k, p in enumerate(proba[row]))) for row, w, label in triples
    ]


def slow_batch(triples, items):
    """The (place in the batch, worker, label) of every label on these items, in the order of the items."""
    return [(place, w, label) for place, item in enumerate(items) for i, w, label in triples if i == item]
