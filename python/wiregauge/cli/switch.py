"""`switch`: characterises a device under test."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson, bench_name
from wiregauge.terminal import (
    BAD_INPUT,
    INCOMPLETE,
    NO_ENVIRONMENT,
    fail,
    make_console,
    print_table,
    put,
    say,
)

if TYPE_CHECKING:
    from wiregauge.runner import Bench as OpenBench
    from wiregauge.switching import Device, Kind, Service, Store

__all__ = ["switch"]

_LEAST, _MOST = 64, 1518


def switch(
    device: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DUT]",
            help="Test file whose network is one switch, the device, and its end systems.",
            show_default="a plain switch",
        ),
    ] = None,
    bench: Annotated[
        str | None,
        typer.Option(
            "--bench",
            parser=bench_name,
            metavar="[sim|netns|lab]",
            help=meant("--bench", " (a bridge of this kernel), lab = between hosts"),
            show_default="sim",
        ),
    ] = None,
    lab: Annotated[
        Path | None,
        typer.Option(
            "--lab",
            metavar="PATH",
            help=meant("--lab", only="lab"),
            show_default="WIREGAUGE_LAB, or ~/.config/wiregauge/lab",
        ),
    ] = None,
    ports: Annotated[
        int | None,
        typer.Option("--ports", metavar="N", help="Ports of a plain switch.", show_default="4"),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help=meant("--rate"), show_default="1Gbit/s"),
    ] = None,
    quick: Annotated[
        bool,
        typer.Option(
            "--quick", help=meant("--quick", ": at most 15 minutes in all; unless --standard is given")
        ),
    ] = False,
    standard: Annotated[bool, typer.Option("--standard", help="Trials as long as the RFCs ask for.")] = False,
    tests: Annotated[
        str | None,
        typer.Option(
            "--tests", metavar="NAME,NAME…", help="Only these, and what they need.", show_default="all"
        ),
    ] = None,
    frame_sizes: Annotated[
        str | None,
        typer.Option(
            "--frame-sizes", metavar="B,B…", help="Frame sizes with FCS.", show_default="64,512,1518"
        ),
    ] = None,
    services: Annotated[
        Path | None,
        typer.Option(
            "--services",
            metavar="FILE",
            help="Services that the device promises, and their acceptance criteria (TOML), for the tests of Y.1564.",
            show_default=False,
        ),
    ] = None,
    service: Annotated[
        list[str] | None,
        typer.Option(
            "--service",
            metavar="KEY=VALUE,…",
            help="One of them, cir=100Mbit/s,eir=20Mbit/s,ftd=1ms,fdv=100us,flr=0.1%,availability=99.9%; repeatable.",
            show_default=False,
        ),
    ] = None,
    cross_traffic: Annotated[
        str | None,
        typer.Option(
            "--cross-traffic",
            metavar="LOAD:BURST,…",
            help="Envelopes of foreign traffic of the test traversal.",
            show_default="50%:1,50%:8,50%:32,80%:8",
        ),
    ] = None,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="DIR",
            help=meant("--out", ": a new directory"),
            show_default="switch-DEVICE[-N]",
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help=meant("--resume", "; takes no other option"),
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Every trial is an ordinary test with a run directory of its own. One that was not offered as intended, or is
    INVALID, is repeated once and then counts for nothing. Exit code 4: stopped early, or a test has no result.
    """
    from wiregauge.config import TestError
    from wiregauge.runner import BenchError
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.switching import DeviceError, SheetError

    try:
        if resume is not None:
            given = (
                device,
                bench,
                lab,
                ports,
                rate,
                tests,
                frame_sizes,
                services,
                service,
                cross_traffic,
                out,
            )
            if any(one is not None for one in given) or quick or standard:
                fail("--resume goes on as it was begun: give it alone, or with --json", BAD_INPUT)
            place: Path | None = resume
            asked = _kept(resume)
        else:
            if quick and standard:
                fail("give --quick or --standard, not both", BAD_INPUT)
            asked = _asked(device, bench, ports, rate, tests, frame_sizes, standard=standard)
            asked |= _described(lab, services, service, cross_traffic, bench)
            place = out
        code = _carry_out(asked, place, resumed=resume is not None, as_json=as_json)
    except TestError as error:
        for line in (*map(str, error.diagnostics), *error.remark):
            say(line)
        raise typer.Exit(BAD_INPUT) from error
    except (DeviceError, SheetError) as error:
        fail(str(error), BAD_INPUT)
    except (BenchError, LabError) as error:
        fail(str(error), NO_ENVIRONMENT)
    raise typer.Exit(code)


