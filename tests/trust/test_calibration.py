"""`calibrate`: a new posterior from random answers, and what is refused."""

import numpy as np
import pytest
from scipy import stats

import manyhands as mh
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.metrics import log_loss
from manyhands.simulate import make_crowd
from manyhands.trust.calibration import expected_accuracy, heldout_probabilities, shares_of, usable_answers
from manyhands.trust.selection import CalibratedAggregator, Consensus, create_selected


@pytest.fixture(scope="module")
def crowd():
    return make_crowd(n_items=400, n_workers=20, n_classes=3, random_state=4)


@pytest.fixture(scope="module")
def truth(crowd):
    return dict(zip(crowd.annotations.item_ids.tolist(), crowd.truth.tolist()))


def draw(crowd, truth, n, seed=0, kind="random"):
    drawn = (mh.trust.random_items if kind == "random" else mh.contested)(crowd.annotations, n, seed, methods=["wawa"])
    return drawn.answer({item: truth[item] for item in drawn})


def too_certain(crowd):
    """A method whose posterior is far too certain."""
    return mh.DawidSkene().fit(crowd.annotations)


def test_a_calibrated_model_is_less_wrong_about_itself(crowd, truth):
    """On a crowd that errs on the same items, log loss falls; answered items are certain and marked as gold."""
    rng = np.random.default_rng(0)
    votes = crowd.annotations
    fooled = rng.random(votes.n_items) < 0.25
    label = np.where(fooled[votes.item], (crowd.truth[votes.item] + 1) % 3, votes.label)
    shared = mh.Annotations.from_triples(
        votes.item.tolist(), votes.worker.tolist(), label.tolist(), item_ids=votes.item_ids, classes=votes.classes
    )
    model = mh.DawidSkene().fit(shared)
    rows = rng.permutation(400)[:60]
    answers = mh.trust.Answers({int(votes.item_ids[r]): int(crowd.truth[r]) for r in rows}, "random")
    calibrated = mh.calibrate(model, answers)
    rest = np.setdiff1d(np.arange(400), rows)
    before = log_loss(crowd.truth[rest], model.posterior_[rest], votes.classes)
    after = log_loss(crowd.truth[rest], calibrated.posterior_[rest], votes.classes)
    assert after < before
    assert calibrated.posterior_[rows].max(axis=1) == pytest.approx(1.0)
    assert calibrated.labels_[rows].tolist() == crowd.truth[rows].tolist()
    assert set(calibrated.calibration_.log_loss) == {"plain", "classwise", "map"}
    assert "random answers" in str(calibrated.calibration_)
    frame = mh.label_frame(calibrated)
    assert (frame["alerts"].fill_null("").str.contains("gold")).sum() == 60


def test_gold_of_the_fit_is_not_its_own_witness(crowd, truth):
    """A model that has seen the answers gives the same calibration as one that has not."""
    answers = draw(crowd, truth, 30)
    blind = mh.calibrate(too_certain(crowd), answers)
    seen = mh.calibrate(mh.DawidSkene().fit(crowd.annotations, dict(answers.values)), answers)
    assert seen.calibration_.parameters.scale == pytest.approx(blind.calibration_.parameters.scale)
    assert seen.posterior_ == pytest.approx(blind.posterior_)


def test_predictions_agree_with_the_fit(crowd, truth):
    model = mh.calibrate(too_certain(crowd), draw(crowd, truth, 40), kind="map")
    assert model.predict_proba(crowd.annotations) == pytest.approx(model.posterior_, abs=1e-9)
    assert model.predict(crowd.annotations).tolist() == model.labels_.tolist()
    order = np.random.default_rng(0).permutation(400)[:50]
    assert model.predict_proba(crowd.annotations[order]) == pytest.approx(model.posterior_[order], abs=1e-9)
    with pytest.raises(ParameterError, match="cannot be saved"):
        model.save("nowhere")


def test_few_answers_fit_scale_and_shift_alone(crowd, truth):
    model = mh.calibrate(too_certain(crowd), draw(crowd, truth, 10))
    assert model.calibration_.kind == "plain" and set(model.calibration_.log_loss) == {"plain"}
    low, high = model.calibration_.scale_interval
    assert low < model.calibration_.parameters.scale < high
    low, high = model.calibration_.accuracy_interval
    assert low < model.calibration_.expected_accuracy < high


def test_contested_answers_are_refused_with_the_reason(crowd, truth):
    model = too_certain(crowd)
    with pytest.raises(AnnotationError, match="about contested ones, on which the methods disagree"):
        mh.calibrate(model, draw(crowd, truth, 4, kind="contested"))
    with pytest.raises(AnnotationError, match="not known how"):
        mh.calibrate(model, dict(list(truth.items())[:10]))


