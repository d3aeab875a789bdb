"""Groups of options: nested parameters, validation that names the option, copies, and their form in JSON."""

import json
from dataclasses import FrozenInstanceError, fields

import numpy as np
import pytest
from sklearn.base import clone

from manyhands import ICED, CrowdInG, NeuCrowd, persistence
from manyhands.classifiers.iced import Synthesis, TruthInference, WarmUp
from manyhands.estimator import OptionGroup, Options
from manyhands.exceptions import ParameterError
from manyhands.persistence import options_from_json, options_to_json
from manyhands.representation.neucrowd_training import LabelConfidence, SafetyAwareSampling

pytestmark = pytest.mark.fast

GROUPS = [
    group for cls in (CrowdInG, ICED, NeuCrowd) for group in cls._constraints.values() if isinstance(group, Options)
]


@pytest.mark.parametrize("group", [each.group for each in GROUPS], ids=lambda group: group.__name__)
def test_every_group_is_complete(group):
    """Each field has a constraint that allows its default, in the same order; groups are frozen, and known by name."""
    made = group()
    assert [field.name for field in fields(group)] == list(group._constraints)
    assert all(c.allows(getattr(made, name)) for name, c in group._constraints.items())
    assert repr(made) == f"{group.__name__}()" and Options(group).allows(made)
    with pytest.raises(FrozenInstanceError):
        setattr(made, fields(group)[0].name, None)
    assert options_from_json(json.loads(json.dumps(options_to_json(made)))) == made


def test_all_names_in_json_are_used():
    """Every group that can be read from JSON is a parameter of a method."""
    assert len(persistence._GROUPS) == len(GROUPS)


def test_options_are_nested_parameters():
    """They are listed, set without a change of the original group, and copied by scikit-learn."""
    model, synthesis = ICED(), Synthesis()
    model.set_params(synthesis=synthesis, synthesis__n_neighbors=3, warm_up=None)
    assert model.get_params()["synthesis__n_neighbors"] == 3 and synthesis.n_neighbors == 5
    assert ICED().synthesis == Synthesis() and repr(model) == "ICED(warm_up=None, synthesis=Synthesis(n_neighbors=3))"
    copy = clone(model)
    assert copy.get_params() == model.get_params() and copy.synthesis == model.synthesis


def test_unknown_options_are_refused():
    """With the nearest name; of a group that is None, there is none."""
    with pytest.raises(ParameterError, match=r"Synthesis has no option 'n_neighbours'\. Did you mean 'n_neighbors'"):
        Synthesis(n_neighbours=3)
    with pytest.raises(ParameterError, match=r"'synthesis__n_neighbour'\. Did you mean 'synthesis__n_neighbors'"):
        ICED().set_params(synthesis__n_neighbour=3)
    with pytest.raises(ParameterError, match="'warm_up' is None here; set it to a group"):
        ICED(warm_up=None).set_params(warm_up__epochs=3)


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (
            ICED(synthesis=Synthesis(n_neighbors=0)),
            r"The parameter `synthesis__n_neighbors` of ICED must be a whole number at least 1\. Got 0\.",
        ),
        (
            ICED(inference=TruthInference(em="firm")),
            r"`inference__em` of ICED must be one of 'hard', 'soft'\. Got 'firm'",
        ),
        (
            ICED(warm_up="grouped"),
            r"`warm_up` of ICED must be None or a group of options WarmUp\(\.\.\.\)\. Got 'grouped'",
        ),
        (ICED(certainty=None), r"`certainty` of ICED must be a group of options Certainty\(\.\.\.\)\. Got None"),
        (NeuCrowd(safety=WarmUp()), r"`safety` of NeuCrowd must be None or a group of options SafetyAwareSampling"),
        (NeuCrowd(confidence=LabelConfidence("votes")), "`confidence__kind` of NeuCrowd must be one of 'assurance'"),
    ],
)
def test_a_message_names_the_option(model, message):
    """The first one that its constraint does not allow, before anything is fitted."""
    with pytest.raises(ParameterError, match=message):
        model.check_parameters()


def test_json_keeps_arrays_and_numbers():
    """A prior as an array comes back as a tuple, numbers of NumPy as plain ones."""
    given = TruthInference(prior=np.array([0.25, 0.75]), smoothing=np.float64(0.5))
    found = options_from_json(json.loads(json.dumps(options_to_json(given))))
    assert found == TruthInference(prior=(0.25, 0.75), smoothing=0.5)
    assert options_to_json(SafetyAwareSampling())["options"] == "neucrowd.SafetyAwareSampling"


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"options": "os.system", "values": {}}, "'os.system' is not the name of a group of options"),
        ({"options": ["iced.WarmUp"], "values": {}}, "is not the name of a group of options"),
        ({"options": "iced.WarmUp", "values": {"epoch": 2}}, "WarmUp has no option 'epoch'"),
        ({"options": "iced.WarmUp"}, "The values of the group of options 'iced.WarmUp' are missing"),
    ],
)
def test_unknown_names_in_json_are_refused(value, message):
    """Of groups and of options; no other code is imported."""
    with pytest.raises(ParameterError, match=message):
        options_from_json(value)


def test_what_has_no_form_in_json_is_refused():
    """A group of the caller's own, and values that are neither numbers nor text."""
    with pytest.raises(ParameterError, match="Own is not a group of options of manyhands"):
        options_to_json(type("Own", (OptionGroup,), {})())
    with pytest.raises(ParameterError, match="The option 'kind' is of type object, which cannot be saved"):
        options_to_json(WarmUp(kind=object()))
