"""Tables of items whose label is known."""

import pytest

from manyhands import Annotations
from manyhands.exceptions import AnnotationError, CrowdWarning
from manyhands.io.read.gold import read_gold

VOTES = Annotations.from_triples(["1", "1", "2"], ["a", "b", "a"], ["x", "y", "x"])


@pytest.mark.parametrize("header", ["task,label", "item,gold", "truth,item_id"])
def test_gold_is_found_by_the_usual_names(tmp_path, header):
    """Rows without a label are passed over."""
    path = tmp_path / "gold.csv"
    cells = ["1,x", "2,"] if not header.startswith("truth") else ["x,1", ",2"]
    path.write_text("\n".join([header, *cells]))
    assert read_gold(path, VOTES) == {"1": "x"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("clip,label\n1,x\n", "no column for the item. It has: clip, label"),
        ("item,colour\n1,x\n", "no column for the label"),
        ("item,label\n1,x\n1,y\n", "line 3: '1' has two classes, 'x' and 'y'"),
        ("item,label\n7,x\n", "names no item of the export: it has 7; the export has items such as '1'"),
        ("item,label\n1,z\n", "classes that no worker gave: z. There are: x, y"),
        ("item,label\n1,\n", "there is no gold in it"),
    ],
)
def test_bad_gold_gets_one_sentence(tmp_path, text, words):
    """What, where, and what to do."""
    path = tmp_path / "gold.csv"
    path.write_text(text)
    with pytest.raises(AnnotationError, match=words) as error:
        read_gold(path, VOTES)
    assert "\n" not in str(error.value)


def test_gold_of_a_larger_job_is_used_as_far_as_it_goes(tmp_path):
    """A master table of known answers; what does not fit is counted."""
    path = tmp_path / "gold.csv"
    path.write_text("item,label\n1,x\n2,z\n7,x\n8,y\n")
    with pytest.warns(CrowdWarning, match="2 items not in the export and 1 item of a class that no worker gave"):
        assert read_gold(path, VOTES) == {"1": "x"}
