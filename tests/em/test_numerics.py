"""The numerical cases of the hardening plan that concern aggregation, for the default method and for Dawid-Skene.

N13 to N22 are for the readers and the learners, N30 for the agreement metrics.
"""

import warnings

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from manyhands import Annotations, MajorityVote, registry
from manyhands.exceptions import AnnotationError, CrowdWarning, ManyhandsError
from strategies import annotations

METHODS = sorted({registry.DEFAULT, "dawid-skene"})
EVERY_METHOD = registry.names("aggregator")

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


@pytest.fixture(params=METHODS)
def method(request):
    """A new aggregator."""
    return registry.create(request.param)


def crowd(n_items, n_workers, per_item, confusion, seed=0, class_shares=None):
    """Planted truth, and labels by workers who share a confusion matrix, or have one each."""
    rng = np.random.default_rng(seed)
    confusion = np.asarray(confusion, float)
    n_classes = confusion.shape[-1]
    confusion = np.broadcast_to(confusion, (n_workers, n_classes, n_classes))
    truth = rng.choice(n_classes, n_items, p=class_shares)
    item = np.repeat(np.arange(n_items), per_item)
    worker = rng.random((n_items, n_workers)).argsort(axis=1)[:, :per_item].ravel()
    below = rng.random(len(item))[:, None] < confusion[worker, truth[item]].cumsum(axis=1)
    ids = {"item_ids": np.arange(n_items), "worker_ids": np.arange(n_workers), "classes": np.arange(n_classes)}
    return Annotations(item, worker, below.argmax(axis=1), **ids), truth


def even(n_classes, accuracy):
    """A confusion matrix with one accuracy and even errors."""
    return np.full((n_classes, n_classes), (1 - accuracy) / (n_classes - 1)) * (
        1 - np.eye(n_classes)
    ) + accuracy * np.eye(n_classes)


def assert_valid(model):
    """Finite probabilities that sum to 1, finite accuracies."""
    assert np.isfinite(model.posterior_).all() and (model.posterior_ >= 0).all()
    np.testing.assert_allclose(model.posterior_.sum(axis=1), 1.0, atol=1e-9)
    assert np.isfinite(model.worker_accuracy_).all()


def test_n1_a_thousand_labels_on_one_item_with_fifty_classes(method):
    """A thousand labels by two hundred workers: in log space nothing vanishes."""
    label = np.where(np.arange(1000) % 2 == 0, 7, np.arange(1000) % 50)
    worker = np.arange(1000) % 200
    votes = Annotations([0] * 1000, worker, label, item_ids=[0], worker_ids=range(200), classes=range(50))
    model = method.fit(votes)
    assert_valid(model)
    assert model.labels_.tolist() == [7]


def test_n2_a_class_a_worker_never_gave_stays_possible(method):
    """No worker ever labels a 0 as 2, yet every log-posterior is finite: a zero count is no impossibility."""
    votes, _ = crowd(60, 6, 3, [[0.9, 0.1, 0.0], [0.1, 0.9, 0.0], [0.0, 0.1, 0.9]])
    model = method.fit(votes)
    assert (model.confusion_ > 0).all()
    stubborn = Annotations.from_triples([0] * 6, range(6), [0, 0, 0, 2, 2, 2], worker_ids=range(6), classes=[0, 1, 2])
    posterior = model.predict_proba(stubborn)
    assert np.isfinite(np.log(posterior)).all()


def test_n3_a_single_class_comes_back_with_a_note(method):
    """The only class is returned, and the note reports what the confidence rests on."""
    with pytest.warns(CrowdWarning, match="single_class"):
        model = method.fit(Annotations.from_matrix(np.full((5, 3), 4)))
    assert model.labels_.tolist() == [4] * 5
    assert "single_class" in model.notes_


def test_n4_one_worker_has_the_prior_accuracy(method):
    """The labels stay; the accuracy is the prior's, not 1."""
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model = method.fit(Annotations.from_triples(range(9), ["only"] * 9, [0, 1, 2] * 3))
    assert model.labels_.tolist() == [0, 1, 2] * 3
    assert model.worker_accuracy_.tolist() == [0.7]


def test_n5_one_label_per_item_gives_no_worker_estimates(method):
    """Labels stay as given, all workers have the same estimates, and the note gives the reason."""
    with pytest.warns(CrowdWarning, match="no_redundancy"):
        model = method.fit(Annotations.from_triples(range(12), [0, 1, 2] * 4, [0, 1, 0, 1] * 3))
    assert model.labels_.tolist() == [0, 1, 0, 1] * 3
    assert len(set(model.worker_accuracy_.round(9))) == 1


