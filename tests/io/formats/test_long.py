"""Long tables: what their columns are called."""

import pytest

from manyhands.exceptions import AnnotationError
from manyhands.io.formats.long import has_roles
from manyhands.io.reading import read_export

pytestmark = pytest.mark.fast


@pytest.fixture
def table(tmp_path):
    def write(header):
        path = tmp_path / "x.csv"
        path.write_text(f"{header}\n" + ",".join(f"c{at}" for at in range(header.count(",") + 1)) + "\n")
        return path

    return write


@pytest.mark.parametrize(
    "name",
    ["image", "image_name", "tweet_id", "sample", "sample_id", "instance", "document", "sentence", "question_id", "id"],
)
def test_names_of_items(table, name):
    assert read_export(table(f"{name},worker,label")).columns["item"] == name


@pytest.mark.parametrize(
    "name", ["annotator_name", "worker_name", "rater_name", "labeler_id", "user_name", "email", "Username"]
)
def test_names_of_workers(table, name):
    assert read_export(table(f"item,{name},label")).columns["worker"] == name


@pytest.mark.parametrize("name", ["label_name", "class_name", "category", "class", "rating", "value", "vote"])
def test_names_of_labels(table, name):
    assert read_export(table(f"item,worker,{name}")).columns["label"] == name


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ("id,image_id,worker,label", {"item": "image_id"}),
        ("sentence,sentence_id,worker,label", {"item": "sentence_id"}),
        ("item,user,annotator,label", {"worker": "annotator"}),
        ("item,worker,rating,value,answer", {"label": "answer"}),
    ],
)
def test_weak_names_yield_to_strong_ones(table, header, expected):
    assert read_export(table(header)).columns.items() >= expected.items()


@pytest.mark.parametrize(
    ("header", "role", "said"),
    [
        ("task,item,worker,label", "item", "'task' and 'item'"),
        ("item,annotator,annotator_id,label", "worker", "'annotator' and 'annotator_id'"),
        ("item,worker,label,answer", "label", "'label' and 'answer'"),
        ("id,sentence,worker,label", "item", "'id' and 'sentence'"),
        ("item,worker,class,value", "label", "'class' and 'value'"),
    ],
)
def test_two_columns_for_a_role_are_asked_about(table, header, role, said):
    """Never guessed at; naming one is enough."""
    told = rf"has 2 columns for the {role}, called {said}\. Name the right one with `{role}=`"
    with pytest.raises(AnnotationError, match=told):
        read_export(table(header))
    name = said.split("'")[1]
    assert read_export(table(header), **{role: name}).columns[role] == name


def test_what_is_missing(table):
    """A table without workers may be one with a column for each."""
    hint = r"`worker=`\. If each worker has a column, name them all: `worker=.ann,bob.`\."
    with pytest.raises(AnnotationError, match=hint):
        read_export(table("item,tag,label"))
    with pytest.raises(AnnotationError, match=r"`item=`, `worker=` and `label=`. If each worker has a column"):
        read_export(table("thing,tag,tig"))
    with pytest.raises(AnnotationError, match=r"with `label=`\.$"):
        read_export(table("item,worker,tag"))
    with pytest.raises(AnnotationError, match=r"Column 'no' is not in .* with `item=`\.$"):
        read_export(table("item,worker,label"), item="no")


def test_roles():
    assert has_roles(["Task ID", "User", "Category"]) and not has_roles(["task", "user", "tag"])
