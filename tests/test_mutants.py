"""The list of mutants is in order; `make mutants` tries them, which takes minutes."""

import pytest

import mutants

pytestmark = pytest.mark.fast


def test_every_mutant_can_be_applied():
    """Its text stands once in its file, and its tests are there: whoever changes such a line changes the mutant."""
    wrong = {each.name: problem for each in mutants.read_mutants() if (problem := each.problem())}
    assert not wrong


def test_what_must_not_break_unnoticed_is_in_the_list():
    """About sixty, each with a reason of its own: kernels in C and Python, EM and its noise models, readers, report."""
    mutants_of = mutants.read_mutants()
    assert 50 <= len(mutants_of) <= 80 and len({each.why for each in mutants_of}) == len(mutants_of)
    places = {each.file.removeprefix("src/manyhands/").partition("/")[0] for each in mutants_of}
    assert places >= {"_fused.c", "_columns.c", "_pass.h", "em", "io", "sharded", "report"}


def test_named_tests_exist():
    """A test that was renamed would otherwise be found out by `make mutants` alone."""
    for each in mutants.read_mutants():
        for test in each.tests:
            file, _, name = test.partition("::")
            source = (mutants.ROOT / file).read_text(encoding="utf-8")
            assert f"def {name.partition('[')[0].rpartition('::')[2]}(" in source, f"{each.name}: {test} is not there"