def test_n6_n7_items_and_workers_without_labels_are_kept(method):
    """An item without labels has the prior and no label; a worker without labels has a finite accuracy."""
    votes = Annotations.from_matrix([[0, 0, 0, -1], [1, 1, 0, -1], [-1, -1, -1, -1], [0, 0, 1, -1]])
    model = method.fit(votes)
    assert model.labels_[2] is None and model.unlabelled_.tolist() == [False, False, True, False]
    np.testing.assert_allclose(model.posterior_[2], model.class_prior_, atol=1e-9)
    assert_valid(model)
    assert model.worker_accuracy_[3] == pytest.approx(0.7)


def test_n8_an_unused_class_keeps_its_column(method):
    """The column is there, in its place, with next to no probability."""
    votes, _ = crowd(100, 6, 4, even(2, 0.85))
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids}
    wider = Annotations(votes.item, votes.worker, 2 * votes.label, classes=["a", "unused", "b"], **ids)
    model = method.fit(wider)
    assert model.classes_.tolist() == ["a", "unused", "b"]
    assert set(model.labels_) <= {"a", "b"}
    assert model.posterior_[:, 1].max() < 0.02  # the floor .001 of the default's power, raised to .64


def test_n9_a_class_unseen_at_fit_is_listed(method):
    """It is never dropped without an error."""
    method.fit(Annotations.from_matrix([[0, 0], [1, 1]]))
    with pytest.raises(AnnotationError, match="Classes not known: 7, 8"):
        method.predict(Annotations.from_matrix([[0, 7], [8, 7]]))


def test_n10_an_unseen_worker_counts_as_an_average_one(method):
    """The posterior after a single label of an unseen worker is above chance and below that of the best worker."""
    skill = np.stack([even(2, a) for a in (0.95, 0.95, 0.8, 0.8, 0.6, 0.6)])
    votes, _ = crowd(400, 6, 5, skill)
    model = method.fit(votes)
    alone = Annotations.from_triples(["x", "y"], ["unseen", 0], [1, 1], classes=[0, 1])
    unseen, best = model.predict_proba(alone)[:, 1]
    assert 0.55 < unseen < best


def test_n11_crowds_without_contact_keep_their_orientation(method):
    """Several groups of items and workers that never meet: each follows its own majority, none is turned around."""
    parts = [crowd(60, 5, 4, even(2, 0.85), seed=s) for s in range(3)]
    item = np.concatenate([votes.item + 60 * p for p, (votes, _) in enumerate(parts)])
    worker = np.concatenate([votes.worker + 5 * p for p, (votes, _) in enumerate(parts)])
    label = np.concatenate([votes.label for votes, _ in parts])
    model = method.fit(Annotations(item, worker, label, item_ids=range(180), worker_ids=range(15), classes=[0, 1]))
    truth = np.concatenate([truth for _, truth in parts])
    for p in range(3):
        part = slice(60 * p, 60 * (p + 1))
        assert np.mean(model.labels_[part] == truth[part]) > 0.85


def test_n12_an_inverted_crowd_follows_its_majority_without_gold(method):
    """Without gold the classes are the majority's; with gold on two thirds of the items the rest follows the gold."""
    votes, truth = crowd(150, 8, 5, even(2, 0.15))
    assert np.mean(method.fit_predict(votes) == 1 - truth) > 0.95
    turned = registry.create(_name_of(method)).fit_predict(votes, gold={i: int(truth[i]) for i in range(100)})
    assert np.mean(turned == truth) > 0.95


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_n23_objective_is_monotone_on_hard_crowds(name):
    """Sparse, imbalanced, inverted in part: no step falls by more than 1e-8 of the objective."""
    for seed in range(4):
        skill = np.stack([even(2, a) for a in np.linspace(0.2, 0.9, 12)])
        votes, _ = crowd(80, 12, 3, skill, seed=seed, class_shares=[0.9, 0.1])
        history = np.array(registry.create(name).fit(votes).history_, float)
        assert np.all(np.diff(history) >= -1e-8 * np.abs(history[1:]))


@given(votes=annotations(max_items=10, max_workers=6), seed=st.integers(0, 1000))
@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", METHODS)
@pytest.mark.slow
def test_n24_shuffled_rows_give_the_same_bits(name, votes, seed):
    """On any crowd, in any order of rows."""
    order = np.random.default_rng(seed).permutation(votes.n_annotations)
    ids = {"item_ids": votes.item_ids, "worker_ids": votes.worker_ids, "classes": votes.classes}
    shuffled = Annotations(votes.item[order], votes.worker[order], votes.label[order], **ids)
    one, other = (registry.create(name).fit(v) for v in (votes, shuffled))
    np.testing.assert_array_equal(one.posterior_, other.posterior_)
    assert one.labels_.tolist() == other.labels_.tolist()


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_n25_ties_are_flagged_and_fall_to_the_larger_class(name):
    """Two workers who contradict each other on one item, in a crowd where class b is larger."""
    votes = Annotations.from_triples(
        ["t", "t", "p", "p", "q", "q", "r", "r"],
        ["x", "y"] * 4,
        ["a", "b", "b", "b", "b", "b", "a", "a"],
        classes=["a", "b"],
    )
    model = registry.create(name).fit(votes)
    row = model.item_ids_.tolist().index("t")
    if abs(model.posterior_[row, 0] - 0.5) < 1e-9:
        assert model.tied_[row] and model.labels_[row] == "b"
    else:
        assert not model.tied_[row]