def test_contested_answers_are_reweighted_beside_random_ones():
    """Strata of 10 and 90 items, three answers of the small one: weights by plain division."""
    stratum = {"a": "small", "b": "small", "c": "small", "d": "large", "e": "large"}
    sampled = {"a": "contested", "b": "contested", "c": "random", "d": "random", "e": "random"}
    answers = mh.trust.Answers(dict.fromkeys("abcde", 0), sampled, stratum, {"small": 10, "large": 90}, 100)
    used, weights = usable_answers(answers, "This")
    raw = {item: {"small": 10 / 3, "large": 90 / 2}[name] for item, name in stratum.items()}
    mean = sum(raw.values()) / 5
    assert len(used) == 5 and weights == pytest.approx({item: value / mean for item, value in raw.items()})
    no_large = mh.trust.Answers(dict.fromkeys("abc", 0), sampled, stratum, {"small": 10, "large": 90}, 100)
    used, weights = usable_answers(no_large, "This")
    assert list(used.values) == ["c"] and weights == {"c": 1.0}


def test_shares_of_items_without_votes_are_uniform():
    votes = mh.Annotations.from_triples(["a", "a"], ["x", "y"], ["u", "v"], item_ids=["a", "b"])
    assert shares_of(votes).tolist() == [[0.5, 0.5], [0.5, 0.5]]


def test_a_selected_method_is_tempered_and_keeps_its_labels(crowd):
    """The fit has not seen the answers, which are certain in the result."""
    created = create_selected("dawid-skene", 3, hidden=(0, 1))
    model = created.fit(crowd.annotations, {0: 1, 1: 2})
    plain = mh.DawidSkene().fit(crowd.annotations)
    assert model.labels_[2:].tolist() == plain.labels_[2:].tolist() and model.labels_[:2].tolist() == [1, 2]
    assert model.posterior_[2:].max(axis=1).mean() < plain.posterior_[2:].max(axis=1).mean()
    default = create_selected("pooled-dawid-skene-never", 3)
    assert default.model.overrule == "never" and default.parameters is None


def test_gold_does_not_raise_the_expected_accuracy(crowd, truth):
    """Known items are certain, and say nothing about the others: the mean is over items whose class was not known."""
    drawn = draw(crowd, truth, 20)
    gold = {item: label for item, label in truth.items() if item not in drawn.values}
    gold = dict(list(gold.items())[: len(gold) // 2])
    model = mh.calibrate(mh.DawidSkene().fit(crowd.annotations, gold), drawn, kind="plain")
    mapped = CalibratedAggregator(mh.DawidSkene(), model.parameters, ()).fit(crowd.annotations, gold)
    is_open = [item not in gold for item in mapped.item_ids_.tolist()]
    expected = mapped.posterior_[is_open].max(axis=1).mean()
    assert model.calibration_.expected_accuracy == pytest.approx(expected)


def test_parameters_are_checked(crowd, truth):
    with pytest.raises(ParameterError):
        mh.calibrate(too_certain(crowd), draw(crowd, truth, 10), kind="best")
    with pytest.raises(ParameterError):
        mh.calibrate(too_certain(crowd), draw(crowd, truth, 10), level=1.0)


def test_the_interval_of_the_expected_accuracy():
    """A plain computation, and that a sample without an error is not certain."""
    confidence = np.array([0.7, 0.9, 0.8, 0.6])
    gap = np.array([0.3, -0.6, 0.2, 0.4, 0.1])
    mean, low, high = expected_accuracy(confidence, gap, 0.9)
    every = [*gap, 1 - 0.75, -0.75]
    spread = np.sqrt(sum((x - np.mean(every)) ** 2 for x in every) / 6)
    half = stats.t(4).ppf(0.95) * spread / np.sqrt(5)
    assert (mean, low, high) == pytest.approx((0.75, 0.75 + gap.mean() - half, min(0.75 + gap.mean() + half, 1.0)))
    _, low, _ = expected_accuracy(np.ones(10), np.zeros(10), 0.9)
    assert low < 1
    assert expected_accuracy(np.ones(10), np.zeros(2), 0.9)[1:] == (0.0, 1.0)


def test_a_heldout_probability_does_not_depend_on_its_own_answer():
    rng = np.random.default_rng(0)
    posterior = rng.dirichlet(np.ones(3), 25)
    seen, truth, weight = Consensus.of(posterior, posterior), rng.integers(0, 3, 25), np.ones(25)
    found = heldout_probabilities(seen, truth, "map", weight, 0.64)
    for row in (0, 7, 24):
        other = truth.copy()
        other[row] = (truth[row] + 1) % 3
        again = heldout_probabilities(seen, other, "map", weight, 0.64)
        assert again[row] == pytest.approx(found[row], abs=1e-9)
        assert abs(again - found).max() > 1e-3  # but others do
