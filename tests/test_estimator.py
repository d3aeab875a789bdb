"""The base of all estimators: parameters, signatures, groups of options, and what scikit-learn asks for."""

import copy
import inspect
import pickle
import sys

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.utils.validation import check_is_fitted

from manyhands import ICED, CrowdInG, DawidSkene, MajorityVote, OneCoin, SelfCrowd, registry
from manyhands.aggregation.base import Aggregator
from manyhands.classifiers import CrowdLayer, TwoStage
from manyhands.classifiers.base import CrowdClassifier, FeatureMethod
from manyhands.classifiers.crowding_game import Adversarial, DiscriminatorTraining, GeneratorTraining
from manyhands.estimator import BaseEstimator
from manyhands.exceptions import NotFittedError, ParameterError
from manyhands.representation.base import RepresentationLearner
from manyhands.testing.crowds import easy_crowd, feature_crowd

pytestmark = pytest.mark.fast


def test_parameters_are_listed_and_set():
    """`get_params` names all of them, `set_params` returns self."""
    model = DawidSkene(smoothing=0.5)
    assert list(model.get_params()) == ["smoothing", "prior", "max_iter", "tol", "n_init", "random_state"]
    assert model.set_params(tol=1e-3, n_init=2) is model
    assert (model.tol, model.n_init, model.smoothing) == (1e-3, 2, 0.5)
    assert MajorityVote().get_params() == {}


def test_unknown_parameters_are_refused():
    """The constructor and `set_params` name the nearest parameter, or all of them where none is similar."""
    with pytest.raises(ParameterError) as refused:
        CrowdLayer(lr=1)
    assert str(refused.value) == "CrowdLayer has no parameter 'lr'. Did you mean 'learning_rate'?"
    with pytest.raises(ParameterError) as refused:
        DawidSkene().set_params(smooth=1)
    assert str(refused.value) == "DawidSkene has no parameter 'smooth'. Did you mean 'smoothing'?"
    with pytest.raises(ParameterError) as refused:
        OneCoin(zzz=1)
    every = ", ".join(OneCoin().get_params())
    assert str(refused.value) == f"OneCoin has no parameter 'zzz'. It has: {every}."


def our_classes(estimator):
    return [base for base in inspect.getmro(estimator) if base.__module__.startswith("manyhands.")]


FAMILIES = {  # the base of each family of methods, and what is above it
    Aggregator: [BaseEstimator],
    CrowdClassifier: [FeatureMethod, BaseEstimator],
    RepresentationLearner: [FeatureMethod, BaseEstimator],
}


@pytest.mark.parametrize("name", registry.names())
def test_constructors_are_explicit_and_bases_shallow(name):
    """`inspect.signature` shows every parameter with its default; bases are that of the family and one more at most."""
    method = registry.get(name)
    parameters = inspect.signature(method).parameters
    assert not [p for p in parameters.values() if p.kind in (p.VAR_KEYWORD, p.VAR_POSITIONAL)]
    assert {p.name: p.default for p in parameters.values()} == method().get_params(deep=False)
    bases = our_classes(method)
    at = next(place for place, base in enumerate(bases) if base in FAMILIES)
    assert at <= 2 and bases[at + 1 :] == FAMILIES[bases[at]]  # between them, what several methods share


def test_a_method_without_parameters_takes_none():
    """Neither by name nor by position."""
    with pytest.raises(TypeError):
        MajorityVote(3)
    with pytest.raises(ParameterError, match="MajorityVote has no parameter 'soft'"):
        MajorityVote(soft=True)


def test_repr_shows_what_differs_from_the_defaults():
    """As in scikit-learn, and arrays do not break it."""
    assert repr(OneCoin()) == "OneCoin()"
    assert repr(OneCoin(tol=0.1, random_state=3)) == "OneCoin(tol=0.1, random_state=3)"
    assert repr(DawidSkene(prior=np.array([0.5, 0.5]))) == "DawidSkene(prior=array([0.5, 0.5]))"


def test_parameters_are_validated_by_fit_and_not_by_the_constructor():
    """An invalid value is stored as it is and refused by `fit`."""
    model = DawidSkene(smoothing="much")
    assert model.smoothing == "much"
    with pytest.raises(ParameterError, match=r"`smoothing` of DawidSkene must be a number at least 0. Got 'much'"):
        model.fit(easy_crowd(2)[0])


