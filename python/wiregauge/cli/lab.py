"""`lab`: the hosts that run tests, and who may give them orders."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import to_builtins
from rich.markup import escape
from rich.table import Table

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, RunDir, TestFile, judge_and_show, load_test
from wiregauge.files import cure_for, printable
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, make_console, put, say

if TYPE_CHECKING:
    from collections.abc import Callable

    from wiregauge.runner.lab.authority import Lab, Member
    from wiregauge.runner.lab.inventory import Host
    from wiregauge.runner.lab.placement import Described

__all__ = ["LabFolder", "app", "opened_lab"]

app = typer.Typer(
    name="lab",
    no_args_is_help=True,
)

LabFolder = Annotated[
    Path | None,
    typer.Option(
        "--lab",
        metavar="PATH",
        help=meant("--lab"),
        show_default="WIREGAUGE_LAB, or ~/.config/wiregauge/lab",
    ),
]


def opened_lab(folder: Path | None, *, make: bool = False) -> Lab:
    """The lab of a folder, or the usual one; with `make` a new one where there is none."""
    from wiregauge.runner.lab.authority import Lab
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.inventory import usual_lab

    chosen = folder or usual_lab()
    if chosen.is_file():
        chosen = chosen.parent
    try:
        if make and not (chosen / "authority.pem").exists():
            made = Lab.create(chosen)
            say(f"{chosen}: a new lab; keep its folder keys to yourself")
            return made
        return Lab(chosen)
    except LabError as error:
        fail(str(error), BAD_INPUT)


@app.command()
def init(
    folder: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="Folder to make.", show_default="WIREGAUGE_LAB, or ~/.config/wiregauge/lab"
        ),
    ] = None,
) -> None:
    """Make a lab: a certificate authority for its members, an empty inventory, and a key for yourself."""
    from wiregauge.runner.lab.authority import Lab
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.inventory import usual_lab

    chosen = folder or usual_lab()
    try:
        lab = Lab.create(chosen)
        member = lab.member()
    except LabError as error:
        fail(str(error), BAD_INPUT)
    except OSError as error:
        fail(f"{chosen}: no lab can be made there ({error.strerror}); {cure_for(error)}", NO_ENVIRONMENT)
    put(f"{chosen}: a lab with {member.name} as its {member.role}; keep {chosen / 'keys'} to yourself")
    put("next: `wiregauge agent serve` on a host, and here `wiregauge lab enrol HOST CODE`")


@app.command()
def member(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Who it is for.", show_default=False)],
    role: Annotated[
        str, typer.Option("--role", metavar="observer|operator|administrator", help="What it may do.")
    ] = "operator",
    folder: LabFolder = None,
) -> None:
    """Make a key for somebody who may give orders to the lab's hosts."""
    from wiregauge.runner.lab.errors import LabError

    try:
        file = opened_lab(folder).add_member(name, role)
    except LabError as error:
        fail(str(error), BAD_INPUT)
    except OSError as error:
        fail(
            f"{error.filename or name}: no key can be written ({error.strerror}); {cure_for(error)}",
            NO_ENVIRONMENT,
        )
    put(
        f"{file}: {name} as {role}; hand it over by a way that nobody else can read, with authority.pem and lab.toml"
    )


@app.command()
def enrol(
    host: Annotated[
        str, typer.Argument(metavar="HOST", help="Address of the host, with :PORT where it is not 47170.")
    ],
    code: Annotated[str, typer.Argument(metavar="CODE", help="The join code that its agent prints.")],
    name: Annotated[
        str | None,
        typer.Option("--name", metavar="NAME", help="What the lab calls it.", show_default="its own name"),
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option(
            "--interface",
            metavar="NAME",
            help=meant("--interface", " in the network under test"),
            show_default="that of its address",
        ),
    ] = None,
    folder: LabFolder = None,
) -> None:
    """Have a host join the lab, by the code that `wiregauge agent serve` prints there."""
    joined = joined_host(opened_lab(folder), host, code, name=name, interface=interface)
    put(f"{joined} has joined the lab")


