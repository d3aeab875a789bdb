"""The table of contents."""

import subprocess
import sys

import pytest

from manyhands import registry
from manyhands.aggregation.base import Aggregator
from manyhands.classifiers.base import CrowdClassifier
from manyhands.exceptions import MissingExtraError, ParameterError
from manyhands.representation.base import RepresentationLearner


def test_names_are_sorted_and_in_one_style():
    """Names are kebab-case, sorted, and the source lists them in that order too."""
    names = registry.names()
    assert names == sorted({name for kind in registry._KINDS for name in registry.names(kind)})
    assert all(list(entries) == sorted(entries) for entries in registry._KINDS.values())
    assert all(name == name.lower() and " " not in name and "_" not in name for name in names)


@pytest.mark.parametrize("name", registry.names())
def test_every_entry_leads_to_a_class(name):
    """The module exists, the class is of its kind, and a new one shows its fixed parameters."""
    made = registry.create(name)
    kinds = {"aggregator": Aggregator, "classifier": CrowdClassifier, "representation": RepresentationLearner}
    of_kind = tuple(base for kind, base in kinds.items() if name in registry.names(kind))
    assert of_kind and all(isinstance(made, base) for base in of_kind) and type(made) is registry.get(name)
    assert made.get_params() | registry._METHODS[name][1] == made.get_params()
    assert registry.summary(name) == type(made).__doc__.strip().splitlines()[0]


def test_parameters_are_passed_on():
    """`create` takes constructor parameters."""
    assert registry.create("dawid-skene", smoothing=0.5).smoothing == 0.5


def test_default_is_registered():
    """The default method exists."""
    assert registry.DEFAULT in registry.names()


def test_unknown_names_are_refused_with_what_there_is():
    """The message lists the methods, or the kinds."""
    with pytest.raises(ParameterError, match=r"no method called 'dawid'.*dawid-skene, .*majority-vote"):
        registry.create("dawid")
    with pytest.raises(ParameterError, match="aggregator"):
        registry.names("classifiers of the future")


def test_a_missing_library_is_a_sentence_that_names_the_extra(monkeypatch):
    """A torch that cannot be imported is our error; any other missing module is a fault and stays one."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "manyhands.classifiers.crowd_layer", raising=False)
    for part in ("batches", "losses", "noise_layers"):
        monkeypatch.delitem(sys.modules, f"manyhands.nn.{part}", raising=False)
    with pytest.raises(MissingExtraError, match=r"crowd_layer needs torch, .*pip install 'manyhands\[learn\]'"):
        registry.get("crowd-layer")
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        registry.load_module("manyhands.no_such")


def test_a_class_knows_its_name():
    """Of every method; a class of somebody else's has none."""
    named = {name: registry.name_of(registry.get(name)) for name in registry.names()}
    variants = {name for name in named if name.startswith("crowd-layer-")}  # of one class, which has one name
    assert all(name == known for name, known in named.items() if name not in variants)
    assert {named[name] for name in variants} == {"crowd-layer-gan"}
    assert registry.name_of(type("Other", (registry.get("raykar"),), {})) is None


def test_two_stages_need_torch_only_for_a_network():
    """Voting and logistic regression run where torch is not installed."""
    program = """if True:
        import sys

        class Without:
            def find_spec(self, name, *others):
                if name == "torch":
                    raise ModuleNotFoundError("no torch here", name=name)

        sys.meta_path.insert(0, Without())
        import manyhands as mh

        votes = mh.Annotations.from_matrix([[0, 0], [1, 1]])
        model = mh.TwoStage("majority-vote", "logistic-regression").fit([[0.0], [1.0]], votes)
        print(*model.predict([[0.0], [1.0]]))
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "1"]
