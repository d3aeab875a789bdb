"""Files of answers: what is accepted, what is refused in one sentence, and that nothing is lost."""

import csv

import pytest

import manyhands as mh
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.questions import (
    DRAWN,
    _join_choices,
    _pack_items,
    _split_choices,
    _unpack_items,
    describe_answers,
    question_frame,
    read_answers,
)
from manyhands.io.write.results import guard_table, to_csv
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
    assert table.columns[:5] == ["item", "text", "item_votes", "choices", "answer"]
    assert table["text"].to_list() == ["a text", None]


def test_an_expert_is_blind_unless_votes_are_asked_for(crowd):
    """The file shows neither votes nor labels, nor whether the methods agree."""
    questions = mh.trust.random_items(crowd, n=20)
    assert {"agreed", "disputed"} <= set(questions.stratum.values())
    blind = question_frame(questions, {"text": {}})
    assert blind.columns[:4] == ["item", "text", "choices", "answer"]
    assert set(blind.columns[4:]) == set(DRAWN)
    assert set(blind["choices"]) == {"Class 0; Class 1; Class 2"}
    shown = "\n".join(str(cell) for name in blind.columns if name != "drawn_from" for cell in blind[name])
    assert "agreed" not in shown and "disputed" not in shown and "overruled" not in shown
    seen = question_frame(questions, show_votes=True)
    assert seen.columns[:4] == ["item", "votes", "choices", "answer"] and set(questions.labels) <= set(seen.columns)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"item": {0: "nobody"}}, "line 2: the export has no item 'nobody'"),
        ({"answer": {0: "Clas 1"}}, "line 2: 'Clas 1' is no class of the export"),
        ({"export": dict.fromkeys(range(5), "0" * 16), "choices": dict.fromkeys(range(5), "")}, "another export"),
        (
            {"export": dict.fromkeys(range(5), "0" * 16), "drawn_from": dict.fromkeys(range(5), "items 1/1 eNo")},
            "do not say",
        ),
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
    drawn = mh.trust.random_items(crowd, n=9)
    table = question_frame(drawn).to_dicts()
    with (tmp_path / "random.csv").open("w", newline="") as out:
        writer = csv.DictWriter(out, table[0])
        writer.writeheader()
        writer.writerows(row | {"answer": "Class 1"} for row in table)
    both = read_answers([path, tmp_path / "random.csv"], crowd)
    assert both.kinds["random"] == 9 and len(both) == len({*read_answers(path, crowd).values, *drawn})
    assert "random" in describe_answers(both) and "contested" in describe_answers(both)


def test_items_and_classes_of_a_file_come_back(crowd):
    """Whatever they are called, also after a spreadsheet guard, and from a part of the rows where they fit into one."""
    names = ["a; b", '["x"]', "=1+1", " padded", "", "é\n", "Class"]
    assert _split_choices(_join_choices(names)) == names
    assert _unpack_items(_pack_items(names, 3)[2:]) == sorted(names)
    many = [f"item-{k * 7919 % 100_003}-{hash((k, 0)):x}" for k in range(5000)]
    cells = _pack_items(many, 4)
    assert _unpack_items(cells) == sorted(many) and _unpack_items(cells[:-1]) is None
    assert max(map(len, cells)) < 32_767 and _pack_items(many, 1) == [None]
    assert _unpack_items(["items 1/1 AAAA", "items 2/1 AAAA", "nothing"]) is None
    assert _unpack_items(["items 1/1 " + "eJyrVgIAAXkA/A=="]) is None  # JSON that is no list, or no zlib data


def write_answers(path, questions, answer, *, safe=False, **changes):
    table = question_frame(questions)
    rows = [
        row | {"answer": answer(row["item"])} | changes for row in (guard_table(table) if safe else table).to_dicts()
    ]
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def days():
    """Annotations of three days: labels are added each day, items on the last two."""
    found = make_crowd(n_items=200, n_workers=9, n_classes=3, labels_per_item=6, random_state=1)
    votes = found.annotations
    names = ["Class 0", "=Class 1", "Class 2"]
    truth = {f"i{k}": names[c] for k, c in enumerate(found.truth)}

    def until(items, of_each):
        rows = [at for at, k in enumerate(votes.item) if k < items and sum(votes.item[:at] == k) < of_each]
        item, worker, label = votes.item[rows], votes.worker[rows], votes.label[rows]
        return mh.Annotations.from_triples(
            [f"i{k}" for k in item], worker.tolist(), [names[k] for k in label], classes=names
        )

    return until(120, 3), until(160, 4), until(200, 6), truth


