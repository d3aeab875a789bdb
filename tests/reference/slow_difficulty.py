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


def sigma(x):
    """1 / (1 + exp(-x)) without overflow."""
    return 1 / (1 + math.exp(-x)) if x >= 0 else math.exp(x) / (1 + math.exp(x))


def initial_abilities(Y):
    """Abilities (positives, negatives) of each worker from vote shares Q: 4 log(acc / (1 - acc)), within 0 and 100."""
    share = [sum(row) / len(row) for row in Y]
    abilities = []
    for j in range(len(Y[0])):
        alpha = sum(q * row[j] for q, row in zip(share, Y)) / sum(share)
        beta = sum((1 - q) * (1 - row[j]) for q, row in zip(share, Y)) / sum(1 - q for q in share)
        abilities.append([min(max(4 * math.log(a / (1 - a)), 0.0), 100.0) for a in (alpha, beta)])
    return abilities


def log_products(labels, abilities, d):
    """log a_i and log b_i: the labels of an item of easiness d, if its truth is 1 and if it is 0."""
    log_a = sum(math.log(sigma(l1 * d if y else -l1 * d)) for y, (l1, _) in zip(labels, abilities))
    log_b = sum(math.log(sigma(-l2 * d if y else l2 * d)) for y, (_, l2) in zip(labels, abilities))
    return log_a, log_b


def e_step(Y, abilities, prior, easy):
    """Posterior of truth 1 of each item, and log p(labels)."""
    mu, evidence = [], 0.0
    for labels, p, d in zip(Y, prior, easy):
        log_a, log_b = log_products(labels, abilities, d)
        one = log_a + (math.log(p) if p > 0 else -1e9)
        zero = log_b + (math.log(1 - p) if p < 1 else -1e9)
        mu.append(sigma(one - zero))
        evidence += max(one, zero) + math.log1p(math.exp(-abs(one - zero)))
    return mu, evidence


def ability_step(Y, mu, easy, abilities, steps=4):
    """Newton steps on each worker's two abilities, given the posterior and the easiness of the items."""
    found = [list(pair) for pair in abilities]
    for j, pair in enumerate(found):
        for side in (0, 1):
            for _ in range(steps):
                slope = curvature = 0.0
                for labels, m, d in zip(Y, mu, easy):
                    weight, right = (m, labels[j]) if side == 0 else (1 - m, 1 - labels[j])
                    p = sigma(pair[side] * d)
                    slope += weight * (right - p) * d
                    curvature += weight * p * (1 - p) * d * d
                step = min(max(slope / max(curvature, 1e-300), -20.0), 20.0)
                pair[side] = min(max(pair[side] + step, 0.0), 100.0)
    return found


def expected_log_likelihood(w, X, Y, mu, abilities):
    """Expected complete log-likelihood as a function of the weights, difficulty included."""
    total = 0.0
    for x, labels, m in zip(X, Y, mu):
        p = min(max(sigma(float(np.dot(w, x))), 1e-300), 1 - 1e-16)
        log_a, log_b = log_products(labels, abilities, (p - 0.5) ** 2)
        total += m * (math.log(p) + log_a) + (1 - m) * (math.log(1 - p) + log_b)
    return total


def weights_step(w, X, Y, mu, abilities):
    """One Newton step through p, a and b: exact slope, expected curvature, halved where the objective would fall."""
    slope, curvature = np.zeros(len(w)), np.zeros((len(w), len(w)))
    for x, labels, m in zip(X, Y, mu):
        p = sigma(float(np.dot(w, x)))
        d, dd = (p - 0.5) ** 2, 2 * (p - 0.5) * p * (1 - p)  # dd: derivative of d in the log-odds
        g, h = m - p, p * (1 - p)
        for y, (l1, l2) in zip(labels, abilities):
            A, B = sigma(l1 * d), sigma(l2 * d)
            g += (m * l1 * (y - A) + (1 - m) * l2 * (1 - y - B)) * dd
            h += (m * l1**2 * A * (1 - A) + (1 - m) * l2**2 * B * (1 - B)) * dd**2
        slope += g * x
        curvature += h * np.outer(x, x)
    step, before = np.linalg.solve(curvature, slope), expected_log_likelihood(w, X, Y, mu, abilities)
    for _ in range(30):
        if expected_log_likelihood(w + step, X, Y, mu, abilities) >= before:
            return w + step
        step = step / 2
    return w


def logistic_regression(X, mu, w, steps):
    """Newton steps of a logistic regression on soft targets."""
    for _ in range(steps):
        p = [sigma(float(np.dot(w, x))) for x in X]
        slope = sum((m - q) * x for m, q, x in zip(mu, p, X))
        w = w + np.linalg.solve(sum(q * (1 - q) * np.outer(x, x) for q, x in zip(p, X)), slope)
    return w


def algorithm_2(X, Y, passes, w=None):
    """Adaptive Difficulty EM of two classes as printed; the last column of X is 1. Weights, abilities and posterior.

    The first weights are those given, or fitted to the vote shares.
    """
    abilities, mu = initial_abilities(Y), [sum(row) / len(row) for row in Y]
    w = logistic_regression(X, mu, np.zeros(X.shape[1]), 5) if w is None else w
    for _ in range(passes):
        p = [sigma(float(np.dot(w, x))) for x in X]
        mu, _ = e_step(Y, abilities, p, [(q - 0.5) ** 2 for q in p])
        w = weights_step(w, X, Y, mu, abilities)
        easy = [(sigma(float(np.dot(w, x))) - 0.5) ** 2 for x in X]
        abilities = ability_step(Y, mu, easy, abilities)
    return w, abilities, mu


def algorithm_3(X, Y, passes=0):
    """Fixed Difficulty EM of two classes as printed; abilities stay where they begin without passes.

    Weights, abilities and posterior.
    """
    share, abilities = [sum(row) / len(row) for row in Y], initial_abilities(Y)
    easy = [(q - 0.5) ** 2 for q in share]
    for _ in range(passes):
        mu, _ = e_step(Y, abilities, share, easy)
        abilities = ability_step(Y, mu, easy, abilities)
    mu, _ = e_step(Y, abilities, share, easy)
    return logistic_regression(X, mu, np.zeros(X.shape[1]), 12), abilities, mu
