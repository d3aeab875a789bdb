"""The examples of the gallery run within seconds, print something, and draw a figure."""

import runpy
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "examples" / "gallery"
EXAMPLES = sorted(GALLERY.glob("plot_*.py"))


def test_the_gallery_has_its_subjects():
    """At least twelve, and each begins with a title and a sentence."""
    assert len(EXAMPLES) >= 12
    for path in EXAMPLES:
        lines = path.read_text(encoding="utf-8").splitlines()
        assert lines[0] == '"""' and set(lines[2]) == {"="} and len(lines[2]) == len(lines[1]), path.name
        assert lines[4][0].isupper(), path.name
        assert "plt.show()" in lines and "/work" not in "\n".join(lines), path.name


@pytest.mark.slow
@pytest.mark.parametrize("path", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_runs(path, monkeypatch, capsys):
    """From its first line to its last, without a display."""
    matplotlib = pytest.importorskip("matplotlib")
    pytest.importorskip("pandas")
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    drawn = []
    monkeypatch.setattr(plt, "show", lambda: drawn.extend(plt.get_fignums()))
    monkeypatch.chdir(GALLERY)
    plt.close("all")
    runpy.run_path(str(path), run_name="__main__")
    plt.close("all")
    assert drawn, f"{path.name} shows no figure"
    assert capsys.readouterr().out.strip()
