"""Columns that are features by themselves: numbers and text, never labels."""

import json

import numpy as np
import polars as pl
import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.features import are_texts, choose_columns, read_features

pytestmark = pytest.mark.filterwarnings("ignore::manyhands.exceptions.CrowdWarning")


@pytest.mark.parametrize(
    ("cells", "kind"),
    [
        (["red cat", "blue dog"], "text"),
        (["1", " 2.5 "], "numbers"),
        (["1", "x", "3"], "numbers"),  # an error of the file, which is named later
        (["de", "en", "de"], "left_out"),
        (["https://example.org/a b", "https://example.org/b"], "text"),  # a sentence may begin with an address
        (["https://example.org/a", "s3://bucket/b"], "left_out"),
        (["https://例え.jp/ねこといぬ", "https://例え.jp/とりとうま"], "left_out"),
        (["今天天气很好", "明天下雨"], "text"),
        (["same words", "same words"], "left_out"),
        ([None, " "], "left_out"),
        ([1, 2], "numbers"),
        ([True, False], "numbers"),
        ([[0.1, 0.2], [0.3, 0.4]], "numbers"),
    ],
)
def test_the_content_decides(cells, kind):
    strict = cells != [None, " "]
    column = pl.Series(cells) if strict else pl.Series(cells, dtype=pl.String)
    choice = choose_columns({"f": column})
    assert getattr(choice, kind) == ("f",)


@pytest.mark.parametrize("name", ["gold", "Ground Truth", "true_label", "label", "class"])
def test_answers_never_become_features_by_themselves(name, tmp_path):
    """However well they would predict; named, they are used."""
    (tmp_path / "x.csv").write_text(f"item,f,{name}\na,1,0\nb,2,1\n")
    found = read_features(tmp_path / "x.csv")
    assert found.columns == ("f",) and found.left_out == (name,)
    assert read_features(tmp_path / "x.csv", columns=["f", name]).numbers.shape == (2, 2)


def test_few_texts_among_ids_are_not_enough():
    assert not are_texts(["a-1", "a-2", "a note"]) and are_texts(["a-1", "a note"]) and not are_texts([])


def test_a_table_gives_numbers_and_text_together(tmp_path):
    (tmp_path / "x.csv").write_text("id,body,n,url\na,red cat,1,http://x\nb,blue dog,2,http://y\n")
    found = read_features(tmp_path / "x.csv")
    assert (found.columns, found.text, found.left_out) == (("n",), ("body",), ("url",))
    assert found.texts == ["red cat", "blue dog"] and found.numbers.tolist() == [[1], [2]]


def test_nothing_to_learn_from_is_said(tmp_path):
    (tmp_path / "x.csv").write_text("id,lang\na,de\nb,en\n")
    with pytest.raises(AnnotationError, match=r"neither numbers nor text beside the ids. It has: id, lang"):
        read_features(tmp_path / "x.csv")
    assert read_features(tmp_path / "x.csv", text=["lang"]).texts == ["de", "en"]


def export(path, data):
    tasks = [{"id": at, "data": one, "annotations": []} for at, one in enumerate(data, start=1)]
    path.write_text(json.dumps(tasks))
    return path


def test_an_export_gives_the_text_of_its_items(tmp_path):
    data = [{"text": "red cat", "n": 3, "url": "http://x/1"}, {"text": "blue dog", "n": 4, "url": "http://x/2"}]
    path = export(tmp_path / "export.json", data)
    found = read_features(path)
    assert found.ids == ["1", "2"] and found.texts == ["red cat", "blue dog"] and found.text == ("text",)
    assert found.numbers is None and found.left_out == ("n", "url")
    named = read_features(path, text=["data.text"], columns=["n"])
    assert named.text == ("text",) and np.array_equal(named.numbers, [[3], [4]])
    with pytest.raises(AnnotationError, match=r"has no body. It has: text, n, url"):
        read_features(path, text=["body"])
    with pytest.raises(AnnotationError, match=r"trained on the text of the column body; .* lacks body"):
        read_features(path, text=["body"], trained_on="the text of the column body")


def test_nested_text_is_found(tmp_path):
    turns = [{"author": "ann", "text": "hello there"}, {"author": "bob", "text": "how are you"}]
    data = [{"post": {"title": "red cat"}, "talk": turns}, {"post": {"title": "blue dog"}, "talk": turns[:1]}]
    found = read_features(export(tmp_path / "export.json", data))
    assert found.text == ("post.title", "talk")
    assert found.texts == ["red cat\nhello there\nhow are you", "blue dog\nhello there"]


def test_an_export_without_text_is_refused(tmp_path):
    path = export(tmp_path / "export.json", [{"image": "http://x/1.png"}, {"image": "http://x/2.png"}])
    with pytest.raises(AnnotationError, match=r"has no text of its items. It has: image. Name a field with `text=`"):
        read_features(path)


def test_other_tools_and_tables_of_labels_give_text_too(tmp_path):
    header = "HITId,WorkerId,Input.id,Input.text,Answer.mood.label\n"
    rows = "".join(f"h{n},w{w},{n},text number {n},good\n" for n in range(3) for w in range(2))
    (tmp_path / "batch.csv").write_text(header + rows)
    assert read_features(tmp_path / "batch.csv").texts == [f"text number {n}" for n in range(3)]
    rows = "".join(f"{n},w{w},x,text number {n},my note {n}{w},{n}\n" for n in range(3) for w in range(2))
    (tmp_path / "votes.csv").write_text("item,worker,label,body,remark,n\n" + rows)
    found = read_features(tmp_path / "votes.csv")
    assert found.text == ("body",) and found.ids == ["0", "1", "2"]  # the remark belongs to the workers


def test_the_items_of_a_model_may_lack_a_number(tmp_path):
    path = export(tmp_path / "export.json", [{"n": 1}, {"n": None}, {"n": 3}])
    assert read_features(path).ids == ["1", "3"]  # an item without the field has no features
    path = export(tmp_path / "two.json", [{"n": 1, "m": 1}, {"n": 2}])
    with pytest.raises(AnnotationError, match="column 'm' has nothing where a finite number should be"):
        read_features(path)
