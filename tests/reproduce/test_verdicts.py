"""Measured beside published, and methods beside each other."""

import math

import pytest
from scipy.stats import t, ttest_ind_from_stats, ttest_rel

from manyhands.reproduce.cells import cells_of
from manyhands.reproduce.tables import Published, Row
from manyhands.reproduce.verdicts import entries, paired_t, pairs
from measuring import CROWD, FOLDED, SKENE, UNKNOWN, VOTE, made_up, small_table

pytestmark = pytest.mark.fast


def entry_of(row, values, **others):
    table = small_table([row], seeds=max(1, len(values)), **others)
    (found,) = entries(table, cells_of(table), made_up(table, {("crowd", row.name): values}))
    return found


@pytest.mark.parametrize(
    ("values", "verdict"),
    [
        ([0.911, 0.927], "within"),  # 1.9 above 90, with a standard error of 0.8
        ([0.85, 0.95], "undecided"),  # at 90, with a standard error of 5
        ([0.92, 0.96, 0.94, 0.90, 0.97], "above"),  # 3.8, the interval is 3.6
        ([0.91, 0.97, 0.94, 0.89, 0.98], "undecided"),  # 3.8, the interval is 4.8, the standard error 1.7
        ([0.921, 0.921], "above"),
        ([0.879, 0.879], "below"),
        ([0.882], "within"),
        ([], "not measured"),
    ],
)
def test_two_points_where_the_paper_gives_no_deviation(values, verdict):
    """Closer than two points is within."""
    found = entry_of(VOTE, values)
    assert found.verdict == verdict and found.margin >= 2 and found.n == len(values)


def test_two_points_are_a_fiftieth_where_figures_are_shares():
    """Published values need not be per cent."""
    row = Row("vote", "majority-vote", published={"crowd": Published(0.9)})
    assert entry_of(row, [0.919], points=False).verdict == "within"
    found = entry_of(row, [0.921], points=False)
    assert found.verdict == "above" and found.difference == pytest.approx(0.021)


def test_two_points_of_a_count_are_a_fiftieth_of_it():
    """Figures that are no shares may be large."""
    row = Row("v", "majority-vote", published_also={"history.items": {"crowd": Published(2000.0)}})
    table = small_table([row], metrics=("accuracy", "history.items"), seeds=1)
    found = {}
    for value in (2039.0, 2041.0):
        records = made_up(table, {("crowd", "v"): [0.9]}, metrics={"accuracy": 0.9, "history.items": value})
        found[value] = entries(table, cells_of(table), records)[1].verdict
    assert found == {2039.0: "within", 2041.0: "above"}


def test_the_interval_of_the_difference_is_by_the_t_distribution():
    """The paper's deviation is taken to be over as many runs as ours; the interval is Welch's."""
    found = entry_of(SKENE, [0.96, 0.97, 0.98, 0.99])
    assert found.mean == pytest.approx(97.5) and found.deviation == pytest.approx(math.sqrt(5 / 3))
    freedom = 3 * (5 / 3 + 1) ** 2 / ((5 / 3) ** 2 + 1)
    assert found.margin == pytest.approx(t.ppf(0.975, freedom) * math.sqrt((5 / 3 + 1) / 4))
    assert found.verdict == "above" and found.difference == pytest.approx(2.5)
    published = ttest_ind_from_stats(97.5, math.sqrt(5 / 3), 4, 95.0, 1.0, 4, equal_var=False)
    assert published.pvalue < 0.05
    assert entry_of(SKENE, [0.96, 0.95, 0.97, 0.96]).verdict == "within"
    alone = entry_of(SKENE, [0.965])
    assert alone.margin == pytest.approx(1.96 * math.sqrt(2), rel=1e-4) and alone.deviation is None
    assert alone.verdict == "within" and entry_of(SKENE, [0.975]).verdict == "undecided"


def test_noise_is_never_agreement():
    """A standard error above two points is undecided, and so is a wide interval around a value that is far away."""
    noisy = entry_of(SKENE, [0.99, 0.85, 0.97, 0.99])
    assert abs(noisy.difference) < 0.5 and noisy.verdict == "undecided"
    far = entry_of(SKENE, [0.99, 0.98, 0.93, 0.99])
    assert far.margin > far.difference > 2 and far.verdict == "undecided"
    assert entry_of(SKENE, [0.95, 0.92, 0.97, 0.96]).verdict == "within"


def test_what_rounding_hides_is_within():
    """A method that draws nothing gives the same figure, up to the digits that were printed."""
    row = Row("vote", "majority-vote", published={"crowd": Published(90.1, 0.0)})
    assert entry_of(row, [0.9013, 0.9013]).verdict == "within"
    assert entry_of(row, [0.9016, 0.9016]).verdict == "above"


