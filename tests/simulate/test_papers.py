"""Crowds of the papers: sizes, accuracies and class shares as published."""

from __future__ import annotations

import numpy as np
import pytest

from manyhands.exceptions import ParameterError
from manyhands.simulate import (
    ICED_SETTINGS,
    make_difficulty_gaussians,
    make_iced,
    make_max_mig,
    make_mbem,
    make_neucrowd,
    make_nonstructural,
    make_self_crowd,
    make_structural,
)


def label_matrix(crowd):
    """(n_items, n_workers) labels of a crowd in which every worker labelled every item."""
    return crowd.annotations.label.reshape(len(crowd.truth), -1)


def vote_accuracy(crowd):
    """How often the majority of two classes is right; an odd number of workers never ties."""
    return np.mean((label_matrix(crowd).mean(1) > 0.5) == crowd.truth)


def test_difficulty_em_reference_data():
    """The figures of the paper's reference data to the last item: vote .647, Bayes boundary .941 on the test set."""
    before = str(np.random.get_state())  # noqa: NPY002
    data = make_difficulty_gaussians()
    assert vote_accuracy(data.crowd) == 0.647
    assert np.mean((data.X_test.sum(1) > 0) == data.truth_test) == 0.941
    assert data.X.shape == data.X_test.shape == (1000, 2)
    assert before == str(np.random.get_state())  # noqa: NPY002


def test_difficulty_em_reference_labels_are_drawn_one_by_one():
    """The vectorised labels are those of the reference's loop over items and workers."""
    data = make_difficulty_gaussians()
    rng = np.random.RandomState(1234)
    ability = 4 * np.log(np.array([[0.6, 0.7, 0.6, 0.7, 0.7], [0.8, 0.6, 0.6, 0.7, 0.6]]))
    ability -= 4 * np.log(1 - np.array([[0.6, 0.7, 0.6, 0.7, 0.7], [0.8, 0.6, 0.6, 0.7, 0.6]]))
    p = 1 / (1 + np.exp(-data.X.sum(1)))
    for i in range(200):
        for w in range(5):
            right = 1 / (1 + np.exp(-ability[data.crowd.truth[i], w] * (p[i] - 0.5) ** 2))
            chance = [right, 1 - right] if data.crowd.truth[i] == 0 else [1 - right, right]
            assert label_matrix(data.crowd)[i, w] == rng.choice(2, 1, p=chance)[0]


def test_structural_labels_reach_the_stated_expertise_on_easy_items():
    """On items with p = 0 or 1 each worker has the given sensitivity and specificity; on p = 1/2 labels are random."""
    truth = np.repeat([0, 1], 20_000)
    easy = label_matrix(make_structural(truth, truth.astype(float), random_state=0)) == truth[:, None]
    assert np.abs(easy[truth == 1].mean(0) - [0.8, 0.6, 0.6, 0.7, 0.6]).max() < 0.02
    assert np.abs(easy[truth == 0].mean(0) - [0.6, 0.7, 0.6, 0.7, 0.7]).max() < 0.02
    hard = label_matrix(make_structural(truth, np.full(40_000, 0.5), random_state=0))
    assert abs(hard.mean() - 0.5) < 0.01


def test_nonstructural_labels_have_the_mean_error():
    """Wrong with 1 / (3 + k), k up to 5 in the paper and up to 4 in its code."""
    truth = np.tile([0, 1], 5000)
    for most, error in [(5, 0.20298), (4, 0.21857)]:
        crowd = make_nonstructural(truth, most=most, random_state=0)
        assert abs(np.mean(label_matrix(crowd) != truth[:, None]) - error) < 0.01
        assert np.isclose(crowd.confusion[0, 1, 0], error, atol=1e-5)


@pytest.mark.parametrize("setting", ICED_SETTINGS)
def test_iced_sizes_and_errors(setting):
    """Items, workers and mean error of each of ICED's data sets; ten items of one class to one of the other."""
    given = ICED_SETTINGS[setting]
    crowd = make_iced(setting, random_state=0)
    assert np.bincount(crowd.truth).tolist() == list(given.n_of_class)
    assert crowd.annotations.n_annotations == sum(given.n_of_class) * given.n_workers
    error = 1 - crowd.confusion[:, 0, 0]
    assert error.min() >= given.error[0] and error.max() <= given.error[1]
    assert abs(np.mean(label_matrix(crowd) != crowd.truth[:, None]) - error.mean()) < 0.03
    assert 9.9 < given.n_of_class[0] / given.n_of_class[1] < 10.2


