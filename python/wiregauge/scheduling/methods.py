"""Methods side by side on one instance: outcome, quality, proof and time of each; as text and as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from wiregauge.files.typed_json import Count, json_schema
from wiregauge.measures.definitions.units import duration
from wiregauge.scheduling.beside import Plan, replay
from wiregauge.scheduling.searching import Objective, openings
from wiregauge.scheduling.solving import Answer
from wiregauge.scheduling.tsnkit import Instance, problem_of_instance

__all__ = [
    "Method",
    "Methods",
    "json_of_methods",
    "lines_of",
    "methods_schema",
    "of_answer",
    "of_plan",
    "schema_path",
]

OURS = "wiregauge"
Outcome = Literal["schedule", "late", "none-exists", "none-found", "failed"]
_WORDS: dict[str, str] = {
    "schedule": "every frame in time",
    "late": "frames late or stuck",
    "none-exists": "no schedule exists",
    "none-found": "none found in the time",
    "failed": "ended with an error",
}


class Method(Struct, frozen=True):
    """A method and its schedule, replayed. Times are ns; None: there is none."""

    name: str
    outcome: Outcome
    proof: Literal["proven", "best-found", "stated", "none"]
    """Of the optimum, or that no schedule exists; `stated`: by the method alone."""
    seconds: float | None
    """Of the whole method, from start to answer; None: it was not run here."""
    worst_ns: int | None
    """Greatest latency from release to the last bit at the listener."""
    mean_ns: float | None
    jitter_ns: int | None
    """Greatest difference of the latencies of one stream."""
    waiting_ns: int | None
    """Time that all frames of a hyperperiod wait in switches."""
    openings: Count | None
    """Entries of all gate control lists that open a gate."""
    late: list[int]
    """Streams with a frame beyond its deadline."""
    stuck: list[int]
    """Streams with a frame that its gates never let through."""
    reason: str
    """Why there is no schedule; empty where there is one."""


class Methods(Struct, frozen=True):
    """What was compared."""

    schema: Literal[1]
    instance: str
    streams: Count
    links: Count
    methods: list[Method]


def of_answer(
    instance: Instance, answer: Answer, plan: Plan | None, reason: str, minimised: Objective = "latency"
) -> Method:
    """Our own answer, and its schedule; or the reason why there is none."""
    if plan is not None:
        # Windows of several queues open more gates, and another schedule may need fewer.
        fewer = answer.opens is not None and plan.openings > openings(
            problem_of_instance(instance), answer.opens
        )
        proof = "best-found" if minimised == "windows" and fewer else answer.proof
        return of_plan(instance, OURS, plan, answer.seconds, proof)
    clash = answer.clash
    if clash is None:
        return without(OURS, "none-found", "none", answer.seconds, reason)
    flows = ", ".join(map(str, sorted(clash.flows)))
    return without(OURS, "none-exists", "proven", answer.seconds, f"streams {flows}: {clash.reason}")


def of_plan(
    instance: Instance,
    name: str,
    plan: Plan,
    seconds: float | None,
    proof: Literal["proven", "best-found", "none"] = "none",
) -> Method:
    """A schedule, as its replay shows it."""
    found = replay(instance, plan)
    has_any = found.worst > 0
    return Method(
        name,
        "schedule" if found.holds else "late",
        proof,
        seconds,
        found.worst if has_any else None,
        found.mean if has_any else None,
        found.jitter if has_any else None,
        found.waiting if has_any else None,
        plan.openings,
        list(found.late),
        list(found.stuck),
        "",
    )


def without(
    name: str,
    outcome: Outcome,
    proof: Literal["proven", "stated", "none"],
    seconds: float | None,
    reason: str,
) -> Method:
    """A method without a schedule."""
    return Method(name, outcome, proof, seconds, None, None, None, None, None, [], [], reason)


def lines_of(methods: Methods) -> tuple[tuple[str, ...], list[tuple[str, ...]], list[str]]:
    """Heads and rows of the table, and remarks below it."""
    heads = ("method", "outcome", "proof", "time", "worst", "mean", "jitter", "waiting", "openings")
    rows = [
        (
            one.name,
            _WORDS[one.outcome],
            "-" if one.proof == "none" else one.proof,
            "-" if one.seconds is None else f"{one.seconds:.2f} s",
            *(duration(value) for value in (one.worst_ns, one.mean_ns, one.jitter_ns, one.waiting_ns)),
            "-" if one.openings is None else str(one.openings),
        )
        for one in methods.methods
    ]
    remarks = [f"{one.name}: {one.reason}" for one in methods.methods if one.reason]
    remarks += [f"{one.name}: late: streams {_few(one.late)}" for one in methods.methods if one.late]
    remarks += [
        f"{one.name}: never through their gates: streams {_few(one.stuck)}"
        for one in methods.methods
        if one.stuck
    ]
    return heads, rows, remarks


def _few(numbers: Sequence[int], most: int = 12) -> str:
    return ", ".join(map(str, numbers[:most])) + (
        f" and {len(numbers) - most} more" if len(numbers) > most else ""
    )


def json_of_methods(methods: Methods) -> dict[str, Any]:
    """The same as JSON."""
    made: dict[str, Any] = msgspec.to_builtins(methods)
    return made


def schema_path() -> Path:
    """The JSON Schema, shipped with the package."""
    return Path(__file__).with_name("methods.schema.json")


def methods_schema() -> dict[str, Any]:
    """The schema of `schedule --topology --json`."""
    return json_schema(
        Methods,
        "methods of scheduling, side by side",
        closed=True,
        **{"$id": "urn:wiregauge:methods:1", "description": "null: not there."},
    )
