"""What a notebook shows of fitted models, scorecards and comparisons: the panels of the HTML report.

The panels are in `report`, which is above all of these, so it is reached by name, as `data_frames` reaches `io`:
`_PLACES` is all that is reached in this way. An error of a panel is not caught. A notebook prints it with its
traceback and shows the text form of the object below, so that nothing is hidden and nothing is lost.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any, Literal

_PLACES = {
    "model": ("manyhands.report.notebook", "model_html"),
    "scorecards": ("manyhands.report.notebook", "scorecards_html"),
    "comparison": ("manyhands.report.notebook", "comparison_html"),
}


def panels_of(kind: Literal["model", "scorecards", "comparison"], value: Any) -> str:
    """Return the panels of the report that show an object.

    Parameters
    ----------
    kind : {"model", "scorecards", "comparison"}
        What the object is: a fitted estimator, the scorecards of workers, or a comparison of methods.
    value : object
        The object.

    Returns
    -------
    str
        HTML with its own style, which needs no script.
    """
    module, name = _PLACES[kind]
    return str(getattr(import_module(module), name)(value))