def _asked(
    device: Path | None,
    bench: str | None,
    ports: int | None,
    rate: str | None,
    tests: str | None,
    frame_sizes: str | None,
    *,
    standard: bool,
) -> dict[str, Any]:
    """What is to be done, as it is kept."""
    if device is not None and (ports is not None or rate is not None):
        fail("--ports and --rate are of a plain switch: the file has its own; leave them out", BAD_INPUT)
    return {
        "device": os.path.realpath(device) if device is not None else "",
        "ports": ports if ports is not None else 4,
        "rate": rate or "1Gbit/s",
        "bench": bench or "sim",
        "standard": standard,
        "tests": [one.name for one in _kinds(tests)],
        "frame_sizes": _sizes(frame_sizes),
    }


def _described(
    lab: Path | None,
    services: Path | None,
    service: list[str] | None,
    cross_traffic: str | None,
    bench: str | None,
) -> dict[str, Any]:
    """What is said of the lab, of services and of foreign traffic, as it is kept; what is not said has no key."""
    from wiregauge.switching import envelopes_of, read_services, service_of

    kept: dict[str, Any] = {}
    if lab is not None:
        if bench != "lab":
            fail(f"--lab has no effect with --bench {bench or 'sim'}; leave it out", BAD_INPUT)
        kept["lab"] = os.path.realpath(lab)
    found = read_services(services) if services is not None else []
    for text in service or []:
        pairs = [one.partition("=") for one in text.split(",")]
        if not all(middle and value for _, middle, value in pairs):
            fail(
                f"--service {text}: write KEY=VALUE with commas between, such as cir=100Mbit/s,ftd=1ms",
                BAD_INPUT,
            )
        held = {key.strip(): value.strip() for key, _, value in pairs}
        found.append(service_of(held, f"--service {text}", len(found) + 1))
    if found:
        kept["services"] = [one.as_json() for one in found]
    if cross_traffic is not None:
        envelopes_of(cross_traffic)
        kept["cross_traffic"] = cross_traffic
    return kept


def _kinds(tests: str | None) -> list[Kind]:
    from wiregauge.switching import TESTS, chosen

    names = [one.name for one in TESTS]
    wanted = names if tests is None else [name.strip() for name in tests.split(",") if name.strip()]
    unknown = [name for name in wanted if name not in names]
    if unknown or not wanted:
        fail(f'--tests {tests}: there is no "{", ".join(unknown)}"; there are {", ".join(names)}', BAD_INPUT)
    return chosen(wanted)


def _sizes(frame_sizes: str | None) -> list[int]:
    text = frame_sizes if frame_sizes is not None else "64,512,1518"
    try:
        found = sorted({int(one) for one in text.split(",")})
    except ValueError:
        found = []
    if not found or not all(_LEAST <= one <= _MOST for one in found):
        fail(
            f"--frame-sizes {text}: write whole numbers from {_LEAST} to {_MOST}, such as 64,512,1518",
            BAD_INPUT,
        )
    return found


def _kept(place: Path) -> dict[str, Any]:
    from wiregauge.switching import Store

    return Store.resume(place).asked


