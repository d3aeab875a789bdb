"""IBCC: its bound in plain loops, and its limits."""

import numpy as np
import pytest
from scipy.special import digamma, gammaln
from scipy.stats import dirichlet

from manyhands import IBCC, Annotations, DawidSkene
from manyhands.em.noise import VariationalPrior, dirichlet_divergence, inverse_digamma
from manyhands.exceptions import CrowdWarning

TINY = [[0, 0, 1], [1, 1, 1], [0, 0, 0], [1, 1, 0], [0, -1, -1]]


def crowd(seed=0, n_items=200, accuracies=(0.9, 0.8, 0.7, 0.6, 0.5), n_classes=3):
    rng = np.random.default_rng(seed)
    truth = rng.integers(0, n_classes, n_items)
    right = rng.random((n_items, len(accuracies))) < np.array(accuracies)
    other = (truth[:, None] + rng.integers(1, n_classes, right.shape)) % n_classes
    return Annotations.from_matrix(np.where(right, truth[:, None], other)), truth


def log_beta(a):
    return float(gammaln(a).sum() - gammaln(a.sum()))


def slow_bound(annotations, posterior, smoothing, prior_accuracy):
    """Maximum over the posteriors of E log p(labels, truth, parameters) + entropy, for this q(truth), in loops.

    With q(truth) given, the best Dirichlet posteriors are prior + expected counts and each contributes log B(prior +
    counts) - log B(prior); the rest is the entropy of q(truth).
    """
    n_workers, n_classes = annotations.n_workers, annotations.n_classes
    counts = np.zeros((n_workers, n_classes, n_classes))
    for i, w, label in zip(annotations.item, annotations.worker, annotations.label):
        for k in range(n_classes):
            counts[w, k, label] += posterior[i, k]
    labelled = posterior[annotations.n_labels > 0]
    bound = log_beta(1.0 + labelled.sum(axis=0)) - log_beta(np.ones(n_classes))
    for w in range(n_workers):
        for k in range(n_classes):
            row = np.full(n_classes, smoothing * (1 - prior_accuracy) / (n_classes - 1))
            row[k] = smoothing * prior_accuracy
            bound += log_beta(row + counts[w, k]) - log_beta(row)
    return bound - sum(p * np.log(p) for p in labelled.ravel() if p > 0)


def test_history_ends_at_the_bound_of_the_plain_loops():
    """At the optimum both ways of writing the ELBO agree; elsewhere the loops' is larger, being one step ahead."""
    annotations = Annotations.from_matrix(TINY)
    model = IBCC(tol=1e-13).fit(annotations)
    assert model.history_[-1] == pytest.approx(slow_bound(annotations, model.posterior_, 2.0, 0.7), abs=1e-6)
    with pytest.warns(CrowdWarning, match="not_converged"):
        early = IBCC(max_iter=1).fit(annotations)
    assert slow_bound(annotations, early.posterior_, 2.0, 0.7) > early.history_[-1]


def test_bound_is_below_the_evidence():
    """log p(labels), summed over all truths of a tiny crowd, is above the ELBO, by less than one."""
    annotations = Annotations.from_matrix([[0, 0], [1, 1], [0, 1]])
    log_joint = []
    for truth in np.ndindex(2, 2, 2):
        log_joint.append(slow_bound(annotations, np.eye(2)[list(truth)], 2.0, 0.7))  # no entropy: the exact joint
    evidence = np.logaddexp.reduce(log_joint)
    bound = IBCC().fit(annotations).history_[-1]
    assert evidence - 1.0 < bound < evidence


@pytest.mark.parametrize("prior", ["estimated", "uniform", [0.6, 0.3, 0.1]])
def test_bound_never_falls(prior):
    """With a Dirichlet posterior of the class frequencies, and with fixed frequencies."""
    history = np.array(IBCC(prior=prior).fit(crowd()[0]).history_)
    assert len(history) > 3
    assert (np.diff(history) >= -1e-8 * np.abs(history[:-1])).all()


