"""Labels other than the plurality: which are allowed, and what the posterior says where one is not."""

import warnings

import numpy as np
import pytest

import manyhands as mh
from manyhands.aggregation import pooled
from manyhands.aggregation.tempering import MIN_LOG_ODDS, discounted_votes, limit_overruling, log_odds, ties_by_vote
from manyhands.annotations import Annotations
from manyhands.em.e_step import posterior_given
from manyhands.exceptions import CrowdWarning
from manyhands.simulate import make_crowd


def fit(annotations, gold=None, **parameters):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        return mh.PooledDawidSkene(**parameters).fit(annotations, gold)


def shared_confusion(seed=0, n_items=600):
    """Ordered grades with a common shift and an error of each item that all 30 workers share: EM follows the shift."""
    rng = np.random.default_rng(seed)
    score, thresholds = rng.normal(size=n_items), np.array([-0.9, -0.3, 0.3, 0.9])
    seen = score + rng.normal(0.5, 0.5, n_items)
    item = np.repeat(np.arange(n_items), 5)
    worker = np.argsort(rng.random((n_items, 30)), axis=1)[:, :5].ravel()
    label = np.searchsorted(0.8 * thresholds, seen[item] + rng.normal(0, 0.6, len(item)))
    votes = Annotations(
        item, worker, label, item_ids=np.arange(n_items), worker_ids=np.arange(30), classes=np.arange(5)
    )
    return votes, np.searchsorted(thresholds, score)


def plurality(annotations):
    """Classes with the most labels of each item, by a plain loop."""
    winners = []
    for i in range(annotations.n_items):
        labels = annotations.label[annotations.item == i].tolist()
        counts = [labels.count(k) for k in range(annotations.n_classes)]
        winners.append({k for k, n in enumerate(counts) if n == max(counts)})
    return winners


def slow_supported(annotations, posterior, confusion):
    """The label of each item by the rule, item by item; ties of the rule itself are not resolved."""
    labels, weight = [], log_odds(confusion)
    for i, winners in enumerate(plurality(annotations)):
        rows = np.flatnonzero(annotations.item == i)
        discounted, one_coin = np.zeros(annotations.n_classes), np.zeros(annotations.n_classes)
        for row in rows:
            worker, k = annotations.worker[row], annotations.label[row]
            w = weight[worker]
            one_coin[k] += w
            if w > MIN_LOG_ODDS:
                discounted[k] += 1
            elif w < 0:
                column = np.where(np.arange(annotations.n_classes) == k, 0.0, confusion[worker][:, k])
                discounted += min(-w / MIN_LOG_ODDS, 1.0) * column / column.sum()
        found = int(posterior[i].argmax())
        if found not in winners and discounted[found] >= discounted.max() - 1e-9:
            labels.append(found)
            continue
        p = np.exp(one_coin - one_coin.max())
        score = posterior[i] + p / p.sum()
        labels.append(max(winners, key=lambda k: score[k]))
    return np.array(labels)


def test_log_odds_and_votes_by_hand():
    confusion = np.array([np.full((4, 4), 0.25), 0.6 * np.eye(4) + 0.1, 0.1 + 0.2 * (1 - np.eye(4))])
    expected = [0.0, np.log(0.7 * 3 / 0.3), np.log(0.1 * 3 / 0.9)]
    np.testing.assert_allclose(log_odds(confusion), expected, atol=1e-12)
    votes = Annotations.from_matrix([[2, 2, 2]], classes=range(4))
    np.testing.assert_allclose(
        discounted_votes(votes, log_odds(confusion), confusion), [[1 / 3, 1 / 3, 1.0, 1 / 3]]
    )  # none, one, and the meaning of the inverted worker


@pytest.mark.parametrize("seed", range(3))
def test_the_rule_is_that_of_a_plain_loop(seed):
    rng = np.random.default_rng(seed)
    matrix = np.where(rng.random((150, 9)) < 0.6, rng.integers(4, size=(150, 9)), -1)
    votes = Annotations.from_matrix(matrix, classes=range(4))
    posterior, confusion = rng.dirichlet(np.ones(4), 150), rng.dirichlet(np.ones(4), (9, 4))
    confusion[:5] = 0.4 * confusion[:5] + 0.6 * np.eye(4)
    fixed = votes.n_labels == 0
    limited, withheld = limit_overruling(votes, posterior, confusion, np.zeros(9, bool), "supported", fixed)
    slow = slow_supported(votes, posterior, confusion)
    kept = ~fixed
    assert np.array_equal(limited.argmax(axis=1)[kept], slow[kept])
    assert np.array_equal(withheld[kept], (slow != posterior.argmax(axis=1))[kept]) and withheld.any()
    np.testing.assert_allclose(limited.sum(axis=1), 1.0)
    np.testing.assert_array_equal(limited[~withheld], posterior[~withheld])