@pytest.mark.parametrize("safe", [False, True])
def test_answers_survive_new_labels_and_new_items(days, tmp_path, safe):
    """Monday's and Wednesday's questions on Friday's export: by stratum, and the new items are named."""
    monday, wednesday, friday, truth = days
    one = write_answers(tmp_path / "mon.csv", mh.trust.random_items(monday, n=40), truth.get, safe=safe)
    two = write_answers(tmp_path / "wed.csv", mh.trust.random_items(wednesday, n=30), truth.get, safe=safe)
    alone = read_answers(one, friday)
    assert len(alone) == 40 and alone.kinds == {"random": 40}
    items = friday.item_ids.tolist()
    names, codes = alone.strata_of(items)
    assert names == ("mon.csv",)
    assert {item for item, code in zip(items, codes) if code < 0} == {f"i{k}" for k in range(120, 200)}
    both = read_answers([one, two], friday)
    names, codes = both.strata_of(items)
    assert names == ("mon.csv + wed.csv", "wed.csv") and [int(sum(codes == k)) for k in (0, 1, -1)] == [120, 40, 40]
    rows, classes = both.codes(friday)
    assert all(truth[items[row]] == friday.classes[k] for row, k in zip(rows, classes))


def test_changed_classes_and_vanished_items_are_refused_by_name(days, tmp_path):
    monday, _, friday, truth = days
    path = write_answers(tmp_path / "mon.csv", mh.trust.random_items(monday, n=40), truth.get)
    triples = friday.item_ids[friday.item], friday.worker, friday.classes[friday.label]
    more = mh.Annotations.from_triples(
        *(list(column) for column in triples), classes=["Class 0", "=Class 1", "Class 2", "owl"]
    )
    with pytest.raises(AnnotationError, match=r"classes changed since mon.csv was drawn: 'owl' is new.*gold"):
        read_answers(path, more)
    kept = [row for row, item in enumerate(triples[0]) if item not in ("i3", "i7")]
    fewer = mh.Annotations.from_triples(*([column[row] for row in kept] for column in triples), classes=friday.classes)
    path = write_answers(path, mh.trust.random_items(monday, n=120), truth.get)
    with pytest.raises(
        AnnotationError, match=r"2 of the 120 items from which mon.csv was drawn are not in this export: 'i3', 'i7'"
    ):
        read_answers(path, fewer)


def test_files_that_show_votes_as_older_ones_did_are_read(days, tmp_path):
    """Without choices and the list of items, they are good for the export that they were drawn from."""
    monday, _, friday, truth = days
    questions = mh.trust.random_items(monday, n=5)
    table = question_frame(questions, show_votes=True).drop("choices", "drawn_from")
    rows = [row | {"answer": truth[row["item"]], "stratum": questions.stratum[row["item"]]} for row in table.to_dicts()]
    path = tmp_path / "old.csv"
    with path.open("w", newline="") as out:
        writer = csv.DictWriter(out, rows[0])
        writer.writeheader()
        writer.writerows(rows)
    answers = read_answers(path, monday)
    assert answers.kinds == {"random": 5} and answers.stratum == dict(questions.stratum)
    with pytest.raises(AnnotationError, match=r"drawn from another export.*do not say"):
        read_answers(path, friday)


def test_items_that_an_option_leaves_out_are_no_vanished_items(days, tmp_path):
    """The rest of a random sample is one of the other items; the note says how many answers are not used."""
    monday, _, friday, truth = days
    drawn = mh.trust.random_items(monday, n=40)
    path = write_answers(tmp_path / "mon.csv", drawn, truth.get, safe=True)
    out = [next(iter(drawn)), next(item for item in monday.item_ids.tolist() if item not in set(drawn))]
    fewer = friday.without_items(out)
    with pytest.raises(AnnotationError, match="not in this export"):
        read_answers(path, fewer)
    with pytest.warns(
        CrowdWarning, match=r"answers_left_out: 1 answer of mon.csv is about an item that `exclude_items`"
    ):
        answers = read_answers(path, fewer, left_out=frozenset(out))
    assert len(answers) == 39 and out[0] not in answers.values
    assert answers.drawings[0].items == set(monday.item_ids.tolist()) - set(out)
    found = mh.trust.estimate_accuracy(mh.PooledDawidSkene().fit(fewer), answers)
    assert (found.n_answers, found.n_covered, found.n_items) == (39, 118, 198)
