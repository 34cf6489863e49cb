"""`probe`: a first figure between this host and another, without a test file."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from wiregauge.cli.alarms import (
    check_action,
    metrics_address,
    metrics_option,
    on_alarm_option,
    summaries_option,
)
from wiregauge.cli.forever import Around
from wiregauge.cli.lab import LabFolder, joined_host, opened_lab
from wiregauge.cli.options import meant
from wiregauge.cli.reflector import AUTHENTICATED_B, OPEN_B, PERIOD, PROTOCOLS, Wishes, probe_reflector
from wiregauge.cli.shared import AsJson, show_judgement
from wiregauge.cli.whole import AFTER_RUNS
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, fail, make_console, say

if TYPE_CHECKING:
    from wiregauge.cli.progress import ProgressView
    from wiregauge.config import Loaded, Test
    from wiregauge.measures import Judgement
    from wiregauge.plan import Campaign
    from wiregauge.runner.agents.process import AgentProcess
    from wiregauge.runner.lab.placement import Described

__all__ = ["probe"]

HERE: Final = "here"
_FLOW: Final = 10
_PERIOD: Final = "1ms"
_PAYLOAD: Final = "64B"
_LIMIT: Final = re.compile(r"\s*([a-z0-9_.-]+)\s*(<=|>=)\s*(\S.*?)\s*")
_USUAL_RATE: Final = 1_000_000_000


def probe(
    host: Annotated[
        str,
        typer.Argument(
            metavar="HOST",
            help="The other host: its name in the lab, or its address, with :PORT where it is not 47170. With "
            "`--protocol stamp` or `twamp-light`: name or address of the reflector, with :PORT where it is not 862.",
            show_default=False,
        ),
    ],
    join: Annotated[
        str | None,
        typer.Option(
            "--join",
            metavar="CODE",
            help="The join code its agent printed: the first time.",
            show_default=False,
        ),
    ] = None,
    protocol: Annotated[
        str,
        typer.Option(
            "--protocol",
            metavar="udp|raw|stamp|twamp-light",
            help=meant(
                "--protocol", "; the last two need no agent there, only a reflector (RFC 8762, RFC 5357)"
            ),
        ),
    ] = "udp",
    period: Annotated[
        str | None,
        typer.Option(
            "--period",
            metavar="TIME",
            help=meant("--period"),
            show_default=f"{_PERIOD}; to a reflector {PERIOD}",
        ),
    ] = None,
    payload: Annotated[
        str | None,
        typer.Option(
            "--payload",
            metavar="SIZE[,SIZE…]",
            help=meant("--payload", ", a run for each; one to a reflector"),
            show_default=f"{_PAYLOAD}; to a reflector {OPEN_B}B, with --key {AUTHENTICATED_B}B",
        ),
    ] = None,
    count: Annotated[
        int | None,
        typer.Option(
            "--count", metavar="N", min=1, help=meant("--count", ": messages of each run"), show_default=False
        ),
    ] = None,
    duration: Annotated[
        str | None,
        typer.Option("--duration", metavar="TIME", help="Length of each run.", show_default="10s"),
    ] = None,
    round_trip: Annotated[
        bool, typer.Option("--round-trip", help="Have the other host send every message back.")
    ] = False,
    limit: Annotated[
        list[str] | None,
        typer.Option(
            "--limit",
            metavar="'MEASURE <= VALUE'",
            help="A limit, for example 'latency.p99 <= 500us'; repeatable. Exit code 1 if one is violated.",
            show_default=False,
        ),
    ] = None,
    interface: Annotated[
        str | None,
        typer.Option(
            "--interface",
            metavar="NAME",
            help=meant("--interface", " of this host"),
            show_default="the one that leads to the other host",
        ),
    ] = None,
    host_interface: Annotated[
        str | None,
        typer.Option(
            "--host-interface",
            metavar="NAME",
            help="Interface of the other host, with --join.",
            show_default="the one that has its address",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help=meant("--out", ": a new run directory"),
            show_default="probe-HOST[-N]",
        ),
    ] = None,
    realtime: Annotated[
        bool,
        typer.Option("--realtime/--no-realtime", help=meant("--realtime")),
    ] = True,
    key: Annotated[
        Path | None,
        typer.Option(
            "--key",
            metavar="FILE",
            help="STAMP: authenticate packets with the key in this file, 1 to 64 octets.",
            show_default=False,
        ),
    ] = None,
    timestamps: Annotated[
        str,
        typer.Option("--timestamps", metavar="ntp|ptp", help="To a reflector: format of times in packets."),
    ] = "ntp",
    session: Annotated[
        int,
        typer.Option(
            "--session", metavar="N", min=0, max=65_535, help="STAMP: session identifier (RFC 8972); 0: none."
        ),
    ] = 0,
    dscp: Annotated[
        int,
        typer.Option("--dscp", metavar="N", min=0, max=63, help="To a reflector: class of the packets."),
    ] = 0,
    priority: Annotated[
        int | None,
        typer.Option(
            "--socket-priority",
            metavar="P",
            min=0,
            max=7,
            help="To a reflector: priority of the socket, by which a VLAN interface chooses that of the tag.",
            show_default="that of --dscp",
        ),
    ] = None,
    forever: Annotated[
        bool,
        typer.Option(
            "--forever", help="To a reflector: measure until Ctrl-C; with --json print one line a second."
        ),
    ] = False,
    summaries: Annotated[Path | None, summaries_option("With --forever")] = None,
    on_alarm: Annotated[list[str] | None, on_alarm_option("With --forever and --limit")] = None,
    metrics: Annotated[str | None, metrics_option("With --forever")] = None,
    folder: LabFolder = None,
    as_json: AsJson = False,
) -> None:
    """What it runs is an ordinary test; the run directory holds it, its records and its report."""
    from wiregauge.cli.progress import ProgressView
    from wiregauge.config import TestError
    from wiregauge.runner import BenchError
    from wiregauge.runner.lab.hosts import own_agent
    from wiregauge.runner.stopping import exit_on_second_signal

    if sum((count is not None, duration is not None, forever)) > 1:
        fail("give one of --count, --duration and --forever", BAD_INPUT)
    if protocol in PROTOCOLS:
        if join is not None or round_trip or interface is not None or host_interface is not None or folder:
            fail(
                f"--protocol {protocol} needs no agent and takes the way of the host's routes; leave out --join, "
                "--round-trip, --interface, --host-interface and --lab",
                BAD_INPUT,
            )
        around = _around(summaries, on_alarm, metrics, limit, forever=forever)
        wishes = Wishes(
            protocol,
            period or PERIOD,
            payload,
            count,
            duration,
            limit or [],
            key,
            timestamps,
            session,
            dscp,
            priority,
            around,
        )
        raise typer.Exit(probe_reflector(host, wishes, out, as_json=as_json))
    if protocol not in ("udp", "raw"):
        fail(f'--protocol {protocol}: there are "udp", "raw", "stamp" and "twamp-light"', BAD_INPUT)
    _refuse_of_reflectors(
        key or session or dscp or timestamps != "ntp" or priority is not None,
        forever or summaries or on_alarm or metrics,
    )
    if host_interface is not None and join is None:
        fail("--host-interface has an effect with --join only; later it stands in the inventory", BAD_INPUT)
    bounds = [_bound(text) for text in limit or []]
    lab = opened_lab(folder, make=join is not None)
    if join is not None:
        host = joined_host(lab, host, join, name=None, interface=host_interface)
    with contextlib.ExitStack() as ending:
        ending.enter_context(exit_on_second_signal(INCOMPLETE))
        try:
            own = ending.enter_context(own_agent())
            hosts = _hosts(host, folder, own.address, interface)
            sizes = payload or _PAYLOAD
            test = _test(
                hosts, protocol, period or _PERIOD, sizes, count, duration, bounds, round_trip=round_trip
            )
            loaded = test.compile()
        except TestError as error:
            for found in error.diagnostics:
                say(found.message + (f"; {found.cure}" if found.cure else ""))
            raise typer.Exit(BAD_INPUT) from error
        except BenchError as error:
            fail(str(error), NO_ENVIRONMENT)
        troubles: list[str] = []
        observer = ProgressView(make_console(stderr=True), eager=True, then=AFTER_RUNS)
        place = out or _free(f"probe-{hosts[1].name}")
        judgement = _run(loaded, hosts, own, place, troubles, observer, realtime=realtime)
        code = show_judgement(judgement, troubles, as_json=as_json, with_report=True, whole=observer.whole)
    raise typer.Exit(code)


def _refuse_of_reflectors(of_packets: object, without_end: object) -> None:
    """Refuses options that only a session with a reflector has."""
    if of_packets:
        fail(
            "--key, --timestamps, --session, --dscp and --socket-priority have an effect on reflectors only; leave "
            "them out",
            BAD_INPUT,
        )
    if without_end:
        fail(
            "--forever, --summaries, --on-alarm and --metrics need a reflector: start `wiregauge agent reflect` on the "
            "other host, and probe it with --protocol stamp",
            BAD_INPUT,
        )


def _around(
    summaries: Path | None,
    on_alarm: Sequence[str] | None,
    metrics: str | None,
    limits: Sequence[str] | None,
    *,
    forever: bool,
) -> Around | None:
    """What goes on around a session without an end; None: it has one."""
    if not forever:
        if summaries or on_alarm or metrics:
            fail(
                "--summaries, --on-alarm and --metrics have an effect with --forever only; add it", BAD_INPUT
            )
        return None
    if on_alarm and not limits:
        fail("--on-alarm has an effect with --limit only; give one, or leave it out", BAD_INPUT)
    for action in on_alarm or ():
        check_action(action)
    return Around(summaries, on_alarm or (), metrics_address(metrics))


def _bound(text: str) -> tuple[str, str, str]:
    found = _LIMIT.fullmatch(text)
    if found is None:
        fail(
            f"--limit '{text}': write a measure, <= or >=, and a value, for example 'latency.p99 <= 500us'",
            BAD_INPUT,
        )
    return found[1], found[2], found[3]


def _hosts(name: str, folder: Path | None, own: str, interface: str | None) -> tuple[Described, Described]:
    """This host and the other, described. Raises BenchError where one of them cannot be used."""
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.hosts import describe, describe_all
    from wiregauge.runner.lab.inventory import read_inventory, target_of
    from wiregauge.runner.lab.placement import unfit

    lab = opened_lab(folder)
    known = {host.name: host for host in read_inventory(lab.inventory)}
    known |= {target_of(host.address): host for host in known.values()}
    entry = known.get(name) or known.get(target_of(name))
    if entry is None:
        raise LabError(
            f"{name} is not in the lab: start `wiregauge agent serve` there, "
            "and probe it with --join and the code it prints"
        )
    (other,) = describe_all([entry], lab.member())
    reason = unfit(other)
    if reason is not None:
        raise LabError(f"{other.name}: {reason}")
    assert other.interface is not None
    here = describe(HERE, own, None, interface=interface, reached_at=_leads_to(other.interface.ipv4[0]))
    reason = unfit(here)
    if reason is not None:
        raise LabError(f"this host: {reason}; name its interface with --interface")
    return here, other


def _leads_to(address: str) -> str:
    """The address of this host that packets to another have as their source, by its routes."""
    import socket

    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as asked:
        try:
            # Of a datagram socket this sends nothing.
            asked.connect((address, 9))
        except OSError:
            return ""
        return str(asked.getsockname()[0])


def _test(
    hosts: tuple[Described, Described],
    protocol: str,
    period: str,
    payload: str,
    count: int | None,
    duration: str | None,
    bounds: Sequence[tuple[str, str, str]],
    *,
    round_trip: bool,
) -> Test:
    """The test that a probe is."""
    from wiregauge.config.builder import Test
    from wiregauge.config.parts import Exchange

    here, other = hosts
    rates = [one.interface.rate_bps for one in hosts if one.interface is not None and one.interface.rate_bps]
    rate = min(rates, default=_USUAL_RATE)
    sizes = [size.strip() for size in payload.split(",") if size.strip()]
    test = Test(f"probe-{other.name}", seed=1, bench="lab")
    test.end_system(HERE).end_system(other.name).link(HERE, other.name, rate=f"{rate}bit/s")
    test.flow(_FLOW, protocol=protocol, from_=HERE, to=other.name)
    if not (here.same_host and other.same_host):
        test.synchronise(exchange=Exchange(period="10ms"), reference=HERE)
    test.timing(warm_up="100ms", duration=duration if duration or count else "10s", drain="200ms")
    test.send(_FLOW, period=period, payload=sizes[0] if sizes else payload, count=count)
    if round_trip:
        test.relay(_FLOW)
    else:
        test.receive(_FLOW)
    if len(sizes) > 1:
        test.axis("payload", sizes)
    for measure, sign, value in bounds:
        test.limit(measure, at_most=value if sign == "<=" else None, at_least=value if sign == ">=" else None)
    return test


def _free(name: str) -> Path:
    """The first name that is free: results of an earlier probe are somebody's."""
    place, number = Path(name), 1
    while place.exists():
        number += 1
        place = Path(f"{name}-{number}")
    return place


def _run(
    loaded: Loaded,
    hosts: tuple[Described, Described],
    own: AgentProcess,
    out: Path,
    troubles: list[str],
    observer: ProgressView,
    *,
    realtime: bool,
) -> Judgement:
    from wiregauge import runner
    from wiregauge.runner import BenchError, HostsBench

    here, other = hosts

    def place(campaign: Campaign) -> Mapping[str, Described]:
        del campaign
        return {HERE: here, other.name: other}

    bench = HostsBench(place, realtime=realtime, failures={HERE: own.failure})
    try:
        with runner.open(bench, observer=observer, told=troubles.append) as trials:
            return trials.run(loaded, out, file=f"{loaded.campaign.name}.xml")
    except runner.NothingRunError as error:
        fail(str(error), INCOMPLETE if error.stopped else NO_ENVIRONMENT)
    except runner.DiskError as error:
        fail(str(error), INCOMPLETE)
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)
