"""Pictures of the report, one function per panel: ``mh.plots.workers(model)`` returns SVG.

Every panel of `manyhands.report.PANELS` is a function of this module, with underscores in its name. It takes a `Run` or
a fitted aggregator.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from manyhands.report.building import PANELS
from manyhands.report.page.fragment import standalone_svg
from manyhands.report.run import Run, make_run

_NAMES = {key.replace("-", "_"): key for key in PANELS}

__all__ = [*_NAMES]


def __getattr__(name: str) -> Callable[[Any], list[str]]:
    if name not in _NAMES:
        raise AttributeError(f"module 'manyhands.plots' has no attribute {name!r}; it has {', '.join(_NAMES)}")
    make = PANELS[_NAMES[name]]

    def plot(run: Any) -> list[str]:
        """Return the pictures of the panel as SVG files; none if its data are absent."""
        panel = make(run if isinstance(run, Run) else make_run(run))
        return [] if panel is None else [standalone_svg(picture) for picture in panel.svg]

    plot.__name__ = name
    return plot


def __dir__() -> list[str]:
    return sorted(__all__)
