"""Scorecards: numbers by hand, what cannot be known stays open, planted workers are found and honest ones are not."""

import json
import time
import tracemalloc
import warnings
from dataclasses import asdict
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from manyhands import Annotations, MajorityVote, registry
from manyhands.em.collusion import CollusionGroups
from manyhands.exceptions import AlignmentError, CrowdWarning, ParameterError
from manyhands.scorecards import FLAGS, score_workers
from manyhands.scorecards import accuracy as accuracy_module
from manyhands.scorecards import copying as copying_module
from manyhands.scorecards import reasons as reasons_module
from manyhands.scorecards.leave_one_out import LeaveOneOut, leave_one_out_posterior
from manyhands.simulate import make_crowd, one_coin

NOBODY = np.zeros(2, bool)


def on_gold(labels, truth, classes=("cat", "dog")):
    """The card of one worker who labelled items of which all is known."""
    votes = Annotations.from_triples(range(len(labels)), ["ann"] * len(labels), labels, classes=classes)
    flat = np.full((len(labels), len(classes)), 1 / len(classes))
    return score_workers(votes, flat, gold=dict(enumerate(truth)))[0]


def scored(votes):
    """The cards that follow from the default method."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = registry.create("pooled-dawid-skene").fit(votes)
    settings = {
        "confusion": model.confusion_,
        "power": model.tempering_exponent_,
        "collusion_group": model.collusion_group_,
    }
    return score_workers(votes, model.posterior_, **settings)


def test_own_vote_is_taken_out_of_the_posterior():
    """Ann (.8) says 0 and Bob (.6) says 1: without Ann the odds are .4 to .6, without Bob .8 to .2; 2% are doubt."""
    votes = Annotations.from_matrix([[0, 1]])
    posterior = np.array([[0.8 * 0.4, 0.2 * 0.6]]) / 0.44
    heard = leave_one_out_posterior(votes, posterior, one_coin([0.8, 0.6], 2), 1.0, NOBODY, None)
    np.testing.assert_allclose(heard.truth, [[0.98 * 0.4 + 0.01, 0.98 * 0.6 + 0.01], [0.98 * 0.8 + 0.01, 0.206]])
    np.testing.assert_allclose(heard.p_right, [0.402, 0.206])


def test_a_tempered_vote_is_taken_out_as_it_went_in():
    """Where labels count half, half a label is removed."""
    votes = Annotations.from_matrix([[0, 1]])
    posterior = np.array([[0.8 * 0.4, 0.2 * 0.6]]) ** 0.5
    heard = leave_one_out_posterior(votes, posterior / posterior.sum(), one_coin([0.8, 0.6], 2), 0.5, NOBODY, None)
    others = np.sqrt([0.4, 0.6])
    np.testing.assert_allclose(heard.truth[0], 0.98 * others / others.sum() + 0.01)


def test_repeated_labels_are_one_witness_and_go_out_together():
    """Ann says 0 twice: her two labels share one weight, and neither judges the other."""
    votes = Annotations.from_triples([0, 0, 0], ["ann", "ann", "bob"], [0, 0, 1])
    posterior = np.array([[0.8 * 0.8 * 0.4, 0.2 * 0.2 * 0.6]])
    heard = leave_one_out_posterior(votes, posterior / posterior.sum(), one_coin([0.8, 0.6], 2), 1.0, NOBODY, None)
    np.testing.assert_allclose(heard.truth[0], [0.402, 0.598])
    assert heard.weight.tolist() == [0.5, 0.5, 1.0]
    assert heard.n_others.tolist() == [1, 1, 2] and heard.n_equal.tolist() == [0, 0, 0]


def test_members_of_one_voice_are_judged_without_the_word_of_the_group():
    """Three count as one who says 0: that is what is taken out, also for the member who said 1. A split group said
    nothing, and where nobody but the group speaks, nobody is checked."""
    votes = Annotations.from_matrix([[0, 0, 1, 1], [0, 1, -1, 1], [0, 0, 1, -1]])
    members, confusion = np.array([True, True, True, False]), one_coin([0.8, 0.8, 0.8, 0.6], 2)
    posterior = np.array([[0.8 * 0.4 / 0.44, 0.2 * 0.6 / 0.44], [0.4, 0.6], [0.8, 0.2]])
    heard = leave_one_out_posterior(votes, posterior, confusion, 1.0, members, None)
    np.testing.assert_allclose(heard.truth[[0, 1, 2, 4, 5]], np.tile([0.402, 0.598], (5, 1)))
    np.testing.assert_allclose(heard.truth[3], [0.794, 0.206])
    assert heard.weight.tolist() == [1] * 7 + [0] * 3


def test_agreement_by_hand():
    """Ann's labels 0, 0, 1 meet the others' 01, 11, 11: equal on 3 of 6; shuffled, on 2/3 * 1/6 + 1/3 * 5/6."""
    votes = Annotations.from_matrix([[0, 0, 1], [0, 1, 1], [1, 1, 1]])
    cards = score_workers(votes, np.full((3, 2), 0.5))
    assert cards.agreement[0] == pytest.approx(1 / 2)
    assert cards.agreement_by_chance[0] == pytest.approx(7 / 18)
    assert cards.n_labels.tolist() == cards.n_checked.tolist() == [3, 3, 3]


def test_likelihood_of_known_truth_is_binomial():
    """Eight right of ten on gold: 8 log a + 2 log(1 - a), up to a constant."""
    votes = Annotations.from_matrix(np.array([[0]] * 8 + [[1]] * 2))
    gold = np.zeros(10, np.int32)
    heard = leave_one_out_posterior(votes, np.full((10, 2), 0.5), one_coin([0.7], 2), 1.0, NOBODY[:1], gold)
    grid, found = accuracy_module._GRID, accuracy_module._log_likelihood(accuracy_module._histogram(heard), 2, 1.0)[0]
    wanted = 8 * np.log(grid) + 2 * np.log(1 - grid)
    middle = (grid > 0.3) & (grid < 0.95)
    difference = (found - wanted)[middle]
    assert np.ptp(difference) < 0.02 and grid[found.argmax()] == pytest.approx(0.8, abs=0.01)


def test_doubt_makes_the_interval_wider_and_the_worker_no_worse():
    """Agreement .6 with truth that is certain is accuracy .6; with others who are right in .7, it is .75 or so."""
    votes = Annotations.from_matrix(np.array([[0]] * 24 + [[1]] * 16))
    gold = np.zeros(40, np.int32)
    confusion = one_coin([0.7], 2)
    sure = leave_one_out_posterior(votes, np.full((40, 2), 0.5), confusion, 1.0, NOBODY[:1], gold)
    unsure = type(sure)(votes, 0.7 * sure.truth + 0.3 * sure.truth[:, ::-1], sure.weight, sure.n_others, sure.n_equal)
    one, other = (accuracy_module.estimate_accuracy(heard, 1.0) for heard in (sure, unsure))
    assert (other.high - other.low)[0] > 1.3 * (one.high - one.low)[0]
    assert one.mean[0] == pytest.approx(0.6, abs=0.03) and other.mean[0] == pytest.approx(0.72, abs=0.06)


def test_bias_and_confusion_by_hand():
    """20 times "dog" where 10 are: half a share too many, 10 / sqrt(11) deviations; every cat is called a dog."""
    card = on_gold(["dog"] * 20, ["cat", "dog"] * 10)
    assert (card.bias_class, card.bias) == ("dog", 0.5)
    assert card.top_confusions == (("cat", "dog", pytest.approx(10), pytest.approx(1)),)
    some = on_gold(["cat"] * 10 + ["dog"] * 5, ["cat"] * 15)
    assert some.top_confusions == (("cat", "dog", pytest.approx(5), pytest.approx(1 / 3)),)
    fair = on_gold(["cat", "dog"] * 10, ["cat", "dog"] * 10)
    assert fair.bias_class is None and fair.bias is None and fair.top_confusions == ()
    nine = on_gold(["dog"] * 18, ["cat", "dog"] * 9)  # 9 / sqrt(10) = 2.85
    assert nine.bias_class is None


def test_one_class_needs_ten_items_of_other_classes():
    """Who sees 40% of them misses ten in a row in .6^10 = .006 of all cases, nine in .0101."""
    card = on_gold(["dog"] * 20, ["cat", "dog"] * 10)
    assert card.flags == ("one-class",)
    assert card.reasons == ("said 'dog' for 20 of 20 items, of which about 10 are 'dog'",)
    assert on_gold(["dog"] * 18, ["cat", "dog"] * 9).flags == ("too-few-labels",)


def test_random_needs_labels_enough_to_rule_out_a_weak_worker():
    """Half right of 200: 2 * 200 * log(.5 / sqrt(.24)) = 8.2, beyond 2.33^2 = 5.4; of 100 it is 4.1."""
    labels, truth = ["cat", "cat", "dog", "dog"], ["cat", "dog", "cat", "dog"]
    card = on_gold(labels * 50, truth * 50)
    assert card.flags == ("random",)
    assert card.reasons == (
        "right on about 100 of 200 items, where the same labels in random order would be right on 100",
    )
    assert on_gold(labels * 25, truth * 25).flags == ("too-few-labels",)


def test_inverted_and_honest_on_gold():
    """Ten of fifty right is the wrong way round; sixty of a hundred is honest work, or too few to tell."""
    truth = ["cat", "dog"] * 25
    swap = {"cat": "dog", "dog": "cat"}
    card = on_gold(truth[:10] + [swap[t] for t in truth[10:]], truth)
    assert card.flags == ("inverted",) and card.accuracy_high < 0.5
    assert card.reasons[0].startswith("right on about 10 of 50 items, fewer than the 25 ")
    assert on_gold(truth[:40] + [swap[t] for t in truth[40:]], truth).flags == ()


def test_one_worker_alone_is_not_identifiable():
    """N4: nobody speaks to the labels, so the interval is that of the prior, far from a claim of 1.0."""
    votes = Annotations.from_matrix([[0], [1], [0]])
    for cards in (score_workers(votes, np.eye(2)[[0, 1, 0]]), scored(votes)):
        card = cards[0]
        assert card.n_labels == 3 and card.n_checked == 0 and card.agreement is None
        assert card.accuracy_low < 0.3 and card.accuracy_high > 0.9 and 0.5 < card.accuracy < 0.8
        assert card.flags == ("too-few-labels",)
        assert card.reasons == ("nobody else speaks to any of the 3 items they labelled",)


def test_one_label_per_item_says_nothing_of_anybody():
    """N5: many workers, no item in common; all get the same wide interval, also a worker of a thousand labels."""
    votes = Annotations.from_triples(range(100), [0] * 90 + [1] * 10, [0, 1] * 50)
    cards = scored(votes)
    assert cards.n_checked.tolist() == [0, 0]
    assert cards.accuracy_low[0] == cards.accuracy_low[1] < 0.3 and cards.accuracy_high[0] > 0.9


def test_a_worker_without_labels_keeps_a_card():
    """N7: nothing but the crowd's own spread is known of them."""
    crowd = make_crowd(60, 10, random_state=0).annotations
    votes = Annotations(
        crowd.item, crowd.worker, crowd.label,
        item_ids=crowd.item_ids, worker_ids=[*range(10), "silent"], classes=crowd.classes,
    )  # fmt: skip
    card = scored(votes)[10]
    assert (card.worker, card.n_labels, card.n_checked) == ("silent", 0, 0)
    assert card.reasons == ("gave no label",) and card.agreement is None and card.agreement_by_chance is None
    assert card.accuracy_high - card.accuracy_low > 0.3


