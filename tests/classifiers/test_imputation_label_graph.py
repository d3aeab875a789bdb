"""The graph network compared with plain loops over edges; parts of a graph, and nodes without edges."""

import numpy as np
import pytest
import torch

from manyhands.classifiers.crowding_game import Pairs
from manyhands.classifiers.imputation import Edges, LabelGraph

N_FEATURES, N_CLASSES, N_WORKERS, UNITS = 4, 3, 3, 5
EDGES = Edges(*torch.tensor([[0, 0, 1, 1, 2, 2, 2], [0, 1, 0, 1, 0, 1, 1], [2, 0, 1, 1, 2, 0, 2]]))  # 2 has no label
PAIRS = Pairs(torch.tensor([0, 3, 2, 1]), torch.tensor([2, 0, 1, 2]))


@pytest.fixture
def graph():
    torch.manual_seed(0)
    return LabelGraph(N_FEATURES, N_CLASSES, N_WORKERS, units=UNITS).eval()


@pytest.fixture
def x():
    return torch.from_numpy(np.random.default_rng(0).normal(size=(4, N_FEATURES))).float()


def relu(values):
    return np.maximum(values, 0.0)


def slow_codes(n_nodes, own, others, matrix, edges, message, mine):
    """The embedding of each node: the mean of its messages, then a layer that also reads its own input."""
    codes = []
    for node in range(n_nodes):
        messages = [matrix[label] @ others[source] for source, target, label in edges if target == node]
        mean = sum(messages) / len(messages) if messages else np.zeros(UNITS)
        codes.append(relu(message.weight.numpy() @ relu(mean) + message.bias.numpy() + mine.weight.numpy() @ own[node]))
    return codes


def slow_log_label(graph, x, edges, pairs):
    read = graph.item[1]
    item = [relu(read.weight.numpy() @ row + read.bias.numpy()) for row in x.numpy()]
    worker = graph.worker().numpy()
    to_item, to_worker = graph.to_item.numpy(), graph.to_worker.numpy()
    triples = [*zip(*(column.tolist() for column in edges))]
    from_workers = [(w, i, k) for i, w, k in triples]
    v = slow_codes(len(x), item, worker, to_item, from_workers, graph.item_message, graph.item_own)
    u = slow_codes(N_WORKERS, worker, item, to_worker, triples, graph.worker_message, graph.worker_own)
    found = []
    for i, w in zip(*(column.tolist() for column in pairs)):
        logits = np.array([u[w] @ matrix @ v[i] for matrix in graph.edge.numpy()])
        found.append(logits - np.log(np.exp(logits).sum()))
    return np.array(found)


@torch.no_grad()
def test_the_network_equals_the_reference(graph, x):
    """One item and one worker have no label, and one pair has two."""
    found = graph(x, EDGES, PAIRS).numpy()
    np.testing.assert_allclose(found, slow_log_label(graph, x, EDGES, PAIRS), rtol=1e-4, atol=1e-6)
    other = EDGES._replace(label=(EDGES.label + 1) % N_CLASSES)
    assert not np.allclose(found, graph(x, other, PAIRS).numpy(), atol=1e-3)


@torch.no_grad()
def test_messages_to_workers_add_up_over_parts(graph, x):
    own, first = graph.item(x), EDGES.row < 1
    whole = graph.messages_to_workers(own, EDGES)
    parts = [graph.messages_to_workers(own, EDGES.select(which)) for which in (first, ~first)]
    torch.testing.assert_close(parts[0].total + parts[1].total, whole.total)
    assert (parts[0].degree + parts[1].degree).tolist() == whole.degree.tolist() == [3, 4, 0]


@torch.no_grad()
def test_a_graph_without_edges(graph, x):
    nothing = EDGES.select(EDGES.row < 0)
    found = graph(x, nothing, PAIRS)
    np.testing.assert_allclose(found.numpy(), slow_log_label(graph, x, nothing, PAIRS), rtol=1e-4, atol=1e-6)
    assert graph(x, EDGES, Pairs(PAIRS.row[:0], PAIRS.worker[:0])).shape == (0, N_CLASSES)


def test_every_weight_has_a_gradient_and_dropout_is_random(graph, x):
    graph.train()
    assert not torch.equal(graph(x, EDGES, PAIRS), graph(x, EDGES, PAIRS))
    (-graph.eval()(x, EDGES, Pairs(EDGES.row, EDGES.worker))[:, 0].sum()).backward()
    assert all(p.grad is not None and p.grad.abs().sum() > 0 for p in graph.parameters())
