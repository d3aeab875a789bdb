"""What docs/design.md promises about bits: fits in processes that differ in threads, path and instruction set."""

import hashlib
import os
import subprocess
import sys

import numpy as np
import pytest

from manyhands.em import kernels
from manyhands.simulate import make_crowd

PROGRAM = """
import sys, warnings
import numpy as np
import manyhands as mh
warnings.simplefilter("ignore")
with np.load(sys.argv[1]) as file:
    codes = [[file[f"{name}{i}"] for name in ("item", "worker", "label")] for i in range(3)]
    ids = [{"item_ids": range(n), "worker_ids": range(30), "classes": range(k)} for n, k in zip(file["n"], file["k"])]
crowds = [mh.Annotations(*code, **names) for code, names in zip(codes, ids)]
found = {}
for name in mh.registry.names(kind="aggregator"):
    for i, crowd in enumerate(crowds):
        if name != "kos" or crowd.n_classes == 2:
            model = mh.registry.create(name).fit(crowd)
            found[f"{name}/{i}"] = np.concatenate([model.posterior_.ravel(), model.labels_.astype(float)])
np.savez(sys.argv[2], **found)
"""


@pytest.fixture(scope="module")
def crowds(tmp_path_factory):
    """Crowds of two, three and eight classes, one with constant workers, as a file of codes."""
    path, arrays = tmp_path_factory.mktemp("bits") / "crowds.npz", {"n": [], "k": []}
    for i, (n_classes, bad) in enumerate([(2, "constant"), (3, "random"), (8, "random")]):
        crowd = make_crowd(
            n_items=250, n_workers=30, n_classes=n_classes, labels_per_item=4, bad=bad, bad_share=0.2, random_state=i
        ).annotations
        arrays |= {f"{name}{i}": getattr(crowd, name) for name in ("item", "worker", "label")}
        arrays["n"].append(crowd.n_items)
        arrays["k"].append(crowd.n_classes)
    np.savez(path, **arrays)
    return path


def _fits(crowds, number, **variables):
    """(name, posterior and labels as one array) of every aggregator on every crowd, in a process of its own."""
    target = crowds.with_name(f"{number}.npz")
    left_out = {"MANYHANDS_PLAIN", "MANYHANDS_SIMD", "MANYHANDS_THREADS"}
    environment = {name: value for name, value in os.environ.items() if name not in left_out} | variables
    subprocess.run([sys.executable, "-c", PROGRAM, str(crowds), str(target)], env=environment, check=True)
    with np.load(target) as file:
        return {name: file[name] for name in file.files}


def _other_machines():
    """Variables that make this machine compute like another one; only what this CPU supports can be taken away."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    there = " ".join(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    yield {"MANYHANDS_PLAIN": "1", "MANYHANDS_THREADS": "1"}
    yield {"NPY_DISABLE_CPU_FEATURES": there, "OPENBLAS_CORETYPE": "Prescott", "MANYHANDS_THREADS": "8"}
    if kernels._fused is not None:
        yield from ({"MANYHANDS_SIMD": name} for name in kernels._fused.instruction_sets())


def test_every_path_and_instruction_set_gives_the_same_bits(crowds):
    """The compiled and the plain path, each instruction set, NumPy without its vector functions, 1 and 8 threads."""
    expected = _fits(crowds, "as it is")
    assert len(expected) >= 27
    digests = {name: hashlib.sha256(found.tobytes()).hexdigest() for name, found in expected.items()}
    for number, variables in enumerate(_other_machines()):
        found = _fits(crowds, number, **variables)
        differ = [name for name in expected if hashlib.sha256(found[name].tobytes()).hexdigest() != digests[name]]
        assert not differ, f"with {variables}"
