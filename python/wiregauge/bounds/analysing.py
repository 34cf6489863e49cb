"""Computes the bounds of a network, or the reason why it has none."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from msgspec import Struct

from wiregauge._native import bound_network, convert_network
from wiregauge.bounds.networks import Source
from wiregauge.bounds.programmes import solved
from wiregauge.config import Diagnostic, TestError
from wiregauge.files import write_whole

__all__ = [
    "Answer",
    "ClassBound",
    "FlowBound",
    "Judged",
    "LeftOut",
    "NoAnswerError",
    "ServerBound",
    "TargetBound",
    "bound_by",
    "convert",
    "decoded",
    "refuse",
    "total_flow",
]


class NoAnswerError(Exception):
    """The network is valid but has no bound: the text says why, in one line."""


class TargetBound(Struct, frozen=True):
    """The bound of a flow at one target; None where there is none."""

    target: str
    path: tuple[str, ...]
    delay: float | None
    delay_exact: str | None = None
    least: float | None = None
    """A time that no frame undercuts, so that jitter is bounded; None where it is not known."""
    hops: tuple[float, ...] = ()
    """The delay at each server; with total flow analysis only."""
    waits: tuple[float, ...] = ()
    """The delay before each server, and behind the last; with total flow analysis only."""
    method: str | None = None
    """What gave this bound, where several methods were tried."""


class FlowBound(Struct, frozen=True):
    """The bounds of a flow."""

    flow: str
    targets: tuple[TargetBound, ...]


class ClassBound(Struct, frozen=True):
    """The bounds of a traffic class at an output port."""

    name: str
    delay: float | None
    backlog_bits: float | None


class ServerBound(Struct, frozen=True):
    """The bounds of an output port, all its flows together."""

    server: str
    delay: float | None
    backlog_bits: float | None
    load: float
    rate: float
    """The long-term service rate, bit/s (or in the units of the file)."""
    classes: tuple[ClassBound, ...] = ()


class Judged(Struct, frozen=True):
    """A limit and whether the bound keeps it."""

    flow: str
    target: str
    at_most: float
    written: str
    delay: float | None
    kept: bool
    line: int


class LeftOut(Struct, frozen=True):
    """A method that gave no answer, and why."""

    method: str
    reason: str


class Answer(Struct, frozen=True):
    """The bounds of a network, with their assumptions."""

    name: str
    method: str
    multiplexing: str
    grouping: str
    arithmetic: str
    phases: str
    """`known`: senders send at their offsets; `any`: whenever they like."""
    time_unit: str
    assumptions: tuple[str, ...]
    notes: tuple[str, ...]
    flows: tuple[FlowBound, ...]
    servers: tuple[ServerBound, ...]
    limits: tuple[Judged, ...]
    as_json: Mapping[str, Any]
    """The answer in the form of `wiregauge bounds --json`, without what other runs of a test add."""
    loses: bool = False
    """Whether the test plants losses: the bounds then hold for the frames that arrive."""
    left_out: tuple[LeftOut, ...] = ()
    """The methods without an answer, where several were tried."""

    @property
    def as_text(self) -> str:
        """The method and options of the analysis, in a few words."""
        return f"{self.method} {self.multiplexing}, grouping {self.grouping}"

    @property
    def bounded(self) -> bool:
        """Whether every target has a bound, and no port has more to send than it can, whatever its buffer bounds."""
        targets = (target for flow in self.flows for target in flow.targets)
        return not self.overloaded and all(target.delay is not None for target in targets)

    @property
    def overloaded(self) -> tuple[ServerBound, ...]:
        """The ports with a load above 1."""
        return tuple(server for server in self.servers if server.load > 1)

    @property
    def kept(self) -> bool:
        """Whether the bounds keep every limit."""
        return all(limit.kept for limit in self.limits)


def bound_by(
    source: Source,
    method: str = "tfa",
    *,
    multiplexing: str | None = None,
    grouping: bool | None = None,
    arithmetic: str = "exact",
    phases: str = "known",
) -> Answer:
    """Bounds a network by one method; see `bound`, which knows the least of all as well."""
    question = {
        "method": method,
        "multiplexing": multiplexing,
        "grouping": grouping,
        "arithmetic": arithmetic,
        "phases": phases,
    }
    solve = solved if method == "plp" else None
    reply: dict[str, Any] = json.loads(bound_network(source.as_json, json.dumps(question), solve))
    if "answer" not in reply:
        refuse(source, reply["refused"])
    found = reply["answer"]
    return decoded({**found, "notes": [*found["notes"], *source.notes]}, loses=source.loses)


def total_flow(source: Source, answer: Answer) -> Answer | None:
    """The same bounds by total flow analysis, the only method with a delay for each server; None where it has none."""
    if answer.method == "tfa":
        return answer
    try:
        return bound_by(
            source,
            "tfa",
            multiplexing=answer.multiplexing,
            grouping=answer.grouping == "on",
            phases=answer.phases,
        )
    except (TestError, NoAnswerError):
        return None


def convert(source: Source, place: Path) -> None:
    """Writes a network for other tools: output ports to a `.json`, a physical network to a `.xml`.

    Raises `TestError` where the format cannot hold it, `OSError` where it cannot be written.
    """
    formats = {".json": "output-ports", ".xml": "physical"}
    reply = json.loads(convert_network(source.as_json, formats.get(place.suffix, place.suffix)))
    if "written" not in reply:
        refuse(source, reply["refused"])
    write_whole(place, reply["written"].encode())


def refuse(source: Source, refused: Mapping[str, Any]) -> NoReturn:
    """Raises `TestError` or `NoAnswerError` for a refusal of the native side."""

    def diagnostic(said: Mapping[str, Any]) -> Diagnostic:
        line = said["line"] or source.lines(said["element"])
        return Diagnostic(**{**said, "file": source.file, "line": line})

    if "no-fixed-point" in refused:
        raise NoAnswerError(str(diagnostic(refused["no-fixed-point"])))
    raise TestError([diagnostic(one) for one in refused["input"]])


def decoded(answer: Mapping[str, Any], *, loses: bool) -> Answer:
    """The answer from its form in JSON; `loses`: the test plants losses."""
    flows = tuple(
        FlowBound(flow["flow"], tuple(_target(target) for target in flow["targets"]))
        for flow in answer["flows"]
    )
    servers = tuple(
        ServerBound(
            server["server"],
            server["delay"],
            server["backlog_bits"],
            server["load"],
            server["rate"],
            tuple(ClassBound(one["class"], one["delay"], one["backlog_bits"]) for one in server["classes"]),
        )
        for server in answer["servers"]
    )
    said: Sequence[str] = ("name", "method", "multiplexing", "grouping", "arithmetic", "phases", "time_unit")
    return Answer(
        **{key: answer[key] for key in said},
        assumptions=tuple(answer["assumptions"]),
        notes=tuple(answer["notes"]),
        flows=flows,
        servers=servers,
        limits=tuple(Judged(**limit) for limit in answer["limits"]),
        as_json=answer,
        loses=loses,
        left_out=tuple(LeftOut(**one) for one in answer.get("left_out", ())),
    )


def _target(target: Mapping[str, Any]) -> TargetBound:
    return TargetBound(
        target["target"],
        tuple(target["path"]),
        target["delay"],
        target.get("delay_exact"),
        target.get("least"),
        tuple(target.get("hops", ())),
        tuple(target.get("waits", ())),
        target.get("method"),
    )
