"""`doctor`: this machine, or hosts of a lab, as instruments: what stands against a measurement, and its cure."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import Struct
from rich.markup import escape

from wiregauge.cli.lab import LabFolder, opened_lab
from wiregauge.cli.options import FIXES, meant
from wiregauge.cli.shared import AsJson
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, make_console, put, say

if TYPE_CHECKING:
    from wiregauge.examining import Fact, Finding
    from wiregauge.examining.changes import Change
    from wiregauge.examining.hosts import Examined
    from wiregauge.runner.bench import Findings
    from wiregauge.runner.lab.authority import Lab
    from wiregauge.runner.lab.inventory import Host
    from wiregauge.terminal.console import ShownConsole

__all__ = ["doctor"]

_HERE = "this host"
_MARKS = {
    "prevents": "[red]prevents[/]",
    "degrades": "[yellow]degrades[/]",
    "unknown": "[dim]unknown[/]",
    "fine": "[green]fine[/]",
}


def doctor(
    hosts: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[HOST]...", help="Hosts of a lab to examine instead of this machine.", show_default=False
        ),
    ] = None,
    lab: LabFolder = None,
    all_hosts: Annotated[
        bool, typer.Option("--all-hosts", help="Examine every host of the lab; --lab alone does so too.")
    ] = False,
    interface: Annotated[
        str | None,
        typer.Option(
            "--interface",
            metavar="NAME",
            help=meant("--interface", " to look at, alone"),
            show_default="all; on hosts that of the inventory",
        ),
    ] = None,
    fix: Annotated[
        bool,
        typer.Option(
            "--fix",
            help=meant("--fix", f" ({FIXES}); former values are kept"),
        ),
    ] = False,
    restore: Annotated[
        bool,
        typer.Option(
            "--restore", help="Restore what --fix changed, unless somebody else has changed it since."
        ),
    ] = False,
    fine: Annotated[bool, typer.Option("--fine", help="Also show what is in order.")] = False,
    report: Annotated[
        bool,
        typer.Option(
            "--report",
            help="Print a report about the cards and the kernel of this machine, to send in; it names no host, "
            "no interface and no address.",
        ),
    ] = False,
    measured: Annotated[
        list[Path] | None,
        typer.Option(
            "--measured",
            metavar="DIR",
            help="With --report: a run directory of this machine, whose figures belong to the report; repeatable.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    if fix and restore:
        fail("--fix and --restore undo each other; give one of them", BAD_INPUT)
    if measured and not report:
        fail("--measured has an effect with --report only; add it, or leave --measured out", BAD_INPUT)
    if report:
        if hosts or all_hosts or lab is not None or fix or restore or fine:
            fail(
                "--report is of this machine, and changes nothing; give it with --interface alone", BAD_INPUT
            )
        _report(interface, measured or [], as_json=as_json)
        return
    wish = _Wish(fix, restore, fine, as_json)
    if hosts or all_hosts or lab is not None:
        code = _on_hosts(opened_lab(lab), hosts or [], interface, wish)
    else:
        code = _here(interface, wish)
    if code:
        raise typer.Exit(code)


class _Wish(Struct, frozen=True):
    """What is to be done and shown."""

    fix: bool
    restore: bool
    fine: bool
    as_json: bool


def _here(interface: str | None, wish: _Wish) -> int:
    from wiregauge.examining.here import mend_here, restore_here
    from wiregauge.runner import BenchError
    from wiregauge.runner.agent_program import examine

    found, facts = _looked(examine(), interface)
    changes: list[Change] = []
    try:
        if wish.restore:
            changes = restore_here()
        if wish.fix:
            changes = mend_here(_fixes(_judged({_HERE: facts})[_HERE]))
        if wish.fix or wish.restore:
            found, facts = _looked(examine(), interface)
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)
    findings = _judged({_HERE: facts})[_HERE]
    if wish.as_json:
        _print_json(found, findings, changes if wish.fix or wish.restore else None)
    else:
        _print_changes(changes, wish)
        if not wish.restore:
            _print_here(found, findings, wish, [] if interface else _unused(facts))
    return _code(changes)


def _report(interface: str | None, measured: Sequence[Path], *, as_json: bool) -> None:
    from wiregauge import __version__
    from wiregauge.cli.card_report import measured_in, report_text
    from wiregauge.examining.card import card_report
    from wiregauge.runner.agent_program import examine

    found, facts = _looked(examine(), interface)
    if "problem" in found:
        fail(found["problem"], NO_ENVIRONMENT)
    host = found["host"]
    unused = [] if interface else _unused(facts)
    report = card_report(
        __version__,
        host,
        found["interfaces"],
        [fact for fact in facts if fact.interface not in unused],
        measured_in(measured, host["kernel"]),
    )
    print(json.dumps(report, indent=1) if as_json else report_text(report))


def _looked(found: Findings, interface: str | None) -> tuple[Findings, list[Fact]]:
    """What was found, and its facts: of the host, and of one interface where it is named."""
    from wiregauge.examining import facts_of_json

    told = found.get("facts", [])
    there = list(dict.fromkeys(fact["interface"] for fact in told if fact["interface"]))
    if interface is not None:
        if interface not in there and "problem" not in found:
            fail(
                f'--interface: there is no interface "{interface}" here; there are {", ".join(there)}',
                BAD_INPUT,
            )
        told = [fact for fact in told if fact["interface"] in ("", interface)]
    return {**found, "facts": told}, facts_of_json(told)


def _unused(facts: Iterable[Fact]) -> list[str]:
    """Interfaces that are down; none where all are: then one of them was to be up."""
    states = {fact.interface: fact.value for fact in facts if fact.name == "state" and fact.interface}
    down = [name for name, state in states.items() if state == "down"]
    return down if len(down) < len(states) else []


def _judged(facts: dict[str, list[Fact]]) -> dict[str, list[Finding]]:
    """By host what its facts say, and what those of all say together; the worst first."""
    from wiregauge.examining import Severity, judge, judge_together

    found = {host: judge(of_host) if of_host else [] for host, of_host in facts.items()}
    for host, finding in judge_together(facts):
        found[host].append(finding)
    order = list(Severity)
    return {
        host: sorted(of_host, key=lambda one: order.index(one.severity)) for host, of_host in found.items()
    }


def _fixes(findings: Iterable[Finding]) -> dict[str, list[str]]:
    """By interface the fixes that cure findings; those of the whole host go with the first interface."""
    fixes: dict[str, list[str]] = {}
    of_host = []
    interfaces = []
    for one in findings:
        if one.interface and one.interface not in interfaces:
            interfaces.append(one.interface)
        if not one.fix:
            continue
        if not one.interface:
            of_host.append(one.fix)
        elif one.fix not in fixes.setdefault(one.interface, []):
            fixes[one.interface].append(one.fix)
    if of_host and interfaces:
        fixes.setdefault(interfaces[0], []).extend(of_host)
    return fixes


def _code(changes: Iterable[Change], problems: Sequence[str] = ()) -> int:
    return NO_ENVIRONMENT if problems or any(change.refused for change in changes) else 0


def _print_json(found: Findings, findings: Sequence[Finding], changes: Sequence[Change] | None) -> None:
    told: dict[str, Any] = {
        **found,
        "checks": [finding.as_json() for finding in findings],
        "benches": _benches(found),
        "programs": _programs(),
    }
    if changes is not None:
        told["changes"] = [change.as_json() for change in changes]
    print(json.dumps(told, indent=1))


def _benches(found: Findings) -> list[dict[str, Any]]:
    from wiregauge.runner import BENCHES

    return [
        {"name": name, **dict(zip(("works", "detail", "cure"), kind.availability(found), strict=True))}
        for name, kind in BENCHES.items()
    ]


def _programs() -> list[dict[str, Any]]:
    from wiregauge.examining.programs import programs_here

    return programs_here()


def _print_here(
    found: Findings, findings: Sequence[Finding], wish: _Wish, unused: Collection[str] = ()
) -> None:
    """All but what was found of interfaces that nobody uses."""
    console = make_console()
    console.print("[bold]benches[/]")
    for item in _benches(found):
        _print_item(console, _yes(item["works"]), item["name"], item["detail"], item["cure"])
    _print_findings(console, [one for one in findings if one.interface not in unused], wish)
    if unused:
        put(f"down, so nothing is said of them: {', '.join(unused)}; --interface NAME says it")
    console.print("[bold]programs beside[/]")
    for item in _programs():
        seen = ": ".join(filter(None, (item["for"], item["detail"])))
        _print_item(console, _yes(item["found"]), item["name"], seen, item["cure"])
    timestamping = found.get("interfaces", [])
    if timestamping:
        console.print("[bold]timestamps of interfaces[/]")
    for item in timestamping:
        put(f"  {item['name']}: {item['detail']}", indent=4)


def _yes(word: bool) -> str:
    return "[green]yes[/]" if word else "[yellow]no[/]"


def _print_item(console: ShownConsole, mark: str, name: str, seen: str, cure: str, effect: str = "") -> None:
    """What was seen, in sentences; the cure on a line of its own, which can be copied as it stands."""
    console.print(f"  {mark}  {escape(name)}: {escape(seen)}", soft_wrap=True, highlight=False)
    if effect:
        put(f"    {effect}")
    if cure:
        console.print_whole(f"    {cure}", style="bold")


def _print_findings(
    console: ShownConsole,
    findings: Sequence[Finding],
    wish: _Wish,
    title: str = "checks of real frames (a simulation needs none of this)",
) -> None:
    console.print(f"[bold]{escape(title)}[/]", highlight=False)
    for one in findings:
        severity = str(one.severity)
        if severity == "fine" and not wish.fine:
            continue
        name = f"{one.name} of {one.interface}" if one.interface else one.name
        effect = "" if severity == "fine" else one.effect
        _print_item(console, _MARKS[severity], name, one.seen, one.cure, effect)
    well = sum(str(one.severity) == "fine" for one in findings)
    if findings and not wish.fine:
        put(f"  {well} of {len(findings)} checks are fine; --fine shows them")


def _print_changes(changes: Sequence[Change], wish: _Wish) -> None:
    if not changes and (wish.fix or wish.restore):
        put("nothing was to be restored" if wish.restore else "nothing was to be fixed")
    for one in changes:
        what = f"{one.host}: {one.interface + ': ' if one.interface else ''}{one.setting}"
        if one.refused:
            say(f"{what}: stays {one.before}: {one.refused}")
        else:
            put(f"{what}: {one.before} to {one.after}")


def _on_hosts(lab: Lab, names: Sequence[str], interface: str | None, wish: _Wish) -> int:
    from wiregauge.examining.hosts import examine_all, mend_all, restore_all
    from wiregauge.runner.lab.errors import LabError

    try:
        chosen, member = _chosen(lab, names), lab.member()
    except LabError as error:
        fail(str(error), BAD_INPUT)
    changes: list[Change] = []
    problems: list[str] = []
    if wish.restore:
        changes, problems = restore_all(chosen, member)
    examined = examine_all(chosen, member, interface)
    findings = _judged({host.name: list(host.facts) for host in examined})
    if wish.fix:
        changes, problems = mend_all(
            chosen, member, {name: _fixes(of_host) for name, of_host in findings.items()}
        )
        examined = examine_all(chosen, member, interface)
        findings = _judged({host.name: list(host.facts) for host in examined})
    if wish.as_json:
        _print_hosts_json(examined, findings, changes if wish.fix or wish.restore else None)
    else:
        _print_changes(changes, wish)
        if not wish.restore:
            _print_hosts(examined, findings, wish)
    for problem in problems:
        say(problem)
    return _code(changes, [*problems, *(host.trouble for host in examined if host.trouble)])


def _chosen(lab: Lab, names: Sequence[str]) -> list[Host]:
    """The hosts of these names, in their order, or all. Raises LabError for one that the lab does not have."""
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.inventory import read_inventory

    known = {host.name: host for host in read_inventory(lab.inventory)}
    if not known:
        raise LabError(f"{lab.inventory} lists no hosts; `wiregauge lab enrol HOST CODE` adds one")
    missing = [name for name in names if name not in known]
    if missing:
        raise LabError(f"{lab.inventory} has no host {missing[0]}; it has {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)] or list(known.values())


def _print_hosts(examined: Sequence[Examined], findings: dict[str, list[Finding]], wish: _Wish) -> None:
    console = make_console()
    for host in examined:
        if host.trouble:
            console.print(f"[bold]{escape(host.name)}[/]: [yellow]{escape(host.trouble)}[/]", highlight=False)
        else:
            _print_findings(console, findings[host.name], wish, f"{host.name} ({host.address})")
        console.print()


def _print_hosts_json(
    examined: Sequence[Examined], findings: dict[str, list[Finding]], changes: Sequence[Change] | None
) -> None:
    told: dict[str, Any] = {
        "schema": 1,
        "hosts": [
            {
                "name": host.name,
                "address": host.address,
                "trouble": host.trouble or None,
                "checks": [finding.as_json() for finding in findings[host.name]],
            }
            for host in examined
        ],
    }
    if changes is not None:
        told["changes"] = [change.as_json() for change in changes]
    print(json.dumps(told, indent=1))
