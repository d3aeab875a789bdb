"""Run the numerical part of the suite as other processors would: `make test-processors`.

    python tests/processors.py [-n 2] [--only WORD] [--list]

A configuration sets variables that make OpenBLAS, NumPy, torch or the compiled pass use the instructions of
another CPU, or builds the C modules in another way. What this CPU lacks cannot be forced: such configurations are
named as not run.
Every configuration runs the parts of the suite that it can change.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("src", "tests", "setup.py", "pyproject.toml", "README.md", "LICENSE", "conftest.py")

# What each part of a CPU can change. Aggregators go neither through BLAS nor through NumPy's exp and log.
PASS = ["tests/em", "tests/_core/test_elementary_compiled.py", "tests/test_bits.py"]
NUMERICS = [
    "tests/_core/test_elementary.py",
    "tests/test_heldout.py",
    "tests/metrics",
    "tests/simulate",
    "tests/scorecards",
]
CORE = [*PASS, *NUMERICS, "tests/aggregation"]
LEARNING = ["tests/classifiers", "tests/nn", "tests/representation", "tests/test_comparison.py"]
LEARNING += [f"tests/test_linear_{name}.py" for name in ("one_vs_rest", "principal_axes")]
# For one library at a time, a part of these; whole machines run all of them.
BY_BLAS = ["tests/test_bits.py", "tests/metrics"]
BY_BLAS += [f"tests/classifiers/test_{name}.py" for name in ("raykar", "cpc", "cpc_worker_regressions")]
BY_TORCH = [f"tests/nn/test_{name}.py" for name in ("losses", "worker_layers", "losses_metric", "train")]
BY_TORCH += ["tests/classifiers/test_iced_truth_inference.py"]
EVERYTHING = [*CORE, *LEARNING, "tests/test_every_method.py"]

NUMPY_AVX512 = ("X86_V4", "AVX512_ICL", "AVX512_SPR")


@dataclass(frozen=True)
class Configuration:
    """Variables that stand for another machine, what its CPU must have, and the tests that it may change."""

    name: str
    tests: list[str]
    variables: dict[str, str] = field(default_factory=dict)
    needs: tuple[str, ...] = ()  # CPU features by NumPy's names, or a program
    build: dict[str, str] | None = None  # variables of a build of the C modules of its own


def numpy_without(*features: str) -> str:
    """The value that disables those of NumPy's dispatched features that this build has and this CPU supports.

    NumPy warns of any other, and warnings are errors in the suite.
    """
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    return " ".join(name for name in features if name in __cpu_dispatch__ and __cpu_features__.get(name))


def configurations() -> list[Configuration]:
    """All of them, also those that this machine cannot run. `make test` is the machine as it is."""
    return [*whole_machines(), *single_libraries(), *other_builds()]


def whole_machines() -> list[Configuration]:
    """All libraries at once, as on a CPU of another age: these run everything."""
    without_avx2, without_avx512 = numpy_without("X86_V3", *NUMPY_AVX512), numpy_without(*NUMPY_AVX512)
    return [
        Configuration("a CPU without AVX2", EVERYTHING, everywhere("Prescott", without_avx2, "default", "default")),
        Configuration(
            "a CPU with AVX2 and without AVX-512",
            EVERYTHING,
            everywhere("Haswell", without_avx512, "avx2", "avx2"),
            ("X86_V4",),  # otherwise it is this machine as it is
        ),
    ]


def everywhere(blas: str, numpy: str, torch: str, clone: str) -> dict[str, str]:
    """The variables that set the instructions of all libraries."""
    disabled = {"NPY_DISABLE_CPU_FEATURES": numpy} if numpy else {}
    return disabled | {"OPENBLAS_CORETYPE": blas, "ATEN_CPU_CAPABILITY": torch, "MANYHANDS_SIMD": clone}


def single_libraries() -> list[Configuration]:
    """One library at a time, with the tests that it can change."""
    avx2, avx512 = ("X86_V3",), ("X86_V4",)
    blas = {"Prescott": (), "Haswell": avx2, "Zen": avx2, "SkylakeX": avx512}
    numpy = {"AVX2": (numpy_without("X86_V3", *NUMPY_AVX512), avx2), "AVX-512": (numpy_without(*NUMPY_AVX512), avx512)}
    torch = {"default": (), "avx2": avx2, "avx512": avx512}
    clones = {"default": (), "avx2": avx2, "avx512f": avx512}
    return [
        *(Configuration(f"OpenBLAS for {n}", BY_BLAS, {"OPENBLAS_CORETYPE": n}, needs) for n, needs in blas.items()),
        *(
            Configuration(f"NumPy without {n}", [*PASS, *NUMERICS], {"NPY_DISABLE_CPU_FEATURES": value}, needs)
            for n, (value, needs) in numpy.items()
        ),
        *(Configuration(f"torch for {n}", BY_TORCH, {"ATEN_CPU_CAPABILITY": n}, needs) for n, needs in torch.items()),
        *(Configuration(f"compiled pass for {n}", PASS, {"MANYHANDS_SIMD": n}, needs) for n, needs in clones.items()),
    ]


def other_builds() -> list[Configuration]:
    """Without the C modules, and with modules that were built in another way."""
    clang = {"CC": "clang", "LDSHARED": "clang -shared"}
    return [
        Configuration("no compiled modules", CORE, {"MANYHANDS_PLAIN": "1"}),
        Configuration("built without clones, as for ARM", PASS, needs=("cc",), build={"CFLAGS": "-DNO_CLONES"}),
        Configuration("built by Clang", PASS, needs=("clang",), build=clang),
    ]


def missing(configuration: Configuration) -> list[str]:
    """What of the configuration's needs this machine does not have."""
    from numpy._core._multiarray_umath import __cpu_features__

    programs = ("cc", "clang")
    return [
        need
        for need in configuration.needs
        if not (shutil.which(need) if need in programs else __cpu_features__.get(need))
    ]