def test_table_is_the_expected_logarithm():
    """confusion_ is the posterior mean; prediction uses E log, computed with digamma."""
    model = IBCC().fit(crowd()[0])
    concentration = model.concentration_
    np.testing.assert_allclose(model.confusion_, concentration / concentration.sum(axis=2, keepdims=True))
    expected = digamma(concentration) - digamma(concentration.sum(axis=2, keepdims=True))
    np.testing.assert_allclose(model._log_confusion[:-1], expected)
    assert model.class_prior_.sum() == pytest.approx(1)


def test_many_labels_make_it_dawid_skene():
    """With much evidence the posterior is narrow, and both methods agree."""
    annotations, _ = crowd(n_items=2000)
    ibcc, skene = IBCC().fit(annotations), DawidSkene().fit(annotations)
    np.testing.assert_allclose(ibcc.confusion_, skene.confusion_, atol=0.02)


def test_few_labels_stay_close_to_the_prior():
    """A worker with one right label stays close to the prior, far from perfect."""
    matrix = np.column_stack([np.arange(40) % 2] * 3 + [[0] + [-1] * 39])
    model = IBCC().fit(Annotations.from_matrix(matrix))
    assert model.confusion_[3, 0, 0] == pytest.approx((1 + 1.4) / 3, abs=0.02)
    np.testing.assert_allclose(model.confusion_[3, 1], [0.3, 0.7], atol=0.01)


def test_divergence_of_dirichlets_agrees_with_sampling():
    """KL(posterior || prior) is the mean log ratio of densities; that of a distribution from itself is 0."""
    a, b = np.array([3.0, 1.5, 2.0]), np.array([1.0, 1.0, 1.5])
    draws = np.random.default_rng(0).dirichlet(a, 20_000).T
    sampled = np.mean(dirichlet.logpdf(draws, a) - dirichlet.logpdf(draws, b))
    assert dirichlet_divergence(a, b) == pytest.approx(sampled, abs=0.03)
    assert dirichlet_divergence(a, a) == pytest.approx(0, abs=1e-12)


def test_class_posterior_is_recovered_from_its_expected_logarithm():
    """`log_penalty` receives only E log p; digamma is inverted to many digits, for large and tiny totals."""
    totals = np.array([99_990.0, 10.0, 0.0])
    prior = VariationalPrior(100_000, 1.0)
    np.testing.assert_allclose(prior.concentration(prior.solve(totals)), totals + 1, rtol=1e-8)
    x = np.array([1e-3, 0.1, 1.0, 50.0, 1e6])
    np.testing.assert_allclose(inverse_digamma(digamma(x)), x, rtol=1e-9)


def test_extrapolated_totals_need_not_add_up():
    """Totals of any sum are taken as shares of the labelled items."""
    prior = VariationalPrior(50, 1.0)
    np.testing.assert_allclose(prior.solve(np.array([4.0, 6.0])), prior.solve(np.array([20.0, 30.0])))


def test_worker_and_item_without_labels():
    """The worker has the prior mean; the item has the class frequencies."""
    model = IBCC().fit(Annotations.from_matrix([[0, 0, -1], [1, 1, -1], [-1, -1, -1]]))
    np.testing.assert_allclose(model.confusion_[2], [[0.7, 0.3], [0.3, 0.7]])
    np.testing.assert_allclose(model.posterior_[2], 0.5)
    assert model.labels_.tolist() == [0, 1, None]


@pytest.mark.parametrize("matrix", [[[0]], [[0, 0, 0]], [[0], [0]]])
def test_a_single_class(matrix):
    """With a single class every posterior is 1 and the bound is 0."""
    with pytest.warns(CrowdWarning):
        model = IBCC().fit(Annotations.from_matrix(matrix))
    assert (model.posterior_ == 1).all()
    assert model.history_[-1] == pytest.approx(0, abs=1e-9)