def test_iced_vote_has_the_published_accuracy():
    """W = 7, errors U(.2, .4): the mean of the vote over five seeds is .865, here within three points over 20 seeds."""
    accuracy = [vote_accuracy(make_iced("gisette", random_state=seed)) for seed in range(20)]
    assert abs(np.mean(accuracy) - 0.865) < 0.03


def test_iced_takes_given_classes():
    """Real items keep their classes and their order, more than two included."""
    truth = [0, 0, 2, 1, 0]
    crowd = make_iced("usps", truth, random_state=0)
    assert crowd.truth.tolist() == truth
    assert crowd.annotations.n_classes == 3 and crowd.annotations.n_annotations == 45


def test_self_crowd_is_sparse_and_imbalanced():
    """400 items, 20 workers, two labels each, shares near .5 .3 .12 .08, balanced test, very unequal activity."""
    data = make_self_crowd(random_state=0)
    votes = data.crowd.annotations
    assert votes.n_annotations == 800 and votes.n_workers == 20 and data.X.shape == (400, 10)
    assert np.abs(np.bincount(data.crowd.truth) / 400 - [0.5, 0.3, 0.12, 0.08]).max() < 0.08
    assert np.bincount(data.truth_test).tolist() == [250] * 4
    n_done = np.bincount(votes.worker, minlength=20)
    assert n_done.max() > 2.5 * n_done.mean()
    accuracy = np.concatenate([make_self_crowd(random_state=s).crowd.confusion[:, 0, 0] for s in range(10)])
    assert accuracy.min() >= 0.2 and accuracy.max() <= 0.98 and abs(accuracy.mean() - 0.69) < 0.05


def test_neucrowd_errors_are_a_truncated_normal():
    """Errors lie in [.01, .5] around .133, the mean of the truncated normal; sizes are 800 + 200 and 500."""
    datas = [make_neucrowd(11, n_features=4, random_state=seed) for seed in range(30)]
    error = np.concatenate([1 - data.crowd.confusion[:, 0, 0] for data in datas])
    assert error.min() >= 0.01 and error.max() <= 0.5
    assert abs(error.mean() - 0.1326) < 0.02
    assert datas[0].X.shape == (1000, 4) and datas[0].X_test.shape == (500, 4)
    assert datas[0].crowd.annotations.n_annotations == 11_000
    assert abs(datas[0].crowd.truth.mean() - 0.5) < 0.06


def test_neucrowd_errors_by_item_concentrate_on_few_items():
    """With one error per item, wrong labels vary more between items than independent workers' would."""
    by_worker, by_item = (make_neucrowd(7, 4, kind, random_state=0).crowd for kind in ("worker", "item"))
    excess = []
    for crowd in (by_worker, by_item):
        wrong = label_matrix(crowd) != crowd.truth[:, None]
        excess.append(wrong.sum(1).var() / (7 * wrong.mean() * (1 - wrong.mean())))
    assert excess[0] < 1.1 < excess[1]


def test_mbem_hammers_are_right_and_spammers_are_random():
    """One label per item by default; hammers never err, spammers are right in one of three cases."""
    truth = np.tile([0, 1, 2], 3000)
    crowd = make_mbem(truth, 3, random_state=0)
    a = crowd.annotations
    right = a.label == truth[a.item]
    assert a.n_labels.tolist() == [1] * 9000
    assert right[~crowd.is_bad[a.worker]].all()
    assert abs(right[crowd.is_bad[a.worker]].mean() - 1 / 3) < 0.04
    assert 0.4 < crowd.is_bad.mean() < 0.8


