"""Reference implementations of the EM kernels and of what is built on them.

`triples` are (item, worker, label) codes; tables are nested lists, indexed as in the formulas: [worker][truth][label].
"""

import math


def slow_vote_share(triples, n_items, n_classes):
    """Vote shares: the fraction of each item's labels that are of each class."""
    share = [[0.0] * n_classes for _ in range(n_items)]
    for item, _, label in triples:
        share[item][label] += 1
    return [[count / (sum(row) or 1) for count in row] for row in share]


def slow_vote_pass(triples, n_items, n_workers, n_classes):
    """Expected counts [worker][truth][label] and class totals, with the vote shares as posterior."""
    share = slow_vote_share(triples, n_items, n_classes)
    counts = zeros(n_workers, n_classes, n_classes)
    for item, worker, label in triples:
        for truth in range(n_classes):
            counts[worker][truth][label] += share[item][truth]
    totals = [math.fsum(row[truth] for row in share) for truth in range(n_classes)]
    return counts, totals


def slow_em_pass(triples, n_items, log_confusion, log_prior, offset=None):
    """One E step: posterior, expected counts, expected class totals and log evidence."""
    n_workers, n_classes = len(log_confusion), len(log_prior)
    posterior, labelled, evidence = [], {item for item, _, _ in triples}, []
    for item in range(n_items):
        score = [log_prior[k] + (offset[item][k] if offset is not None else 0.0) for k in range(n_classes)]
        for i, worker, label in triples:
            if i == item:
                score = [score[k] + log_confusion[worker][k][label] for k in range(n_classes)]
        top = max(score)
        total = math.fsum(math.exp(s - top) for s in score)
        posterior.append([math.exp(s - top) / total for s in score])
        if item in labelled:
            evidence.append(top + math.log(total))
    counts = zeros(n_workers, n_classes, n_classes)
    for item, worker, label in triples:
        for truth in range(n_classes):
            counts[worker][truth][label] += posterior[item][truth]
    totals = [math.fsum(posterior[item][k] for item in labelled) for k in range(n_classes)]
    return posterior, counts, totals, math.fsum(evidence)


def slow_dawid_skene(triples, n_items, n_workers, n_classes, smoothing, n_iter):
    """Dawid and Skene's EM from the vote shares: last E step, parameters, log posterior density at each M step."""
    counts, totals = slow_vote_pass(triples, n_items, n_workers, n_classes)
    history = []
    for _ in range(n_iter):
        prior = normalised([total + smoothing for total in totals])
        confusion = [[normalised([c + smoothing for c in row]) for row in matrix] for matrix in counts]
        log_confusion = [[[math.log(p) for p in row] for row in matrix] for matrix in confusion]
        log_prior = [math.log(p) for p in prior]
        posterior, counts, totals, evidence = slow_em_pass(triples, n_items, log_confusion, log_prior)
        penalty = smoothing * math.fsum(x for matrix in log_confusion for row in matrix for x in row)
        history.append(evidence + penalty + smoothing * math.fsum(log_prior))
    return posterior, confusion, prior, history


def slow_one_coin_accuracy(counts, smoothing, prior_accuracy):
    """M step of the one-coin model: the expected fraction of correct labels of each worker, with a Beta prior."""
    accuracy = []
    for matrix in counts:
        right = math.fsum(matrix[k][k] for k in range(len(matrix)))
        total = math.fsum(count for row in matrix for count in row)
        empty = total + smoothing == 0
        share = prior_accuracy if empty else (right + smoothing * prior_accuracy) / (total + smoothing)
        accuracy.append(share)
    return accuracy


def slow_pick_classes(posterior, unlabelled, tie=1e-9):
    """The most probable class of each item; of tied classes the more frequent one overall, then the first."""
    n_classes = len(posterior[0])
    size = [round(math.fsum(row[k] for row, u in zip(posterior, unlabelled) if not u), 6) for k in range(n_classes)]
    code, tied = [], []
    for row, without_label in zip(posterior, unlabelled):
        best = [k for k in range(n_classes) if row[k] >= max(row) - tie]
        code.append(-1 if without_label else min(best, key=lambda k: (-size[k], k)))
        tied.append(len(best) > 1 and not without_label)
    return code, tied


def slow_heldout_log_likelihood(training, n_workers, posterior, heldout, row_of, strength=5.0):
    """Mean of log sum_k p(k | other labels of the item) confusion[worker][k][label] over the held-out triples."""
    n_classes = len(posterior[0])
    counts = zeros(n_workers + 1, n_classes, n_classes)
    for item, worker, label in training:
        for truth in range(n_classes):
            counts[worker][truth][label] += posterior[item][truth]
    crowd = [
        normalised(
            [math.fsum(counts[w][k][label] for w in range(n_workers)) + 1 / n_classes for label in range(n_classes)]
        )
        for k in range(n_classes)
    ]
    confusion = [
        [normalised([c + strength * p for c, p in zip(matrix[k], crowd[k])]) for k in range(n_classes)]
        for matrix in counts
    ]
    labelled = {item for item, _, _ in training}
    prior = normalised([math.fsum(posterior[i][k] for i in labelled) + 1 for k in range(n_classes)])
    logs = []
    for at, (item, worker, label) in enumerate(heldout):
        row = row_of[item]
        current = prior if row is None else [(posterior[row][k] + 0.01 * prior[k]) / 1.01 for k in range(n_classes)]
        for other, (i, w, other_label) in enumerate(heldout):
            if i == item and other != at:
                current = [current[k] * confusion[w][k][other_label] for k in range(n_classes)]
        current = normalised(current)
        logs.append(math.log(math.fsum(current[k] * confusion[worker][k][label] for k in range(n_classes))))
    return math.fsum(logs) / len(logs)


def slow_predictive_log_likelihood(proba, confusion, shares, heldout):
    """Mean of log sum_k p(k | x) confusion[worker][k][label] over the held-out triples."""
    logs = []
    for item, worker, label in heldout:
        current = [(p + 0.01 * share) / 1.01 for p, share in zip(proba[item], shares)]
        logs.append(math.log(math.fsum(b * confusion[worker][k][label] for k, b in enumerate(current))))
    return math.fsum(logs) / len(logs)


def zeros(*shape):
    """Nested lists of zeros."""
    return [0.0] * shape[0] if len(shape) == 1 else [zeros(*shape[1:]) for _ in range(shape[0])]


def normalised(row):
    """The row divided by its sum."""
    total = math.fsum(row)
    return [value / total for value in row]


def slow_code_text(cells, in_order=True):
    """The position of each cell among the distinct texts, sorted or as they appear (-1 for None), and these texts."""
    values = list(dict.fromkeys(cell for cell in cells if cell is not None))
    values = sorted(values) if in_order else values
    return [-1 if cell is None else values.index(cell) for cell in cells], values


def slow_keep_one(pairs, order, which):
    """Whether each row is the last (or first) of its pair, going from the oldest row to the newest."""
    chosen = {}
    for row in order:
        if which == "last" or pairs[row] not in chosen:
            chosen[pairs[row]] = row
    return [chosen[pair] == row for row, pair in enumerate(pairs)]