def _device(asked: dict[str, Any]) -> Device:
    from wiregauge.switching import device_of, plain_device

    return (
        device_of(Path(asked["device"])) if asked["device"] else plain_device(asked["ports"], asked["rate"])
    )


def _free(name: str) -> Path:
    place, number = Path(name), 1
    while place.exists():
        number += 1
        place = Path(f"{name}-{number}")
    return place


def _carry_out(asked: dict[str, Any], place: Path | None, *, resumed: bool, as_json: bool) -> int:
    """Makes the trials and shows what they say; the exit code."""
    from wiregauge.records import RunDirectory
    from wiregauge.runner import bench_named, options_of
    from wiregauge.switching import SheetError, Store

    device = _device(asked)
    services = _services(asked, device)
    if resumed and asked.get("device_sha256") != device.digest:
        raise SheetError(f"{asked['device']}: the device is another one than when {place} was begun")
    if place is None:
        place = _free(f"switch-{device.name}")
    elif not resumed:
        RunDirectory.check_free(place)
    # The device between namespaces is a bridge of this kernel: of the model the simulator says the same, and sooner.
    played = "kernel" if "switches" in options_of(asked["bench"]) else None
    bench = bench_named(asked["bench"], lab=Path(asked["lab"]) if "lab" in asked else None, switches=played)
    bench.enter()
    store = Store.resume(place) if resumed else Store.begin(place, {**asked, "device_sha256": device.digest})
    if resumed:
        store.mend()
    return _measure(asked, device, services, bench, store, as_json=as_json)


def _services(asked: dict[str, Any], device: Device) -> tuple[Service, ...]:
    from wiregauge.switching import Service, check_services

    services = [Service(**one) for one in asked.get("services", [])]
    check_services(services, len(device.ports), device.rate_bps)
    return tuple(services)


def _measure(
    asked: dict[str, Any],
    device: Device,
    services: tuple[Service, ...],
    bench: OpenBench,
    store: Store,
    *,
    as_json: bool,
) -> int:
    from wiregauge import runner, switching
    from wiregauge.records import RunDirectoryError
    from wiregauge.runner.stopping import exit_on_second_signal

    troubles: list[str] = []
    virtual = bench.traits.virtual_time
    with (
        exit_on_second_signal(INCOMPLETE),
        runner.open(bench, store.place / switching.RUNS, told=troubles.append) as trials,
    ):
        session = switching.Session(
            device,
            switching.Bench(device, trials, store.place / switching.RUNS, model=virtual),
            store,
            switching.Sizes(quick=not asked["standard"], virtual=virtual),
            tuple(asked["frame_sizes"]),
            say,
            bench=bench.name,
            services=services,
        )
        if "cross_traffic" in asked:
            session.envelopes = switching.envelopes_of(asked["cross_traffic"])
        results, stopped = switching.carry_out(session, switching.chosen(asked["tests"]))
        shown = switching.switch_json(session, bench.name, results, stopped, between=bench.traits.between)
        page = None
        try:
            store.save(dict(shown))
            page = switching.write_page(store.place, shown, results)
        except RunDirectoryError as error:
            troubles.append(f"the report is missing: {error}")
    if as_json:
        print(json.dumps(shown, indent=1))
    else:
        rows = [
            [one.title if not number else "", line]
            for one in results
            for number, line in enumerate(one.conclusion or [f"{one.state}: {one.reason}"])
        ]
        rows += [[one["test"], f"not carried: {one['reason']}"] for one in shown["not_carried"]]
        print_table(["test", "result"], rows, make_console())
        if page is not None:
            put(f"report: {page}")
    for trouble in dict.fromkeys(troubles):
        say(trouble)
    if stopped:
        say(f"interrupted: {stopped}; `wiregauge switch --resume {store.place}` goes on")
    whole = not stopped and page is not None and all(one.state != "refused" for one in results)
    return 0 if whole else INCOMPLETE
