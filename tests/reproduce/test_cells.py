"""One cell: what it is known by, what it measures, and what it refuses."""

from dataclasses import replace

import numpy as np
import pytest

from manyhands import metrics, registry
from manyhands.classifiers import TwoStage
from manyhands.comparison import compare
from manyhands.exceptions import AnnotationError, ParameterError
from manyhands.reproduce import cells
from manyhands.reproduce.cells import (
    Cell,
    cells_of,
    check_methods,
    depends_on_seed,
    make_estimator,
    make_part,
    run_cell,
)
from manyhands.reproduce.runner import DataBuilder
from manyhands.reproduce.tables import METRICS, SHIFTED, DataSet, Row
from measuring import BLOBS, CROWD, FOLDED, LINEAR, SKENE, UNKNOWN, VOTE, small_table

CELL = Cell(small_table(), BLOBS, SKENE, 1000)


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 1001},
        {"quick": True},
        {"row": VOTE},
        {"row": replace(SKENE, parameters={"max_iter": 7})},
        {"row": replace(SKENE, choose=({}, {"max_iter": 7}))},
        {"row": replace(SKENE, then="logistic-regression")},
        {"dataset": replace(BLOBS, remove=0.5)},
        {"dataset": replace(BLOBS, keep_one=False)},
        {"dataset": replace(BLOBS, arguments={"n_items": 61})},
        {"dataset": replace(BLOBS, items=40)},
    ],
)
def test_what_decides_the_result_is_in_the_key(changed):
    """A cell that would give something else is another cell."""
    assert replace(CELL, **changed).key != CELL.key


def test_what_does_not_decide_is_not_in_the_key():
    """Names, published values, metrics and the size of quick runs may change without measuring anew."""
    other = small_table(metrics=("ece",), first_seed=7)
    row = replace(SKENE, name="EM", published={})
    same = Cell(other, replace(BLOBS, name="clouds", quick_items=3), row, 1000)
    assert same.key == CELL.key == Cell(small_table(), BLOBS, SKENE, 1000).key
    folded = replace(CELL, dataset=FOLDED)
    assert replace(folded, table=other).key != folded.key  # another first seed tests on another fold


def test_folds_of_a_choice_are_in_the_key_where_there_is_a_choice():
    """Five are the default, under which rows were measured before the number could be given."""
    chosen = replace(CELL, row=replace(SKENE, choose=({}, {"max_iter": 7})))
    two = small_table(choose_folds=2)
    assert replace(CELL, table=two).key == CELL.key
    assert replace(chosen, table=two).key != chosen.key == replace(chosen, table=small_table(choose_folds=5)).key


def test_a_row_without_a_series_that_is_asked_for_is_measured_again():
    """Its key stays the same, so that its figures are shown until then."""
    cell = Cell(small_table(series=("roc", "history.loss")), BLOBS, SKENE, 1000)
    assert cell.key == CELL.key and CELL.is_done({"metrics": {}}) and not CELL.is_done(None)
    assert not cell.is_done({"metrics": {}}) and not cell.is_done({"metrics": {}, "series": {"roc": [1.0]}})
    assert cell.is_done({"metrics": {}, "series": {"roc": [1.0], "history.loss": None, "more": [2]}})
    assert cell.is_done({"error": "out of luck"})


def test_keys_stay_the_same():
    """Hours of computation depend on them: a change of the code must not change the keys of committed rows."""
    assert CELL.key == "b54077fbe22ce9eab06f"
    assert Cell(small_table(), FOLDED, LINEAR, 1000).key == "044f648235f7db85e37c"
    first, drawn = (replace(CELL, dataset=replace(BLOBS, items=40, drawn=drawn)) for drawn in (False, True))
    assert first.key == "a37475a704026dcee7cc" != drawn.key


