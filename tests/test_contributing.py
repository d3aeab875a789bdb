"""The examples of CONTRIBUTING.md: as they stand, a method that passes every check and a format that reads a file."""

import json
import re
import sys
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import pytest

import manyhands as mh
from manyhands import testing
from manyhands.exceptions import AnnotationError
from manyhands.io import formats

TEXT = (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", TEXT, re.MULTILINE | re.DOTALL)
METHOD, _REGISTRY_LINE, TEST, _NETWORK_METHOD, FORMAT, FORMATS_LINE = BLOCKS


def module_of(name, code, folder):
    """The module of an example, imported under the name that it has in the package."""
    path = folder / f"{name.rpartition('.')[2]}.py"
    path.write_text(code, encoding="utf-8")
    spec = spec_from_file_location(name, path)
    module = sys.modules[name] = module_from_spec(spec)  # for pickles, and for code that imports it
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def agreement_vote(tmp_path_factory):
    """The module of the method."""
    module = module_of("manyhands.aggregation.agreement_vote", METHOD, tmp_path_factory.mktemp("method"))
    yield module
    del sys.modules[module.__name__]


@pytest.fixture
def votebox(tmp_path, monkeypatch):
    """A folder, while the format is registered by the line of the page, before all others."""
    module = module_of("manyhands.io.formats.votebox", FORMAT, tmp_path)
    monkeypatch.setattr(formats, "FORMATS", eval(f"{{{FORMATS_LINE}}}") | formats.FORMATS)
    yield tmp_path
    del sys.modules[module.__name__]


def test_a_method_is_short():
    """Whoever contributes one writes at most 45 lines."""
    assert METHOD.count("\n") <= 45


@pytest.mark.parametrize(("name", "check"), [*testing.aggregator_checks()])
def test_the_method_passes_every_check(agreement_vote, name, check):
    """The requirement is the first line of the docstring of the check."""
    check(agreement_vote.AgreementVote())


@pytest.mark.usefixtures("agreement_vote")
def test_the_example_of_a_test_passes():
    """As it stands, with its own imports."""
    names = {}
    exec(TEST, names)
    names["test_agreement_is_the_mean_vote_share_of_a_worker"]()


def test_a_format_reads_an_export(votebox):
    """A vote without a choice is in the ledger; the names of the fields are in the mapping."""
    votes = [("p1", "ann", "cat"), ("p1", "bob", "dog"), ("p2", "ann", "dog"), ("p2", "bob", None)]
    entries = [dict(zip(("picture", "voter", "choice"), vote)) for vote in votes]
    (votebox / "export.json").write_text(json.dumps(entries), encoding="utf-8")
    reading = mh.io.read_export(votebox / "export.json")
    assert reading.format == "votebox" and reading.columns["worker"] == "voter"
    assert reading.ledger.rows_read == 4 and reading.ledger.excluded == {"skipped": 1}
    annotations = mh.read_annotations(votebox / "export.json")
    columns = (annotations.item_ids[annotations.item], annotations.worker_ids[annotations.worker])
    triples = zip(*(column.tolist() for column in (*columns, annotations.classes[annotations.label])))
    assert sorted(triples) == votes[:3]


def test_a_format_refuses_what_it_cannot_follow(votebox):
    """The fields have fixed names, so that an option that names another one is an error."""
    (votebox / "export.json").write_text('[{"picture": 1, "voter": 2, "choice": 3}]', encoding="utf-8")
    with pytest.raises(AnnotationError, match="Votebox has its workers in fixed fields"):
        mh.read_annotations(votebox / "export.json", worker="user")
