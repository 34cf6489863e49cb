"""Styles of print: the size, fonts and lines of a figure in a journal's column, on a page, or in a report.

Fonts are those that Matplotlib brings, so a figure is the same on every machine. STIX has the shapes and widths of
Times, which IEEE, ACM and Springer set or allow.
"""

from __future__ import annotations

from msgspec import Struct

__all__ = ["REPORT", "STYLES", "PrintStyle"]

_SERIF = ("STIXGeneral", "DejaVu Serif")
_SANS = ("DejaVu Sans",)


class PrintStyle(Struct, frozen=True):
    """How a figure is printed.

    `width_mm` is that of the figure, `height_mm` the most it may have, `panel_mm` the height of a row of panels.
    Letters are `size_pt` high, those of ticks and legends `small_pt`. `line` scales the widths of lines, and `mark`
    those of marks. A figure with `titled` has its title and notes in it; without, a caption has them.
    """

    name: str
    where: str
    width_mm: float
    height_mm: float
    panel_mm: float
    columns: int
    """The most panels side by side."""
    size_pt: float
    small_pt: float
    fonts: tuple[str, ...] = _SERIF
    line: float = 0.55
    mark: float = 0.6
    titled: bool = False


def _column(name: str, where: str, width_mm: float, height_mm: float, size_pt: float = 8.0) -> PrintStyle:
    return PrintStyle(name, where, width_mm, height_mm, 38.0, 1, size_pt, size_pt - 1)


def _page(name: str, where: str, width_mm: float, height_mm: float, size_pt: float = 8.0) -> PrintStyle:
    return PrintStyle(name, where, width_mm, height_mm, 44.0, 3, size_pt, size_pt - 1)


REPORT = PrintStyle(
    "report", "files of `report --png` and `--svg`", 0.0, 0.0, 0.0, 24, 9.0, 8.5, _SANS, 0.8, 0.6, titled=True
)
"""Its size follows from the panels of the figure."""

STYLES = {
    style.name: style
    for style in (
        _column("ieee-column", "one column of IEEE journals and conferences, 3.5 in", 88.9, 235.0),
        _page("ieee-page", "both columns of IEEE journals and conferences, 7.16 in", 181.9, 235.0),
        _column("acm", "one column of ACM's acmart in two columns, 241.15 pt", 84.7, 226.0),
        _page("acm-page", "both columns of ACM's acmart, 506.3 pt", 177.9, 226.0),
        _column("elsevier", "one column of Elsevier's journals", 90.0, 240.0),
        _page("elsevier-page", "the whole width of Elsevier's journals", 190.0, 240.0),
        PrintStyle("lncs", "the text of Springer's LNCS", 122.0, 193.0, 44.0, 2, 9.0, 8.0),
        PrintStyle(
            "thesis",
            "the text of a thesis on A4 with margins of 30 mm",
            150.0,
            230.0,
            52.0,
            2,
            10.0,
            9.0,
            line=0.65,
            mark=0.7,
        ),
        PrintStyle(
            "slide",
            "a slide of 16:9, as beamer's of 160 mm x 90 mm",
            140.0,
            75.0,
            55.0,
            3,
            9.0,
            8.0,
            _SANS,
            0.8,
            0.8,
        ),
        REPORT,
    )
}
"""Every style by its name."""