def test_the_revision_of_a_method_is_in_the_key(monkeypatch):
    """Also that of an aggregator among the parameters; the version of the package is not."""
    linear = Cell(small_table(), BLOBS, LINEAR, 1000)
    before = CELL.key, linear.key
    monkeypatch.setattr("manyhands.__version__", "99")
    monkeypatch.setitem(cells.REVISIONS, "glad", 2)
    assert (CELL.key, linear.key) == before
    monkeypatch.setitem(cells.REVISIONS, "majority-vote", 2)
    assert CELL.key == before[0] and linear.key != before[1]
    monkeypatch.setitem(cells.REVISIONS, "dawid-skene", 2)
    assert CELL.key != before[0]


def test_every_revision_is_of_a_method():
    """A renamed method takes its number along."""
    assert set(cells.REVISIONS) <= set(registry.names())
    assert all(number > 1 for number in cells.REVISIONS.values())


def test_the_regression_behind_two_stages_has_parameters_of_its_own():
    """They can be chosen among; what it does not have is refused."""
    settings = ({"classifier__C": 0.01}, {"classifier__C": 1.0, "classifier__class_weight": "balanced"})
    row = replace(LINEAR, choose=settings)
    models = [make_estimator(row, 5, setting=setting).classifier for setting in settings]
    assert [(m.C, m.class_weight, m.max_iter) for m in models] == [(0.01, None, 1000), (1.0, "balanced", 1000)]
    assert make_estimator(row, 5).classifier == "logistic-regression"
    found = run_cell(Cell(small_table([row]), BLOBS, row, 1000))
    assert found.chosen in settings
    strong, named = (replace(LINEAR, parameters=LINEAR.parameters | more) for more in (settings[0], {}))
    plain = {row: run_cell(Cell(small_table([r]), BLOBS, r, 1000)).metrics for row, r in {1: strong, 2: named}.items()}
    assert plain[1]["log_loss"] != plain[2]["log_loss"]
    check_methods([Cell(small_table([row]), BLOBS, row, 1000)])
    network = Row("network", "two-stage", parameters={"classifier__C": 1.0})
    for strange in (network, replace(LINEAR, parameters=LINEAR.parameters | {"classifier__c": 1.0})):
        with pytest.raises(ParameterError, match="no parameter of two-stage called 'classifier__"):
            check_methods([Cell(small_table([strange]), BLOBS, strange, 1000)])


def test_a_classifier_by_hand():
    """The figures are those of the test part, computed by hand."""
    cell = Cell(small_table([LINEAR]), BLOBS, LINEAR, 1003)
    found = run_cell(cell)
    part = make_part(BLOBS, 1003)
    model = TwoStage("majority-vote", "logistic-regression", random_state=1003).fit(part.X, part.annotations)
    label, proba = model.predict(part.X_test), model.predict_proba(part.X_test)
    assert set(found.metrics) == set(METRICS + SHIFTED) and found.n_test == 40
    assert found.metrics["accuracy"] == metrics.accuracy(part.y_test, label)
    assert found.metrics["macro_f1"] == metrics.macro_f1(part.y_test, label)
    assert found.metrics["log_loss"] == metrics.log_loss(part.y_test, proba, model.classes_)
    assert found.metrics["label_accuracy"] == metrics.accuracy(part.y_train, model.aggregator_.labels_)
    pairs = [(p, q) for p in proba[part.y_test == 1, 1] for q in proba[part.y_test == 0, 1]]
    assert found.metrics["auc"] == pytest.approx(np.mean([(p > q) + (p == q) / 2 for p, q in pairs]))
    assert found.metrics["fit_seconds"] > 0 and found.chosen is None


def test_an_aggregator_by_hand():
    """An aggregator is measured on the items it saw."""
    three = replace(BLOBS, arguments={**BLOBS.arguments, "n_classes": 3})
    found = run_cell(Cell(small_table(), three, VOTE, 1000))
    part = make_part(three, 1000)
    model = make_estimator(VOTE, 0).fit(part.annotations)
    assert found.metrics["accuracy"] == found.metrics["label_accuracy"] == metrics.accuracy(part.y_train, model.labels_)
    assert found.n_test == 60


