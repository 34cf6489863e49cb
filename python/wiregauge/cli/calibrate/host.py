"""`wiregauge calibrate host`: hosts as the records of a run tell, as files that a test names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from wiregauge.cli.calibrate.shared import BenchName, Host, Seed, entered, period_ps, progress, told
from wiregauge.cli.grouped import in_groups
from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, fail, make_console, print_table, say

if TYPE_CHECKING:
    from wiregauge.calibrate.host_model import Prediction
    from wiregauge.identify import HostFit
    from wiregauge.measures import Judgement


@in_groups
def host(
    out: Annotated[
        Path,
        typer.Option(
            "--out", "-o", metavar="DIR", help=meant("--out", ": a new folder for the models and their runs")
        ),
    ],
    run: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="DIR",
            help=meant("--from", " run directory, which tells of the hosts, of any test and bench"),
            show_default="a test made for it is run",
        ),
    ] = None,
    names: Annotated[
        list[str] | None,
        typer.Option(
            "--host",
            metavar="NAME",
            help="End system of that test; may be given several times.",
            show_default="all",
        ),
    ] = None,
    beside: Annotated[
        list[Path] | None,
        typer.Option(
            "--beside",
            metavar="DIR",
            help=meant(
                "--beside",
                " of the same hosts, which the models did not see: is it what they predict? Repeatable",
            ),
            show_default="the run they are from",
        ),
    ] = None,
    bench: BenchName = "netns",
    count: Annotated[
        int,
        typer.Option(
            min=200, max=1_000_000, help=meant("--count", ": messages of each length of the test that is run")
        ),
    ] = 3_000,
    rate: Annotated[str, typer.Option(metavar="RATE", help=meant("--rate"))] = "1Gbit/s",
    seed: Seed = 1,
    *,
    machine: Host,
    as_json: AsJson = False,
) -> None:
    """Identify hosts: costs, interrupts and wake-up times, as host models for the simulator."""
    from wiregauge import runner
    from wiregauge.calibrate.host_model import beside as laid_beside
    from wiregauge.calibrate.host_model import host_test, predict, write_model
    from wiregauge.calibrate.host_shown import host_json
    from wiregauge.identify import IdentifyError, fit_host, hosts_of
    from wiregauge.records import RunDirectory, RunDirectoryError

    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        fail(f"{out}: already holds something; name a folder that is empty or does not exist", BAD_INPUT)
    try:
        with told():
            if run is None:
                run = out / "run"
                _run(host_test(bench=bench, count=count, rate=rate, seed=seed), bench, machine, run)
            directory = RunDirectory.open(run)
            chosen = names or list(hosts_of(directory.plan))
            fits = {name: fit_host(directory, name) for name in chosen}
            out.mkdir(parents=True, exist_ok=True)
            files = {name: out / f"{name}.host.xml" for name in chosen}
            for name, fit in fits.items():
                write_model(files[name], fit, name, str(run))
            laid = {}
            with runner.open("sim", told=say) as trials:
                for number, other in enumerate(beside or [run]):
                    place = out / f"prediction-{number + 1}"
                    simulated = predict(RunDirectory.open(other), files, trials, place)
                    laid[str(other)] = laid_beside(runner.judged(other, say), simulated)
    except (IdentifyError, RunDirectoryError) as error:
        fail(str(error), BAD_INPUT)
    except OSError as error:
        fail(f"{out}: cannot be written ({error.strerror}); name another folder", BAD_INPUT)
    if as_json:
        print(json.dumps(host_json(fits, files, laid, seen=beside is None), indent=1, ensure_ascii=False))
        return
    _show(fits, files, laid, seen=beside is None)


def _run(test: Any, bench: str, machine: Host, place: Path) -> Judgement:
    from wiregauge import runner
    from wiregauge.calibrate.errors import BenchMissingError
    from wiregauge.cli.progress import ProgressView
    from wiregauge.runner import BenchError

    period_ps(test)
    opened = entered(bench, machine)
    place.parent.mkdir(parents=True, exist_ok=True)
    try:
        with runner.open(opened, observer=ProgressView(progress()), told=say) as trials:
            judgement = trials.run(test, place, file="host model")
    except BenchError as error:
        raise BenchMissingError(str(error)) from None
    if judgement.state != "complete":
        fail(f"{place}: {judgement.reason}; the models would be of a part", INCOMPLETE)
    return judgement


def _show(
    fits: dict[str, HostFit], files: dict[str, Path], laid: dict[str, list[Prediction]], *, seen: bool
) -> None:
    from wiregauge.calibrate.host_shown import INTERVALS

    console = make_console()
    for name, fit in fits.items():
        console.print(f"{name}: {files[name]}", style="bold", highlight=False, markup=False, soft_wrap=True)
        print_table(["parameter", "value", "± (95 %)", "n"], _parameters(fit), console, leading=1)
        for sentence in fit.untold:
            console.print(
                f"  not told: {sentence}", style="dim", highlight=False, markup=False, soft_wrap=True
            )
        console.print()
    console.print(INTERVALS, style="dim", highlight=False, markup=False, soft_wrap=True)
    console.print()
    for run, rows in laid.items():
        which = "which the models are from" if seen else "which the models did not see"
        console.print(
            f"latency in {run}, {which}", style="bold", highlight=False, markup=False, soft_wrap=True
        )
        table = [
            [one.run, one.flow, one.statistic, _us(one.measured), _us(one.predicted), _ratio(one), str(one.n)]
            for one in rows
        ]
        heads = ["run", "flow", "figure", "measured, µs", "predicted, µs", "ratio", "n"]
        print_table(heads, table, console, leading=3)
        console.print()


def _parameters(fit: HostFit) -> list[list[str]]:
    from wiregauge.plan.quantity import time_text

    rows = []
    for name, cost in (
        ("transmit", fit.transmit),
        ("receive", fit.receive),
        ("between drivers", fit.passage),
    ):
        for part, one in (("", cost.fixed), (" per byte", cost.per_byte)) if cost is not None else ():
            if one is not None:
                half = time_text(round(one.half)) if one.half is not None else "unknown"
                rows.append([f"{name}{part}", time_text(one.value), half, str(one.n)])
    if fit.interface_delay is not None:
        one = fit.interface_delay
        half = time_text(round(one.half)) if one.half is not None else "unknown"
        rows.append(["interface delay", time_text(one.value), half, str(one.n)])
    if (rule := fit.moderation) is not None:
        kind = " ".join(
            [
                rule.kind,
                *([time_text(rule.wait)] if rule.wait is not None else []),
                *([f"{rule.frames} frames"] if rule.frames is not None else []),
            ]
        )
        rows.append([f"interrupts ({rule.explains:.1%} explained)", kind, "", str(rule.n)])
        rows.append(["interrupt latency", time_text(rule.latency), time_text(rule.tolerance), str(rule.n)])
    for name, wake in (
        ("send wake-up p50, max", fit.send_wake_up),
        ("receive wake-up p50, max", fit.receive_wake_up),
        ("relay wake-up p50, max", fit.relay_wake_up),
    ):
        if wake is not None:
            middle = next((time for share, time in wake if share >= 50), wake[-1][1])
            rows.append([name, f"{time_text(middle)}, {time_text(wake[-1][1])}", "", ""])
    return rows


def _us(value: float | None) -> str:
    return f"{value / 1000:.3f}" if value is not None else "-"


def _ratio(one: Prediction) -> str:
    return f"{one.ratio:.3f}" if one.ratio is not None else "-"