def test_a_withheld_label_leaves_both_classes_about_equally_probable():
    votes, good = (
        Annotations.from_matrix([[0, 0, 1]], classes=range(3)),
        np.repeat(0.7 * np.eye(3)[None] + 0.1, 3, axis=0),
    )
    limited, withheld = limit_overruling(
        votes, np.array([[0.2, 0.7, 0.1]]), good, np.zeros(3, bool), "supported", np.zeros(1, bool)
    )
    assert withheld.tolist() == [True]
    np.testing.assert_allclose(limited, [[0.9 * 1.01 / 2.01, 0.9 / 2.01, 0.1]])


def test_never_names_the_plurality_and_always_the_model():
    votes, _ = shared_confusion()
    winners = plurality(votes)
    never, always = fit(votes, overrule="never"), fit(votes, overrule="always")
    assert all(label in winner for label, winner in zip(never.labels_.tolist(), winners))
    assert not always.withheld_.any() and any(x not in w for x, w in zip(always.labels_.tolist(), winners))


def test_ties_of_the_plurality_are_decided_by_the_model():
    votes, _ = shared_confusion()
    never, model = fit(votes, overrule="never"), fit(votes, overrule="always", temper="none")
    for i, winners in enumerate(plurality(votes)):
        best = max(model.posterior_[i, k] for k in winners)
        assert model.posterior_[i, int(never.labels_[i])] >= best - 1e-9


@pytest.mark.parametrize("bad", ["random", "constant", "inverted", "colluding"])
def test_attacks_are_still_overruled(bad):
    """The labels of identified bad workers are discounted, so that support costs next to nothing."""
    crowd = make_crowd(
        n_items=400, n_workers=40, labels_per_item=5, n_classes=4, bad=bad, bad_share=0.4, random_state=7
    )
    always, supported, never = (
        np.mean(fit(crowd.annotations, overrule=rule).labels_ == crowd.truth)
        for rule in ("always", "supported", "never")
    )
    assert supported > never + 0.01 and supported > always - 0.02


def test_a_shared_confusion_is_not_followed():
    votes, truth = shared_confusion()
    always, supported = (fit(votes, overrule=rule) for rule in ("always", "supported"))
    assert supported.withheld_.sum() > 10
    assert np.mean(supported.labels_ == truth) >= np.mean(always.labels_ == truth)


def test_gold_that_contradicts_the_vote_lifts_the_rule():
    crowd = make_crowd(n_items=300, n_workers=15, labels_per_item=5, bad="inverted", bad_share=0.8, random_state=1)
    gold = {int(i): int(crowd.truth[i]) for i in range(60)}
    model = fit(crowd.annotations, gold)
    assert np.mean(model.labels_ == crowd.truth) > 0.9 and not model.withheld_.any()


def test_gold_stays_certain_and_new_labels_follow_the_same_rule():
    votes, _ = shared_confusion()
    model = fit(votes, {0: 2, 1: 2})
    assert model.posterior_[0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0] and not model.withheld_[:2].any()
    np.testing.assert_allclose(model.predict_proba(votes), model.posterior_, atol=1e-12)
    assert model.predict(votes).tolist() == model.labels_.tolist()


def test_support_does_not_depend_on_names_or_order():
    votes, _ = shared_confusion()
    model = fit(votes)
    flip = np.array([2, 0, 1, 4, 3])
    renamed = Annotations(
        votes.item, votes.n_workers - 1 - votes.worker, flip[votes.label],
        item_ids=votes.item_ids, worker_ids=votes.worker_ids, classes=votes.classes,
    )  # fmt: skip
    other = fit(renamed)
    np.testing.assert_allclose(other.posterior_[:, flip], model.posterior_, atol=1e-6)
    assert np.array_equal(other.withheld_, model.withheld_)


def test_bad_rule_is_one_sentence():
    with pytest.raises(mh.exceptions.ParameterError, match=r"overrule.*'never', 'supported'"):
        fit(Annotations.from_matrix([[0, 1]]), overrule="sometimes")


def test_the_vote_decides_where_the_fit_says_nothing():
    """Classes tied in the posterior go to the plurality among them, whatever the order of classes; gold stays."""
    votes = Annotations.from_matrix([[2, 2, 1], [0, 1, -1], [0, 0, 1], [1, 1, 0]], classes=[0, 1, 2])
    flat = np.array([[0.2, 0.4 + 1e-8, 0.4], [0.5, 0.5, 0.0], [0.3, 0.3, 0.4], [0.5, 0.5, 0.0]])
    posterior, decided = ties_by_vote(votes, flat, np.array([False, False, False, True]))
    assert decided.tolist() == [True, False, False, False]
    assert posterior[0].argmax() == 2 and posterior[0].sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(posterior[1:], flat[1:])


def test_a_fit_that_says_nothing_has_a_note(monkeypatch):
    votes = make_crowd(60, 12, random_state=0).annotations
    flat = np.full((60, 2), 0.5)
    monkeypatch.setattr(pooled, "posterior_given", lambda *args: (flat, posterior_given(*args)[1]))
    model = fit(votes)
    assert "vote_decides" in model.notes_
    vote = mh.MajorityVote().fit(votes)
    assert model.labels_[~vote.tied_].tolist() == vote.labels_[~vote.tied_].tolist()
