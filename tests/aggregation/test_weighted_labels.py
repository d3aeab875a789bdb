"""Labels with weights in the methods that take them, and the refusal of all others."""

import numpy as np
import pytest

import manyhands as mh
from manyhands import registry
from manyhands.em.kernels import Packed, em_pass, pack, vote_pass, vote_share
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.metrics import krippendorff_alpha
from manyhands.simulate import make_crowd
from manyhands.validation import TAKE_WEIGHTS

# Without the parts that look at single labels: the exponent by held-out labels, and colluding groups.
PLAIN = {"pooled-dawid-skene": {"calibrate": False, "detect_collusion": False}}
RNG = np.random.default_rng(7)


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_items=80, n_workers=9, n_classes=3, labels_per_item=4, random_state=3)


def make(name):
    return registry.create(name, **PLAIN.get(name, {}))


def with_weights(annotations, weight):
    names = ("item_ids", "worker_ids", "classes")
    codes = annotations.item, annotations.worker, annotations.label
    return mh.Annotations(*codes, **{name: getattr(annotations, name) for name in names}, weight=weight)


def repeated(annotations, times):
    rows = np.repeat(np.arange(annotations.n_annotations), times)
    return annotations.keep(rows)


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_integer_weights_equal_repeated_rows(name, crowd):
    times = RNG.integers(1, 4, crowd.annotations.n_annotations)
    one, other = make(name), make(name)
    one.fit(with_weights(crowd.annotations, times.astype(float)))
    other.fit(repeated(crowd.annotations, times))
    assert np.allclose(one.posterior_, other.posterior_, atol=1e-6)
    assert one.labels_.tolist() == other.labels_.tolist()
    assert np.allclose(one.worker_accuracy_, other.worker_accuracy_, atol=1e-6)
    new = crowd.annotations[:10]
    weighted, twice = with_weights(new, np.full(new.n_annotations, 2.0)), repeated(new, 2)
    assert np.allclose(one.predict_proba(weighted), other.predict_proba(twice), atol=1e-6)


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_weights_of_one_change_no_bit(name, crowd):
    ones = with_weights(crowd.annotations, np.ones(crowd.annotations.n_annotations))
    one, other = registry.create(name).fit(ones), registry.create(name).fit(crowd.annotations)
    assert np.array_equal(one.posterior_, other.posterior_)


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_order_of_rows_changes_nothing(name, crowd):
    votes = crowd.annotations
    weight = RNG.uniform(0.1, 2.0, votes.n_annotations)
    columns = votes.item_ids[votes.item], votes.worker_ids[votes.worker], votes.classes[votes.label]
    order = RNG.permutation(votes.n_annotations)
    first = mh.Annotations.from_triples(*columns, weights=weight)
    second = mh.Annotations.from_triples(*(column[order] for column in columns), weights=weight[order])
    a, b = registry.create(name).fit(first), registry.create(name).fit(second)
    back = [b.item_ids_.tolist().index(item) for item in a.item_ids_.tolist()]
    assert np.array_equal(a.posterior_, b.posterior_[back])


@pytest.mark.parametrize("name", TAKE_WEIGHTS)
def test_soft_labels_fit_score_predict_and_are_saved(name, crowd, tmp_path):
    votes = crowd.annotations
    rows = np.eye(3)[votes.label] * 0.7 + 0.1
    soft = mh.Annotations.from_label_probs(
        votes.item_ids[votes.item], votes.worker_ids[votes.worker], rows, votes.classes
    )
    model = registry.create(name).fit(soft)
    assert np.allclose(model.posterior_.sum(axis=1), 1)
    assert np.mean(model.labels_ == crowd.truth) > 0.6
    assert np.isfinite(model.score(soft)) and model.score_labels(soft).shape == (soft.n_annotations,)
    model.save(tmp_path / "model")
    loaded = mh.load_model(tmp_path / "model")
    assert np.array_equal(loaded.annotations_.weight, soft.weight)
    assert np.array_equal(loaded.predict_proba(soft), model.predict_proba(soft))


def test_soft_votes_of_one_judge_are_no_redundancy():
    soft = mh.Annotations.from_label_probs(["a", "b"], ["x", "x"], [[0.8, 0.2], [0.3, 0.7]], [0, 1])
    with pytest.warns(CrowdWarning):
        model = mh.PooledDawidSkene().fit(soft)
    assert "no_redundancy" in model.notes_
    assert model.labels_.tolist() == [0, 1]


def test_vote_shares_by_a_plain_loop(crowd):
    votes = with_weights(crowd.annotations, RNG.uniform(0.1, 2.0, crowd.annotations.n_annotations))
    expected = np.zeros((votes.n_items, votes.n_classes))
    for item, label, weight in zip(votes.item, votes.label, votes.weight, strict=True):
        expected[item, label] += weight
    expected /= expected.sum(axis=1, keepdims=True)
    assert np.allclose(vote_share(votes), expected, atol=1e-12)
    assert np.allclose(vote_pass(pack(votes), want_posterior=True).posterior, expected, atol=1e-12)
    assert np.allclose(mh.MajorityVote().fit(votes).posterior_, expected, atol=1e-12)


