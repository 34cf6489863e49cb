"""`switch`: characterises a device under test."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console

from wiregauge.cli.shared import AsJson, bench_name
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, fail, print_table, say

if TYPE_CHECKING:
    from wiregauge.runner import Bench as OpenBench
    from wiregauge.switching import Device, Kind, Store

__all__ = ["switch"]

_LEAST, _MOST = 64, 1518

CARRIED = ("sim", "netns")
"""Benches that trials run on."""


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
            metavar="[sim|netns]",
            help="Where: simulated, or a bridge of this kernel between namespaces.",
            show_default="sim",
        ),
    ] = None,
    ports: Annotated[
        int | None,
        typer.Option("--ports", metavar="N", help="Ports of a plain switch.", show_default="4"),
    ] = None,
    rate: Annotated[
        str | None,
        typer.Option("--rate", metavar="RATE", help="Rate of its links.", show_default="1Gbit/s"),
    ] = None,
    quick: Annotated[
        bool, typer.Option("--quick", help="At most 15 minutes in all; unless --standard is given.")
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
    out: Annotated[
        Path | None,
        typer.Option(
            "--out", "-o", metavar="DIR", help="Directory to make.", show_default="switch-DEVICE[-N]"
        ),
    ] = None,
    resume: Annotated[
        Path | None,
        typer.Option(
            "--resume",
            metavar="DIR",
            help="Go on with one that was begun; takes no other option.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Characterise a switch: throughput, latency, loss and more, each trial decided from the last, to a data sheet.

    Every trial is an ordinary test with a run directory of its own. One that was not offered as intended, or is
    INVALID, is repeated once and then counts for nothing. Exit code 4: stopped early, or a test has no result.
    """
    from wiregauge.benches import BenchError
    from wiregauge.config import TestError
    from wiregauge.switching import DeviceError, SheetError

    try:
        if resume is not None:
            given = (device, bench, ports, rate, tests, frame_sizes, out)
            if any(one is not None for one in given) or quick or standard:
                fail("--resume goes on as it was begun: give it alone, or with --json", BAD_INPUT)
            place: Path | None = resume
            asked = _kept(resume)
        else:
            if quick and standard:
                fail("give --quick or --standard, not both", BAD_INPUT)
            asked = _asked(device, bench, ports, rate, tests, frame_sizes, standard=standard)
            place = out
        code = _carry_out(asked, place, resumed=resume is not None, as_json=as_json)
    except TestError as error:
        for found in error.diagnostics:
            say(str(found))
        raise typer.Exit(BAD_INPUT) from error
    except (DeviceError, SheetError) as error:
        fail(str(error), BAD_INPUT)
    except BenchError as error:
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
        "device": str(device.resolve()) if device is not None else "",
        "ports": ports if ports is not None else 4,
        "rate": rate or "1Gbit/s",
        "bench": bench or "sim",
        "standard": standard,
        "tests": [one.name for one in _kinds(tests)],
        "frame_sizes": _sizes(frame_sizes),
    }


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
    from wiregauge.runner import bench_named
    from wiregauge.switching import SheetError, Store

    device = _device(asked)
    name = asked["bench"]
    if name not in CARRIED:
        fail(f"--bench {name}: a switch is characterised on sim and netns; choose one", BAD_INPUT)
    if resumed and asked.get("device_sha256") != device.digest:
        raise SheetError(f"{asked['device']}: the device is another one than when {place} was begun")
    if place is None:
        place = _free(f"switch-{device.name}")
    elif not resumed:
        RunDirectory.check_free(place)
    bench = bench_named(name)
    bench.enter()
    store = Store.resume(place) if resumed else Store.begin(place, {**asked, "device_sha256": device.digest})
    if resumed:
        store.mend()
    return _measure(asked, device, bench, store, as_json=as_json)


def _measure(asked: dict[str, Any], device: Device, bench: OpenBench, store: Store, *, as_json: bool) -> int:
    from wiregauge import runner, switching
    from wiregauge.master.stopping import leaving_at_second_request
    from wiregauge.records import RunDirectoryError

    troubles: list[str] = []
    virtual = bench.traits.virtual_time
    with (
        leaving_at_second_request(INCOMPLETE),
        runner.open(bench, store.place / switching.RUNS, told=troubles.append) as trials,
    ):
        session = switching.Session(
            device,
            switching.Bench(device, trials, store.place / switching.RUNS, model=virtual),
            store,
            switching.Sizes(quick=not asked["standard"], virtual=virtual),
            tuple(asked["frame_sizes"]),
            say,
        )
        results, stopped = switching.carry_out(session, switching.chosen(asked["tests"]))
        shown = switching.switch_json(session, bench.name, results, stopped)
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
        print_table(["test", "result"], rows, Console())
        if page is not None:
            print(f"report: {page}")
    for trouble in dict.fromkeys(troubles):
        say(trouble)
    if stopped:
        say(f"interrupted: {stopped}; `wiregauge switch --resume {store.place}` goes on")
    whole = not stopped and page is not None and all(one.state != "refused" for one in results)
    return 0 if whole else INCOMPLETE
