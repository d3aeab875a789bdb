"""What is published: names, contents, the same bytes twice, and the demo from each wheel in an empty environment."""

import hashlib
import json
import os
import re
import tarfile
import tomllib
import zipfile
from email.parser import Parser
from pathlib import Path

import pytest

from wheels.building import ROOT, pythons, run

pytestmark = [
    pytest.mark.wheels,
    pytest.mark.skipif(os.name != "posix", reason="the environments are those of POSIX systems"),
]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
KINDS = ("compiled", "pure")
PYTHONS = pythons()
VOTES = "item,worker,label\n" + "".join(f"{n // 3},{'abc'[n % 3]},{'xy'[n % 5 > 2]}\n" for n in range(60))


def names_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        return archive.namelist()


def metadata(wheel, name):
    with zipfile.ZipFile(wheel) as archive:
        return archive.read(f"manyhands-{PROJECT['version']}.dist-info/{name}").decode()


def test_tags_tell_the_wheels_apart(wheels):
    """abi3 for CPython 3.11 and later where there is C code; for everything else the one without."""
    version = PROJECT["version"]
    assert re.fullmatch(rf"manyhands-{version}-cp311-abi3-\w+\.whl", wheels["compiled"][0].name)
    assert wheels["pure"][0].name == f"manyhands-{version}-py3-none-any.whl"
    modules = {kind: [name for name in names_in(wheels[kind][0]) if name.endswith((".so", ".pyd"))] for kind in KINDS}
    assert len(modules["compiled"]) == 2 and all(".abi3." in name for name in modules["compiled"])
    assert modules["pure"] == []
    assert "Root-Is-Purelib: true" in metadata(wheels["pure"][0], "WHEEL")


@pytest.mark.parametrize("kind", KINDS)
def test_a_wheel_built_twice_has_the_same_bytes(wheels, kind):
    """In two folders, from the source distribution, with the same SOURCE_DATE_EPOCH."""
    first, second = (hashlib.sha256(path.read_bytes()).hexdigest() for path in wheels[kind])
    assert first == second


def test_the_wheels_differ_in_the_compiled_modules_alone(wheels):
    compiled, pure = (set(names_in(wheels[kind][0])) for kind in KINDS)
    assert pure < compiled and all(name.endswith((".so", ".pyd")) for name in compiled - pure)


@pytest.mark.parametrize("kind", KINDS)
def test_a_wheel_holds_the_package_its_licence_and_no_tests(wheels, kind):
    held = names_in(wheels[kind][0])
    folder = f"manyhands-{PROJECT['version']}.dist-info"
    assert {"manyhands/py.typed", f"{folder}/licenses/LICENSE", f"{folder}/sboms/manyhands.cdx.json"} <= set(held)
    assert {name.partition("/")[0] for name in held} == {"manyhands", folder}
    source = {path.relative_to(ROOT / "src").as_posix() for path in (ROOT / "src/manyhands").rglob("*.py")}
    assert {name for name in held if name.endswith(".py")} == source
    assert any(name.startswith("manyhands/report/assets/") for name in held)
    said = Parser().parsestr(metadata(wheels[kind][0], "METADATA"))
    assert (said["Name"], said["Version"], said["License-Expression"]) == ("manyhands", PROJECT["version"], "MIT")


@pytest.mark.parametrize("kind", KINDS)
def test_the_bill_of_materials_is_valid_and_names_what_is_required(wheels, kind):
    """CycloneDX 1.7 by its own schema; one component for each requirement of pyproject.toml, with its range."""
    from cyclonedx.schema import SchemaVersion
    from cyclonedx.validation.json import JsonStrictValidator

    text = metadata(wheels[kind][0], "sboms/manyhands.cdx.json")
    assert JsonStrictValidator(SchemaVersion.V1_7).validate_str(text) is None
    found = json.loads(text)
    assert found["metadata"]["component"]["version"] == PROJECT["version"]
    listed = {part["name"] + part["versionRange"].removeprefix("vers:pypi/") for part in found["components"]}
    assert listed == set(PROJECT["dependencies"])


def test_the_compiled_modules_keep_to_the_stable_interface(wheels):
    """abi3audit knows every symbol of CPython's stable interface, and when it came."""
    said = json.loads(run("abi3audit", "--report", "--assume-minimum-abi3", "3.11", wheels["compiled"][0]))
    (report,) = said["specs"].values()
    modules = report["wheel"]
    assert len(modules) == 2
    for module in modules:
        assert module["result"]["is_abi3"] and module["result"]["non_abi3_symbols"] == []
        assert module["result"]["is_abi3_baseline_compatible"], module


def test_the_index_would_take_them(wheels, sdist):
    """The long description and all other metadata are rendered and checked as PyPI does."""
    run("twine", "check", "--strict", sdist, *(wheels[kind][0] for kind in KINDS))