def test_failures_and_rows_without_a_method_are_kept():
    """Nothing that was published is left out, and errors are listed once."""
    table = small_table([VOTE, UNKNOWN], [CROWD, FOLDED], seeds=3)
    records = made_up(table, {("crowd", "vote"): ["no luck", 0.9, "no luck"]})
    found = {(e.dataset, e.row): e for e in entries(table, cells_of(table), records)}
    assert found["crowd", "vote"].errors == ("no luck",) and found["crowd", "vote"].n_failed == 2
    assert found["crowd", "vote"].mean == 90 and found["folded", "vote"].verdict == "not measured"
    oracle = found["crowd", "oracle"]
    assert oracle.verdict == "not measured" and oracle.why == "it sees the truth" and oracle.published.value == 99
    assert ("folded", "oracle") not in found


def test_folds_add_up_to_more_items_and_seeds_do_not():
    """So many items stand behind a mean."""
    table = small_table([VOTE], [CROWD, FOLDED], seeds=3)
    records = made_up(table, {(name, "vote"): [0.9, "no luck", 0.9] for name in ("crowd", "folded")}, n_test=12)
    assert [entry.n_test for entry in entries(table, cells_of(table), records)] == [12, 24]


def test_a_value_without_a_published_one():
    """Is not published."""
    assert entry_of(Row("vote", "majority-vote"), [0.9]).verdict == "not published"


def test_further_metrics_have_published_values_of_their_own():
    """`published_also` is by metric."""
    row = Row("v", "majority-vote", published={"crowd": Published(1)}, published_also={"ece": {"crowd": Published(3)}})
    table = small_table([row], metrics=("accuracy", "ece", "auc"))
    found = {e.metric: e.published for e in entries(table, cells_of(table), made_up(table, {}))}
    assert found["accuracy"].value == 1 and found["ece"].value == 3 and found["auc"] is None


def test_the_paired_test_is_scipys():
    """Over seeds; over folds the variance is larger by the overlap of the training parts."""
    one, other = [0.9, 0.95, 0.91, 0.97, 0.93], [0.88, 0.9, 0.92, 0.9, 0.9]
    differences = [a - b for a, b in zip(one, other)]
    assert paired_t(differences) == pytest.approx(ttest_rel(one, other).pvalue)
    assert paired_t(differences, 0.25) > paired_t(differences)
    inflated = [sum(differences) / 5 + (d - sum(differences) / 5) * math.sqrt(5 * (0.2 + 0.25)) for d in differences]
    assert paired_t(differences, 0.25) == pytest.approx(paired_t(inflated))


def test_nothing_is_tested_where_nothing_varies():
    """Two seeds, or the same difference for all of them."""
    assert paired_t([1.0, 2.0]) is None and paired_t([]) is None
    assert paired_t([0.1 + 0.2, 0.3, 0.3]) is None
    assert paired_t([0.0, 0.0, 0.0]) is None


def test_many_pairs_are_corrected_by_holm():
    """The smallest p times their number, the next times one less; never falling, never above 1."""
    rows = [Row(name, "dawid-skene", parameters={"max_iter": n + 5}) for n, name in enumerate("abc")]
    table = small_table(rows, [CROWD], seeds=4)
    values = {("crowd", "a"): [0.9, 0.91, 0.9, 0.93], ("crowd", "b"): [0.8, 0.8, 0.81, 0.82]}
    values["crowd", "c"] = [0.81, 0.79, 0.8, 0.83]
    found = pairs(table, entries(table, cells_of(table), made_up(table, values)))
    assert [(p.row, p.other) for p in found] == [("a", "b"), ("a", "c"), ("b", "c")]
    p = sorted(pair.p for pair in found)
    corrected = sorted(pair.p_corrected for pair in found)
    assert corrected == pytest.approx([3 * p[0], max(3 * p[0], 2 * p[1]), min(1, max(2 * p[1], p[2]))])
    assert found[0].difference == pytest.approx(10.25) and found[0].n == 4


def test_only_shared_seeds_are_paired():
    """Seeds that failed for one are left out for both; folds are distinguished from seeds."""
    rows = [Row(name, "dawid-skene", parameters={"max_iter": n + 5}) for n, name in enumerate("ab")]
    table = small_table(rows, [CROWD, FOLDED], seeds=5)
    a, b = [0.9, "x", 0.92, 0.95, 0.96], [0.7, 0.1, 0.75, 0.71, "y"]
    records = made_up(table, {(d, r): v for d in ("crowd", "folded") for r, v in {"a": a, "b": b}.items()})
    plain, folded = pairs(table, entries(table, cells_of(table), records))
    assert plain.n == folded.n == 3 and plain.difference == pytest.approx(100 * (0.2 + 0.17 + 0.24) / 3)
    assert plain.p < folded.p