def test_a_representation_with_two_stages_behind_it():
    """`then` names the classifier; the labels it learns from are those of the representation."""
    row = Row("EM", "center", parameters={"labels": "one-coin", "hidden": [4]}, then="logistic-regression")
    model = make_estimator(row, 5, quick=True)
    assert model[0].hidden == (4,) and model[0].max_epochs == 3 and model[0].random_state == 5
    assert model[1].aggregator == "one-coin" and model[1].random_state == 5
    found = run_cell(Cell(small_table([row]), BLOBS, row, 1000, quick=True))
    assert found.metrics["accuracy"] > 0.4 and found.metrics["label_accuracy"] > 0.4


def test_a_representation_with_a_regression_that_chooses_on_held_out_items():
    """`choose` are its settings, and what it chose is recorded; a check of one setting makes one learner."""
    settings = ({}, {"hidden": [4, 4]}, {"embedding_size": 5})
    row = Row("EM", "center", parameters={"labels": "one-coin"}, choose=settings, then="heldout-regression")
    model = make_estimator(row, 5)
    assert model.settings == ({}, {"hidden": (4, 4)}, {"embedding_size": 5}) and model.learner.random_state == 5
    assert make_estimator(row, 5, setting={"embedding_size": 7}).learner.embedding_size == 7
    assert len(make_estimator(row, 5, quick=True).settings) == 2
    cell = Cell(small_table([row]), BLOBS, row, 1000, quick=True)
    check_methods([cell])
    found = run_cell(cell)
    assert found.chosen in ({}, {"hidden": (4, 4)}) and found.metrics["accuracy"] > 0.4


def test_a_method_that_chooses_its_own_setting_has_it_recorded():
    """NeuCrowd searches inside `fit`."""
    row = Row("NeuCrowd", "neucrowd", parameters={"tuplets__batches_per_epoch": 1, "warm_up": 0, "batch_size": 8})
    found = run_cell(Cell(small_table([row]), BLOBS, row, 1000, quick=True))
    assert found.chosen is not None and set(found.chosen) <= {
        "learning_rate",
        "loss__scale",
        "embedding_size",
        "weight_decay",
    }


def test_what_toml_cannot_say():
    """None is written as text, tuples as lists."""
    row = Row("network", "crowd-layer", parameters={"patience": "none", "hidden": [8, 4]})
    model = make_estimator(row, 0)
    assert model.patience is None and model.hidden == (8, 4)
    assert make_estimator(row, 0, setting={"patience": 3}).patience == 3


@pytest.mark.parametrize(("quick", "folds"), [(False, 3), (True, 2)])
def test_a_table_says_how_many_folds_choose(monkeypatch, quick, folds):
    """Quick runs have two."""
    asked = []
    monkeypatch.setattr(
        "manyhands.comparison.compare",
        lambda *given, **options: asked.append(options["n_folds"]) or compare(*given, **options),
    )
    row = replace(LINEAR, choose=({}, {"classifier__C": 0.01}))
    run_cell(Cell(small_table([row], choose_folds=3), BLOBS, row, 1000, quick))
    assert asked == [folds]


def test_held_out_labels_choose_the_setting():
    """Of the settings, the one that `compare` finds best on the training part."""
    settings = ({"aggregator": "wawa"}, {"aggregator": "majority-vote", "soft": True})
    row = replace(LINEAR, parameters={"classifier": "logistic-regression"}, choose=settings)
    found = run_cell(Cell(small_table([row]), BLOBS, row, 1000))
    part = make_part(BLOBS, 1000)
    models = [make_estimator(row, 1000, setting=setting) for setting in settings]
    by_hand = compare(models, part.annotations, part.X, random_state=1000)
    assert found.chosen == settings[by_hand.names.index(by_hand.best)]
    chosen = models[by_hand.names.index(by_hand.best)].fit(part.X, part.annotations)
    assert found.metrics["accuracy"] == metrics.accuracy(part.y_test, chosen.predict(part.X_test))


