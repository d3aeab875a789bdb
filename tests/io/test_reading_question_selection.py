"""Which question is meant, and several choices in one answer."""

import polars as pl
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.judgements import Collector
from manyhands.io.reading import describe_questions, drop_other_questions, gold_of_question, select_question


def answers(*given):
    """One response per entry, each by another worker."""
    rows = Collector()
    for number, answer in enumerate(given):
        rows.add("item", f"worker {number}", answer)
    return rows.judgements("export.json", "some-tool")


TWO = answers({"sentiment": ["negative"], "topic": ["delivery", "refund"]}, {"sentiment": ["neutral"]}, {"topic": []})


def test_the_only_question_needs_no_name():
    """A list of one choice is that choice; no choice is no answer."""
    name, labels = select_question(answers({"q": ["yes"]}, {"q": []}, {}), None, False)
    assert name == "q" and labels.to_list() == ["yes", None, None]


def test_several_questions_are_listed():
    """Without a name the sentence lists them, and so it does for a name that is not there."""
    with pytest.raises(AnnotationError, match=r"several questions: sentiment, topic\. Pick one with `question=`"):
        select_question(TWO, None, False)
    with pytest.raises(AnnotationError, match=r"no question 'colour'\. It has: sentiment, topic"):
        select_question(TWO, "colour", False)
    assert select_question(TWO, "sentiment", False)[1].to_list() == ["negative", "neutral", None]
    assert describe_questions(TWO) == {"sentiment": 2, "topic": 1}


def test_several_choices_are_asked_about():
    """Who wants a question with several choices must say how."""
    with pytest.raises(AnnotationError, match=r"1 answer\(s\).*topic=delivery, topic=refund.*`combinations=True`"):
        select_question(TWO, "topic", False)


def test_one_choice_of_several_is_a_question_of_yes_and_no():
    """An answer that leaves a choice out says no; an open one says nothing."""
    both = answers({"topic": ["delivery", "refund"]}, {"topic": ["delivery"]}, {"topic": []}, {})
    name, labels = select_question(both, "topic=refund", False)
    assert name == "topic=refund" and labels.to_list() == ["yes", "no", None, None]
    with pytest.raises(AnnotationError, match=r"'topic' has the choice 'price'\. Choices: delivery, refund"):
        select_question(both, "topic=price", False)


def test_a_choice_of_a_single_answer_may_be_asked_about_too():
    """`sentiment=negative` makes two classes out of many."""
    text = answers({"s": "a"}, {"s": "b"}, {"s": " "}, {})
    assert select_question(text, "s=a", False)[1].to_list() == ["yes", "no", None, None]


def test_combinations_are_classes():
    """The order in which choices were made does not matter."""
    sets = answers({"t": ["b", "a"]}, {"t": ["a", "b", "a"]}, {"t": ["a"]}, {"t": []}, {})
    assert select_question(sets, "t", True)[1].to_list() == ["a + b", "a + b", "a", None, None]


def test_a_file_without_answers_says_so():
    """Nothing was asked, so nothing can be read."""
    with pytest.raises(AnnotationError, match="holds no answers"):
        select_question(answers({}), None, False)


def test_text_and_lists_of_one_question_become_lists():
    """Batches in which a question was answered once and often go together."""
    from manyhands.io.reading import concatenate

    both = concatenate([answers({"q": "a"}), answers({"q": ["b", "c"]}, {"other": "x"})])
    assert both.answers["q"].to_list() == [["a"], ["b", "c"], None]
    assert both.answers["other"].to_list() == [None, None, "x"] and both.item.dtype == pl.String


def test_words_for_nothing_are_no_answer_to_any_question():
    """A missing answer is not a no, and no part of a combination; a choice made twice was made."""
    given = answers({"q": ["a", "N/A"]}, {"q": ["N/A "]}, {"q": [""]}, {"q": ["b", "b"]})
    assert select_question(given, "q=a", missing=["N/A"])[1].to_list() == ["yes", None, None, "no"]
    assert select_question(given, "q", True, ["N/A"])[1].to_list() == ["a", None, None, "b"]
    assert select_question(given, "q", False, ["N/A"])[1].to_list() == ["a", None, None, "b"]


def test_a_choice_may_have_an_equals_sign():
    """What the sentence suggests can be typed."""
    given = answers({"q": ["x=y", "z"]}, {"q": ["z"]})
    with pytest.raises(AnnotationError, match="q=x=y"):
        select_question(given, None)
    assert select_question(given, "q=x=y")[1].to_list() == ["yes", "no"]


def test_gold_follows_the_question():
    """Known answers to a question are known answers about each of its choices."""
    rows = Collector()
    for item, right in (("1", ("a",)), ("2", ("b",)), ("3", ("a", "b"))):
        rows.add(item, "ann", {"q": ["a"]})
        rows.gold["q"][item] = right
    rows.add("4", "ann", {"q": ["b"]})
    given = rows.judgements("export.json", "some-tool")
    assert gold_of_question(given, "q", False) == {"1": "a", "2": "b"}
    assert gold_of_question(given, "q=a", False) == {"1": "yes", "2": "no"}


def test_rows_of_other_questions_are_not_rows_of_this_one():
    """A model that was not asked has not left the question open; a worker who submitted has."""
    rows = Collector()
    rows.add("1", "ann", {"a": "x", "b": "y"})
    rows.add("1", "bob", {"b": "y"})
    rows.add("1", "model", {"b": "y"}, "prediction")
    rows.add("2", "ann", {}, "skipped")
    rows.add("1", "model", {"c": ["p", "q"]}, "prediction")
    given = rows.judgements("export.json", "some-tool")
    with pytest.raises(AnnotationError, match=r"several questions: a, b\."):
        select_question(given, None)
    _, labels = select_question(given, "a")
    kept, labels = drop_other_questions(given, labels)
    assert kept.worker.to_list() == ["ann", "bob", "ann"] and labels.to_list() == ["x", None, None]