def joined_host(lab: Lab, host: str, code: str, *, name: str | None, interface: str | None) -> str:
    """Has a host join and adds it to the inventory; its name."""
    from wiregauge.runner.lab.enrolment import enrol
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.inventory import Host, add_host
    from wiregauge.runner.lab.join_code import JoinCode

    try:
        read = JoinCode.read(code)
    except LabError as error:
        fail(str(error), BAD_INPUT)
    try:
        joined = enrol(lab, host, read, name)
        add_host(lab.inventory, Host(joined, host, interface))
    except LabError as error:
        fail(str(error), NO_ENVIRONMENT)
    return joined


@app.command()
def status(folder: LabFolder = None, as_json: AsJson = False) -> None:
    """Ask every host of the lab what it is and has, and whether a test could use it."""
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.hosts import describe_all
    from wiregauge.runner.lab.inventory import read_inventory
    from wiregauge.runner.lab.placement import unfit

    lab = opened_lab(folder)
    try:
        hosts = describe_all(read_inventory(lab.inventory), lab.member())
    except LabError as error:
        fail(str(error), BAD_INPUT)
    if as_json:
        print(
            json.dumps(
                {"schema": 1, "hosts": [{**_as_json(host), "unfit": unfit(host)} for host in hosts]}, indent=1
            )
        )
    else:
        table = Table("host", "address", "interface", "usable", "timestamps", box=None, header_style="bold")
        for column in table.columns:
            column.overflow = "fold"
        for host in hosts:
            why = unfit(host)
            one = host.interface
            about = " ".join([one.name, ", ".join(one.ipv4)]).rstrip() if one is not None else "-"
            about += f", leads to {host.leads_to}" if host.leads_to else ""
            if one is not None:
                about += "".join(f", {neighbour.text}" for neighbour in one.neighbours)
            usable = "[green]yes[/]" if why is None else f"[yellow]{escape(why)}[/]"
            table.add_row(
                escape(host.place),
                escape(host.address),
                escape(about),
                usable,
                escape(one.timestamps if one else ""),
            )
        make_console().print(table)
    if any(unfit(host) is not None for host in hosts):
        raise typer.Exit(NO_ENVIRONMENT)


Hosts = Annotated[
    list[str] | None,
    typer.Argument(metavar="[HOST...]", help="Names of hosts.", show_default="all of the lab"),
]


@app.command()
def drain(
    hosts: Hosts = None,
    reason: Annotated[
        str, typer.Option("--reason", metavar="TEXT", help="What those who are turned away are told.")
    ] = "",
    undo: Annotated[bool, typer.Option("--undo", help="Let the hosts take tests again.")] = False,
    folder: LabFolder = None,
) -> None:
    """Have hosts take no new tests, so that they can be worked at; a test that goes on is not disturbed."""
    from wiregauge.runner.lab.hosts import agent_of

    def act(host: Host, member: Member) -> str:
        agent = agent_of(host, member)
        try:
            agent.undrain() if undo else agent.drain(reason)
            used = agent.describe().in_use
        finally:
            agent.close()
        done = "takes tests again" if undo else "takes no new tests"
        return f"{host.name} {done}" + (f"; {used}" if used and not undo else "")

    _with_each(folder, hosts, act)


@app.command()
def revoke(
    name: Annotated[str, typer.Argument(metavar="NAME", help="The member.", show_default=False)],
    folder: LabFolder = None,
) -> None:
    """Have every host take no more orders from a member; repeat it for hosts that could not be reached.

    Needs the role administrator. A key that is made for NAME afterwards counts again.
    """
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.hosts import agent_of

    try:
        fingerprint = opened_lab(folder).fingerprint(name)
    except LabError as error:
        fail(str(error), BAD_INPUT)

    def act(host: Host, member: Member) -> str:
        agent = agent_of(host, member)
        try:
            agent.revoke(name, fingerprint)
        finally:
            agent.close()
        return f"{host.name} takes no more orders from {name}"

    _with_each(folder, None, act)


