"""Promises: kept in the promised share of draws, by simulation; thresholds by plain loops."""

import math

import numpy as np
import pytest
from scipy import stats

import manyhands as mh
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.simulate import make_crowd
from manyhands.trust.guarantees import (
    conformal_threshold,
    least_answers,
    pac_threshold,
    parse_guarantee,
    parse_sets,
    random_audit,
    release,
)


def plain_release(every, sampled, wrong, allowed, alpha):
    """Lower the threshold value by value as long as the hypergeometric test refutes one wrong label too many."""
    n, population, chosen = len(sampled), len(every), math.inf
    for threshold in sorted(set(every.tolist()), reverse=True):
        errors = int(np.sum(wrong & (sampled >= threshold)))
        p_value = stats.hypergeom(population, allowed + 1, n).cdf(errors)
        if p_value > alpha and np.sum(every >= threshold) > allowed:
            break
        chosen = threshold
    return chosen


def population_of(seed, n=300):
    rng = np.random.default_rng(seed)
    score = np.round(rng.beta(5, 1, n), 2)
    return score, rng.random(n) < 1.1 - score


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize(("n", "error"), [(40, 0.05), (100, 0.05), (100, 0.1), (60, 0.2)])
def test_thresholds_are_those_of_a_plain_loop(seed, n, error):
    score, wrong = population_of(seed)
    rows = np.random.default_rng(seed).permutation(len(score))[:n]
    allowed = math.floor(error * len(score))
    threshold, bound = release(score, score[rows], wrong[rows], allowed, 0.05)
    assert threshold == plain_release(score, score[rows], wrong[rows], allowed, 0.05)
    assert bound <= allowed


@pytest.mark.parametrize("error", [0.05, 0.15])
def test_the_promise_is_kept_in_the_promised_share_of_draws(error):
    score, wrong = population_of(1)
    allowed = math.floor(error * len(score))
    kept = []
    for seed in range(400):
        rows = np.random.default_rng(seed).permutation(len(score))[:80]
        threshold, _ = release(score, score[rows], wrong[rows], allowed, 0.1)
        kept.append(np.sum(wrong & (score >= threshold)) <= allowed)
    assert np.mean(kept) >= 0.9 - 2 * math.sqrt(0.9 * 0.1 / 400)


def test_a_random_audit_keeps_the_same_promise():
    _, wrong = population_of(2)
    allowed, kept = 15, []
    for seed in range(300):
        order = np.random.default_rng(seed).permutation(len(wrong))
        more = random_audit(int(wrong[order[:60]].sum()), 60, len(wrong), allowed, 0.1)
        kept.append(wrong[order[60 + more :]].sum() <= allowed)
    assert np.mean(kept) >= 0.9 - 2 * math.sqrt(0.9 * 0.1 / 300)


def test_the_least_number_of_answers():
    """(1 - .05)^n <= .05 from 59 answers on, in a large population."""
    assert least_answers(10**6, 50_000, 0.05) == 59
    assert least_answers(100, 5, 0.05) < 59


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_items=500, n_workers=20, n_classes=3, random_state=7)


def answers_of(crowd, n, seed=0):
    truth = dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))
    drawn = mh.trust.random_items(crowd.annotations, n, seed, methods=["wawa"])
    return drawn.answer({item: truth[item] for item in drawn})


def test_labels_stand_or_go_to_an_expert(crowd):
    model = mh.MajorityVote().fit(crowd.annotations)
    found = mh.guarantee(model, answers_of(crowd, 100), error=0.1)
    assert (found.stands ^ found.to_expert).all() and found.bound <= 0.1
    confidence = model.posterior_.max(axis=1)
    at = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    answered = [at[item] for item in answers_of(crowd, 100).values]
    assert found.stands[answered].all()
    rest = np.setdiff1d(np.arange(500), answered)
    assert (found.stands[rest] == (confidence[rest] >= found.threshold - 1e-9)).all()
    assert f"{int(found.to_expert.sum())} items need an expert" in str(found) and "random audit" in str(found)


def test_too_few_answers_say_how_many_it_takes(crowd):
    found = mh.guarantee(mh.MajorityVote().fit(crowd.annotations), answers_of(crowd, 20))
    assert found.n_answers < found.n_least and f"it takes at least {found.n_least}" in str(found)
    assert found.as_dict()["n_to_expert"] > 400


