"""Sends test packets with the agent program and collects what it tells: the raw material of a session."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from wiregauge.measures.definitions.units import duration
from wiregauge.reflectors.measured import Order
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.bench import BenchError
from wiregauge.runner.stopping import Interrupted, stoppable

__all__ = [
    "ClockTold",
    "Collected",
    "SessionError",
    "classes_of",
    "clock_told",
    "collected_of",
    "exchange",
    "hops_of",
    "late_of",
    "own_times",
    "told_lines",
]

_IP_TTL = 255
_HEARD = {
    "asked": pl.Int64,
    "sequence": pl.Int64,
    "received_ns": pl.Int64,
    "sent_ns": pl.Int64,
    "is_ptp": pl.Boolean,
    "error_ns": pl.UInt64,
    "is_synchronised": pl.Boolean,
    "has_session": pl.Boolean,
    "asked_ttl": pl.Int64,
    "ttl": pl.Int64,
    "traffic_class": pl.Int64,
    "arrived_ns": pl.Int64,
    "by_kernel": pl.Boolean,
}


class ClockTold(Struct, frozen=True):
    """What answers state of the reflector's clock."""

    some_ptp: bool
    all_ptp: bool
    all_synchronised: bool
    error_ns: int | None
    """The greatest that is stated; None: none is."""

    def text(self) -> str:
        """The same as words."""
        scale = "TAI (PTP)" if self.all_ptp else "changing" if self.some_ptp else "UTC (NTP)"
        state = "synchronised" if self.all_synchronised else "not synchronised"
        error = (
            "no error stated"
            if self.error_ns is None
            else f"wrong by up to {duration(float(self.error_ns), 3)}"
        )
        return f"{scale}, {state}, {error}"


class SessionError(Exception):
    """The packets cannot be sent; the text says why and what to do. `is_input`: an option is wrong, not the host."""

    def __init__(self, text: str, *, is_input: bool = False) -> None:
        super().__init__(text)
        self.is_input = is_input


class Collected(Struct, frozen=True):
    """Tables of packets (`asked`, `written_ns`, `due_ns`, `left_ns`) and of answers as they came, and the counts."""

    packets: pl.DataFrame
    answers: pl.DataFrame
    summary: dict[str, Any]


def exchange(order: Order, key: Path | None) -> Collected:
    """Runs a session; a request to stop ends it early, and what came is kept. Raises SessionError."""
    sent: list[list[int]] = []
    left: list[list[int]] = []
    heard: list[dict[str, Any]] = []
    summary: dict[str, Any] = {}
    with contextlib.closing(told_lines(order, key)) as lines, contextlib.suppress(Interrupted), stoppable():
        for told in lines:
            if "complete" in told:
                summary = told
                continue
            summary = told.get("so_far", summary)
            sent += told["sent"]
            left += told["left"]
            heard += told["heard"]
    return collected_of(sent, left, heard, summary)


def collected_of(
    sent: Sequence[Sequence[int]],
    left: Sequence[Sequence[int]],
    heard: Sequence[dict[str, Any]],
    summary: dict[str, Any],
) -> Collected:
    """Rows as the agent program tells them, as tables."""
    packets = pl.DataFrame(
        sent, schema={"asked": pl.Int64, "written_ns": pl.Int64, "due_ns": pl.Int64}, orient="row"
    ).join(
        pl.DataFrame(left, schema={"asked": pl.Int64, "left_ns": pl.Int64}, orient="row"),
        on="asked",
        how="left",
        maintain_order="left",
    )
    return Collected(packets, pl.DataFrame(heard, schema=_HEARD, orient="row"), summary)


def clock_told(answers: pl.DataFrame) -> ClockTold | None:
    """What answers state of the reflector's clock; None without one."""
    if answers.is_empty():
        return None
    worst: Any = answers["error_ns"].max()
    return ClockTold(
        bool(answers["is_ptp"].any()),
        bool(answers["is_ptp"].all()),
        bool(answers["is_synchronised"].all()),
        worst,
    )


def hops_of(answers: pl.DataFrame) -> list[int]:
    """Least and greatest number of routers on the way there, by the TTL; empty where it is not stated."""
    hops = _IP_TTL - answers["asked_ttl"].drop_nulls().to_numpy()
    return sorted({int(hops.min()), int(hops.max())}) if len(hops) else []


def classes_of(answers: pl.DataFrame) -> list[int]:
    """DSCP that answers came with."""
    return sorted({value >> 2 for value in answers["traffic_class"].drop_nulls().unique().to_list()})


def own_times(collected: Collected) -> int:
    """Times that the program took, not the kernel."""
    return collected.packets["left_ns"].null_count() + int((~collected.answers["by_kernel"]).sum())


def late_of(packets: pl.DataFrame) -> int:
    """How much later than it was due a packet was sent, ns, at most."""
    late = (packets["written_ns"] - packets["due_ns"]).max()
    return late if isinstance(late, int) else 0


def told_lines(order: Order, key: Path | None) -> Generator[dict[str, Any], None, None]:
    """What the agent program tells, line by line. Raises SessionError."""
    try:
        command = [str(agent_program()), "ask-reflector", *_options(order, key)]
        # In a session of its own, Ctrl-C does not reach it: it ends when nobody reads, and all it told is there.
        with subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
        ) as program:
            assert program.stdout is not None
            assert program.stderr is not None
            try:
                for line in program.stdout:
                    yield json.loads(line)
                said = program.stderr.read().strip().removeprefix("wiregauge-agent: ")
                code = program.wait()
            finally:
                program.kill()
    except (BenchError, OSError) as error:
        raise SessionError(str(error)) from error
    if code:
        raise SessionError(said or f"{command[0]} ended with code {code}", is_input=code == 2)


def _options(order: Order, key: Path | None) -> list[str]:
    options = {
        "to": order.target,
        "period-ns": order.period_ns,
        "payload": order.payload,
        "format": order.timestamps,
        "dscp": order.dscp,
        "patience-ns": order.patience_ns,
    }
    if order.count:
        options["count"] = order.count
    if order.priority is not None:
        options["priority"] = order.priority
    if order.protocol == "stamp":
        options["session"] = order.session
    if key is not None:
        options["key"] = str(key)
    made = [f"--{name}={value}" for name, value in options.items()]
    return [*made, "--twamp"] if order.protocol == "twamp-light" else made