def test_gold_speaks_to_a_lone_worker():
    """With gold a worker whom nobody else meets can be judged; without, not."""
    votes = Annotations.from_triples(range(60), ["ann"] * 60, [0, 1] * 30)
    flat = np.full((60, 2), 0.5)
    card = score_workers(votes, flat, gold={i: i % 2 for i in range(60)})[0]
    assert card.n_checked == 60 and card.accuracy_low > 0.8 and card.accuracy < 1.0 and card.flags == ()
    assert score_workers(votes, flat, gold={0: 0})[0].n_checked == 1


@pytest.mark.parametrize(("bad", "flag"), [("constant", "one-class"), ("inverted", "inverted"), ("random", "random")])
@pytest.mark.parametrize("n_classes", [2, 5])
def test_planted_workers_are_flagged_and_honest_ones_are_not(n_classes, bad, flag):
    """A fifth of the workers bad, with many labels on items that many others labelled."""
    crowd = make_crowd(400, 15, n_classes, 15, bad=bad, bad_share=0.2, random_state=1)
    cards = scored(crowd.annotations)
    np.testing.assert_array_equal(cards.flagged(flag), crowd.is_bad)
    assert all(flags == () for flags, is_bad in zip(cards.flags, crowd.is_bad) if not is_bad)


@pytest.mark.parametrize("class_shares", [[0.5, 0.5], [0.95, 0.05]])
@pytest.mark.parametrize("accuracy", [0.6, 0.9])
def test_honest_workers_are_not_accused(accuracy, class_shares):
    """Neither weak ones nor those who mostly name a class that is most common; of some it cannot be told."""
    for seed in range(2):
        crowd = make_crowd(200, 20, accuracy=accuracy, class_shares=class_shares, random_state=seed)
        assert {flag for flags in scored(crowd.annotations).flags for flag in flags} <= {"too-few-labels"}


