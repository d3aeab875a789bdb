"""Reference implementation of difficulty EM: the E step, and the expected log-likelihood of an ability."""

import math

import numpy as np


def easiness(q):
    """Easiness d of an item from its class probabilities q: 1/4 ((max q - 1/K) / (1 - 1/K))^2."""
    k = len(q)
    return 0.25 * ((max(q) - 1 / k) / (1 - 1 / k)) ** 2


def chance(ability, d, truth, label, wrong, n_classes):
    """p(label | truth) of a worker with abilities by class and errors wrong[truth][label], on an item of easiness d."""
    right = math.exp(ability[truth] * d) / (math.exp(ability[truth] * d) + n_classes - 1)
    return right if label == truth else (1 - right) * wrong[truth][label]


def posterior_from_joint(log_prior, triples, ability, wrong, d):
    """E step: posterior and log evidence from the log prior of each item; `triples` are (item, worker, label)."""
    n, k = log_prior.shape
    joint = [[log_prior[i, c] for c in range(k)] for i in range(n)]
    for i, w, label in triples:
        for c in range(k):
            joint[i][c] += math.log(chance(ability[w], d[i], c, label, wrong[w], k))
    evidence = [math.log(sum(math.exp(value) for value in row)) for row in joint]
    posterior = [[math.exp(value - total) for value in row] for row, total in zip(joint, evidence)]
    return np.array(posterior), sum(evidence)


def expected(posterior, triples, ability, w, c, d, right, wrong):
    """Expected log-likelihood of worker w's ability in class c, with pseudo-counts of right and wrong labels."""
    k = posterior.shape[1]

    def log_chance(correct, easy):
        p = math.exp(ability * easy) / (math.exp(ability * easy) + k - 1)
        return math.log(p if correct else 1 - p)

    own = sum(posterior[i, c] * log_chance(label == c, d[i]) for i, worker, label in triples if worker == w)
    return own + right * log_chance(True, 0.25) + wrong * log_chance(False, 0.25)
