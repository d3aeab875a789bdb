"""Pictures of panels as figures of matplotlib, for papers; drawn from the data of the SVG pictures.

Loaded where a figure is asked for (`manyhands.plots`), and nowhere else.

paper_figures   `PaperFigure`: a figure whose text stays text, with the style of all figures
picture_axes    each kind of picture, drawn into axes
panel_figure    `figure_of`: the pictures of a panel side by side
"""

from manyhands.panel_figures.panel_figure import figure_of
from manyhands.panel_figures.paper_figures import PaperFigure

__all__ = ["PaperFigure", "figure_of"]
