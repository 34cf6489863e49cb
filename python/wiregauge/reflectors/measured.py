"""What a session with a reflector shows, as `session.json` has it. Times are ns."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

from wiregauge.files.typed_json import Count, Grade, Verdict, json_schema

__all__ = [
    "Counts",
    "Estimate",
    "LimitHeld",
    "Measured",
    "Order",
    "Series",
    "schema_path",
    "session_schema",
]


class Estimate(Struct, frozen=True):
    """A mean or a percentile with its 95 % interval; None where that is open."""

    value: float
    low: float | None
    high: float | None


class Series(Struct, frozen=True):
    """A time of each exchange. Statistics that n does not support are missing."""

    n: Count
    min: float | None
    max: float | None
    sd: float | None
    mean: Estimate | None
    quantiles: dict[str, Estimate]
    uncertainty_ns: float | None
    """How far both clocks may be wrong about each value, as their hosts state; None: one clock, so nothing of it."""
    reason: str
    """Why there is no value; empty where there is one."""


class Counts(Struct, frozen=True):
    """Packets and answers. None: cannot be told."""

    sent: Count
    answered: Count
    lost: Count
    """Without an answer."""
    lost_forward: Count | None
    """Lost on their way to the reflector."""
    lost_backward: Count | None
    """Whose answer was lost."""
    duplicated: Count
    """Further answers to a packet."""
    duplicated_forward: Count | None
    """Of a packet that reached the reflector several times."""
    duplicated_backward: Count | None
    reordered: Count
    """Answers behind one to a later packet (RFC 4737, type-P-reordered)."""
    reordered_forward: Count | None
    reordered_backward: Count | None
    unusable: Count
    """Answers whose two times contradict this host's: no time is taken of them."""


class LimitHeld(Struct, frozen=True):
    """A limit of the session."""

    measure: str
    bound: Literal["at-most", "at-least"]
    value: float
    written: str
    unit: Literal["ns", "packets"]
    observed: float | None
    n: Count
    result: Literal["pass", "fail", "undecided"]
    reason: str


class Order(Struct, frozen=True):
    """What was asked for."""

    target: str
    """Address and port of the reflector."""
    protocol: Literal["stamp", "twamp-light"]
    count: Count
    """0: without an end."""
    period_ns: Count
    payload: Count
    """UDP payload, B."""
    is_authenticated: bool
    timestamps: Literal["ntp", "ptp"]
    session: Count
    """Session identifier (RFC 8972); 0: none."""
    dscp: Count
    patience_ns: Count
    """How long answers were awaited after the last packet; of a session without an end, each."""
    priority: int | None = None
    """Of the socket, by which a VLAN interface chooses that of the tag; None: that of the class."""


class Measured(Struct, frozen=True):
    """The content of `session.json`."""

    schema: Literal[1]
    program: str
    order: Order
    epoch_realtime_ns: int
    """Time of the first packet, since 1970."""
    complete: bool
    """Whether every packet was sent and every answer awaited."""
    validity: Grade
    reasons: list[str]
    numbering: Literal["own", "as-sent", "restarted"] | None
    """Numbers of the answers: the reflector's own, those of the packets, or begun anew meanwhile. None: no answer."""
    reflector_clock: str
    """What the reflector states of its clock."""
    hops: list[int]
    """Least and greatest number of routers that packets passed on their way there, by their TTL; empty: not stated."""
    classes: list[int]
    """DSCP that answers came with."""
    counts: Counts
    series: dict[str, Series]
    ignored: dict[str, Count]
    """Datagrams that are no answers, by reason; none of them is in a figure."""
    verdict: Verdict
    limits: list[LimitHeld]


def schema_path() -> Path:
    """The JSON Schema of `session.json`, shipped with the package."""
    return Path(__file__).with_name("session.schema.json")


def session_schema() -> dict[str, Any]:
    """The schema of `session.json`, which `probe --protocol stamp --json` prints."""
    return json_schema(
        Measured,
        "a session with a reflector",
        closed=True,
        **{"$id": "urn:wiregauge:session:1", "description": "null: not stated, or not supported by n."},
    )
