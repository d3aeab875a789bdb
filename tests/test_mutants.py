"""The list of mutants is in order; `make mutants` tries them, which takes minutes."""

import mutants


def test_every_mutant_can_be_applied():
    """Its text stands once in its file, and its tests are there: whoever changes such a line changes the mutant."""
    wrong = {each.name: problem for each in mutants.read_mutants() if (problem := each.problem())}
    assert not wrong


def test_no_part_of_the_package_is_left_out():
    """Sixty or more, each with a reason of its own: kernels in C and Python, EM, noise, methods, readers, writers."""
    listed = mutants.read_mutants()
    assert len(listed) >= 60 and len({each.why for each in listed}) == len(listed)
    places = {each.file.removeprefix("src/manyhands/").partition("/")[0] for each in listed}
    assert places >= {"_fused.c", "_columns.c", "em", "noise", "aggregation", "io", "nn", "metrics"}
    assert places >= {"scorecards", "classifiers", "heldout.py"}


def test_named_tests_exist():
    """A test that was renamed would otherwise be found out by `make mutants` alone."""
    for each in mutants.read_mutants():
        for test in each.tests:
            file, _, name = test.partition("::")
            source = (mutants.ROOT / file).read_text(encoding="utf-8")
            assert f"def {name.partition('[')[0].rpartition('::')[2]}(" in source, f"{each.name}: {test} is not there"