@app.command()
def clean(
    hosts: Hosts = None,
    remove: Annotated[
        bool, typer.Option("--remove", help="Remove them; without it they are only listed.")
    ] = False,
    folder: LabFolder = None,
) -> None:
    """List, or remove, records that hosts keep because nobody has fetched them: of tests whose testmaster went away.

    An operator sees those of his own tests, an administrator all. `wiregauge run --resume` fetches them.
    """
    from wiregauge.runner.lab.hosts import agent_of

    def act(host: Host, member: Member) -> str:
        agent = agent_of(host, member)
        try:
            kept = agent.kept()
            for one in kept:
                if remove and not one.active:
                    agent.discard(one.campaign, one.run, one.node)
        finally:
            agent.close()
        lines = [
            f"{host.name}: campaign {one.campaign}, run {one.run}, {one.bytes / 1e6:.1f} MB of {one.owner}: "
            + ("being recorded" if one.active else "removed" if remove else "kept")
            for one in kept
        ]
        return "\n".join(map(printable, lines)) or f"{host.name}: nothing is kept"

    _with_each(folder, hosts, act)


@app.command()
def fetch(run_dir: RunDir, folder: LabFolder = None, as_json: AsJson = False) -> None:
    """Fetch what hosts keep of a campaign whose testmaster went away, track it, judge it and write the report."""
    from wiregauge import runner
    from wiregauge.runner.lab.errors import LabError

    troubles: list[str] = []
    try:
        runs = runner.fetch(run_dir, folder, troubles.append)
    except LabError as error:
        fail(str(error), NO_ENVIRONMENT)
    for trouble in troubles:
        say(trouble)
    named = ", ".join(map(str, runs))
    say(f"records of run {named} were fetched" if runs else "the hosts keep nothing of this campaign")
    raise typer.Exit(judge_and_show(run_dir, as_json=as_json, with_report=bool(runs)))


def _with_each(folder: Path | None, names: list[str] | None, act: Callable[[Host, Member], str]) -> None:
    """Does it with hosts of the lab side by side and says what came of it; exit code 3 where one could not."""
    from concurrent.futures import ThreadPoolExecutor

    from wiregauge.runner.agents.client import AgentLostError
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.inventory import read_inventory

    lab = opened_lab(folder)
    try:
        known = {host.name: host for host in read_inventory(lab.inventory)}
        member = lab.member()
    except LabError as error:
        fail(str(error), BAD_INPUT)
    unknown = [name for name in names or () if name not in known]
    if unknown:
        fail(f"{lab.inventory} has no host {unknown[0]}; it has {', '.join(known) or 'none'}", BAD_INPUT)
    chosen = [known[name] for name in names or known]

    def attempt(host: Host) -> tuple[bool, str]:
        try:
            return True, act(host, member)
        except AgentLostError as error:
            return False, f"{host.name}: {error}"

    with ThreadPoolExecutor(max(1, min(16, len(chosen)))) as pool:
        outcomes = list(pool.map(attempt, chosen))
    for done, text in outcomes:
        for line in text.split("\n"):
            put(line) if done else say(line)
    if not all(done for done, _ in outcomes):
        raise typer.Exit(NO_ENVIRONMENT)


@app.command("map")
def map_test(test: TestFile, folder: LabFolder = None, as_json: AsJson = False) -> None:
    """Show which host each end system of a test would be on, or why there is none; nothing is sent."""
    from wiregauge.runner import BenchError, BeyondBenchError, bench_named

    loaded = load_test(test)
    lab = opened_lab(folder)
    bench = bench_named("lab", lab=lab.inventory)
    try:
        facts = bench.facts(bench.adapt(loaded.campaign))
    except BeyondBenchError as error:
        for line in error.reasons:
            say(f"{test}: {line}")
        raise typer.Exit(NO_ENVIRONMENT) from error
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)
    if as_json:
        print(json.dumps({"schema": 1, "facts": [to_builtins(fact) for fact in facts]}, indent=1))
        return
    for fact in facts:
        put(f"{fact.name}: {fact.value}" + (f" ({fact.note})" if fact.note else ""))


def _as_json(host: Described) -> dict[str, Any]:
    return {
        "name": host.name,
        "address": host.address,
        "version": host.version,
        "in_use": host.in_use,
        "same_host": host.same_host,
        "end_systems": list(host.end_systems),
        "leads_to": host.leads_to or None,
        "interface": to_builtins(host.interface) if host.interface is not None else None,
        "facts": dict(host.facts),
    }