def test_the_source_distribution_has_tests_and_licence(sdist):
    with tarfile.open(sdist) as archive:
        held = {name.partition("/")[2] for name in archive.getnames()}
    assert {"LICENSE", "tests/test_bits.py", "tests/wheels/test_wheels.py", "conftest.py", "noxfile.py"} <= held
    assert {"src/manyhands/_fused.c", "src/manyhands/_pass.h", "docs/architecture.md", "Makefile"} <= held
    assert not any(name.endswith((".so", ".pyc")) for name in held)


@pytest.mark.parametrize("python", PYTHONS, ids=[f"{version}-{path}" for path, version in PYTHONS.items()])
def test_the_demo_runs_from_the_wheel_on_every_python(environment, python, tmp_path):
    """In an empty environment: the C modules are there, the demo writes its report, an export becomes labels."""
    own = environment("compiled", python)
    check = "import manyhands; from manyhands.em import kernels; print(kernels._fused is not None, manyhands.__file__)"
    said = run(own, "-I", "-c", check, cwd=tmp_path).split()
    assert said[0] == "True" and str(ROOT) not in said[1]
    demo(own, tmp_path)


def test_the_demo_runs_from_the_pure_wheel_with_the_same_results(environment, tmp_path):
    """Without C modules the labels are the same to the last digit."""
    made = {}
    for kind in KINDS:
        own, folder = environment(kind), tmp_path / kind
        folder.mkdir()
        fused = run(own, "-I", "-c", "from manyhands.em import kernels; print(kernels._fused is not None)")
        assert fused.strip() == str(kind == "compiled")
        made[kind] = demo(own, folder)
    assert made["pure"] == made["compiled"]


def demo(python, folder):
    """Run the demo and one aggregation by the console script, and return the labels of both."""
    command = Path(python).with_name("manyhands")
    run(command, "demo", "-o", "demo", cwd=folder)
    assert (folder / "demo" / "report.html").stat().st_size > 10_000
    (folder / "votes.csv").write_text(VOTES)
    run(command, "aggregate", "votes.csv", "-o", "out", cwd=folder)
    return [(folder / name / "labels.csv").read_text() for name in ("demo", "out")]


PLUGIN = '''from manyhands import MajorityVote


class LoudVote(MajorityVote):
    """Majority vote under another name."""
'''
PLUGIN_PROJECT = """
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "loud-vote"
version = "1.0"
dependencies = ["manyhands>=0.2"]

[tool.setuptools]
py-modules = ["loud_vote"]

[project.entry-points."manyhands.methods"]
"loud-vote" = "loud_vote:LoudVote"
"""


def test_a_plugin_package_is_found_beside_the_wheel(environment, tmp_path):
    source = tmp_path / "plugin"
    source.mkdir()
    (source / "loud_vote.py").write_text(PLUGIN)
    (source / "pyproject.toml").write_text(PLUGIN_PROJECT)
    own = environment("compiled")
    run("uv", "pip", "install", "-q", "--python", own, source)
    command = own.with_name("manyhands")
    assert "loud-vote" in run(command, "methods", cwd=tmp_path)
    (tmp_path / "votes.csv").write_text(VOTES)
    loud = run(command, "aggregate", "votes.csv", "-m", "loud-vote", cwd=tmp_path)
    assert loud == run(command, "aggregate", "votes.csv", "-m", "majority-vote", cwd=tmp_path) and "item" in loud


FRAMES = """
import warnings
import pandas as pd
import manyhands as mh

warnings.simplefilter("ignore")
columns = {"item": [n // 3 for n in range(60)], "worker": list("abc" * 20), "label": list("xxyyx" * 12)}
expected = mh.read_annotations(pd.DataFrame(columns))
frame = pd.DataFrame(columns)


def frames():
    import dask.dataframe, duckdb, ibis, modin.pandas, pyarrow
    yield "dask", dask.dataframe.from_pandas(frame, npartitions=2)
    yield "duckdb", duckdb.sql("SELECT * FROM frame")
    yield "ibis", ibis.memtable(frame)
    yield "modin", modin.pandas.DataFrame(columns)
    yield "pyarrow", pyarrow.table(columns)


for name, one in frames():
    found = mh.read_annotations(one)
    assert found == expected, (name, found)
    assert mh.MajorityVote().fit(one).labels_.tolist() == mh.MajorityVote().fit(expected).labels_.tolist(), name
    print(name, type(mh.label_frame(mh.MajorityVote().fit(one))).__module__.partition(".")[0])
"""


def test_frames_of_other_libraries(environment, tmp_path):
    """Read as those of pandas are; results come back as pandas, pyarrow or polars."""
    own = environment("compiled", PYTHONS and next(iter(PYTHONS)), "pandas<3", "pyarrow", "dask[dataframe]", "duckdb",
                      "modin", "ibis-framework[duckdb]")  # fmt: skip
    (tmp_path / "frames.py").write_text(FRAMES)
    said = run(own, "frames.py", cwd=tmp_path, env=os.environ | {"MODIN_ENGINE": "python"})
    found = dict(line.split() for line in said.splitlines() if len(line.split()) == 2)
    assert found == {
        "dask": "pandas", "duckdb": "polars", "ibis": "polars", "modin": "pandas", "pyarrow": "pyarrow",
    }  # fmt: skip
