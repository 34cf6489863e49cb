"""The report: one self-contained HTML file for a run directory, a comparison, a trend, bounds; and figures as files."""

from __future__ import annotations

from typing import TYPE_CHECKING

from wiregauge.report.write import check_page, export_figures, rendered, write

if TYPE_CHECKING:
    from wiregauge.report.beside_bounds import Bounded, bounded, networks_bounded
    from wiregauge.report.bounds_page import BoundsShown, rendered_bounds, write_bounds
    from wiregauge.report.compare import rendered_compare, write_compare
    from wiregauge.report.streams_page import rendered_streams, write_streams
    from wiregauge.report.trend import rendered_trend, write_trend

__all__ = [
    "Bounded",
    "BoundsShown",
    "bounded",
    "check_page",
    "export_figures",
    "networks_bounded",
    "rendered",
    "rendered_bounds",
    "rendered_compare",
    "rendered_streams",
    "rendered_trend",
    "write",
    "write_bounds",
    "write_compare",
    "write_streams",
    "write_trend",
]

# Imported on first use: the page of a run needs neither comparisons nor bounds.
_HOME = {
    "Bounded": "beside_bounds",
    "BoundsShown": "bounds_page",
    "bounded": "beside_bounds",
    "networks_bounded": "beside_bounds",
    "rendered_bounds": "bounds_page",
    "rendered_compare": "compare",
    "rendered_streams": "streams_page",
    "rendered_trend": "trend",
    "write_bounds": "bounds_page",
    "write_compare": "compare",
    "write_streams": "streams_page",
    "write_trend": "trend",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module 'wiregauge.report' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(f"wiregauge.report.{_HOME[name]}"), name)