def test_constant_worker_where_the_other_class_is_rare():
    """Two items in a hundred-odd say nothing; with many rare items it shows."""
    many = on_gold(["dog"] * 400, ["dog"] * 380 + ["cat"] * 20)
    few = on_gold(["dog"] * 40, ["dog"] * 38 + ["cat"] * 2)
    assert many.flags == ("one-class",) and few.flags == ("too-few-labels",)


def test_one_voice_is_named_and_judged_from_outside():
    """Colluders are flagged with their partners; the group's own vote does not make its members look right."""
    crowd = make_crowd(n_classes=4, bad="colluding", bad_share=0.3, random_state=0)
    cards = scored(crowd.annotations)
    np.testing.assert_array_equal(cards.flagged("copying"), crowd.is_bad)
    first = int(crowd.is_bad.argmax())
    assert cards.partners[first] == tuple(w for w in np.flatnonzero(crowd.is_bad) if w != first)
    assert "as one voice with" in cards[first].reasons[-1] and "and 8 more" in cards[first].reasons[-1]
    assert cards.accuracy[crowd.is_bad].mean() == pytest.approx(0.25, abs=0.1)


def test_a_couple_who_share_their_errors_is_named():
    """Everyone labels everything, and one worker repeats another; nobody else is flagged."""
    crowd = make_crowd(80, 10, 4, labels_per_item=10, accuracy=0.65, random_state=0).annotations
    matrix = crowd.label.reshape(80, 10).copy()
    assert not scored(Annotations.from_matrix(matrix)).flagged("copying").any()
    matrix[:, 7] = matrix[:, 2]
    cards = scored(Annotations.from_matrix(matrix))
    assert np.flatnonzero(cards.flagged("copying")).tolist() == [2, 7]
    assert cards.partners[2] == (7,) and "same label as 2 on 80 of 80 shared items" in cards[7].reasons[-1]


