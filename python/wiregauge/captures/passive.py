"""Facts of a run directory on passive matching of frames by content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from wiregauge.results.passive_text import sentences, us, window
from wiregauge.runner import Fact

__all__ = ["facts"]


def facts(compared: Mapping[str, Any]) -> Iterator[Fact]:
    """The facts: how frames were matched, and what that leaves open."""
    ignored = compared["ignored"]
    yield Fact(
        "compared",
        f"frames by content{', without ' + ', '.join(ignored) if ignored else ''}",
        "" if compared["compared_bytes"] is None else f"longer frames by their first {_bytes(compared)}",
    )
    yield Fact(
        "greatest residence",
        f"{us(compared['greatest_ps'])} us",
        f"frames were looked for {window(compared)}",
    )
    yield Fact("offset of the clocks", *_clocks(compared))
    for sentence in sentences(compared):
        yield Fact("left open", sentence)


def _bytes(compared: Mapping[str, Any]) -> str:
    return f"{compared['compared_bytes']} B, as a capture kept no more of some"


def _clocks(compared: Mapping[str, Any]) -> tuple[str, str]:
    offset, uncertainty = f"{us(compared['offset_ps'])} us", compared["offset_uncertainty_ps"]
    if uncertainty is None:
        return offset, "estimated, as if the least residence were 0: not known"
    if compared["offset_is_said"]:
        return offset, f"within {us(uncertainty)} us, as given"
    return (
        offset,
        f"within {us(uncertainty)} us, as no frame of either direction left before it came",
    )
