"""The types of the output of `wiregauge calibrate host --json`; the schema is generated from them. Times in ps,
latencies in ns.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge.calibrate.host_model import Prediction
from wiregauge.files.typed_json import Count, Figure, filled, json_schema
from wiregauge.identify import HostFit

__all__ = ["INTERVALS", "host_json", "host_schema", "schema_path"]

INTERVALS = (
    "intervals of parameters are of one run: of chance within it, not of what another start, load or day of the same "
    "host would change; --beside with another run shows whether the model holds there"
)
"""The scope of the intervals, as printed."""

Times = Annotated[
    list[tuple[float, int]], Meta(description="share, %, and time, ps; ascending from 0 to 100 %")
]


class ParameterShown(TypedDict):
    value: Annotated[int, Meta(ge=0, description="ps")]
    half: Annotated[float | None, Meta(description="half-width of the 95 % interval, ps; null: not known")]
    n: Count


class CostShown(TypedDict):
    fixed: ParameterShown
    per_byte: Annotated[
        ParameterShown | None, Meta(description="null: frames of one length only, all is in the fixed part")
    ]
    left: Annotated[float, Meta(description="median distance of what was seen from the line, ps")]


class ModerationShown(TypedDict):
    kind: Literal["each", "coalesced", "polled", "spaced", "burst", "adaptive"]
    latency: Annotated[int, Meta(ge=0, description="ps")]
    wait: Annotated[int | None, Meta(description="ps")]
    frames: int | None
    explains: Annotated[float, Meta(ge=0, le=1, description="share of frames whose time the rule gives")]
    tolerance: Annotated[int, Meta(ge=0, description="ps")]
    n: Count


class HostShown(TypedDict):
    name: str
    sent: Count
    received: Count
    transmit: CostShown | None
    interface_delay: ParameterShown | None
    send_wake_up: Times | None
    moderation: ModerationShown | None
    receive: CostShown | None
    receive_wake_up: Times | None
    relay_wake_up: Times | None
    passage: Annotated[
        CostShown | None, Meta(description="between drivers, where nobody timestamps on the wire")
    ]
    untold: list[str]


class PredictionShown(TypedDict):
    run: str
    flow: str
    statistic: Literal["p50", "p99"]
    measured: Annotated[Figure, Meta(description="ns")]
    predicted: Annotated[Figure, Meta(description="ns")]
    ratio: Annotated[Figure, Meta(description="predicted over measured")]
    n: Count


class BesideShown(TypedDict):
    run: Annotated[str, Meta(description="run directory")]
    seen: Annotated[bool, Meta(description="whether the models are from it")]
    figures: list[PredictionShown]


class HostModelShown(TypedDict):
    schema: Literal[1]
    intervals: Annotated[str, Meta(description="what the intervals of the parameters cover: one run")]
    files: Annotated[dict[str, str], Meta(description="the model of each host")]
    hosts: list[HostShown]
    predictions: list[BesideShown]


def host_json(
    fits: Mapping[str, HostFit],
    files: Mapping[str, Path],
    laid: Mapping[str, Sequence[Prediction]],
    *,
    seen: bool,
) -> HostModelShown:
    """The printed object."""
    return HostModelShown(
        schema=1,
        intervals=INTERVALS,
        files={name: str(path) for name, path in files.items()},
        hosts=[filled(HostShown, fit) for fit in fits.values()],
        predictions=[
            BesideShown(run=run, seen=seen, figures=[filled(PredictionShown, one) for one in rows])
            for run, rows in laid.items()
        ],
    )


def schema_path() -> Path:
    """The JSON Schema, shipped with the package."""
    return Path(__file__).with_name("host.schema.json")


def host_schema() -> dict[str, Any]:
    """The JSON Schema."""
    return json_schema(
        HostModelShown,
        "`wiregauge calibrate host --json`",
        closed=True,
        **{"$id": "urn:wiregauge:host-model:1"},
    )