def test_sets_cover_in_the_promised_share_of_draws(crowd):
    """PAC sets in 95 % of draws; conformal ones on average."""
    votes = crowd.annotations
    model = mh.MajorityVote().fit(votes)
    score = model.posterior_[np.arange(500), crowd.truth]
    label = model.posterior_.argmax(axis=1)
    score = np.where(label == crowd.truth, 1.0, score)
    kept, mean = [], []
    for seed in range(300):
        rows = np.random.default_rng(seed).permutation(500)[:50]
        kept.append(np.mean(score >= pac_threshold(score[rows], 500, 50, 0.05)) >= 0.9)
        mean.append(np.mean(score >= conformal_threshold(score[rows], 0.9)))
    assert np.mean(kept) >= 0.95 - 2 * math.sqrt(0.95 * 0.05 / 300)
    assert np.mean(mean) >= 0.9 - 0.005


def test_thresholds_of_sets_by_plain_loops():
    rng = np.random.default_rng(3)
    for _ in range(20):
        score = np.round(rng.random(40), 2)
        best = 0.0
        for threshold in sorted(set(score)):
            misses = int(np.sum(score < threshold))
            if stats.hypergeom(200, 21, 40).cdf(misses) <= 0.05:
                best = threshold
        assert pac_threshold(score, 200, 20, 0.05) == best
        reached = [t for t in sorted(set(score)) if np.sum(score >= t) >= 0.9 * 41]
        assert conformal_threshold(score, 0.9) == max(reached)
    assert conformal_threshold(np.ones(5), 0.9) == 0.0


def test_sets_contain_the_label_and_the_answers(crowd):
    model = mh.PooledDawidSkene().fit(crowd.annotations)
    answers = answers_of(crowd, 60)
    sets = mh.trust.label_sets(model, answers, coverage=0.8)
    at = {item: row for row, item in enumerate(model.item_ids_.tolist())}
    lists = sets.as_lists()
    assert all(lists[at[item]] == [label] for item, label in answers.values.items())
    others = [row for item, row in at.items() if item not in answers.values]
    assert all(model.labels_[row] in lists[row] for row in others)
    assert sets.mean_size == pytest.approx(np.mean([len(one) for one in lists]))
    assert "contain the truth for 80% of the items" in str(sets)


def test_promises_about_a_selected_method_follow_the_order_of_the_items():
    """Items in the order of the caller: the sets of a tempered method belong to the right items."""
    crowd = make_crowd(n_items=120, n_workers=10, n_classes=3, random_state=3)
    votes = crowd.annotations
    names = [f"i{k * 7919 % 120}" for k in range(120)]
    own = mh.Annotations.from_triples(
        [names[k] for k in votes.item], votes.worker.tolist(), votes.label.tolist(), item_ids=names
    )
    drawn = mh.trust.random_items(own, 40, methods=["wawa"])
    truth = dict(zip(names, crowd.truth.tolist()))
    answers = drawn.answer({item: truth[item] for item in drawn})
    tempered = mh.trust.CalibratedAggregator(mh.DawidSkene(), mh.trust.selection.tempered(3)).fit(own)
    sets = mh.trust.label_sets(tempered, answers)
    at = {item: row for row, item in enumerate(tempered.item_ids_.tolist())}
    assert all(sets.as_lists()[at[item]] == [label] for item, label in answers.values.items())


def test_promises_are_read_and_refused(crowd):
    assert parse_guarantee("error<=5% at 95%") == (0.05, 0.95)
    assert parse_guarantee(" Error <= 2.5 % with 90% ") == pytest.approx((0.025, 0.9))
    assert parse_sets("90%") == (0.9, 0.95) and parse_sets("80% at 90%") == (0.8, 0.9)
    for text in ("5%", "error<=5%", "error<=0% at 95%", "error<=5% at 100%"):
        with pytest.raises(ParameterError, match="form"):
            parse_guarantee(text)
    with pytest.raises(ParameterError, match="form"):
        parse_sets("all")
    model = mh.MajorityVote().fit(crowd.annotations)
    with pytest.raises(AnnotationError, match="random items"):
        mh.guarantee(model, {0: 0})
    with pytest.raises(ParameterError):
        mh.guarantee(model, answers_of(crowd, 20), error=0.0)