def test_using_an_unfitted_estimator_raises_not_fitted_error():
    """The error is also an AttributeError, as scikit-learn expects."""
    with pytest.raises(NotFittedError, match=r"This DawidSkene is not fitted yet. Call fit\(annotations\) first."):
        DawidSkene()._check_fitted()
    assert issubclass(NotFittedError, AttributeError) and issubclass(NotFittedError, ValueError)


UNFITTED = [
    (DawidSkene, ["labels_", "posterior_", "worker_accuracy_", "confusion_", "annotations_", "score_kind"]),
    (TwoStage, ["classes_", "posterior_", "module_", "feature_names_in_", "score_kind"]),
]


@pytest.mark.parametrize(("cls", "names"), UNFITTED)
def test_results_of_an_unfitted_estimator_are_one_sentence(cls, names):
    """Attributes as well as methods; `hasattr` and scikit-learn's own checks work as for its estimators."""
    model = cls()
    for name in names:
        assert not hasattr(model, name)
        with pytest.raises(NotFittedError, match=rf"This {cls.__name__} is not fitted yet.*Call fit\("):
            getattr(model, name)
    with pytest.raises(SklearnNotFittedError, match="is not fitted yet"):
        check_is_fitted(model)
    votes = easy_crowd(2)[0]
    for use in (lambda: model.predict(votes), lambda: model.score(*[votes] * (1 + (cls is TwoStage)))):
        with pytest.raises(SklearnNotFittedError, match=f"This {cls.__name__} is not fitted yet") as raised:
            use()
        assert isinstance(raised.value, NotFittedError)
        again = pickle.loads(pickle.dumps(raised.value))
        assert isinstance(again, SklearnNotFittedError) and str(again) == str(raised.value)


def test_not_fitted_without_scikit_learn_loaded(monkeypatch):
    monkeypatch.delitem(sys.modules, "sklearn.exceptions")
    with pytest.raises(NotFittedError) as raised:
        _ = DawidSkene().labels_
    assert type(raised.value) is NotFittedError


def test_unknown_attributes_name_the_nearest():
    with pytest.raises(AttributeError, match=r"no attribute 'predit'. Did you mean 'predict'") as raised:
        _ = DawidSkene().predit
    assert not isinstance(raised.value, NotFittedError)
    fitted = MajorityVote().fit(easy_crowd(2)[0])
    with pytest.raises(AttributeError, match=r"no attribute 'label_'. Did you mean 'labels_'"):
        _ = fitted.label_
    with pytest.raises(AttributeError, match="object has no attribute '_private'"):
        _ = fitted._private
    assert copy.copy(fitted).labels_.tolist() == fitted.labels_.tolist()
    assert copy.deepcopy(fitted).get_params() == fitted.get_params()


def test_grid_search_over_an_aggregator():
    """`GridSearchCV` clones, sets, fits and scores an aggregator on folds of items, without ground truth."""
    from sklearn.model_selection import GridSearchCV, KFold

    votes, _ = easy_crowd(3, n_items=90)
    search = GridSearchCV(DawidSkene(), {"smoothing": [0.01, 1000.0]}, cv=KFold(3)).fit(votes)
    assert np.isfinite(search.cv_results_["mean_test_score"]).all()
    assert search.best_estimator_.posterior_.shape == (90, 3)


def test_options_of_a_group_are_listed():
    """`get_params` has the group itself and, if deep, each of its options; nothing else of the dataclass."""
    model = CrowdInG()
    assert [name for name in model.get_params(deep=False) if "__" in name] == []
    assert model.get_params(deep=False)["adversarial"] == Adversarial()
    nested = {name: value for name, value in model.get_params().items() if "__" in name}
    groups = {"generator": GeneratorTraining, "discriminator": DiscriminatorTraining, "adversarial": Adversarial}
    expected = {f"{name}__{option}" for name, group in groups.items() for option in group._constraints}
    assert nested.keys() == expected
    assert nested["adversarial__information"] == 0.5 and nested["discriminator__weight_decay"] == 0.01


def test_an_option_of_a_group_can_be_set():
    """`set_params` replaces the group, which is frozen: an estimator that shares the default keeps its own."""
    model, other = CrowdInG(), CrowdInG()
    assert model.set_params(adversarial__information=0.1, generator__epochs=3, members=2) is model
    assert model.adversarial == Adversarial(information=0.1) and model.generator == GeneratorTraining(epochs=3)
    assert (model.members, other.adversarial, other.generator) == (2, Adversarial(), GeneratorTraining())
    assert model.set_params(adversarial=Adversarial(clip=2.0)).adversarial.information == 0.5


