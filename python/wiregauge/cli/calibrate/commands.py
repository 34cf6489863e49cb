"""`wiregauge calibrate …`: what the instrument itself costs, measured, printed with its uncertainty, and kept."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from wiregauge.cli.calibrate.host import host
from wiregauge.cli.calibrate.kept import list_all, show
from wiregauge.cli.calibrate.known import cable, linearity
from wiregauge.cli.calibrate.shared import (
    Backend,
    Carried,
    Ending,
    Host,
    Mode,
    Place,
    Protocol,
    Rate,
    Trials,
    cores,
    entered,
    finish,
    measured_on,
    period_ps,
    progress,
    rate_bps,
    told,
    trust_of,
    whole_numbers,
)
from wiregauge.cli.grouped import in_groups
from wiregauge.cli.options import meant
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, fail, finite, say

app = typer.Typer(
    name="calibrate",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
)


@app.command()
@in_groups
def clocks(
    reads: Annotated[
        int, typer.Option(min=100, max=100_000_000, help="Number of readings per clock.")
    ] = 1_000_000,
    seconds: Annotated[
        float,
        typer.Option(
            min=0.2,
            max=86_400.0,
            callback=finite,
            help="Time over which drift is measured, s.",
        ),
    ] = 10.0,
    phc: Annotated[
        list[Path] | None,
        typer.Option(
            "--phc",
            metavar="DEVICE",
            help="PTP hardware clock; may be given several times.",
            show_default="all of /dev/ptp*",
        ),
    ] = None,
    core: Annotated[
        int | None, typer.Option(min=0, help="Core to measure on.", show_default="the first")
    ] = None,
    realtime: Annotated[bool, typer.Option("--realtime/--no-realtime", help=meant("--realtime"))] = True,
    *,
    end: Ending,
) -> None:
    """Cost of a clock reading, resolution, and drift between clocks."""
    from wiregauge.calibrate import identity, make
    from wiregauge.calibrate.agentwork import listen
    from wiregauge.calibrate.clocks import clock_results
    from wiregauge.cli.progress import Countdown

    devices = phc if phc is not None else sorted(Path("/dev").glob("ptp[0-9]*"))
    place = core if core is not None else cores()[0]
    if place not in cores():
        fail(f"--core {place}: this program may use the cores {', '.join(map(str, cores()))}", BAD_INPUT)
    facts: list[Any] = []
    arguments = ["clocks", f"--reads={reads}", f"--seconds={seconds}", f"--core={place}"]
    arguments += [f"--priority={50 if realtime else 0}", *(f"--phc={device}" for device in devices)]
    arguments += [f"--every-ms={max(1, round(seconds * 1000 / 2000)) if seconds > 40 else 20}"]
    expected = seconds + 0.1 + 10 * reads * 60e-9
    with told():
        with Countdown(progress(), "reading clocks", expected) as countdown:

            def heard(fact: Any) -> None:
                facts.append(fact)
                total = next((2 * len(f["clocks"]) for f in facts if f["kind"] == "begun"), 16)
                told = sum(f["kind"] in ("cost", "step") for f in facts)
                together = [f["raw"] for f in facts if f["kind"] == "together"]
                spent = (together[-1] - together[0]) / 1e9 if together else 0.0
                early = (expected - seconds) * min(told / total, 1.0)
                countdown.at(min((early + spent) / expected, 1.0))

            whole = listen(arguments, heard)
        if not facts:
            fail("stopped before anything was measured", INCOMPLETE)
        results = clock_results(facts)
    calibration = make(
        "clocks",
        bench="host",
        identity=identity.here(driver="none", link="none", realtime=realtime),
        settings={
            "reads": reads,
            "seconds": seconds,
            "core": place,
            "phc": [str(device) for device in devices],
        },
        results=results,
        state="complete" if whole else "interrupted",
    )
    finish(calibration, end)


@app.command()
@in_groups
def pacing(
    period: Annotated[str, typer.Option(metavar="TIME", help=meant("--period", ", for example 1ms"))] = "1ms",
    count: Annotated[
        int,
        typer.Option(
            min=100, max=10_000_000, help=meant("--count", ": messages, and ticks of the timer loop")
        ),
    ] = 3000,
    protocol: Carried = Protocol.RAW,
    rate: Rate = "1Gbit/s",
    *,
    host: Host,
    trials: Trials,
    end: Ending,
) -> None:
    """The send schedule against the ideal tick, beside a plain timer loop; the jitter of the host."""
    import numpy as np

    from wiregauge import runner
    from wiregauge.calibrate import identity, make
    from wiregauge.calibrate.agentwork import tick
    from wiregauge.calibrate.instrument import pacing_results, pacing_test
    from wiregauge.calibrate.runs import run_test, workplace
    from wiregauge.cli.progress import Countdown, ProgressView

    with told():
        test = pacing_test(protocol=protocol.value, period=period, count=count, rate=rate, seed=trials.seed)
        tick_ps = period_ps(test)
        bench = entered("netns", host)
        priority = 50 if host.realtime else 0
        half = max(count // 2, 1)
        timer, refused, whole = [], [], True
        outcome = None
        with (
            workplace(trials.runs) as folder,
            runner.open(bench, observer=ProgressView(progress()), told=say) as opened,
        ):
            for turn in ("timer loop, first half", "sender", "timer loop, second half"):
                if not whole:
                    break
                if turn == "sender":
                    outcome = run_test(test, opened, folder)
                    whole = outcome.state == "complete"
                    continue
                with Countdown(progress(), turn, half * tick_ps / 1e12) as countdown:
                    late, refusals, whole = tick(
                        tick_ps // 1000, half, core=cores()[0], priority=priority, progress=countdown.at
                    )
                timer.append(late)
                refused += refusals
        ours = outcome.runs[0].differences("tx_app", "intended") if outcome and outcome.runs else np.empty(0)
        calibration = make(
            "pacing",
            bench=bench.name,
            identity=identity.here(
                driver=bench.traits.driver, link=identity.rate_name(rate_bps(rate)), realtime=host.realtime
            ),
            settings={
                "period": period,
                "count": count,
                "protocol": protocol.value,
                "priority": priority,
                "refused": sorted(set(refused)),
            },
            results=pacing_results(ours, np.concatenate(timer), tick_ps / 1e3),
            grade=outcome.grade if outcome else "INVALID",
            reasons=outcome.reasons if outcome else ["the sender did not run"],
            state="complete" if whole else "interrupted",
        )
    finish(calibration, end)


@app.command()
@in_groups
def generator(
    frame: Annotated[int, typer.Option(min=64, max=1518, help="Length of the frames with FCS, B.")] = 600,
    gap: Annotated[
        int, typer.Option(min=1, max=1_000_000_000, help="Start to start in the second test, ns.")
    ] = 24_000,
    count: Annotated[
        int, typer.Option(min=200, max=10_000_000, help=meant("--count", ": frames of each test"))
    ] = 100_000,
    protocol: Carried = Protocol.RAW,
    mode: Annotated[Mode, typer.Option(help="What a late sender keeps: the rate, or every gap.")] = Mode.RATE,
    backend: Annotated[
        Backend, typer.Option(help="netns: backend; auto = the simplest that is fast enough.")
    ] = Backend.AUTO,
    *,
    place: Place,
    host: Host,
    trials: Trials,
    end: Ending,
) -> None:
    """Frame generation at line rate and at a gap: deviation, mean bandwidth, burst share."""
    from wiregauge.calibrate import make
    from wiregauge.calibrate.instrument import generator_cases, generator_results, generator_test
    from wiregauge.runner import BENCHES

    model = "ideal" if BENCHES[place.bench].traits.virtual_time else None
    with told():
        cases = generator_cases(frame, gap, rate_bps(place.rate))
        test = generator_test(
            cases,
            protocol=protocol.value,
            count=count,
            rate=place.rate,
            seed=trials.seed,
            host=model,
            mode=mode.value,
            backend=backend.value,
        )
        outcome, own = measured_on(place, host, trials.runs, test)
        found = [
            generator_results(cases[run.plan.index], run, protocol.value, rate_bps(place.rate))
            for run in outcome.runs
        ]
    calibration = make(
        "generator",
        bench=place.bench,
        identity=own,
        settings={
            "frame_bytes": frame,
            "gap_ns": gap,
            "mode": mode.value,
            "backend": backend.value,
            "count": count,
            "protocol": protocol.value,
            "seed": trials.seed,
        },
        results={"cases": found},
        **trust_of(outcome, found),
    )
    finish(calibration, end)


@app.command()
@in_groups
def loop(
    payload: Annotated[
        str, typer.Option(metavar="B,B,...", help=meant("--payload", " to calibrate, bytes"))
    ] = "64",
    loads: Annotated[
        str,
        typer.Option(metavar="%,%,...", help="Loads in the opposite direction, percent of the link rate."),
    ] = "0,25,50,75,100",
    period: Annotated[str, typer.Option(metavar="TIME", help=meant("--period", ", for example 1ms"))] = "1ms",
    count: Annotated[
        int, typer.Option(min=100, max=10_000_000, help=meant("--count", ": messages of each repeat"))
    ] = 1000,
    repeats: Annotated[int, typer.Option(min=1, max=100, help=meant("--repeats"))] = 5,
    protocol: Carried = Protocol.UDP,
    *,
    place: Place,
    host: Host,
    trials: Trials,
    end: Ending,
) -> None:
    """Back to back, idle and under load: systematic error, 95 % random error, maximum deviation."""
    from wiregauge.calibrate import make
    from wiregauge.calibrate.instrument import loop_results, loop_test

    payloads = whole_numbers("--payload", payload, 12, 1500)
    shares = whole_numbers("--loads", loads, 0, 100)
    with told():
        test = loop_test(
            protocol=protocol.value,
            payloads=payloads,
            loads=shares,
            period=period,
            count=count,
            repeats=repeats,
            rate=place.rate,
            seed=trials.seed,
        )
        outcome, own = measured_on(place, host, trials.runs, test)
        results = loop_results(outcome.runs, protocol.value)
    calibration = make(
        "loop",
        bench=place.bench,
        identity=own,
        settings={
            "payload_bytes": payloads,
            "load_percent": shares,
            "period": period,
            "count": count,
            "repeats": repeats,
            "protocol": protocol.value,
            "seed": trials.seed,
        },
        results=results,
        **trust_of(outcome, results["points"]),
    )
    finish(calibration, end)


app.command()(in_groups(cable))
app.command()(in_groups(linearity))
app.command()(host)
app.command("list")(list_all)
app.command()(show)
