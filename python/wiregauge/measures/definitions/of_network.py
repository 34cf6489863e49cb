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
        "docs/explanation/live-network.md; both instants are in the table of crossings",
        "Per run, for the end system with the greatest error. A simulation releases every frame at the "
        "instant of its model: 0. Kernel bridges and hardware switches cannot report it.",
        statistics=(*QUANTILES, "max"),
        better="lower",
        needs="run",
        of="frames that left the network",
    ),
)
