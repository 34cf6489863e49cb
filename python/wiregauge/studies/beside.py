"""Figures from another study directory for comparison: mostly simulated ones next to those of real frames."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from wiregauge.studies.declaring import Key
from wiregauge.studies.laying import Laid

__all__ = ["Beside", "beside_of"]


class Beside(Struct, frozen=True):
    """The figures of a study carried out elsewhere, by cell, in the units that the paper prints."""

    bench: str
    size: str
    version: str
    figures: Mapping[Key, tuple[float, str]]

    @property
    def name(self) -> str:
        """The title of its column in tables."""
        return f"{self.bench}, {self.size}"

    def of(self, cell: Laid) -> float | None:
        """The figure of a cell; None where it is missing or has another unit. A cell that we lack may have no unit."""
        figure, unit = self.shown(cell)
        return figure if unit == cell.unit else None

    def shown(self, cell: Laid) -> tuple[float | None, str]:
        """The figure of a cell and its own unit, for display."""
        return self.figures.get(cell.key, (None, ""))


def beside_of(kept: Mapping[str, Any]) -> Beside:
    """The figures in the content of a `study.json`."""
    figures = {
        Key(item["item"], cell["series"], cell["x"], cell["statistic"]): (cell["ours"], cell["unit"])
        for item in kept["items"]
        for cell in item["cells"]
        if cell["ours"] is not None
    }
    return Beside(kept["bench"], kept["size"], kept["program"]["version"], figures)
