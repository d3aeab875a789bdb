"""The EM driver: the objective rises, the stopping rule holds, and convergence is reported correctly."""

from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings

from manyhands import DawidSkene
from manyhands._core.progress import listening
from manyhands.em.confusion_em import ConfusionEM
from manyhands.em.driver import StopRule, run_em
from manyhands.em.kernels import PackedLabels, pack
from manyhands.em.noise import ConfusionNoise
from manyhands.em.priors import EstimatedPrior
from manyhands.testing.crowds import easy_crowd, hard_crowd
from strategies import annotations

pytestmark = pytest.mark.fast


def model_of(votes, smoothing=0.01):
    """A Dawid-Skene model of these annotations, and the statistics it starts from."""
    model = ConfusionEM(PackedLabels(pack(votes)), ConfusionNoise(smoothing), EstimatedPrior(smoothing))
    return model, model.statistics(model.labels.vote_pass(), None)


class Recorder:
    """The steps of another model, counting passes and keeping the best objective of each."""

    def __init__(self, steps):
        self.steps, self.passes, self.objectives = steps, 0, []

    def maximise(self, statistics, previous):
        assert np.all(statistics >= 0), "expected counts turned negative"
        return self.steps.maximise(statistics, previous)

    def expect(self, params):
        self.passes += 1
        statistics, objective = self.steps.expect(params)
        self.objectives.append(objective)
        return statistics, objective


class Saddle:
    """An objective with a plateau: tiny steps near 0, then a climb to 1; the map of a double well."""

    def __init__(self, speed=0.3):
        self.speed = speed

    def maximise(self, statistics, previous):
        return float(statistics[0])

    def expect(self, x):
        return np.array([x + self.speed * x * (1 - x)]), -1000.0 + x * x / 2 - x**3 / 3


@pytest.mark.parametrize("accelerate", [True, False])
def test_each_entry_of_the_history_knows_its_pass(accelerate):
    """Rejected passes have no entry; the last entry need not be of the last pass."""
    model, start = model_of(hard_crowd(3))
    recorder = Recorder(model)
    found = run_em(recorder, start, max_iter=60, tol=0, accelerate=accelerate)
    assert found.history == [recorder.objectives[number] for number in found.kept]
    assert found.n_iter == recorder.passes and found.kept == sorted(set(found.kept))
    assert (len(found.kept) < found.n_iter) == accelerate


@given(votes=annotations(max_items=10, max_workers=5))
@settings(max_examples=60)
def test_objective_never_falls(votes):
    """Not on any crowd, however odd, with acceleration or without."""
    model, start = model_of(votes)
    for accelerate in (True, False):
        history = np.array(run_em(model, start, max_iter=60, tol=0.0, accelerate=accelerate).history)
        assert np.all(np.diff(history) >= -1e-8 * np.maximum(np.abs(history[1:]), 1.0))


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("max_iter", [1, 2, 3, 4, 5, 7])
def test_passes_are_counted_and_limited(accelerate, max_iter):
    """`n_iter` is the number of passes made, never more than `max_iter`; without convergence `converged` is False."""
    model, start = model_of(hard_crowd(3))
    recorder = Recorder(model)
    result = run_em(recorder, start, max_iter=max_iter, tol=1e-12, accelerate=accelerate)
    assert result.n_iter == recorder.passes == max_iter
    assert not result.converged


@pytest.mark.parametrize("accelerate", [True, False])
def test_result_is_the_end_of_the_history(accelerate):
    """The last entry of the history is the objective at the parameters that are returned, and the best of all."""
    model, start = model_of(hard_crowd(3))
    for max_iter in range(1, 12):
        result = run_em(model, start, max_iter=max_iter, tol=0.0, accelerate=accelerate)
        assert model.expect(result.params)[1] == result.history[-1] == max(result.history)


def test_acceleration_reaches_the_same_optimum():
    """On an easy crowd both ways end within `tol` of the same objective and posterior."""
    model, start = model_of(easy_crowd(3, n_items=200, n_workers=12, per_item=6)[0])
    fast, plain = (run_em(model, start, max_iter=5000, tol=1e-10, accelerate=a) for a in (True, False))
    assert fast.converged and plain.converged
    assert fast.history[-1] == pytest.approx(plain.history[-1], rel=1e-8)
    posteriors = [model.pass_at(result.params, want_posterior=True).posterior for result in (fast, plain)]
    np.testing.assert_allclose(*posteriors, atol=1e-3)


def test_stops_within_tol_of_the_optimum():
    """Where the rule stops, the optimum is within the tolerance, even where single steps gain next to nothing."""
    for seed in range(6):
        model, start = model_of(easy_crowd(3, n_items=80, n_workers=20, per_item=4, accuracy=0.6, seed=seed)[0])
        best = run_em(model, start, max_iter=20_000, tol=1e-13).history[-1]
        stopped = run_em(model, start, max_iter=20_000, tol=1e-6)
        assert stopped.converged
        assert best - stopped.history[-1] <= 3e-6 * abs(best)