@pytest.mark.parametrize("expertise, n_workers", [("high", (5, 10, 10)), ("low", (10, 25, 12))])
def test_max_mig_cases(expertise, n_workers):
    """Seniors alone; with juniors who label class 0; with juniors who copy the first or the second senior."""
    truth = np.tile([0, 1], 4000)
    crowds = [make_max_mig(truth, case, expertise, random_state=0) for case in (1, 2, 3)]
    assert tuple(crowd.annotations.n_workers for crowd in crowds) == n_workers
    alone, zero, copied = map(label_matrix, crowds)
    n_seniors = n_workers[0]
    assert np.array_equal(alone, zero[:, :n_seniors]) and np.array_equal(alone, copied[:, :n_seniors])
    assert (zero[:, n_seniors:] == 0).all()
    first, second = alone[:, [0]], alone[:, [1]]
    n_first = 3 if expertise == "high" else 1
    assert (copied[:, n_seniors : n_seniors + n_first] == first).all()
    assert (copied[:, n_seniors + n_first :] == second).all()
    for crowd in crowds:
        shown = [[np.mean(label_matrix(crowd)[truth == k] == k, axis=0)] for k in (0, 1)]
        stated = crowd.confusion.diagonal(axis1=1, axis2=2).T
        assert np.abs(np.squeeze(shown) - stated).max() < 0.04
        assert crowd.is_bad.tolist() == [w >= n_seniors for w in range(crowd.annotations.n_workers)]


def test_papers_crowds_follow_their_seed():
    """The same seed gives the same crowd, another seed another."""
    truth = np.tile([0, 1], 50)
    makers = [
        lambda seed: make_iced("usps", random_state=seed),
        lambda seed: make_self_crowd(random_state=seed).crowd,
        lambda seed: make_neucrowd(n_features=4, random_state=seed).crowd,
        lambda seed: make_structural(truth, np.full(100, 0.9), random_state=seed),
        lambda seed: make_nonstructural(truth, random_state=seed),
        lambda seed: make_mbem(truth, 2, random_state=seed),
        lambda seed: make_max_mig(truth, 3, random_state=seed),
    ]
    for make in makers:
        assert make(1).annotations == make(1).annotations
        assert make(1).annotations != make(2).annotations


def test_impossible_settings_are_refused():
    """Each refusal names its parameter."""
    for name, make in [
        ("setting", lambda: make_iced("mnist")),
        ("truth", lambda: make_iced("usps", [])),
        ("truth", lambda: make_structural([0, 2], [0.5, 0.5])),
        ("p must be", lambda: make_structural([0, 1], [0.5])),
        ("most", lambda: make_nonstructural([0, 1], most=-1)),
        ("hammers", lambda: make_mbem([0, 1], 2, hammers=2)),
        ("case", lambda: make_max_mig([0, 1], case=4)),
        ("expertise", lambda: make_max_mig([0, 1], expertise="none")),
        ("truth", lambda: make_max_mig([0, 2])),
        ("error_of", lambda: make_neucrowd(error_of="day")),
        ("separation", lambda: make_self_crowd(separation=0)),
        ("random_state", lambda: make_max_mig([0, 1], random_state=-1)),
    ]:
        with pytest.raises(ParameterError, match=name):
            make()


def test_iceds_errors_may_be_given():
    """As a range within which every worker's lies; what is none is refused."""
    assert np.all(np.abs(make_iced("usps", error=[0.1, 0.2], random_state=0).confusion[:, 0, 1] - 0.15) <= 0.05)
    assert np.all(make_iced("usps", random_state=0).confusion[:, 0, 1] >= 0.25)
    for strange in ([0.3, 0.2], [0.1], [0.1, 1.2]):
        with pytest.raises(ParameterError, match="error must be a pair"):
            make_iced("usps", error=strange)


def test_neucrowd_with_errors_that_reach_the_vote():
    """With error rates of .3 to .4 seven workers' votes are right on 80 to 90 per cent; other ranges are refused."""
    data = make_neucrowd(7, 20, random_state=0, error=(0.3, 0.4))
    votes, truth = data.crowd.annotations, data.crowd.truth
    vote = votes.label.reshape(1000, 7).mean(axis=1) > 0.5
    assert 0.75 < np.mean(vote == truth) < 0.92
    right = (votes.label.reshape(1000, 7) == truth[:, None]).mean(axis=0)
    assert right.min() > 0.55 and right.max() < 0.75
    with pytest.raises(ParameterError, match="error must be a pair"):
        make_neucrowd(error=(0.4, 0.3))
