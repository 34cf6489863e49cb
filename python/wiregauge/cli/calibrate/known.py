"""Calibrations against what is known: cables of known length, delays of known size."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, Any

import typer

from wiregauge.cli.calibrate.shared import (
    Ending,
    Trials,
    finish,
    progress,
    told,
    trust,
    whole_numbers,
)
from wiregauge.cli.options import meant
from wiregauge.terminal import BAD_INPUT, fail, finite, say


def cable(
    points: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[FILE.csv | LENGTH=DIR...]",
            help="Measured points: a CSV file with length_m and time_ns, or run directories with the length of the "
            "cable they were run over: 2m=run-a 20m=run-b.",
            show_default=False,
        ),
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Measure simulated cables instead, whose truth is known.")
    ] = False,
    lengths: Annotated[
        str, typer.Option(metavar="M,M,...", help="--simulate: lengths, m.")
    ] = "5,10,20,30,40,50,60,100",
    per_metre: Annotated[
        float, typer.Option(min=0.1, max=1000, callback=finite, help="--simulate: delay of a metre, ns.")
    ] = 4.9,
    overhead: Annotated[
        float, typer.Option(min=0, max=1e9, callback=finite, help="--simulate: constant overhead, ns.")
    ] = 813.3,
    granularity: Annotated[
        str, typer.Option(metavar="TIME", help=meant("--granularity", only="--simulate"))
    ] = "10ns",
    count: Annotated[
        int,
        typer.Option(
            min=100, max=1_000_000, help=meant("--count", ": frames of each repeat", only="--simulate")
        ),
    ] = 20_000,
    repeats: Annotated[int, typer.Option(min=1, max=100, help=meant("--repeats", only="--simulate"))] = 5,
    flow: Annotated[
        int | None,
        typer.Option(
            metavar="N", help=meant("--flow", " of the run directories"), show_default="their only one"
        ),
    ] = None,
    measure: Annotated[
        str,
        typer.Option(
            metavar="NAME", help=meant("--measure", " of the run directories: latency or driver_latency")
        ),
    ] = "driver_latency",
    driver: Annotated[
        str, typer.Option(metavar="NAME", help="Driver and interface the points were measured with.")
    ] = "not known",
    link: Annotated[
        str, typer.Option(metavar="NAME", help="Link the points were measured on.")
    ] = "not known",
    *,
    trials: Trials,
    end: Ending,
) -> None:
    """Traversal time over cable length: constant overhead, ns per metre, fraction of c, plausibility."""
    from wiregauge.calibrate import identity, make
    from wiregauge.calibrate.cable import cable_results, read_points
    from wiregauge.calibrate.points import points_of_runs

    given = points or []
    if simulate == bool(given):
        fail("name measured points (a CSV file, or LENGTH=DIR), or --simulate; not both", BAD_INPUT)
    settings: dict[str, Any] = {"points": given}
    trust: dict[str, Any] = {}
    with told():
        if simulate:
            measured, trust = _simulated_cables(
                _lengths(lengths), per_metre, overhead, granularity, count, repeats, trials
            )
            settings = {"simulated": True, "per_metre_ns": per_metre, "overhead_ns": overhead}
            settings |= {"granularity": granularity, "count": count, "repeats": repeats, "seed": trials.seed}
            bench = "sim"
        elif len(given) == 1 and "=" not in given[0]:
            measured, bench = read_points(Path(given[0])), "points"
        else:
            of_runs = points_of_runs(given, flow, measure)
            measured, bench = of_runs.points, "runs"
            settings |= of_runs.settings
            driver, link = of_runs.driver, of_runs.link
        results = cable_results(measured)
    calibration = make(
        "cable",
        bench=bench,
        identity=identity.here(
            driver="simulated" if simulate else driver, link="simulated" if simulate else link
        ),
        settings=settings,
        results=results,
        **trust,
    )
    finish(calibration, end)


def _lengths(text: str) -> list[float]:
    found = []
    for word in text.split(","):
        try:
            value = float(word)
        except ValueError:
            value = -1.0
        if not 0 <= value <= 100_000:
            fail(f'--lengths "{word.strip()}": metres from 0 to 100000, several with commas', BAD_INPUT)
        found.append(value)
    if len(set(found)) < 2:
        fail(f"--lengths {text}: a line needs cables of at least two lengths, better five", BAD_INPUT)
    return found


def _simulated_cables(
    lengths: list[float],
    per_metre: float,
    overhead: float,
    granularity: str,
    count: int,
    repeats: int,
    trials: Trials,
) -> tuple[list[Any], dict[str, Any]]:
    from wiregauge.calibrate import CalibrationError
    from wiregauge.calibrate.instrument import COARSEST_NS, cable_test, simulated_point, step_of

    each = list(dict.fromkeys(lengths))
    tests = [
        cable_test(
            length,
            per_metre_ns=per_metre,
            overhead_ns=overhead,
            granularity=granularity,
            count=count,
            repeats=repeats,
            seed=trials.seed + k,
        )
        for k, length in enumerate(each)
    ]
    measured: list[Any] = []
    outcomes: list[Any] = []
    for outcome in _simulated("simulating cables", tests, trials.runs):
        if step_of(outcome) > COARSEST_NS:
            raise CalibrationError(
                f"--granularity {granularity}: at most {COARSEST_NS:g}ns, for sends are scattered over a microsecond "
                "and a mean does not see below coarser steps"
            )
        measured.append(simulated_point(each[len(outcomes)], outcome.runs))
        outcomes.append(outcome)
    return measured, trust(outcomes, len(each))


def _simulated(what: str, tests: Sequence[Any], runs: Path | None) -> Iterator[Any]:
    """The outcomes of tests, one after the other; one that was stopped is the last."""
    from wiregauge import runner
    from wiregauge.calibrate.runs import run_test, workplace
    from wiregauge.cli.progress import Countdown

    with (
        workplace(runs) as place,
        Countdown(progress(), what, 1.0 * len(tests)) as countdown,
        runner.open("sim", told=say) as opened,
    ):
        for k, test in enumerate(tests):
            outcome = run_test(test, opened, place)
            countdown.at((k + 1) / len(tests))
            yield outcome
            if outcome.state != "complete":
                return


def linearity(
    delays: Annotated[
        str, typer.Option(metavar="NS,NS,...", help="Delays of the line, ns; others count from the first.")
    ] = "0,1000,2000,5000,10000,20000,50000,100000",
    count: Annotated[
        int, typer.Option(min=100, max=1_000_000, help=meant("--count", ": messages of each delay"))
    ] = 5000,
    host: Annotated[str, typer.Option("--host-model", metavar="MODEL", help="Tuned or ideal.")] = "tuned",
    granularity: Annotated[
        str | None, typer.Option(metavar="TIME", help=meant("--granularity"), show_default="a picosecond")
    ] = None,
    *,
    trials: Trials,
    end: Ending,
) -> None:
    """Known delays, injected by the simulator, against measured ones: bias and slope."""
    from wiregauge.calibrate import identity, make
    from wiregauge.calibrate.instrument import delay_test, linearity_results, step_of

    known = [float(value) for value in whole_numbers("--delays", delays, 0, 999_999)]
    with told():
        tests = [
            delay_test(delay, count=count, host=host, granularity=granularity, seed=trials.seed + k)
            for k, delay in enumerate(known)
        ]
        outcomes = list(_simulated("simulating delays", tests, trials.runs))
        measured = [outcome.runs[0].differences("rx_app", "tx_app") for outcome in outcomes]
        results = linearity_results(known[: len(measured)], measured, step_of(outcomes[0]))
    calibration = make(
        "linearity",
        bench="sim",
        identity=identity.here(driver="simulated", link="1 Gbit/s"),
        settings={
            "delays_ns": known,
            "count": count,
            "host": host,
            "granularity": granularity,
            "seed": trials.seed,
        },
        results=results,
        **trust(outcomes, len(known)),
    )
    finish(calibration, end)