def run(configuration: Configuration, n_processes: str) -> tuple[int, str]:
    """The exit code of pytest and its closing line."""
    with tempfile.TemporaryDirectory() as folder:
        where = ROOT if configuration.build is None else built(Path(folder), configuration.build)
        present = [test for test in configuration.tests if (where / test).exists()]
        environment = os.environ | {"PYTHONPATH": str(where / "src")} | configuration.variables
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-n",
            n_processes,
            "--dist",
            "worksteal",
            "-p",
            "no:cacheprovider",
        ]
        command += ["-m", "not (slow or browser or spark or contracts)", *present]
        done = subprocess.run(command, cwd=where, env=environment, capture_output=True, text=True)
    lines = [
        line for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))
    ] + done.stdout.splitlines()[-1:]
    return done.returncode, "\n".join(lines) + ("" if done.returncode in (0, 1) else done.stderr)


def built(folder: Path, variables: dict[str, str]) -> Path:
    """A copy of the project with C modules that were built in another way."""
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("*.so", "*.egg-info", "__pycache__"))
        elif source.exists():
            shutil.copy2(source, folder / name)
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=folder, env=os.environ | variables, check=True, capture_output=True)
    if not list((folder / "src" / "manyhands").glob("_fused*")):
        raise SystemExit(f"The C modules were not built with {variables}.")
    return folder


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("-n", default="auto", help="processes for each run of the tests; default: one for each core")
    parser.add_argument("--only", default="", help="only configurations with this word in their name")
    parser.add_argument("--list", action="store_true", help="only name the configurations")
    asked = parser.parse_args()
    failed = []
    for configuration in configurations():
        if asked.only.lower() not in configuration.name.lower():
            continue
        lacking = missing(configuration)
        if asked.list or lacking:
            print(
                f"{configuration.name}: " + (f"not run, needs {', '.join(lacking)}" if lacking else "can be run"),
                flush=True,
            )
            continue
        begin = time.perf_counter()
        code, said = run(configuration, asked.n)
        print(
            f"{configuration.name}: {'FAILED' if code else 'passed'} in {time.perf_counter() - begin:.0f} s\n{said}",
            flush=True,
        )
        failed += [configuration.name] if code else []
    if asked.list:
        return 0
    print(f"Failed: {', '.join(failed)}." if failed else "All that could be run have passed.")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main())