def test_n26_a_doubled_crowd_is_surer_of_the_same(method):
    """Every row twice under new worker names: confidence does not fall, hardly a label moves."""
    votes, _ = crowd(150, 10, 4, even(3, 0.8))
    ids = {"item_ids": votes.item_ids, "classes": votes.classes, "worker_ids": range(20)}
    item, label = np.tile(votes.item, 2), np.tile(votes.label, 2)
    doubled = Annotations(item, np.concatenate([votes.worker, votes.worker + 10]), label, **ids)
    one, two = (registry.create(_name_of(method)).fit(v) for v in (votes, doubled))
    assert np.mean(one.labels_ == two.labels_) > 0.95
    assert two.posterior_.max(axis=1).mean() >= one.posterior_.max(axis=1).mean() - 0.005


def test_n27_plain_and_compiled_agree(method, monkeypatch):
    """Labels are the same and probabilities within 1e-9, with the compiled pass and without."""
    from manyhands.em import kernels

    votes, _ = crowd(200, 10, 5, even(3, 0.75))
    compiled = method.fit(votes)
    monkeypatch.setattr(kernels, "_fused", None)
    plain = registry.create(_name_of(method)).fit(votes)
    assert compiled.labels_.tolist() == plain.labels_.tolist()
    np.testing.assert_allclose(compiled.posterior_, plain.posterior_, atol=1e-9)


def test_n28_without_convergence_the_result_is_valid(method):
    """`converged_` is False, a warning reports it, and the posterior is valid."""
    votes, _ = crowd(100, 12, 3, even(3, 0.5))
    with pytest.warns(CrowdWarning, match="not_converged"):
        model = method.set_params(max_iter=2).fit(votes)
    assert not model.converged_
    assert_valid(model)


def test_n29_a_rare_class_is_not_annihilated(method):
    """One item in two hundred is of the rare class: nearly all that the vote finds are found.

    Not all: where rare is 200 times rarer, a worker of accuracy .9 who stands alone against two is rightly overruled.
    """
    found, voted = 0, 0
    for seed in range(3):
        votes, truth = crowd(2000, 20, 7, even(2, 0.9), seed=seed, class_shares=[0.995, 0.005])
        rare = truth == 1
        found += np.sum(registry.create(_name_of(method)).fit_predict(votes)[rare] == 1)
        voted += np.sum(MajorityVote().fit_predict(votes)[rare] == 1)
    assert voted > 10 and found >= 0.9 * voted


def _name_of(model):
    return next(name for name in METHODS if registry.get(name) is type(model))


# What peers stumble over (4.5) ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_an_empty_table_is_refused_with_a_sentence(name):
    """With an AnnotationError, not a ZeroDivisionError."""
    with pytest.raises(AnnotationError, match="not a single label"):
        registry.create(name).fit(Annotations.from_triples([], [], []))


@pytest.mark.parametrize("name", EVERY_METHOD)
@pytest.mark.parametrize(
    "labels", [[True, False], ["x", "y"], [1, 2], [1.5, 2.5], [("a", 1), ("b", 2)], ["None", "nan"]]
)
def test_labels_of_any_kind(name, labels):
    """Truth values, text, numbers that start at 1, fractions, tuples and the word None are classes like any other."""
    values = [labels[k] for k in (0, 0, 1, 1, 0, 0)]
    model = registry.create(name).fit(Annotations.from_triples([0, 0, 1, 1, 2, 2], [0, 1] * 3, values))
    assert model.labels_.tolist() == [labels[0], labels[1], labels[0]]
    assert all(type(label) is type(labels[0]) for label in model.labels_.tolist())


@pytest.mark.parametrize("name", EVERY_METHOD)
def test_missing_labels_and_workers_never_get_through(name):
    """NaN is no class and no worker: it is refused with its row before any method sees it."""
    for column in ("labels", "workers"):
        table = {"items": [0, 1], "workers": ["a", "b"], "labels": ["x", "y"]}
        table[column] = [table[column][0], float("nan")]
        with pytest.raises(AnnotationError, match="row 1 is missing"):
            registry.create(name).fit(Annotations.from_triples(**table))


@given(votes=annotations(max_items=6, max_workers=4, max_labels=15))
@settings(max_examples=20, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", EVERY_METHOD)
def test_h10_no_crowd_raises_anything_but_our_own_errors(name, votes):
    """On any small crowd: a valid posterior, or an error of ours; no warning but ours."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", CrowdWarning)
        try:
            model = registry.create(name).fit(votes)
        except ManyhandsError:
            assert votes.n_classes > 2 and name == "kos"
            return
        assert_valid(model)
        np.testing.assert_allclose(model.predict_proba(votes), model.posterior_, atol=1e-12)
