"""The package with the lowest and with the newest versions of what it needs, and on several Pythons: `nox -s lowest`.

`make test` uses the versions of constraints.txt; these sessions show that the ranges of pyproject.toml hold. torch is
not among them: networks are tested with the version of constraints.txt. nox needs uv: `pip install nox uv`.
"""

import nox

nox.options.default_venv_backend = "uv"
nox.options.sessions = ["lowest", "newest"]
PYTHONS = ["3.11", "3.12", "3.13", "3.14", "3.15"]
# Tests of numbers, files and commands; what documents, types and the style of the source need is left to `make test`.
NUMERICAL = ["aggregation", "em", "metrics", "scorecards", "sharded", "simulate", "trust", "_core"]
FILES = ["io", "jobs", "cli", "report", "test_frames.py", "test_comparison.py", "test_persistence_aggregators.py"]
UNMARKED = "not (slow or browser or spark or contracts or documents or wheels)"


def run_tests(session: nox.Session) -> None:
    """Run the numerical tests and those of files, or what was named after ``--``."""
    chosen = session.posargs or [f"tests/{name}" for name in (*NUMERICAL, *FILES)]
    session.run("python", "-c", "import polars, numpy, sklearn; print(polars.__version__, numpy.__version__)")
    session.run("manyhands", "demo", "-o", f"{session.create_tmp()}/demo", "--force", silent=True)
    session.run("python", "-m", "pytest", "-q", "-n", "auto", "-p", "no:cacheprovider", "-m", UNMARKED, *chosen)


@nox.session(python="3.11")
def lowest(session: nox.Session) -> None:
    """The lowest version of every requirement, on the lowest Python."""
    lowest_of = [".[xlsx]", "pandas>=2.2.2", "pyarrow>=18"]
    session.install("--resolution", "lowest-direct", *lowest_of)
    session.install("pytest", "pytest-xdist", "hypothesis", "krippendorff")
    run_tests(session)


@nox.session(python=PYTHONS)
def newest(session: nox.Session) -> None:
    """The newest version of every requirement."""
    session.install("--upgrade", ".[xlsx]", "pandas", "pyarrow", "pytest", "pytest-xdist", "hypothesis", "krippendorff")
    run_tests(session)


@nox.session(
    python="3.11", venv_backend="venv"
)  # pip, for PIP_EXTRA_INDEX_URL: PyTorch's builds without libraries for GPUs
def types(session: nox.Session) -> None:
    """Everything exported has a type that every checker knows; examples are strict."""
    session.install("-c", "constraints.txt", "torch")
    session.install("-c", "constraints.txt", ".", "pyright", "mypy")
    complete = f"{session.create_tmp()}/complete.json"
    command = ("pyright", "--verifytypes", "manyhands", "--ignoreexternal", "--outputjson")
    with open(complete, "w", encoding="utf-8") as file:
        session.run(*command, stdout=file, success_codes=[0, 1])  # 1: modules that are not exported are counted too
    session.run("python", ".ci/exported_types.py", complete)
    session.run("mypy", "--strict", "examples")


@nox.session(python=False)
def workflows(session: nox.Session) -> None:
    """The workflows, by the linters of their syntax and of their security; both must be installed."""
    session.run("zizmor", "--offline", ".github", external=True)
    session.run("actionlint", external=True)