def test_pairs_of_labels_are_those_of_a_plain_loop():
    """Repeated labels and voices among them: neither meets its own kind, everybody else does."""
    rng = np.random.default_rng(0)
    for n_labels, share in ((0, 0.5), (1, 0.0), (60, 0.0), (60, 0.3), (60, 0.7), (60, 1.0)):
        item, worker, label = rng.integers(0, [[8], [7], [3]], (3, n_labels))
        ids = {"item_ids": range(9), "worker_ids": range(8), "classes": range(3)}
        votes, voice = Annotations.from_triples(item, worker, label, **ids), rng.random(8) < share
        expected = [
            (a, b)
            for a, b in combinations(range(n_labels), 2)
            if votes.item[a] == votes.item[b] and votes.worker[a] != votes.worker[b]
            and not (voice[votes.worker[a]] and voice[votes.worker[b]])
        ]  # fmt: skip
        found = zip(*(positions.tolist() for positions in copying_module._label_pairs(votes, voice)))
        assert sorted(found) == expected


def test_one_busy_item_does_not_make_everybody_wait():
    """A worker with 40,000 labels on one item: the work follows the pairs that there are."""
    item = np.append(np.arange(40_000) // 4, np.zeros(40_000, int))
    votes = Annotations.from_triples(item, np.append(np.arange(40_000) % 4, np.zeros(40_000, int)), item % 2)
    begun = time.process_time()
    a, _ = copying_module._label_pairs(votes, np.zeros(4, bool))
    assert len(a) == 10_000 * 6 + 40_000 * 3 and time.process_time() - begun < 1


def test_beyond_most_pairs_every_label_meets_equally_many(monkeypatch):
    votes = Annotations.from_triples(np.zeros(900), np.arange(900) % 30, np.zeros(900))
    monkeypatch.setattr(copying_module, "MOST_PAIRS", 5_000)
    a, b = copying_module._label_pairs(votes, np.zeros(30, bool))
    assert 5_000 <= len(a) < 5_900 and np.all(votes.worker[a] < votes.worker[b])
    assert np.all(np.bincount(a)[: 870 - 30] == 6)


def test_the_chance_to_agree_takes_little_memory(monkeypatch):
    """Pairs times classes would be 64 MB, twice and more; in pieces of any size it is the same number."""
    rng = np.random.default_rng(0)
    votes = Annotations.from_matrix(rng.integers(0, 40, (1_000, 21)))
    truth, confusion = rng.dirichlet(np.ones(40), votes.n_annotations), rng.dirichlet(np.ones(40), (21, 40))
    ones = np.ones(votes.n_annotations)
    others_posterior = LeaveOneOut(votes, truth, ones, 20 * ones, ones)
    a, b = (positions[:200_000] for positions in copying_module._label_pairs(votes, np.zeros(21, bool)))
    tracemalloc.start()
    found = copying_module._chance_to_agree(others_posterior, confusion, a, b)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 50e6
    monkeypatch.setattr(copying_module, "CHUNK", 40 * 777)
    np.testing.assert_array_equal(copying_module._chance_to_agree(others_posterior, confusion, a, b), found)
    p, q = a[5], b[5]
    ways = [truth[y] @ confusion[votes.worker[y], :, votes.label[x]] for x, y in ((p, q), (q, p))]
    same = 1 - (votes.label[p] == votes.label[q])
    assert found[5] == pytest.approx(max(*ways, (same + max(ways)) / 20, 0.01))


def test_a_large_voice_is_told_in_few_names():
    """What is kept of each member is bounded, however many there are, and nobody is their own partner."""
    members = np.ones(300, bool)
    votes = Annotations.from_matrix(np.zeros((1, 300), int))
    none = np.zeros(0)
    couples = copying_module.Couples(none.astype(int), none.astype(int), none, none, none)
    flagged = [{} for _ in members]
    voice = CollusionGroups(members, 0.9, 0.5, 9.0)
    partners = reasons_module._explain_copying(flagged, votes, members, [voice], couples)
    assert partners[1] == (0, *range(2, 21)) and partners[299] == tuple(range(20))
    assert "one voice with 0, 2, 3 and 296 more: they agree on 90%" in flagged[1]["copying"]


def test_of_many_couples_the_clearest_are_told():
    n = np.arange(30, 60.0)
    votes = Annotations.from_matrix(np.zeros((1, 31), int))
    couples = copying_module.Couples(np.zeros(30, int), np.arange(1, 31), n, n, np.full(30, 9.0))
    flagged = [{} for _ in range(31)]
    partners = reasons_module._explain_copying(flagged, votes, np.ones(31, bool), [], couples)
    assert partners[0] == tuple(range(11, 31)) and partners[1] == (0,)
    assert flagged[0]["copying"].startswith("same label as 30 on 59 of 59 shared items, where 9")


def test_names_and_order_do_not_matter():
    """Items, workers and classes under other codes and rows shuffled: the same cards."""
    crowd = make_crowd(150, 15, 3, bad="constant", bad_share=0.2, random_state=0)
    votes, rng = crowd.annotations, np.random.default_rng(0)
    item, worker, label = (rng.permutation(n) for n in (150, 15, 3))
    rows = rng.permutation(votes.n_annotations)
    other = Annotations(
        item[votes.item][rows], worker[votes.worker][rows], label[votes.label][rows],
        item_ids=range(150), worker_ids=range(15), classes=range(3),
    )  # fmt: skip
    before, after = scored(votes), scored(other)
    for name in ("n_checked", "accuracy", "accuracy_low", "accuracy_high", "agreement", "agreement_by_chance", "bias"):
        np.testing.assert_allclose(getattr(after, name)[worker], getattr(before, name), atol=1e-4, err_msg=name)
    assert [after.flags[w] for w in worker] == list(before.flags)
    renamed = np.append(label, -1)
    np.testing.assert_array_equal(after.bias_class[worker], renamed[before.bias_class])


@pytest.mark.parametrize("method", ["majority-vote", "dawid-skene", "glad"])
def test_any_posterior_will_do(method):
    """Without confusion matrices they are derived: a unanimous vote does not make its voters perfect."""
    crowd = make_crowd(200, 20, 5, bad="random", bad_share=0.2, random_state=0)
    model = registry.create(method).fit(crowd.annotations)
    cards = score_workers(crowd.annotations, model.posterior_, confusion=getattr(model, "confusion_", None))
    true = np.trace(crowd.confusion, axis1=1, axis2=2) / 5
    assert np.corrcoef(cards.accuracy, true)[0, 1] > 0.9
    assert np.mean((cards.accuracy_low < true) & (true < cards.accuracy_high)) >= 0.8
    assert np.all(cards.accuracy_high < 1)


def test_silent_items_one_class_and_single_labels_stay_finite():
    """Items without labels, one class in the file, one label in all."""
    silent = Annotations.from_triples([0, 0, 2], ["a", "b", "a"], [1, 1, 0], item_ids=range(4), classes=range(5))
    for votes in (silent, Annotations.from_matrix([[0, 0, 0]] * 8), Annotations.from_matrix([[0]])):
        for card in scored(votes):
            assert 0 < card.accuracy_low < card.accuracy < card.accuracy_high < 1
            assert card.flags == ("too-few-labels",) and card.top_confusions == ()


def test_cards_go_into_json_and_reasons_are_plain_sentences():
    """Names with line breaks or of great length do not break a table."""
    truth = ["a\nb", "x" * 100] * 10
    card = on_gold(["a\nb"] * 20, truth, classes=("a\nb", "x" * 100))
    assert json.loads(json.dumps(asdict(card)))["flags"] == ["one-class"]
    assert card.reasons == ("said 'a\\nb' for 20 of 20 items, of which about 10 are 'a\\nb'",)
    crowd = make_crowd(200, 20, 3, bad="random", bad_share=0.3, random_state=0)
    for card in scored(crowd.annotations):
        assert set(card.flags) <= set(FLAGS) and len(card.flags) == len(card.reasons)
        assert all("\n" not in reason and "nan" not in reason and len(reason) < 250 for reason in card.reasons)


def test_inputs_that_do_not_fit_are_refused():
    """A posterior or matrices of other items, workers or classes; a power that is none."""
    votes = Annotations.from_matrix([[0, 1], [1, 1]])
    with pytest.raises(AlignmentError, match=r"\(2, 2\) like the annotations. Got \(3, 2\)"):
        score_workers(votes, np.full((3, 2), 0.5))
    with pytest.raises(AlignmentError, match=r"Confusion matrices must be"):
        score_workers(votes, np.full((2, 2), 0.5), confusion=one_coin([0.8], 2))
    with pytest.raises(AlignmentError, match="each of the 2 workers"):
        score_workers(votes, np.full((2, 2), 0.5), collusion_group=np.zeros(3, bool))
    for value in (np.nan, -1.0):
        with pytest.raises(ParameterError, match="no numbers"):
            score_workers(votes, np.full((2, 2), value))
    with pytest.raises(ParameterError, match="power"):
        score_workers(votes, np.full((2, 2), 0.5), power=0)


def test_repeats_are_no_evidence_of_copying():
    """Two workers who say the same of one item twelve times over share one item."""
    crowd = make_crowd(60, 12, 2, labels_per_item=5, accuracy=0.8, random_state=3).annotations
    item, again = np.zeros(12, int), np.zeros(12, int)
    repeated = crowd.with_more(item, again, again).with_more(item, again + 1, again)
    posterior = MajorityVote().fit(repeated).posterior_
    assert not score_workers(repeated, posterior).flagged("copying").any()


@pytest.mark.parametrize(
    ("n_items", "n_equal", "n_times", "expected", "is_couple"),
    [
        (2000, 1500, 1, 0.7, False),  # more than luck explains, and still far from a copy
        (2000, 1900, 1, 0.7, True),
        (9, 9, 2, 0.5, False),  # 36 pairs of labels, but nine items
        (10, 10, 2, 0.5, True),
    ],
)
def test_what_makes_a_couple(monkeypatch, n_items, n_equal, n_times, expected, is_couple):
    """Ten shared items, however often they were labelled, and half of the agreement that is left to be had."""
    equal = np.arange(n_items) < n_equal
    item = np.repeat(np.arange(n_items), 2 * n_times)
    label = np.stack([np.zeros(n_items, int), np.where(equal, 0, 1)], axis=1).repeat(n_times, axis=1)
    worker = np.tile(np.repeat([0, 1], n_times), n_items)
    votes = Annotations.from_triples(item, worker, label.ravel(), classes=[0, 1])
    monkeypatch.setattr(copying_module, "_chance_to_agree", lambda *given: np.full(len(given[-1]), expected))
    found = copying_module.find_couples(SimpleNamespace(annotations=votes), None, np.zeros(2, bool))
    assert found.x.tolist() == [0] * is_couple


def test_low_volume_ids_with_one_sheet_are_flagged_and_honest_workers_are_not():
    """Three labels tell nothing of one id; all of them together copy, and each card says so."""
    crowd = make_crowd(n_classes=4, bad="sybil", bad_share=0.45, random_state=12)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", CrowdWarning)
        model = registry.create("pooled-dawid-skene").fit(crowd.annotations)
    settings = {
        "confusion": model.confusion_,
        "power": model.tempering_exponent_,
        "collusion_group": model.collusion_group_,
    }
    cards = score_workers(crowd.annotations, model.posterior_, **settings)
    assert np.all(cards.flagged("copying") == crowd.is_bad)
    sentence = cards[int(crowd.is_bad.argmax())].reasons[0]
    assert sentence.startswith("one of the ids with at most 3 labels, taken together (") and "100%" in sentence


def test_very_many_workers_who_look_alike_are_estimated_together(monkeypatch):
    """The numbers of their cards are those of a separate estimate."""
    votes = Annotations.from_triples(np.arange(600) // 3, range(600), np.tile([0, 0, 1, 1, 1, 1], 100))
    posterior = np.tile([[0.7, 0.3], [0.1, 0.9]], (100, 1))
    apart = score_workers(votes, posterior)
    monkeypatch.setattr(accuracy_module, "_MANY", 10)
    together = score_workers(votes, posterior)
    for name in ("accuracy", "accuracy_low", "accuracy_high"):
        np.testing.assert_allclose(getattr(together, name), getattr(apart, name), atol=1e-9)
