"""Measures of a network that an agent plays: they belong to a run, not to a flow."""

from __future__ import annotations

from wiregauge.measures.definitions.definition import QUANTILES, Definition

__all__ = ["OF_NETWORK"]

OF_NETWORK = (
    Definition(
        "release_error",
        "Release error of the network",
        "instant at which a frame was handed to the kernel of its end system - instant at which the model wanted it "
        "there",
        "ns",
        "docs/explanation/live-network.md; both instants stand in the table of crossings",
        "Counted per run, of the end system towards which it is greatest. A simulation releases every frame at the "
        "instant of its model: 0. Bridges of the kernel and switches of metal do not tell it.",
        statistics=(*QUANTILES, "max"),
        better="lower",
        needs="run",
        of="frames that left the network",
    ),
)