def test_cells_come_seed_by_seed():
    """A run that is stopped early has something of every row; rows without a method are not run."""
    cells = cells_of(small_table([VOTE, SKENE, UNKNOWN], [CROWD, FOLDED]))
    assert [(c.seed, c.dataset.name, c.row.name) for c in cells[:5]] == [
        (1000, "crowd", "vote"),
        (1000, "crowd", "D&S"),
        (1000, "folded", "vote"),
        (1000, "folded", "D&S"),
        (1001, "crowd", "vote"),
    ]
    assert len(cells) == 8 and len(cells_of(small_table(), seeds=5)) == 10
    quick = cells_of(small_table(seeds=9), quick=True)
    assert len(quick) == 4 and not {c.seed for c in quick} & {c.seed for c in cells_of(small_table(seeds=9))}
    assert {c.row.name for c in cells_of(small_table(), only=["d&s", "Crowd"])} == {"D&S"}


def test_one_seed_is_enough_where_nothing_is_drawn():
    """The same votes on the same crowd give the same labels."""
    fixed = DataSet("birds", load="agg/bluebirds")
    cells = cells_of(small_table(datasets=[fixed], seeds=3))
    assert [cell.row.name for cell in cells] == ["vote", "D&S", "D&S", "D&S"]
    assert len(cells_of(small_table([VOTE], [replace(fixed, remove=0.2)], seeds=3))) == 3
    assert len(cells_of(small_table([VOTE], [replace(fixed, items=40)], seeds=3))) == 1
    assert len(cells_of(small_table([VOTE], [replace(fixed, items=40, drawn=True)], seeds=3))) == 3


@pytest.mark.parametrize(
    ("rows", "datasets", "sentence"),
    [
        ([Row("x", "oracle")], [BLOBS], "no method called 'oracle'"),
        ([Row("x", "wawa", parameters={"depth": 3})], [BLOBS], "no parameter of wawa called 'depth'"),
        (
            [Row("x", "dawid-skene", parameters={"max_iter": -3})],
            [BLOBS],
            "own/small, row 'x': The parameter `max_iter`",
        ),
        ([VOTE], [DataSet("d", load="nowhere")], "own/small, data set 'd': There is no data set called 'nowhere'"),
    ],
)
def test_what_cannot_be_run_is_refused_before_any_work(rows, datasets, sentence):
    """One sentence that names the table and the part of it."""
    with pytest.raises(ParameterError, match=sentence):
        refuse([Cell(small_table(rows, datasets), d, row, 1000) for d in datasets for row in rows])


def refuse(cells):
    """What every run checks first."""
    check_methods(cells)
    with DataBuilder() as builder:
        builder.check(cells)


def test_missing_data_is_one_sentence(monkeypatch):
    """Whoever has no data learns what to set."""
    monkeypatch.delenv("MANYHANDS_DATA", raising=False)
    birds = DataSet("birds", load="agg/bluebirds")
    with pytest.raises(AnnotationError, match="data set 'birds': The environment variable MANYHANDS_DATA is not set"):
        refuse([Cell(small_table(), birds, VOTE, 1000)])


def test_what_a_set_lacks_is_one_sentence():
    """Features, a test part."""
    with pytest.raises(ParameterError, match="learns from features, which crowd does not have"):
        run_cell(Cell(small_table(), CROWD, LINEAR, 1000))
    with pytest.raises(ParameterError, match="has no data set and no row called 'nobody'"):
        cells_of(small_table(), only=["nobody"])
    with pytest.raises(ParameterError, match="`seeds=` is 0"):
        cells_of(small_table(), seeds=0)


def test_learners_that_draw_nothing_need_one_seed():
    """Solvers on data that are always the same; folds, networks and restarts need all seeds."""
    always = DataSet("always", make="make_blobs", arguments=BLOBS.arguments, seeded=())
    raykar, restarted = Row("raykar", "raykar"), Row("restarted", "raykar", parameters={"n_init": 3})
    found = {row.name: depends_on_seed(always, row) for row in (LINEAR, raykar, restarted, Row("network", "two-stage"))}
    assert found == {"linear": False, "raykar": False, "restarted": True, "network": True}
    assert depends_on_seed(FOLDED, raykar) and depends_on_seed(BLOBS, LINEAR)