def test_em_pass_by_a_plain_loop(crowd):
    votes = with_weights(crowd.annotations, RNG.uniform(0.1, 2.0, crowd.annotations.n_annotations))
    table = np.log(RNG.dirichlet(np.ones(3), (votes.n_workers, 3)))
    prior = np.log([0.5, 0.3, 0.2])
    found = em_pass(pack(votes), table, prior, want_posterior=True)
    score = np.tile(prior, (votes.n_items, 1))
    for i, w, label, weight in zip(votes.item, votes.worker, votes.label, votes.weight, strict=True):
        for k in range(3):
            score[i, k] += weight * table[w, k, label]
    posterior = np.exp(score) / np.exp(score).sum(axis=1, keepdims=True)
    counts = np.zeros_like(table)
    for i, w, label, weight in zip(votes.item, votes.worker, votes.label, votes.weight, strict=True):
        for k in range(3):
            counts[w, k, label] += weight * posterior[i, k]
    assert np.allclose(found.posterior, posterior, atol=1e-10)
    assert np.allclose(found.counts, counts, atol=1e-10)
    assert np.isclose(found.evidence, np.log(np.exp(score).sum(axis=1)).sum())
    assert np.allclose(found.totals, posterior.sum(axis=0))


def test_weighted_passes_with_weights_of_one_have_the_bits_of_the_others(crowd):
    plain = pack(crowd.annotations)
    ones = Packed(plain.code, plain.label, plain.start, plain.n_workers, plain.n_classes, np.ones(len(plain.code)))
    table = np.log(RNG.dirichlet(np.ones(3), (plain.n_workers, 3)))
    for one, other in (
        (
            em_pass(plain, table, np.zeros(3), want_posterior=True),
            em_pass(ones, table, np.zeros(3), want_posterior=True),
        ),
        (vote_pass(plain, want_posterior=True), vote_pass(ones, want_posterior=True)),
    ):
        assert np.array_equal(one.posterior, other.posterior) and np.array_equal(one.counts, other.counts)
        assert one.evidence == other.evidence and np.array_equal(one.totals, other.totals)


def test_a_sharper_judge_has_more_influence():
    """The same answers with more confidence move the posterior further."""
    items = [f"i{k}" for k in range(40)]
    people = [(item, who, "yes" if k % 2 else "no") for k, item in enumerate(items) for who in ("ann", "bob")]
    columns = [list(column) for column in zip(*people, strict=True)]
    shares = []
    for p in (0.6, 0.95):
        rows = [("i0", "gpt", "yes", p), ("i0", "gpt", "no", 1 - p)]
        more = [list(column) for column in zip(*rows, strict=True)]
        joined = [a + b for a, b in zip(columns, more[:3], strict=True)]
        votes = mh.Annotations.from_triples(*joined, weights=[1.0] * len(people) + more[3])
        shares.append(mh.MajorityVote().fit(votes).posterior_[0, 1])
    assert shares[0] < shares[1]


@pytest.mark.parametrize("name", sorted(set(registry.names("aggregator")) - set(TAKE_WEIGHTS)))
def test_other_aggregators_say_that_they_take_no_weights(name, crowd):
    votes = with_weights(crowd.annotations, np.full(crowd.annotations.n_annotations, 0.5))
    with pytest.raises(AnnotationError, match=f"{registry.get(name).__name__} does not take labels with weights"):
        registry.create(name).fit(votes)
    assert registry.get(name)._takes_weights is False


@pytest.mark.parametrize("name", sorted({*registry.names("classifier"), *registry.names("representation")}))
def test_learners_say_that_they_take_no_weights(name, crowd):
    pytest.importorskip("torch")
    votes = with_weights(crowd.annotations, np.full(crowd.annotations.n_annotations, 0.5))
    with pytest.raises(AnnotationError, match=f"{registry.get(name).__name__} does not take labels with weights"):
        registry.create(name).fit(np.zeros((votes.n_items, 2)), votes)


def test_names_of_methods_that_take_weights_are_those_of_their_classes():
    takes = [name for name in registry.names("aggregator") if registry.get(name)._takes_weights]
    assert sorted(TAKE_WEIGHTS) == takes


def test_other_functions_say_it_too(crowd):
    votes = with_weights(crowd.annotations, np.full(crowd.annotations.n_annotations, 0.5))
    calls = (
        lambda: mh.trust.alt_test(votes, [votes.worker_ids[0]]),
        lambda: mh.trust.effective_votes(votes),
        lambda: mh.contested(votes),
        lambda: krippendorff_alpha(votes),
    )
    for call in calls:
        with pytest.raises(AnnotationError, match=r"does not take labels with weights.*strongest_labels"):
            call()


@pytest.mark.filterwarnings("ignore")
def test_the_default_keeps_the_plurality_of_evenly_divided_votes(crowd):
    """All workers look random then; no label has support against the plurality."""
    votes = crowd.annotations
    rows = np.eye(3)[votes.label] * 0.4 + 0.2
    columns = votes.item_ids[votes.item], votes.worker_ids[votes.worker]
    soft = mh.Annotations.from_label_probs(*columns, rows, votes.classes)
    share = mh.MajorityVote().fit(soft).posterior_
    named = mh.PooledDawidSkene().fit(soft).labels_
    code = np.searchsorted(votes.classes, named)
    assert np.all(share[np.arange(len(code)), code] >= share.max(axis=1) - 1e-9)
