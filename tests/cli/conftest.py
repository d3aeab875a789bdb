"""A small job with labels, features, texts and truth."""

import numpy as np
import pytest


@pytest.fixture
def job(tmp_path, monkeypatch):
    """A folder with ratings.csv, X.npz, texts.csv and truth.csv about forty items of two classes."""
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    truth = np.arange(40) % 2
    ids = [f"i{k}" for k in range(40)]
    names = np.array(["cat", "dog"])
    labels = np.where(rng.random((40, 3)) < 0.9, truth[:, None], 1 - truth[:, None])
    rows = [f"{ids[i]},w{w},{names[labels[i, w]]}" for i in range(40) for w in range(3)]
    (tmp_path / "ratings.csv").write_text("item,worker,label\n" + "\n".join(rows) + "\n")
    np.savez("X.npz", X=rng.normal(size=(40, 3)) + 5 * truth[:, None], ids=np.array(ids))
    words = ["it says meow and purrs", "it barks and wags"]
    (tmp_path / "texts.csv").write_text("id,body\n" + "".join(f"{i},{words[t]} {i}\n" for i, t in zip(ids, truth)))
    (tmp_path / "truth.csv").write_text("item,label\n" + "".join(f"{i},{names[t]}\n" for i, t in zip(ids, truth)))
    return tmp_path
