"""The registry of methods."""

import inspect
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
    """The module exists, the class is of its kind, and a new estimator has the fixed parameters of its entry."""
    made = registry.create(name)
    kinds = {"aggregator": Aggregator, "classifier": CrowdClassifier, "representation": RepresentationLearner}
    offers = {
        "aggregator": ("fit_predict", "predict"),
        "classifier": ("predict", "predict_proba", "score", "save"),
        "representation": ("transform", "save"),
    }
    own = [kind for kind in kinds if name in registry.names(kind)]
    assert isinstance(made, tuple(kinds[kind] for kind in own)) and type(made) is registry.get(name)
    assert all(callable(getattr(made, method)) for kind in own for method in offers[kind])
    assert made.get_params() | registry._METHODS[name][1] == made.get_params()


@pytest.mark.parametrize("name", registry.names())
def test_the_summary_is_the_first_line_of_the_docstring(name):
    """Read from the source, with the fixed parameters; of the class, or of the class method that the entry names."""
    method, constructor = registry.get(name), registry._METHODS[name][0].partition(":")[2].partition(".")[2]
    documented = getattr(method, constructor) if constructor else method
    line, fixed = inspect.getdoc(documented).splitlines()[0], registry._METHODS[name][1]
    variant = ", ".join(f"{parameter}={value!r}" for parameter, value in fixed.items())
    assert registry.summary(name) == (f"{line[:-1]} ({variant})." if fixed else line)


def test_an_entry_may_name_a_class_method():
    """`crowding-plus` is `CrowdInG.plus`: the class is CrowdInG, and parameters reach the class method."""
    from manyhands import CrowdInG

    assert registry._METHODS["crowding-plus"][0].endswith(":CrowdInG.plus")
    assert registry.get("crowding-plus") is registry.get("crowding") is CrowdInG
    assert repr(registry.create("crowding-plus")) == repr(CrowdInG.plus()) != repr(registry.create("crowding"))
    assert registry.create("crowding-plus", members=2).members == 2
    assert registry.create_seeded("crowding-plus", 5).random_state == 5
    assert registry.name_of(CrowdInG) == "crowding"


def test_parameters_are_passed_on():
    """`create` takes constructor parameters."""
    assert registry.create("dawid-skene", smoothing=0.5).smoothing == 0.5


def test_default_is_registered():
    """The default method exists."""
    assert registry.DEFAULT in registry.names()


def test_unknown_names_are_refused():
    """With the nearest name; with all of them where none is similar; and with the kinds."""
    with pytest.raises(ParameterError) as refused:
        registry.create("dawid_skeen")
    assert str(refused.value) == "There is no method called 'dawid_skeen'. Did you mean 'dawid-skene'?"
    with pytest.raises(ParameterError) as refused:
        registry.summary("crowding-pluss")
    assert str(refused.value) == "There is no method called 'crowding-pluss'. Did you mean 'crowding-plus'?"
    with pytest.raises(ParameterError, match=r"no method called 'zzzz'. There are: aggnet, .*majority-vote"):
        registry.get("zzzz")
    with pytest.raises(ParameterError, match=r"There are: aggregator, classifier, representation\."):
        registry.names("zzzz")


def test_only_names_of_the_kind_that_is_needed_are_suggested():
    """A list of what fits the job: no classifier where an aggregator is needed."""
    assert registry.check_name("wawa", "aggregator") is None
    with pytest.raises(ParameterError) as refused:
        registry.check_name("zzzz", "aggregator")
    every = ", ".join(registry.names("aggregator"))
    assert str(refused.value) == f"There is no aggregator called 'zzzz'. There are: {every}."
    with pytest.raises(ParameterError, match="There is no aggregator called 'crowd-layr'") as refused:
        registry.check_name("crowd-layr", "aggregator")
    assert "crowd-layer" not in str(refused.value)
    with pytest.raises(ParameterError, match=r"no classifier called 'crowd-layr'\. Did you mean 'crowd-layer'\?"):
        registry.check_name("crowd-layr", "classifier")


def test_a_missing_library_is_an_error_that_names_the_extra(monkeypatch):
    """Where torch cannot be imported, our own error names the extra; any other missing module stays as it is."""
    monkeypatch.setitem(sys.modules, "torch", None)
    monkeypatch.delitem(sys.modules, "manyhands.classifiers.crowd_layer", raising=False)
    for part in ("batches", "losses", "worker_layers"):
        monkeypatch.delitem(sys.modules, f"manyhands.nn.{part}", raising=False)
    with pytest.raises(MissingExtraError, match=r"crowd_layer needs torch, .*pip install 'manyhands\[learn\]'"):
        registry.get("crowd-layer")
    with pytest.raises(ModuleNotFoundError, match="no_such"):
        registry.load_module("manyhands.no_such")


def test_the_name_of_a_class_is_that_of_its_plain_constructor():
    """Variants with other constructors or fixed parameters share it; a class outside the registry has none."""
    named = {name: registry.name_of(registry.get(name)) for name in registry.names()}
    variants = {name for name in named if registry._METHODS[name][1]}  # of a class, which has one name
    plus = {name for name in named if name.endswith("-plus")}
    program = {name for name in named if name.endswith("-program")}
    assert program == {"fixed-difficulty-em-program"} and plus == {
        f"{name}-plus" for name in ("crowding", "difficulty-em", "iced", "neucrowd", "self-crowd")
    }
    assert all(name == known for name, known in named.items() if name not in variants | plus | program)
    assert {named[name] for name in variants} == {"crowd-layer-gan", "doctor-net", "spee-lfc", "contrastive"}
    assert all(named[name] == name.removesuffix("-plus").removesuffix("-program") for name in plus | program)
    assert registry.name_of(type("Other", (registry.get("raykar"),), {})) is None


def test_two_stages_need_torch_only_for_a_network():
    """Majority vote and logistic regression run where torch is not installed."""
    program = """if True:
        import sys

        class Without:
            def find_spec(self, name, *others):
                if name == "torch":
                    raise ModuleNotFoundError("no torch here", name=name)

        sys.meta_path.insert(0, Without())
        import manyhands as mh

        votes = mh.Annotations.from_matrix([[0, 0], [1, 1]])
        model = mh.classifiers.TwoStage("majority-vote", "logistic-regression").fit([[0.0], [1.0]], votes)
        print(*model.predict([[0.0], [1.0]]))
    """
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert run.stdout.split() == ["0", "1"]


def test_a_library_that_is_missing_inside_a_fit_is_named_with_its_command():
    """The command line says so in place of the bare error; libraries that no extra brings are left to `doctor`."""
    said = registry.missing_extra(ModuleNotFoundError("No module named 'torch'", name="torch"), "This")
    assert said == f"This needs torch, which is not installed. Install it with: {registry.install_command('learn')}"
    assert registry.missing_extra(ModuleNotFoundError("No module named 'numpy'", name="numpy"), "This") is None
    assert said.endswith("torch==2.13.0")
