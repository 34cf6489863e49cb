"""The output of `wiregauge schedule`: JSON by a schema, text, and a page with a Gantt chart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct, field

from wiregauge.figures import Figure
from wiregauge.figures.gantt import MOST_BARS, GanttBar, gantt_figure
from wiregauge.report.tables import Cell, Head, Section, Table
from wiregauge.report.write import render, store
from wiregauge.scheduling.checking import Fault
from wiregauge.scheduling.gate_checking import GatesJudged
from wiregauge.scheduling.gated import Gated
from wiregauge.scheduling.gates import GateList
from wiregauge.scheduling.problem import Problem, common_period, load_of
from wiregauge.scheduling.searching import Objective, Opens, openings
from wiregauge.scheduling.solving import Answer, Proof

__all__ = [
    "Shown",
    "figure_of",
    "gates_json",
    "gates_text",
    "json_of",
    "openings_from",
    "text_of",
    "write_page",
]

SCHEMA = 1
_MOST_LISTED = 40


class Shown(Struct, frozen=True):
    """The data of all outputs for one test."""

    file: str
    name: str
    problem: Problem
    answer: Answer | None
    """The computed answer; None where a schedule was only checked."""
    objective: Objective | None
    opens: Opens | None
    faults: Sequence[Fault] = ()
    gates: Sequence[GateList] = ()
    priorities: Mapping[int, int] | None = None
    """Those of flows in gates; None: there are no gates."""
    commands: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """Shell commands of each port."""
    managed: Mapping[str, bytes] = field(default_factory=dict)
    """What NETCONF configures at each node."""
    written: Sequence[str] = ()
    gated: Gated | None = None
    """The same test with gates."""

    @property
    def outcome(self) -> str:
        """The outcome, one word."""
        if self.answer is None:
            return "faulty" if self.faults else "sound"
        if self.answer.clash is not None:
            return "infeasible"
        return "undecided" if self.opens is None else "scheduled"


def json_of(shown: Shown) -> dict[str, Any]:
    """The output in the form of `schedule.schema.json`."""
    problem, answer = shown.problem, shown.answer
    clash = None if answer is None or answer.clash is None else answer.clash
    return {
        "schema": SCHEMA,
        "file": shown.file,
        "name": shown.name,
        "outcome": shown.outcome,
        "objective": shown.objective,
        "proof": _proof(shown),
        "found_by": None if answer is None else answer.by,
        "seconds": None if answer is None else round(answer.seconds, 3),
        "precision_ns": problem.nanos(problem.precision),
        "grid_ns": problem.grid_ps / 1000,
        "flows": []
        if shown.opens is None
        else [_flow(problem, shown.opens, d.flow) | _in_gates(shown, d.flow) for d in problem.demands],
        "ports": [_port(shown, gates) for gates in shown.gates],
        "clash": None
        if clash is None
        else {"flows": list(clash.flows), "reason": clash.reason, "minimal": clash.minimal},
        "faults": _faults(shown.faults),
        "written": list(shown.written),
    }


def _proof(shown: Shown) -> Proof | None:
    """What is proven of the schedule; windows of several priorities may open fewer gates elsewhere."""
    if shown.answer is None or shown.opens is None:
        return None
    opened = sum(gates.openings for gates in shown.gates)
    if shown.objective == "windows" and opened > openings(shown.problem, shown.opens):
        return "best-found"
    return shown.answer.proof


def _flow(problem: Problem, opens: Opens, flow: int) -> dict[str, Any]:
    demand, at = problem.of(flow), opens.get(flow, ())
    if not at:
        return {"flow": flow, "period_ns": problem.nanos(demand.period), "windows": []}
    latency = demand.network_latency(at)
    return {
        "flow": flow,
        "fixed": demand.fixed is not None,
        "period_ns": problem.nanos(demand.period),
        "dispatch_ns": problem.nanos(at[0]),
        "latency_ns": problem.nanos(latency),
        "latency_most_ns": problem.nanos(demand.worst_network_latency(at, problem.precision)),
        "waits_ns": problem.nanos(latency - demand.network_latency(demand.at_once())),
        "dispatch_wait_ns": None
        if demand.release is None and demand.steady_wait is None
        else problem.nanos(demand.wait(at[0])),
        "deadline_ns": None if demand.deadline is None else problem.nanos(demand.deadline),
        "windows": [
            {
                "port": problem.names[window.port],
                "offset_ns": problem.nanos(opening % demand.period),
                "length_ns": problem.nanos(window.length),
            }
            for window, opening in zip(demand.windows, at, strict=True)
        ],
    }


def _in_gates(shown: Shown, flow: int) -> dict[str, Any]:
    told: dict[str, Any] = {}
    if shown.priorities is not None:
        told["priority"] = shown.priorities[flow]
    if shown.gated is not None:
        told["talker_offset_ns"] = shown.gated.talkers[flow] / 1000
    return told


def _port(shown: Shown, gates: GateList) -> dict[str, Any]:
    return {
        "port": gates.name,
        "cycle_ns": gates.cycle,
        "load_percent": round(100 * float(load_of(shown.problem, gates.port)), 4),
        "openings": gates.openings,
        "guard_ns": gates.guard,
        "entries": [{"mask": entry.mask, "interval_ns": entry.interval} for entry in gates.entries],
        "taprio": list(shown.commands.get(gates.name, ())),
    }


def gates_json(file: str, name: str, judged: GatesJudged) -> dict[str, Any]:
    """The result for the gates of a test, in the form of `json_of`."""
    return {
        "schema": SCHEMA,
        "file": file,
        "name": name,
        "outcome": "faulty" if judged.faults else "sound",
        "objective": None,
        "proof": None,
        "found_by": None,
        "seconds": None,
        "precision_ns": judged.precision / 1000,
        "grid_ns": 0.001,
        "flows": [
            {"flow": flow, "period_ns": period / 1000, "windows": []}
            | (
                {
                    "latency_ns": judged.latencies[flow][0] / 1000,
                    "latency_most_ns": judged.latencies[flow][1] / 1000,
                }
                if flow in judged.latencies
                else {}
            )
            for flow, period in sorted(judged.periods.items())
        ],
        "ports": [],
        "clash": None,
        "faults": _faults(judged.faults),
        "written": [],
    }


def gates_text(file: str, judged: GatesJudged) -> list[str]:
    """The result for the gates of a test, as text lines."""
    count = len(judged.faults)
    if count:
        return [f"{file}: {count} fault{'s' if count != 1 else ''}"] + [
            f"  {fault.kind}: {fault.text}" for fault in judged.faults
        ]
    lines = ["flow     period/us  latency/us  at most/us"]
    for flow, period in sorted(judged.periods.items())[:_MOST_LISTED]:
        least, most = judged.latencies[flow]
        lines.append(f"{flow:<8} {period / 1e6:>9.10g} {least / 1e6:>11.10g} {most / 1e6:>11.10g}")
    lines.append(f"{file}: gates carry the {len(judged.periods)} scheduled flows")
    return lines


def _faults(faults: Sequence[Fault]) -> list[dict[str, Any]]:
    return [
        {"kind": fault.kind, "flows": list(fault.flows), "port": fault.port, "text": fault.text}
        for fault in faults
    ]


def openings_from(
    problem: Problem, document: Mapping[str, Any]
) -> tuple[Opens, dict[int, dict[str, int]], list[Fault]]:
    """Reads a schedule in the form of `json_of`, from any source: openings, window lengths by flow and port, and faults
    of its form. Times and lengths are rounded down to the grid. Raises ValueError.
    """
    opens: Opens = {}
    lengths: dict[int, dict[str, int]] = {}
    faults: list[Fault] = []
    known = {demand.flow: demand for demand in problem.demands}
    flows = document.get("flows")
    if not isinstance(flows, list):
        raise ValueError('it has no list "flows"')
    for entry in flows:
        try:
            number = int(entry["flow"])
            windows = {str(w["port"]): w for w in entry["windows"]}
            times = {port: _grid(problem, w["offset_ns"]) for port, w in windows.items()}
            own = {port: _grid(problem, w["length_ns"]) for port, w in windows.items() if "length_ns" in w}
            periods = [
                _grid(problem, one["period_ns"]) for one in (entry, *windows.values()) if "period_ns" in one
            ]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"an entry of flows is not readable ({type(error).__name__}: {error})") from None
        if number not in known:
            faults.append(
                Fault("plan", (number,), None, f"flow {number} is no time-triggered flow of the test")
            )
            continue
        demand = known[number]
        for period in periods:
            if period != demand.period:
                text = (
                    f"flow {number} is dispatched every {problem.nanos(period):g} ns, but its period is "
                    f"{problem.nanos(demand.period):g} ns"
                )
                faults.append(Fault("period", (number,), None, text))
                break
        ports = [problem.names[window.port] for window in demand.windows]
        missing = [port for port in ports if port not in times]
        if missing:
            text = f"flow {number} has no window at {', '.join(missing)}"
            faults.append(Fault("missing", (number,), missing[0], text))
            continue
        faults += [
            Fault("plan", (number,), port, f"{port} is no port flow {number} leaves by")
            for port in times
            if port not in ports
        ]
        at: list[int] = []
        for window, port in zip(demand.windows, ports, strict=True):
            before = 0 if window.parent < 0 else at[window.parent]
            # The first opening after the one before, as the plan reads windows set by hand.
            at.append(before + (times[port] - before) % demand.period if window.parent >= 0 else times[port])
        opens[number], lengths[number] = tuple(at), own
    return opens, lengths, faults


def _grid(problem: Problem, time_ns: Any) -> int:
    if isinstance(time_ns, bool) or not isinstance(time_ns, int | float):
        raise TypeError(f"{time_ns!r} is no number")
    return int(round(time_ns * 1000) // problem.grid_ps)


def text_of(shown: Shown) -> list[str]:
    """The output as text lines."""
    problem = shown.problem
    lines: list[str] = []
    if shown.answer is not None and shown.answer.clash is not None:
        clash = shown.answer.clash
        names = ", ".join(map(str, clash.flows))
        what = "these clash, and any of them left out would do" if clash.minimal else "among these some clash"
        lines.append(f"{shown.file}: no schedule exists; {what}: flows {names}")
        lines.append(f"  {clash.reason}")
    elif shown.opens is not None and not shown.faults:
        lines += _table(shown)
    if shown.answer is None:
        count = len(shown.faults)
        good = f"{shown.file}: the schedule of {len(problem.demands)} flows holds"
        lines.append(good if not count else f"{shown.file}: {count} fault{'s' if count != 1 else ''}")
    lines += [f"  {fault.kind}: {fault.text}" for fault in shown.faults]
    lines += [f"written: {path}" for path in shown.written]
    return lines


def _table(shown: Shown) -> list[str]:
    assert shown.opens is not None
    problem, opens = shown.problem, shown.opens
    lines = ["flow     period/us  dispatch/us  latency/us  at most/us  waits/us"]
    for demand in problem.demands[:_MOST_LISTED]:
        flow = _flow(problem, opens, demand.flow)
        if not flow["windows"]:
            continue
        keys = ("period_ns", "dispatch_ns", "latency_ns", "latency_most_ns", "waits_ns")
        figures = [f"{flow[key] / 1000:.10g}" for key in keys]
        widths = (9, 12, 11, 11, 9)
        lines.append(
            f"{demand.flow:<8}"
            + " ".join(text.rjust(width) for text, width in zip(figures, widths, strict=True)).rstrip()
        )
    if len(problem.demands) > _MOST_LISTED:
        lines.append(f"… and {len(problem.demands) - _MOST_LISTED} more; --json has all")
    if shown.answer is not None:
        goal = "waiting in switches" if shown.objective == "latency" else "openings of gates"
        proof = {"proven": f"none with less {goal} exists", "best-found": f"less {goal} may be possible"}
        if shown.objective == "windows":
            proof = {
                "proven": f"none with fewer {goal} exists",
                "best-found": f"fewer {goal} may be possible",
            }
        opened = sum(gates.openings for gates in shown.gates) or openings(problem, opens)
        lines.append(
            f"{len(problem.demands)} flows at {len(problem.names)} ports, {opened} openings of gates; "
            f"{proof[_proof(shown) or 'best-found']}; {shown.answer.seconds:.2f} s"
        )
    return lines


def figure_of(shown: Shown) -> Figure:
    """The Gantt chart of all flows over one common period."""
    assert shown.opens is not None
    problem, opens = shown.problem, shown.opens
    placed = [demand for demand in problem.demands if demand.flow in opens]
    cycle = common_period([demand.period for demand in placed])
    count = sum(len(demand.windows) * (cycle // demand.period) for demand in placed)
    until = cycle if count <= MOST_BARS else max(cycle * MOST_BARS // count, 1)
    bars = [
        GanttBar(
            problem.names[window.port],
            demand.flow,
            problem.nanos(begin) / 1000,
            problem.nanos(window.length) / 1000,
        )
        for demand in placed
        for window, opening in zip(demand.windows, opens[demand.flow], strict=True)
        for begin in range(opening % demand.period, until, demand.period)
    ]
    guards = []
    for gates in shown.gates:
        at = 0
        for entry in gates.entries:
            if entry.mask == 0:
                begins = range(at, int(problem.nanos(until)), gates.cycle)
                guards += [GanttBar(gates.name, 0, begin / 1000, entry.interval / 1000) for begin in begins]
            at += entry.interval
    ports = [problem.names[port] for port in sorted(problem.names)]
    drawn, whole = problem.nanos(until) / 1000, problem.nanos(cycle) / 1000
    return gantt_figure(shown.name, ports, bars, guards, drawn, whole)


def write_page(shown: Shown, path: Path) -> None:
    """Writes the chart and its tables as one HTML file. Raises RunDirectoryError when the disk refuses."""
    assert shown.opens is not None
    problem = shown.problem
    flows = [_flow(problem, shown.opens, demand.flow) for demand in problem.demands]
    heads = [Head("flow", kind="text")] + [
        Head(text, unit="µs") for text in ("period", "dispatch", "latency", "at most", "waits in switches")
    ]
    keys = ("period_ns", "dispatch_ns", "latency_ns", "latency_most_ns", "waits_ns")
    rows = [
        [Cell(str(flow["flow"]), kind="text short"), *(Cell(f"{flow[key] / 1000:.10g}") for key in keys)]
        for flow in flows
        if flow["windows"]
    ]
    of_ports = [
        Head("port", kind="text"),
        Head("cycle", unit="µs"),
        Head("load", unit="%"),
        Head("openings"),
        Head("entries"),
    ]
    ports = [
        [
            Cell(gates.name, kind="text short"),
            Cell(f"{gates.cycle / 1000:.10g}"),
            Cell(f"{100 * float(load_of(problem, gates.port)):.4g}"),
            Cell(str(gates.openings)),
            Cell(str(len(gates.entries))),
        ]
        for gates in shown.gates
    ]
    text = render(
        "schedule.html.j2",
        [figure_of(shown)],
        name=shown.name,
        headline=text_of(shown)[-1] if shown.answer is None else _table(shown)[-1],
        outcome=shown.outcome,
        flows=Table("Flows", heads, [Section("", rows)]),
        ports=Table("Ports", of_ports, [Section("", ports)]),
        faults=[fault.text for fault in shown.faults],
    )
    store(path, text)
