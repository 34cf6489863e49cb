"""`tsn`, and the dry run of `run`: the commands that set up the interfaces of hosts, run by nobody here."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import to_builtins

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, Settings, TestFile, load_test
from wiregauge.terminal import BAD_INPUT, fail, put, put_lines

if TYPE_CHECKING:
    from wiregauge.plan import Campaign, HostCommands

__all__ = ["show_host_commands", "tsn"]

USUAL = "eth1"


def tsn(
    test: TestFile,
    interface: Annotated[
        list[str] | None,
        typer.Option(
            "--interface",
            metavar="END=NAME",
            help=meant("--interface", " of an end system, for example talker=enp3s0; repeatable"),
            show_default=f"{USUAL} for every end system",
        ),
    ] = None,
    settings: Settings = None,
    as_json: AsJson = False,
) -> None:
    loaded = load_test(test, settings or ())
    ends = {node.name for node in loaded.campaign.network.end_systems.values()}
    named: dict[str, str] = {}
    for text in interface or ():
        end, equals, name = text.partition("=")
        if not equals or not name:
            fail(f"--interface {text}: write END=NAME, for example talker=enp3s0", BAD_INPUT)
        if end not in ends:
            fail(
                f"--interface {text}: the test has no end system {end}; it has {', '.join(sorted(ends))}",
                BAD_INPUT,
            )
        named[end] = name
    show_host_commands(loaded.campaign, {end: named.get(end, USUAL) for end in ends}, as_json=as_json)


def show_host_commands(campaign: Campaign, interfaces: Mapping[str, str], *, as_json: bool) -> None:
    """Prints the commands of every host that has any."""
    from wiregauge.plan import PlanError, host_commands

    try:
        hosts = host_commands(campaign, interfaces)
    except PlanError as error:
        fail(str(error), BAD_INPUT)
    if as_json:
        print(json.dumps({"schema": 1, "hosts": [to_builtins(host) for host in hosts]}, indent=1))
        return
    if not hosts:
        put("no end system of this test has <host-tsn>: nothing would be set")
    for host in hosts:
        put_lines(_lines(host, len(campaign.runs)))


def _lines(host: HostCommands, of: int) -> Sequence[str]:
    runs = "" if len(host.runs) == of else f", run {', '.join(map(str, host.runs))}"
    after = [f"# {what} gets the value that it had" for what in host.restored]
    return (
        f"# {host.end_system}, interface {host.interface}{runs}: before a run",
        *host.apply,
        "# after it",
        *host.undo,
        *after,
        "",
    )