def answers_of_days(days, truth, rng):
    """Random answers of several days: (items that there were, number of answers) of each."""
    parts = []
    for k, (items, n) in enumerate(days):
        drawing = mh.trust.Drawing(frozenset(range(items)), name=f"day {k}")
        drawn = {row: int(truth[row]) for row in rng.permutation(items)[:n].tolist()}
        parts.append(mh.trust.Answers(drawn, "random", drawings=(drawing,)))
    return mh.trust.combine_answers(parts)


def test_new_items_go_to_the_expert_and_have_all_classes(crowd):
    """The guarantee of the items that could be drawn is that of a data set without the others."""
    truth, rng = crowd.truth, np.random.default_rng(0)
    model = mh.MajorityVote().fit(crowd.annotations)
    answers = answers_of_days([(400, 120)], truth, rng)
    found = mh.guarantee(model, answers, error=0.1)
    new = np.arange(500) >= 400
    assert found.to_expert[new].all() and found.n_covered == 400 and found.strata["day 0"][:2] == (400, 120)
    score = np.round(model.posterior_.max(axis=1), 9)[:400]
    rows = np.array(sorted(answers.values))
    threshold, _ = release(score, score[rows], model.labels_[rows] != truth[rows], 40, 0.05)
    assert found.threshold == threshold and found.stands[:400].sum() > 120
    assert "100 items are not covered" in str(found) and found.as_dict()["strata"]["day 0"]["n_items"] == 400
    sets = mh.trust.label_sets(model, answers, coverage=0.8)
    assert sets.members[new].all() and not sets.members[:400].all() and sets.n_covered == 400
    assert "100 items are not covered" in str(sets) and sets.mean_size == sets.members.sum(axis=1).mean()


def test_strata_are_used_where_they_have_enough_answers(crowd):
    """Five answers about the second day's items promise nothing: these items go to the expert."""
    truth, rng = crowd.truth, np.random.default_rng(0)
    model = mh.MajorityVote().fit(crowd.annotations)
    few = mh.guarantee(model, answers_of_days([(400, 120), (500, 20)], truth, rng), error=0.1)
    assert list(few.strata) == ["day 0 + day 1"]
    answered = few.stands[400:].sum()
    assert few.to_expert[400:].sum() == 100 - answered and answered < 15
    many = mh.guarantee(model, answers_of_days([(250, 120), (500, 200)], truth, rng), error=0.2)
    assert list(many.strata) == ["day 0 + day 1", "day 1"] and many.n_covered == 500
    assert " in day 0 + day 1, " in str(many) and "not covered" not in str(many)


def test_the_guarantee_of_two_days_is_kept_in_the_promised_share_of_draws():
    """By simulation: items of the second day are harder, and the third day's are all wrong."""
    rng = np.random.default_rng(3)
    truth = rng.integers(0, 3, 450)
    noise = np.repeat([0.3, 0.6, 1.0], [200, 200, 50]) * rng.choice([0.4, 1.6], 450)
    votes = np.where(
        rng.random((450, 3)) < noise[:, None], (truth[:, None] + rng.integers(1, 3, (450, 3))) % 3, truth[:, None]
    )
    model = mh.MajorityVote().fit(mh.Annotations.from_matrix(votes, classes=[0, 1, 2]))
    kept, covered = [], []
    for _ in range(200):
        answers = answers_of_days([(200, 70), (400, 90)], truth, rng)
        found = mh.guarantee(model, answers, error=0.1, confidence=0.9)
        unasked = ~np.isin(np.arange(450), list(answers.values))
        kept.append(np.sum((model.labels_ != truth) & found.stands & unasked) <= 0.1 * found.n_covered)
        sets = mh.trust.label_sets(model, answers, coverage=0.8, confidence=0.9)
        holds = sets.members[np.arange(450), truth]
        names, codes = answers.strata_of(range(450))
        about = np.isin(codes, [names.index(name) for name in sets.strata])
        covered.append(holds[about].mean() >= 0.8 and holds[~about].all())
        assert not found.stands[400:].any()
    assert min(np.mean(kept), np.mean(covered)) >= 0.9 - 2 * math.sqrt(0.9 * 0.1 / 200)