def test_estimators_with_groups_are_cloned_by_scikit_learn():
    """`clone` compares the parameters it gave with those it finds."""
    model = CrowdInG.plus(pretraining=CrowdLayer(form="vw")).set_params(adversarial__information=0.1, init="glad")
    copy = clone(model)
    assert copy is not model and repr(copy) == repr(model)
    assert copy.get_params(deep=False).keys() == model.get_params(deep=False).keys()
    assert copy.adversarial == model.adversarial and copy.pretraining.form == "vw"


@pytest.mark.parametrize(
    "changes, sentence",
    [
        (
            {"adversarial__clip": 0.5},
            "`adversarial__clip` of CrowdInG must be a number at least 1. Got 0.5.",
        ),
        ({"generator__epochs": 1.5}, "`generator__epochs` of CrowdInG must be a whole number at least 0. Got 1.5."),
        ({"adversarial": None}, "`adversarial` of CrowdInG must be a group of options Adversarial(...). Got None."),
    ],
)
def test_a_value_that_an_option_does_not_allow_is_refused_by_fit(changes, sentence):
    """The message names the option, in the way `set_params` addresses it."""
    X, votes, _ = feature_crowd(2)
    model = CrowdInG().set_params(**changes)
    with pytest.raises(ParameterError) as refused:
        model.fit(X, votes)
    assert str(refused.value) == f"The parameter {sentence}"


@pytest.mark.parametrize(
    "name, hint",
    [
        ("adversarial__informaton", "Did you mean 'adversarial__information'?"),
        ("generator__zzz", "It has: generator__sees_items, generator__sees_workers, generator__epochs, "
                           "generator__learning_rate."),
        ("adversary__information", "Did you mean 'adversarial'?"),
        ("members__x", "'members' has no parameters of its own."),
    ],
)  # fmt: skip
def test_options_that_a_group_does_not_have_are_refused(name, hint):
    """The option's own name is compared, not the group's."""
    with pytest.raises(ParameterError) as refused:
        CrowdInG().set_params(**{name: 1})
    assert str(refused.value) == f"CrowdInG has no parameter {name!r}. {hint}"


def test_a_group_refuses_options_it_does_not_have():
    with pytest.raises(ParameterError) as refused:
        Adversarial(infomation=1)
    assert str(refused.value) == "Adversarial has no option 'infomation'. Did you mean 'information'?"


def test_repr_of_a_group_shows_what_differs_from_its_defaults():
    assert repr(CrowdInG()) == "CrowdInG()"
    model = CrowdInG(members=2, adversarial=Adversarial(clip=2.0))
    assert repr(model) == "CrowdInG(members=2, adversarial=Adversarial(clip=2.0))"
    assert repr(Adversarial()) == "Adversarial()"


def test_repr_of_a_nested_estimator_is_its_own():
    assert repr(TwoStage(DawidSkene(smoothing=0.5))) == "TwoStage(aggregator=DawidSkene(smoothing=0.5))"


@pytest.mark.parametrize("name", [name for name in registry.names() if name.endswith("-plus")])
def test_plus_and_its_name_in_the_registry_have_the_same_parameters(name):
    """`Class.plus(...)` is `create("name-plus", ...)`, and changes come last."""
    method = registry.get(name)
    assert method is registry.get(name.removesuffix("-plus"))
    assert repr(registry.create(name).get_params()) == repr(method.plus().get_params())
    assert repr(registry.create(name, random_state=3)) == repr(method.plus(random_state=3))
    assert method.plus(random_state=3).random_state == 3


def test_paper_names_and_plus_differ():
    """The constructor's defaults are the paper's settings."""
    assert ICED().get_params() != ICED.plus().get_params()
    assert CrowdInG().get_params() != CrowdInG.plus().get_params()
    assert (CrowdInG().pretraining, CrowdInG.plus().pretraining) == ("crowd-layer", "max-mig")
    assert CrowdInG.plus(members=1).members == 1 and CrowdInG.plus(members=1).pretraining == "max-mig"
    assert (SelfCrowd().init, SelfCrowd.plus().init) == ("identity", "dawid-skene")
