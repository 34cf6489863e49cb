"""Sends test packets with the agent program and collects what it tells: the raw material of a session."""

from __future__ import annotations

import contextlib
import json
import subprocess
from collections.abc import Generator
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from wiregauge.reflectors.measured import Order
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.bench import BenchError
from wiregauge.runner.stopping import Interrupted, stoppable

__all__ = ["Collected", "SessionError", "exchange"]

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
    with contextlib.closing(_lines(order, key)) as lines, contextlib.suppress(Interrupted), stoppable():
        for told in lines:
            if "complete" in told:
                summary = told
                continue
            sent += told["sent"]
            left += told["left"]
            heard += told["heard"]
    packets = pl.DataFrame(
        sent, schema={"asked": pl.Int64, "written_ns": pl.Int64, "due_ns": pl.Int64}, orient="row"
    ).join(
        pl.DataFrame(left, schema={"asked": pl.Int64, "left_ns": pl.Int64}, orient="row"),
        on="asked",
        how="left",
        maintain_order="left",
    )
    return Collected(packets, pl.DataFrame(heard, schema=_HEARD, orient="row"), summary)


def _lines(order: Order, key: Path | None) -> Generator[dict[str, Any], None, None]:
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
        "count": order.count,
        "period-ns": order.period_ns,
        "payload": order.payload,
        "format": order.timestamps,
        "dscp": order.dscp,
        "patience-ns": order.patience_ns,
    }
    if order.protocol == "stamp":
        options["session"] = order.session
    if key is not None:
        options["key"] = str(key)
    made = [f"--{name}={value}" for name, value in options.items()]
    return [*made, "--twamp"] if order.protocol == "twamp-light" else made
