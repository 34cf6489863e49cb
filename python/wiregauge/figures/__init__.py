"""Figures as data, and two ways to draw them: `interactive` (plotly.js, for the report) and `printed` (PNG and SVG).

Nothing here computes a statistic: the data come from the measures.
"""

from wiregauge.figures.model import Figure, Panel
from wiregauge.figures.registry import FIGURES, NoFigureError, build, draw

__all__ = ["FIGURES", "Figure", "NoFigureError", "Panel", "build", "draw"]
