"""Hypothesis strategies: small crowds with everything a real one may have."""

import numpy as np
from hypothesis import strategies as st

from manyhands import Annotations


@st.composite
def annotations(draw, max_items=8, max_workers=5, n_classes=None, min_labels=1, max_labels=30):
    """Ragged crowds with repeated pairs, silent workers and items, and classes nobody chose."""
    n_items = draw(st.integers(1, max_items))
    n_workers = draw(st.integers(1, max_workers))
    n_classes = draw(st.integers(1, 5)) if n_classes is None else n_classes
    codes = st.tuples(st.integers(0, n_items - 1), st.integers(0, n_workers - 1), st.integers(0, n_classes - 1))
    triples = draw(st.lists(codes, min_size=min_labels, max_size=max_labels))
    columns = np.array(triples, int).reshape(-1, 3).T
    return Annotations(
        *columns,
        item_ids=[f"i{i}" for i in range(n_items)],
        worker_ids=[f"w{w}" for w in range(n_workers)],
        classes=[f"k{k}" for k in range(n_classes)],
    )


def triples_of(votes):
    """The (item, worker, label) codes as a list of tuples of plain integers."""
    return list(zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist()))


def seeds():
    """A seed for arrays whose exact values hypothesis need not shrink."""
    return st.integers(0, 2**32 - 1)


def probability_rows(rng, *shape):
    """Random rows that sum to 1, with some entries close to 0."""
    rows = rng.gamma(0.3, size=shape) + 1e-9
    return rows / rows.sum(axis=-1, keepdims=True)
