"""Reference implementations of the losses of metric learning, on nested lists."""

import math


def slow_squared(a, b):
    """|a - b|^2."""
    return math.fsum((x - y) ** 2 for x, y in zip(a, b))


def slow_distance(a, b):
    """|a - b|."""
    return math.sqrt(slow_squared(a, b))


def slow_mean(values):
    """The mean; 0 for an empty list."""
    return math.fsum(values) / max(len(values), 1)


def slow_contrastive(points, target, margin):
    """Mean over pairs of s D^2 + (1 - s) max(0, m - D)^2."""
    losses = []
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            distance = slow_distance(points[i], points[j])
            losses.append(distance**2 if target[i] == target[j] else max(0.0, margin - distance) ** 2)
    return slow_mean(losses)


def slow_siamese(points, target, weight, bias):
    """Half the mean cross-entropy of "one class" over the pairs of one class, and half that over the others."""
    losses = {True: [], False: []}
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            logit = bias + math.fsum(w * abs(a - b) for w, a, b in zip(weight, points[i], points[j]))
            p_same = 1 / (1 + math.exp(-logit))
            same = target[i] == target[j]
            losses[same].append(-math.log(p_same if same else 1 - p_same))
    return (slow_mean(losses[True]) + slow_mean(losses[False])) / 2


def slow_mean_l1(points):
    """Mean over pairs of the sum of absolute differences; 0 without a pair."""
    pairs = [(i, j) for i in range(len(points)) for j in range(i + 1, len(points))]
    total = sum(abs(a - b) for i, j in pairs for a, b in zip(points[i], points[j], strict=True))
    return total / len(pairs) if pairs else 0.0


def slow_triplet(anchors, positives, negatives, margin):
    """Mean over triplets of max(0, D(a, p)^2 - D(a, n)^2 + m)."""
    return slow_mean(
        [
            max(0.0, slow_squared(a, p) - slow_squared(a, n) + margin)
            for a, p, several in zip(anchors, positives, negatives)
            for n in several
        ]
    )


def slow_semi_hard(points, target, margin):
    """Mean over ordered positive pairs; the closest negative beyond the positive, else the farthest."""
    losses = []
    for i, anchor in enumerate(points):
        negatives = [slow_squared(anchor, other) for other, k in zip(points, target) if k != target[i]]
        for j, positive in enumerate(points):
            if i == j or target[i] != target[j] or not negatives:
                continue
            near = slow_squared(anchor, positive)
            beyond = [far for far in negatives if far > near]
            losses.append(max(0.0, near - (min(beyond) if beyond else max(negatives)) + margin))
    return slow_mean(losses)


def slow_lifted(points, target, margin):
    """1 / (2 |P|) sum over unordered positive pairs of max(0, J)^2; 0 for a pair without negatives."""
    losses = []
    for i in range(len(points)):
        for j in range(i + 1, len(points)):
            if target[i] != target[j]:
                continue
            pushing = [
                math.exp(margin - slow_distance(points[end], points[k]))
                for end in (i, j)
                for k in range(len(points))
                if target[k] != target[end]
            ]
            J = math.log(math.fsum(pushing)) + slow_distance(points[i], points[j]) if pushing else 0.0
            losses.append(max(0.0, J) ** 2)
    return slow_mean(losses) / 2


def slow_triplet_center(points, target, centres, margin):
    """Mean of max(0, D(e, c_own) + m - min D(e, c_other)), D half the squared distance."""
    losses = []
    for point, own in zip(points, target):
        half = [slow_squared(point, centre) / 2 for centre in centres]
        losses.append(max(0.0, half[own] + margin - min(d for k, d in enumerate(half) if k != own)))
    return slow_mean(losses)


def slow_tuplet(similarity, confidence, scale, inside):
    """Mean of -log p(first), p_j ~ w_j exp(g R_j), or exp(g w_j R_j) with the confidence inside."""
    losses = []
    for similarities, weights in zip(similarity, confidence):
        if inside:
            scores = [math.exp(scale * w * r) for r, w in zip(similarities, weights)]
        else:
            scores = [w * math.exp(scale * r) for r, w in zip(similarities, weights)]
        losses.append(-math.log(scores[0] / math.fsum(scores)))
    return slow_mean(losses)
