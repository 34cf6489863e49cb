"""`schedule`: computes when time-triggered flows are sent, or judges a schedule that is there."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import typer
from msgspec.structs import replace

from wiregauge.cli.options import meant
from wiregauge.cli.schedule_gates import gates_checked, refuse_of_windows, tell_gates, with_gated_test
from wiregauge.cli.schedule_methods import methods_beside
from wiregauge.cli.schedule_planted import with_planted
from wiregauge.cli.shared import AsJson, Settings, TestFile
from wiregauge.files import new_folder, read_regular
from wiregauge.terminal import (
    BAD_INPUT,
    FAILED,
    INCOMPLETE,
    NO_ENVIRONMENT,
    WITHIN,
    fail,
    put,
    put_errors,
    say,
)

if TYPE_CHECKING:
    from wiregauge.config import Loaded, Scheduling
    from wiregauge.plan import Campaign
    from wiregauge.scheduling import Fault, GateList, Objective, Problem, Shown

__all__ = ["schedule"]

_SWITCH_PORT, _HOST_PORT = "swp{}", "eth{}"
NETCONF: Final = "netconf"
"""The folder of what NETCONF configures, a file for each node."""


def schedule(
    test: TestFile,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help=meant(
                "--out",
                ": a new folder, the test with its schedule, a page with a picture, JSON, and gates for tc and "
                "NETCONF",
            ),
            show_default="nothing is written",
        ),
    ] = None,
    check: Annotated[
        bool,
        typer.Option("--check", help="Compute nothing: judge the schedule of the test, or that of --from."),
    ] = False,
    given: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="FILE",
            help=meant("--from", " schedule, in the JSON of this command", only="With --check"),
            show_default=False,
        ),
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Schedule also flows that have an offset or windows already.")
    ] = False,
    minimise: Annotated[
        Literal["latency", "windows"],
        typer.Option(
            help="What to minimise: the time that frames wait in switches, or the number of gate openings."
        ),
    ] = "latency",
    precision: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Greatest difference between the clocks of two nodes: windows open so much later, "
            "and are as long as it needs.",
            show_default="clocks agree, and windows are as long as the test has them",
        ),
    ] = None,
    grid: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Windows open at multiples of this time, as hardware has it.",
            show_default="1ns; 1ps with --check",
        ),
    ] = None,
    guard: Annotated[
        str | None,
        typer.Option(
            metavar="TIME",
            help="Guard band before a gate opens; 0ns for gates that start no frame they would cut off.",
            show_default="the longest other frame",
        ),
    ] = None,
    priority: Annotated[
        int, typer.Option(metavar="P", min=0, max=7, help="Of time-triggered frames, in gate control lists.")
    ] = 7,
    gates: Annotated[
        bool,
        typer.Option(
            "--gates",
            help="Write the test with gates in place of time-triggered dispatch, too: for a network of other switches. "
            "Frames then have a VLAN tag, and windows room for it.",
        ),
    ] = False,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            "--interface",
            metavar="PORT=NAME",
            help=meant("--interface", " of a port, for example sw1:2=enp3s0; repeatable"),
            show_default="swpN of a switch, ethN of an end system",
        ),
    ] = None,
    time_limit: Annotated[
        str, typer.Option("--time-limit", metavar="TIME", help=meant("--time-limit"))
    ] = "10s",
    seed: Annotated[int, typer.Option(metavar="N", min=0, help=meant("--seed"))] = 1,
    settings: Settings = None,
    topology: Annotated[
        Path | None,
        typer.Option(
            "--topology",
            metavar="FILE",
            help="TEST is a table of streams of tsnkit (CSV), and this its table of links.",
            show_default=False,
        ),
    ] = None,
    beside: Annotated[
        list[str] | None,
        typer.Option(
            "--also",
            metavar="METHOD[=PREFIX]",
            help="With --topology: a method of tsnkit to compare with, which is run, or files PREFIX-GCL.csv and so on "
            "that it wrote; repeatable.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Flows that name an offset or a window stay where they are. Exit code 1: no schedule exists, or the one that is
    checked does not hold; 4: no answer in the time.
    """
    if topology is not None or beside:
        others = (
            check,
            given,
            again,
            precision,
            grid,
            guard,
            gates,
            interface,
            settings,
        )
        limits = ((_time("--time-limit", time_limit) or 0) / 1e12, seed)
        code = methods_beside(
            (test, topology), beside or (), out, limits, minimise=minimise, others=others, as_json=as_json
        )
        raise typer.Exit(code)
    _refuse_without_effect(out, check=check, again=again, given=given, gates=gates)
    from wiregauge.config import TestError

    times = {
        "precision_ps": _time("--precision", precision),
        "grid_ps": _time("--grid", grid if grid is not None else "0.001ns" if check else "1ns"),
        "tagged": gates,
    }
    guard_ps, limit_ps = _time("--guard", guard), _time("--time-limit", time_limit)
    limit_ps = _above_zero(times["grid_ps"], limit_ps)
    try:
        if check and given is None and (judged := gates_checked(test, settings or (), times["precision_ps"])):
            refuse_of_windows(out, interface, grid, guard)
            tell_gates(test, judged, as_json=as_json)
            raise typer.Exit(FAILED if judged[1].faults else WITHIN)
        if check:
            shown, campaign, text = _checked(test, given, settings or (), times)
        else:
            options = (minimise, limit_ps / 1e12, seed)
            shown, campaign, text = _computed(test, again, settings or (), times, options)
    except TestError as error:
        if not as_json:
            put_errors(error)
            raise typer.Exit(BAD_INPUT) from None
        from wiregauge.scheduling.shown import SCHEMA

        diagnostics = [diagnostic.as_dict() for diagnostic in error.diagnostics]
        print(
            json.dumps(
                {
                    "schema": SCHEMA,
                    "file": str(test),
                    "outcome": "refused",
                    "faults": error.total,
                    "diagnostics": diagnostics,
                },
                indent=1,
            )
        )
        raise typer.Exit(BAD_INPUT) from None
    if shown.opens and not shown.faults:
        guard_ns = None if guard_ps is None else -(-guard_ps // 1000)
        named = _interfaces(interface, shown.problem)
        shown = _with_gates(shown, campaign, priority, guard_ns, named, is_written=out is not None)
    elif interface:
        _interfaces(interface, shown.problem)
    if gates and shown.opens and not shown.faults and text is not None:
        shown = with_gated_test(shown, text, test, campaign, priority, settings or ())
    if out is not None and shown.opens:
        shown = _write(out, test, shown, text)
    _tell(shown, as_json=as_json)
    if out is not None and not shown.written:
        say(f"{out}: nothing is written, as there is no schedule")
    raise typer.Exit(_code(shown))


def _refuse_without_effect(
    out: Path | None, *, check: bool, again: bool, given: Path | None, gates: bool
) -> None:
    """Refuses options that would do nothing, and a folder that is there."""
    if gates and (check or out is None):
        fail(
            "--gates has an effect with --out and without --check only; leave it out, or add --out", BAD_INPUT
        )
    if given is not None and not check:
        fail("--from has an effect with --check only; add it or leave --from out", BAD_INPUT)
    if check and again:
        fail("--again has no effect with --check; leave it out", BAD_INPUT)
    if out is not None and (out.exists() or out.is_symlink()):
        fail(f"{out}: there is something of that name already; name a folder that does not exist", BAD_INPUT)


def _above_zero(grid_ps: int | None, limit_ps: int | None) -> int:
    """The time limit; refuses it, or a grid, that is 0."""
    if grid_ps == 0:
        fail("--grid 0: windows need a grid; write 1ns or more", BAD_INPUT)
    if not limit_ps:
        fail("--time-limit 0: there is no time to look; write 10s", BAD_INPUT)
    return limit_ps


def _time(option: str, text: str | None) -> int | None:
    from wiregauge.plan.quantity import QuantityError, time_ps

    if text is None:
        return None
    try:
        return time_ps(text)
    except QuantityError as error:
        fail(f"{option} {error}", BAD_INPUT)


def _computed(
    test: Path,
    again: bool,
    settings: Sequence[str],
    times: Mapping[str, Any],
    options: tuple[Objective, float, int],
) -> tuple[Shown, Campaign, bytes | None]:
    """A schedule of what has none, the plan, and the test with it."""
    from wiregauge import scheduling
    from wiregauge.config.reading import read

    data = read(test)
    objective, seconds, seed = options
    author = scheduling.author_of(data, str(test))
    stripped = scheduling.unscheduled(data, str(test)) if again else data
    fixed = frozenset() if again else author.scheduled
    loaded = _loaded(stripped, test, settings, "open")
    times = with_planted(test, data, loaded.campaign, times)
    problem = _problem(test, loaded.campaign, fixed=fixed, lengths=author.lengths, times=times)
    given = frozenset() if again else author.early
    for demand in problem.free:
        for window in demand.windows:
            if window.length < window.needed(problem.precision):
                fail(
                    f"{test}: windows of flow {demand.flow} are to be {problem.nanos(window.length):g} ns long, "
                    f"but its frame, "
                    f"what may hold it up and clocks that differ need "
                    f"{problem.nanos(window.needed(problem.precision)):g} ns; "
                    "write a longer window, or a shorter --precision",
                    BAD_INPUT,
                )
    if not problem.free:
        fail(f"{test}: every flow has a schedule; judge it with --check, or compute it --again", BAD_INPUT)
    answer = scheduling.solve(problem, objective=objective, seconds=seconds, seed=seed)
    faults: Sequence[Fault] = ()
    text = None
    if answer.opens is not None:
        faults = scheduling.faults_of(
            problem, answer.opens, acceptance=_acceptance(loaded.campaign, problem, given)
        )
        try:
            text = scheduling.scheduled(
                data, test, loaded.campaign, problem, answer.opens, author, settings, again=again
            )
        except scheduling.NotKeptError as error:
            put_errors(error)
            fail(f"{test}: a schedule was found, but the plan refuses it for what is said above", BAD_INPUT)
    if answer.solver_missing:
        say("without z3-solver nothing can be proven and less is found: pip install 'wiregauge[schedule]'")
    shown = scheduling.Shown(
        str(test), loaded.campaign.name, problem, answer, objective, answer.opens, faults
    )
    return shown, loaded.campaign, text


def _checked(
    test: Path, given: Path | None, settings: Sequence[str], times: Mapping[str, Any]
) -> tuple[Shown, Campaign, bytes | None]:
    """What is wrong with a schedule, by our own judge and by the plan."""
    from wiregauge import scheduling
    from wiregauge.config import TestError
    from wiregauge.config.reading import read
    from wiregauge.scheduling.shown import openings_from

    data = read(test)
    bare = scheduling.unscheduled(data, str(test))
    # What is wrong besides the schedule is bad input; this raises for it.
    loaded = _loaded(bare, test, settings, "open")
    times = with_planted(test, data, loaded.campaign, times)
    faults: list[Fault] = []
    acceptance = None
    if given is None:
        author = scheduling.author_of(data, str(test))
        try:
            own = _loaded(data, test, settings, "unjudged").campaign
        except TestError as error:
            faults = [scheduling.Fault("plan", (), None, str(diagnostic)) for diagnostic in error.diagnostics]
            problem = _problem(test, loaded.campaign, fixed=frozenset(), lengths=author.lengths, times=times)
            return (
                scheduling.Shown(str(test), loaded.campaign.name, problem, None, None, None, faults),
                loaded.campaign,
                None,
            )
        every = frozenset(flow.id for flow in own.runs[0].flows if flow.schedule is not None)
        problem = _problem(test, own, fixed=every, lengths=every, times=times)
        opens = {d.flow: d.fixed for d in problem.demands if d.fixed is not None}
        acceptance = _acceptance(own, problem, every)
    else:
        own = loaded.campaign
        author = scheduling.author_of(data, str(test))
        problem = _problem(test, own, fixed=frozenset(), lengths=author.lengths, times=times)
        document = _document(given)
        try:
            opens, lengths, faults = openings_from(problem, document)
        except ValueError as error:
            fail(f"{given}: {error}; write it as `wiregauge schedule --json` does", BAD_INPUT)
        problem = replace(
            problem,
            demands=tuple(
                replace(
                    demand,
                    windows=tuple(
                        replace(w, length=lengths.get(demand.flow, {}).get(problem.names[w.port], w.length))
                        for w in demand.windows
                    ),
                )
                for demand in problem.demands
            ),
        )
    faults += scheduling.faults_of(problem, opens, acceptance=acceptance)
    return scheduling.Shown(str(test), own.name, problem, None, None, opens, faults), own, None


def _acceptance(campaign: Campaign, problem: Problem, flows: frozenset[int]) -> dict[int, tuple[int, int]]:
    """How early and how late receivers accept frames of some flows."""
    return {
        flow.id: (flow.schedule.early // problem.grid_ps, flow.schedule.late // problem.grid_ps)
        for flow in campaign.runs[0].flows
        if flow.schedule is not None and flow.id in flows
    }


def _document(path: Path) -> Mapping[str, Any]:
    try:
        document = json.loads(read_regular(path))
    except (OSError, ValueError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no JSON"
        fail(
            f"{path}: cannot be read ({reason}); name a file as `wiregauge schedule --json` prints it",
            BAD_INPUT,
        )
    if not isinstance(document, dict):
        fail(f"{path}: it is no object of JSON; write it as `wiregauge schedule --json` does", BAD_INPUT)
    return document


def _loaded(data: bytes, test: Path, settings: Sequence[str], kind: Scheduling) -> Loaded:
    from wiregauge.config import load_bytes

    return load_bytes(data, test, settings, kind)


def _problem(
    test: Path,
    campaign: Campaign,
    *,
    fixed: frozenset[int],
    lengths: frozenset[int],
    times: Mapping[str, Any],
) -> Problem:
    from wiregauge.scheduling import ProblemError, problem_of

    try:
        return problem_of(campaign, fixed=fixed, lengths_written=dict.fromkeys(lengths, True), **times)
    except ProblemError as error:
        fail(f"{test}: {error}", BAD_INPUT)


def _interfaces(given: Sequence[str] | None, problem: Problem) -> dict[str, str]:
    known = set(problem.names.values())
    named: dict[str, str] = {}
    for text in given or ():
        port, equals, name = text.partition("=")
        if not equals or not name:
            fail(f"--interface {text}: write PORT=NAME, for example sw1:2=enp3s0", BAD_INPUT)
        if port not in known:
            fail(
                f"--interface {text}: no flow leaves by {port}; ports are {', '.join(sorted(known))}",
                BAD_INPUT,
            )
        named[port] = name
    return named


def _with_gates(
    shown: Shown,
    campaign: Campaign,
    priority: int,
    guard_ns: int | None,
    named: Mapping[str, str],
    *,
    is_written: bool,
) -> Shown:
    from wiregauge._native import NativeError
    from wiregauge.scheduling import ProblemError, gate_lists, of_others, priorities_of, taprio

    assert shown.opens is not None
    try:
        priorities = priorities_of(
            shown.problem, shown.opens, first=priority, taken=of_others(campaign, shown.problem)
        )
    except ProblemError as error:
        say(f"no gates for tc and NETCONF: {error}")
        return shown
    try:
        gates = gate_lists(shown.problem, shown.opens, priorities, guard_ns=guard_ns)
        interfaces = {one.name: named.get(one.name, _usual(campaign, one)) for one in gates}
    except ProblemError as error:
        fail(str(error), BAD_INPUT)
    commands = {}
    for one in gates:
        try:
            commands[one.name] = tuple(taprio(campaign, one, interfaces[one.name]))
        except NativeError as error:
            # A device that is no host with Linux names its ports as it likes.
            say(f"no tc command for {one.name}: {error}")
    by_netconf = _managed(campaign, gates, interfaces) if is_written else {}
    return replace(shown, gates=gates, priorities=priorities, commands=commands, managed=by_netconf)


def _managed(
    campaign: Campaign, gates: Sequence[GateList], interfaces: Mapping[str, str]
) -> Mapping[str, bytes]:
    """What NETCONF configures; nothing, and why, where its modules have no number for a cycle."""
    from wiregauge.scheduling import ProblemError, managed

    try:
        return managed(campaign, gates, interfaces)
    except ProblemError as error:
        say(f"nothing is written for NETCONF: {error}")
        return {}


def _usual(campaign: Campaign, one: GateList) -> str:
    is_host = campaign.network.nodes[one.port.node].is_end_system
    return (_HOST_PORT if is_host else _SWITCH_PORT).format(one.port.port)


def _write(out: Path, test: Path, shown: Shown, text: bytes | None) -> Shown:
    """Everything into a new folder, or nothing; nothing of anybody is replaced."""
    from wiregauge.records import RunDirectoryError

    names = ["schedule.html", "schedule.json"]
    names += [test.name] if text is not None else []
    names += ["taprio.txt"] if shown.commands else []
    names += [f"{NETCONF}/{node}.xml" for node in shown.managed]
    with_gates = f"{test.stem}-gates.xml"
    names += [with_gates] if shown.gated is not None else []
    shown = replace(shown, written=[str(out / name) for name in sorted(names)])
    try:
        with new_folder(out):
            _write_into(out, shown, test.name, text)
    except OSError as error:
        fail(f"{error.filename or out}: cannot be written ({error.strerror})", NO_ENVIRONMENT)
    except RunDirectoryError as error:
        fail(str(error), NO_ENVIRONMENT)
    return shown


def _write_into(out: Path, shown: Shown, name: str, text: bytes | None) -> None:
    from wiregauge.files import write_whole
    from wiregauge.scheduling import json_of, write_page

    write_page(shown, out / "schedule.html")
    write_whole(out / "schedule.json", json.dumps(json_of(shown), indent=1) + "\n", replacing=None)
    if text is not None:
        write_whole(out / name, text, replacing=None)
    if shown.gated is not None:
        write_whole(out / f"{Path(name).stem}-gates.xml", shown.gated.text, replacing=None)
    if shown.commands:
        lines = [line for port, own in shown.commands.items() for line in (f"# {port}", *own, "")]
        write_whole(out / "taprio.txt", "\n".join(lines), replacing=None)
    if shown.managed:
        (out / NETCONF).mkdir()
    for node, gates in shown.managed.items():
        write_whole(out / NETCONF / f"{node}.xml", gates, replacing=None)


def _tell(shown: Shown, *, as_json: bool) -> None:
    from wiregauge.scheduling import json_of, text_of

    if as_json:
        print(json.dumps(json_of(shown), indent=1))
    else:
        for line in text_of(shown):
            put(line)
    if shown.outcome == "undecided":
        say("no answer in the time; give it more with --time-limit")


def _code(shown: Shown) -> int:
    if shown.outcome in ("infeasible", "faulty") or shown.faults:
        return FAILED
    return INCOMPLETE if shown.outcome == "undecided" else WITHIN
