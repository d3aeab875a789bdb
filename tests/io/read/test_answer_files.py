"""Files of answers: what is accepted, what is refused in one sentence, and that nothing is lost."""

import csv

import pytest

import manyhands as mh
from manyhands.exceptions import AnnotationError
from manyhands.io.read.answer_files import describe_answers, read_answers
from manyhands.io.write.question_table import question_frame
from manyhands.io.write.results import to_csv
from manyhands.simulate import make_crowd


@pytest.fixture(scope="module")
def crowd():
    found = make_crowd(n_items=120, n_workers=8, n_classes=3, random_state=0)
    names = [f"Class {k}" for k in range(3)]
    votes = found.annotations
    labels = [names[k] for k in votes.label]
    items = [f"i{k}" for k in votes.item]
    return mh.Annotations.from_triples(items, votes.worker.tolist(), labels, classes=names)


@pytest.fixture
def file(crowd, tmp_path):
    """Twelve contested questions, and a function that fills some of them in."""
    path = tmp_path / "questions.csv"
    path.write_bytes(to_csv(question_frame(mh.contested(crowd, n=12))))

    def fill(**changes):
        with path.open(newline="") as file:
            rows = list(csv.DictReader(file))
        for at, row in enumerate(rows):
            row["answer"] = "Class 1" if at < 5 else ""
        for name, values in changes.items():
            for at, value in values.items():
                rows[at][name] = value
        with path.open("w", newline="") as out:
            writer = csv.DictWriter(out, rows[0])
            writer.writeheader()
            writer.writerows(rows)
        return path

    return fill


def test_answers_come_back_with_how_they_were_drawn(crowd, file):
    path = file(answer={5: "?", 6: " class 2 "})
    answers = read_answers(path, crowd)
    assert len(answers) == 6 and answers.kinds == {"contested": 6}
    assert list(answers.values.values()) == ["Class 1"] * 5 + ["Class 2"]
    questions = mh.contested(crowd, n=12)
    assert answers.stratum == {item: questions.stratum[item] for item in answers.values}
    assert answers.fingerprint == questions.fingerprint and answers.n_items == 120 and answers.random_state == 0
    assert all(answers.sizes[name] == questions.sizes[name] for name in answers.sizes)


def test_fields_of_the_items_are_shown_under_names_of_their_own(crowd):
    questions = mh.contested(crowd, n=2)
    first = questions.items[0]
    table = question_frame(questions, {"text": {first: "a text"}, "votes": {first: 3}})
    assert table.columns[:5] == ["item", "text", "item_votes", "votes", "answer"]
    assert table["text"].to_list() == ["a text", None]


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"item": {0: "nobody"}}, "line 2: the export has no item 'nobody'"),
        ({"answer": {0: "Clas 1"}}, "line 2: 'Clas 1' is no class of the export"),
        ({"export": {3: "0123456789abcdef"}}, "drawn from another export"),
        ({"stratum_size": {0: "many"}}, "stratum_size is 'many'"),
        ({"sampled": {0: "picked"}}, "sampled is 'picked'"),
        ({"answer": dict.fromkeys(range(5), "")}, "no question is answered"),
    ],
)
def test_bad_files_are_refused_in_one_sentence_and_left_as_they_are(crowd, file, changes, sentence):
    path = file(**changes)
    before = path.read_bytes()
    with pytest.raises(AnnotationError, match=sentence):
        read_answers(path, crowd)
    assert path.read_bytes() == before


def test_two_answers_for_one_item_are_refused(crowd, file, tmp_path):
    path = file()
    item = next(iter(read_answers(path, crowd).values))
    assert file(item={1: item}) == path
    assert len(read_answers(path, crowd)) == 4  # the same answer twice is one
    file(item={1: item}, answer={1: "Class 2"})
    with pytest.raises(AnnotationError, match="has two answers, 'Class 1' and 'Class 2'"):
        read_answers(path, crowd)
    file()
    (tmp_path / "more.csv").write_text(f"item,answer\n{item},Class 0\n")
    with pytest.raises(AnnotationError, match="two answers"):
        read_answers([path, tmp_path / "more.csv"], crowd)


def test_a_plain_table_has_answers_of_an_unknown_kind(crowd, tmp_path):
    (tmp_path / "plain.csv").write_text("item,answer\ni0,Class 1\ni1,\n")
    answers = read_answers(tmp_path / "plain.csv", crowd)
    assert answers.kinds == {"unknown": 1} and answers.fingerprint is None
    assert describe_answers(answers) == "1 answer (unknown items)"
    (tmp_path / "gold.csv").write_text("item,label\ni0,Class 1\n")
    with pytest.raises(AnnotationError, match="no column 'answer'"):
        read_answers(tmp_path / "gold.csv", crowd)


def test_several_files_are_one_set_of_answers(crowd, file, tmp_path):
    path = file()
    drawn = mh.random_items(crowd, n=9)
    table = question_frame(drawn).to_dicts()
    with (tmp_path / "random.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, table[0])
        writer.writeheader()
        writer.writerows(row | {"answer": "Class 1"} for row in table)
    both = read_answers([path, tmp_path / "random.csv"], crowd)
    assert both.kinds["random"] == 9 and len(both) == len({*read_answers(path, crowd).values, *drawn})
    assert "random" in describe_answers(both) and "contested" in describe_answers(both)