@pytest.mark.parametrize("accelerate", [True, False])
@pytest.mark.parametrize("x", [1e-2, 3e-3])
def test_a_plateau_does_not_fool_the_stop_rule(accelerate, x):
    """The first steps gain less than `tol`, yet the optimum is far: EM continues and reaches it."""
    steps = Saddle()
    first, second = steps.expect(x)[1], steps.expect(steps.expect(x)[0][0])[1]
    assert second - first < 1e-6 * abs(first)
    result = run_em(steps, np.array([x]), max_iter=1000, tol=1e-6, accelerate=accelerate)
    assert result.converged
    assert result.params == pytest.approx(1.0, abs=0.05)


def watched(rule, residual, next_residual, gain, objective):
    """Pass two passes with these residuals, this gain and this objective to the rule."""
    here = SimpleNamespace(residual=np.array([residual]), objective=objective - gain)
    rule.watch(here, SimpleNamespace(residual=np.array([next_residual]), statistics=np.ones(1), objective=objective))


def test_slow_progress_is_not_convergence():
    """Equal tiny gains, pass after pass, are no convergence; gains that halve are."""
    creeping, halving = StopRule(1e-6), StopRule(1e-6)
    for step in range(20):
        watched(creeping, 1e-4, 1e-4, 1e-4, -1000.0)
        watched(halving, 1e-4 * 0.5**step, 1e-4 * 0.5 ** (step + 1), 1e-4 * 0.25**step, -1000.0)
    assert not creeping.reached
    assert halving.reached


def test_one_lucky_step_is_not_enough():
    """The rule must hold twice in a row, and never while an expected count still changes."""
    rule = StopRule(1e-6)
    watched(rule, 1e-5, 1e-6, 0.0, -1.0)
    assert not rule.reached
    watched(rule, 1e-5, 0.1, 0.0, -1.0)
    watched(rule, 1e-1, 1e-6, 0.0, -1.0)
    assert not rule.reached
    watched(rule, 1e-6, 1e-7, 0.0, -1.0)
    assert rule.reached


def test_an_extrapolation_that_falls_is_rejected():
    """An extrapolation that lowers the objective leaves no trace in history or parameters."""

    class Cliff:
        """Steps to 1 by a tenth of the distance; an extrapolation from afar lowers the objective."""

        def maximise(self, statistics, previous):
            x = float(statistics[0])
            return x, previous is not None and abs(x - previous[0]) > 0.11

        def expect(self, params):
            x, fell = params
            return np.array([x + 0.1 * (1 - x)]), -1e6 if fell else -((1 - x) ** 2)

    recorder = Recorder(Cliff())
    result = run_em(recorder, np.array([0.01]), max_iter=300, tol=1e-9)
    assert min(recorder.objectives) == -1e6, "no leap fell, so nothing was tested"
    assert min(result.history) > -1e6 and np.all(np.diff(result.history) >= 0)
    assert result.converged and result.params[0] == pytest.approx(1.0, abs=1e-2)


def test_an_optimum_at_the_start_is_seen_at_once():
    """Where nothing changes, three passes are enough."""

    class Still:
        def maximise(self, statistics, previous):
            return statistics

        def expect(self, params):
            return params, -1.0

    result = run_em(Still(), np.array([1.0, 0.0]), max_iter=100, tol=1e-6)
    assert result.converged and result.n_iter <= 6


def test_progress_is_reported_pass_by_pass():
    """A listener receives each pass, its number and the limit."""
    reports = []
    model, start = model_of(hard_crowd(3))
    with listening(lambda *report: reports.append(report)):
        run_em(model, start, max_iter=5, tol=0.0, what="here")
    assert reports == [(n, 5, "here") for n in range(1, 6)]


@pytest.mark.parametrize("name", ["labelme", "music"])
def test_acceleration_saves_passes_on_real_crowds(real_annotations, name):
    """SQUAREM needs at most 0.6 times the passes of plain EM until within 1e-6 of the optimum."""
    model, start = model_of(real_annotations(name))
    passes, best = {}, run_em(model, start, max_iter=3000, tol=1e-13).history[-1]
    for accelerate in (True, False):
        recorder = Recorder(model)
        run_em(recorder, start, max_iter=600, tol=0.0, accelerate=accelerate)
        near = np.maximum.accumulate(recorder.objectives) >= best - 1e-6 * abs(best)
        passes[accelerate] = int(np.argmax(near)) + 1 if near.any() else np.inf
    assert passes[True] <= 0.6 * passes[False], passes


@pytest.mark.parametrize("name", ["labelme", "music"])
def test_estimators_use_the_acceleration(real_annotations, name):
    """Estimators make at most 0.6 times the passes of plain EM with the same stopping rule."""
    votes = real_annotations(name)
    plain = run_em(*model_of(votes), max_iter=3000, tol=1e-6, accelerate=False)
    assert plain.converged
    assert DawidSkene().fit(votes).n_iter_ <= 0.6 * plain.n_iter
