"""Reference implementations of generator, discriminator and auxiliary network: loops over pairs, from their weights."""

import math


def linear(layer, x):
    """Output of a linear layer for one vector."""
    rows = layer.weight.tolist()
    bias = [0.0] * len(rows) if layer.bias is None else layer.bias.tolist()
    return [sum(w * v for w, v in zip(row, x)) + b for row, b in zip(rows, bias)]


def relu(x):
    """max(x, 0) of each entry."""
    return [max(v, 0.0) for v in x]


def standard(x):
    """Layer norm without weights."""
    mean = sum(x) / len(x)
    spread = math.sqrt(sum((v - mean) ** 2 for v in x) / len(x) + 1e-5)
    return [(v - mean) / spread for v in x]


def log_softmax(x):
    """Logarithm of the softmax of one vector."""
    top = max(x)
    total = math.log(sum(math.exp(v - top) for v in x)) + top
    return [v - total for v in x]


def slow_generator(generator, x, z, worker, noise):
    """log p(label | x, w, z, noise) of one pair."""
    _, first, _, _, second, _, into = generator.item
    code = linear(second, relu(linear(first, x)))
    parts = [
        linear(into, standard(code)),
        linear(generator.worker[1], standard(generator.codes.free[worker].tolist())),
        linear(generator.truth, z),
        linear(generator.noise, noise),
    ]
    return log_softmax(linear(generator.out, relu([sum(column) for column in zip(*parts)])))


def slow_matrices(discriminator):
    """Matrix M of every label, smoothed by label correlation."""
    matrix, spread = discriminator.matrix.tolist(), discriminator.spread
    if spread is None:
        return matrix
    size, labels = range(len(matrix[0])), range(len(matrix))
    rows = spread.tolist()
    smoothed = [[[sum(rows[c][d] * matrix[d][i][j] for d in labels) for j in size] for i in size] for c in labels]
    if discriminator.mix is None:
        return [[[matrix[c][i][j] + smoothed[c][i][j] for j in size] for i in size] for c in labels]
    w = discriminator.mix.tolist()
    return [[[sum(smoothed[c][i][k] * w[k][j] for k in size) for j in size] for i in size] for c in labels]


def slow_codes(discriminator, x, worker):
    """Embeddings u of the worker and v of the item."""
    _, *hidden, last = discriminator.item
    v = relu(linear(hidden[0], x)) if hidden else x
    return discriminator.codes.free[worker].tolist(), linear(last, v)


def slow_logit(discriminator, x, worker, label):
    """u' M v of one pair and label."""
    u, v = slow_codes(discriminator, x, worker)
    matrix = slow_matrices(discriminator)[label]
    return sum(u[i] * matrix[i][j] * v[j] for i in range(len(u)) for j in range(len(v)))


def slow_log_truth(discriminator, x, worker, label):
    """log q(k | x, w, label) of one pair."""
    u, v = slow_codes(discriminator, x, worker)
    flat = [entry for row in slow_matrices(discriminator)[label] for entry in row]
    _, shrink, _, _, into = discriminator.from_label
    parts = [
        linear(discriminator.from_worker[1], standard(u)),
        linear(discriminator.from_item[1], standard(v)),
        linear(into, standard(relu(linear(shrink, flat)))),
    ]
    return log_softmax(linear(discriminator.out, relu([sum(column) for column in zip(*parts)])))


def slow_adjacency(votes, n_classes, symmetric):
    """Normalised A + I by comparing every two labels of every item: D^-1/2 (A + I) D^-1/2, or rows of sum 1."""
    together = [[0.0] * n_classes for _ in range(n_classes)]
    triples = list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))
    for a, (item, _, label) in enumerate(triples):
        for b, (other_item, _, other) in enumerate(triples):
            if a != b and item == other_item:
                together[label][other] += 1
    if symmetric:
        degree = [sum(row) + 1 for row in together]
        return [
            [(together[c][d] + (c == d)) / math.sqrt(degree[c] * degree[d]) for d in range(n_classes)]
            for c in range(n_classes)
        ]
    for c, row in enumerate(together):
        total = sum(row)
        together[c] = [n / total for n in row] if total else [float(c == d) for d in range(n_classes)]
    return [[(together[c][d] + (c == d)) / 2 for d in range(n_classes)] for c in range(n_classes)]
