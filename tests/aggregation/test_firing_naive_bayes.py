"""Workers who give one class or nothing: the firing model, and the default method that recognises them."""

import numpy as np
import pytest

from manyhands import Annotations, FiringNaiveBayes, MajorityVote, PooledDawidSkene
from manyhands.em.firing import SMOOTHING, VOTE_FLOOR, firings_of, fit_firing, is_one_class_crowd
from manyhands.exceptions import CrowdWarning
from manyhands.simulate import make_crowd
from manyhands.testing.crowds import quietly


def functions_crowd(seed=0, n_items=600, n_functions=12, n_classes=3, n_broad=1):
    """Labels of functions with one class each, some of them broad and hardly better than chance; and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    own = np.arange(n_functions) % n_classes
    rate = np.where(truth[:, None] == own, rng.uniform(0.15, 0.5, n_functions), 0.03)
    rate[:, : n_classes * n_broad : n_classes] = np.where(truth == 0, 0.75, 0.6)[:, None]
    item, worker = np.nonzero(rng.random(rate.shape) < rate)
    ids = {"item_ids": range(n_items), "worker_ids": range(n_functions), "classes": range(n_classes)}
    return Annotations(item, worker, own[worker], **ids), truth


def slow_posterior(votes, smoothing, vote_power):
    """The model, item by item."""
    fires = {(i, w): k for i, w, k in zip(votes.item.tolist(), votes.worker.tolist(), votes.label.tolist())}
    items = sorted({i for i, _ in fires})
    n_workers, n_classes = votes.n_workers, votes.n_classes
    volume = [sum(w == v for _, v in fires) for w in range(n_workers)]
    vote = {}
    for i in items:
        sums = [sum(volume[w] ** -0.5 for w in range(n_workers) if fires.get((i, w)) == k) for k in range(n_classes)]
        vote[i] = [value / sum(sums) for value in sums]
    rate = np.zeros((n_workers, n_classes, n_classes + 1))  # [worker, truth, label or silence]
    for w in range(n_workers):
        for k in range(n_classes):
            for label in range(n_classes + 1):
                on = [i for i in items if fires.get((i, w), n_classes) == label]
                mean = len(on) / len(items)
                total = sum(vote[i][k] for i in items)
                rate[w, k, label] = (sum(vote[i][k] for i in on) + smoothing * mean) / (total + smoothing)
    posterior = np.full((votes.n_items, n_classes), np.nan)
    for i in items:
        p = [
            (vote[i][k] + VOTE_FLOOR) ** vote_power
            * np.prod([max(rate[w, k, fires.get((i, w), n_classes)], 1e-6) for w in range(n_workers)])
            for k in range(n_classes)
        ]
        posterior[i] = np.array(p) / sum(p)
    return posterior


@pytest.mark.parametrize(("smoothing", "vote_power"), [(SMOOTHING, 0.5), (0.0, 0.0), (1.0, 2.0)])
def test_posterior_is_that_of_the_plain_loop(smoothing, vote_power):
    votes, _ = functions_crowd(n_items=60)
    model = FiringNaiveBayes(smoothing, vote_power).fit(votes)
    slow = slow_posterior(votes, smoothing, vote_power)
    labelled = ~np.isnan(slow[:, 0])
    np.testing.assert_allclose(model.posterior_[labelled], slow[labelled], atol=1e-9)
    assert (~labelled).any() and np.allclose(model.posterior_[~labelled], model.class_prior_)


def test_silence_of_a_repeated_label_counts_once():
    votes, _ = functions_crowd(n_items=80)
    model, _ = fit_firing(votes, None)
    more = votes.with_more(votes.item[:1], votes.worker[:1], votes.label[:1])
    item, worker, label = int(votes.item[0]), int(votes.worker[0]), int(votes.label[0])
    vote = np.log([model.posterior(some, None)[item] for some in (votes, more)])
    shares = [
        np.bincount(some[[item]].label, model.vote_weight[some[[item]].worker], votes.n_classes)
        for some in (votes, more)
    ]
    anchors = [0.5 * np.log(share / share.sum() + VOTE_FLOOR) for share in shares]
    gain = (vote[1] - vote[0]) - (anchors[1] - anchors[0])
    expected = (model.log_odds + model.log_silence[:, :, None])[worker, :, label]  # log firing
    np.testing.assert_allclose(gain - gain[0], expected - expected[0], atol=1e-9)


def test_default_recognises_functions_and_follows_the_model():
    votes, truth = functions_crowd()
    with pytest.warns(match="one_class_workers"):
        model = PooledDawidSkene().fit(votes)
    other = FiringNaiveBayes().fit(votes)
    assert model.labels_.tolist() == other.labels_.tolist() and np.array_equal(model.firing_, other.firing_)
    covered = votes.n_labels > 0
    right = [np.mean((fit.labels_ == truth)[covered]) for fit in (model, MajorityVote().fit(votes))]
    assert right[0] > right[1] + 0.1
    np.testing.assert_array_equal(model.predict_proba(votes), model.posterior_)


def test_a_later_fit_on_an_ordinary_crowd_has_nothing_of_functions():
    ordinary = make_crowd(n_items=100, n_workers=10, random_state=1).annotations
    twice = quietly(lambda: PooledDawidSkene().fit(functions_crowd()[0])).fit(ordinary)
    assert not hasattr(twice, "firing_")
    np.testing.assert_array_equal(twice.predict_proba(ordinary), PooledDawidSkene().fit(ordinary).posterior_)


def test_overrule_never_names_a_class_of_the_plurality():
    """Two broad functions outvote a narrow one, which the model follows unless it may not."""
    votes, _ = functions_crowd(n_broad=2)
    share = MajorityVote().fit(votes).posterior_
    n_overruled = []
    for rule in ("supported", "never"):
        model = quietly(lambda: PooledDawidSkene(overrule=rule).fit(votes))  # noqa: B023
        named = share[np.arange(len(share)), model.posterior_.argmax(axis=1)]
        n_overruled.append(int(np.sum((named < share.max(axis=1) - 1e-9)[votes.n_labels > 0])))
    assert n_overruled[0] > 30 and n_overruled[1] == 0


@pytest.mark.parametrize("bad_share", [0.0, 0.3, 0.5])
@pytest.mark.parametrize("class_shares", [None, [0.95, 0.05]])
def test_ordinary_crowds_with_constant_spammers_are_not_of_this_kind(bad_share, class_shares):
    for seed in range(5):
        crowd = make_crowd(bad="constant", bad_share=bad_share, class_shares=class_shares, random_state=seed)
        assert not is_one_class_crowd(crowd.annotations)


def test_constant_spammers_beside_workers_with_several_classes_are_an_ordinary_crowd():
    """Most labels are of one class per worker, but three of ten workers use both classes."""
    rng = np.random.default_rng(0)
    label = np.repeat(np.array([[0, 1, 0, 1, 0, 1, 0, 0, 0, 0]]), 200, axis=0)
    label[:, 7:] = rng.integers(0, 2, (200, 1))
    assert not is_one_class_crowd(Annotations.from_matrix(label))
    assert is_one_class_crowd(Annotations.from_matrix(label[:, :8]))


def functions_beside_classifiers(seed, are_spammers=False):
    """Six functions of one class each, four classifiers that give either class to some items, and the truth."""
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, 2, 1000)
    label = np.full((1000, 10), -1)
    for w in range(6):
        follows = np.full(1000, 0.3) if are_spammers else np.where(truth == w % 2, 0.5, 0.12)
        label[rng.random(1000) < follows, w] = w % 2
    for w in range(6, 10):
        own = np.where(rng.random(1000) < 0.7, truth, 1 - truth)
        label[:, w] = np.where(rng.random(1000) < 0.3, own, -1)
    return Annotations.from_matrix(label), truth


@pytest.mark.parametrize("seed", range(3))
def test_functions_beside_classifiers_are_functions_and_spammers_are_not(seed):
    """Two fifths of the labels are of workers with both classes: whether they agree with the functions decides."""
    votes, truth = functions_beside_classifiers(seed)
    assert is_one_class_crowd(votes)
    assert not is_one_class_crowd(functions_beside_classifiers(seed, are_spammers=True)[0])
    with pytest.warns(CrowdWarning, match="one_class_workers"):
        model = PooledDawidSkene().fit(votes)
    covered = votes.n_labels > 0
    right, vote = (np.mean((fit.labels_ == truth)[covered]) for fit in (model, MajorityVote().fit(votes)))
    assert right > vote


@pytest.mark.parametrize(("workers", "found"), [([4, 7, 8, 9], False), ([0, 2, 4, 6, 7, 8, 9], True)])
def test_functions_of_the_same_class_need_more_labels(workers, found):
    """Where one class is frequent, honest workers may use it alone: a quarter of the labels is not enough, .4 is."""
    votes, _ = functions_beside_classifiers(0)
    kept = votes.keep(np.isin(votes.worker, workers))
    assert 0.2 < np.mean(kept.worker < 6) < 0.5 and is_one_class_crowd(kept) == found


def test_workers_with_few_labels_of_one_class_are_not_of_this_kind():
    """Three labels of one class are no preference, and one class of all labels is no choice."""
    label = np.repeat(np.arange(2), 60)
    few = Annotations.from_triples(np.arange(120) % 30, np.arange(120) // 3, label)
    assert not is_one_class_crowd(few)
    assert not is_one_class_crowd(Annotations.from_matrix(np.zeros((50, 4), int)))
    votes, _ = functions_crowd()
    weighted = Annotations(
        votes.item,
        votes.worker,
        votes.label,
        item_ids=votes.item_ids,
        worker_ids=votes.worker_ids,
        classes=votes.classes,
        weight=np.full(votes.n_annotations, 0.5),
    )
    assert is_one_class_crowd(votes) and not is_one_class_crowd(weighted)


def test_coverage_overlap_and_conflict_of_a_worker_who_contradicts_themselves():
    """Two labels of one worker on an item are one firing, and no conflict with others."""
    votes = Annotations.from_triples(
        [0, 0, 1, 1], ["a", "a", "a", "b"], [0, 1, 0, 1], duplicates="all", item_ids=range(4)
    )
    found = firings_of(votes)
    assert found.coverage.tolist() == [0.5, 0.25]
    assert found.overlap.tolist() == [0.5, 1.0] and found.conflict.tolist() == [0.5, 1.0]
