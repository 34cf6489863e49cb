"""`identify`: a switch as a model, from the records of a run."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson
from wiregauge.terminal import BAD_INPUT, fail, make_console
from wiregauge.terminal.tables import print_table

if TYPE_CHECKING:
    from wiregauge.identify.switches import Estimate, SwitchFit

_NS = 1000
_OCTET = 8


def identify(
    directory: Annotated[
        Path,
        typer.Argument(
            metavar="DIR",
            help="Run directory with records of a switch, or imported from captures before and after one.",
            show_default=False,
        ),
    ],
    switch: Annotated[
        str | None, typer.Option(metavar="NAME", help="The switch.", show_default="the only one")
    ] = None,
    run: Annotated[int, typer.Option(metavar="N", help=meant("--run"), min=0)] = 0,
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            "-o",
            metavar="FILE",
            help=meant("--out", ": the model, which a test names: <switch name=... file=FILE/>"),
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    from wiregauge.calibrate.switch_shown import switch_json
    from wiregauge.identify import IdentifyError
    from wiregauge.identify.passed import passed_by
    from wiregauge.identify.switch_file import switch_attributes, switch_remarks, switch_text
    from wiregauge.identify.switches import fit_switch
    from wiregauge.records import RunDirectory

    try:
        fit = fit_switch(passed_by(RunDirectory.open(directory), switch, run))
    except IdentifyError as error:
        fail(str(error), BAD_INPUT)
    said = switch_attributes(fit, fit.name)
    if out is not None:
        try:
            with out.open("x", encoding="utf-8") as file:
                file.write(switch_text(said, switch_remarks(fit, str(directory))))
        except FileExistsError:
            fail(f"{out}: is there already; name another file", BAD_INPUT)
        except OSError as error:
            fail(f"{out}: cannot be written ({error.strerror}); name another file", BAD_INPUT)
    if as_json:
        print(json.dumps(switch_json(fit, said, out), indent=1, ensure_ascii=False))
        return
    _show(fit, out)


def _show(fit: SwitchFit, out: Path | None) -> None:
    console = make_console()
    title = fit.name if out is None else f"{fit.name}: {out}"
    console.print(title, style="bold", highlight=False, markup=False, soft_wrap=True)
    print_table(["parameter", "value", "interval", "n"], list(_parameters(fit)), console, leading=1)
    for sentence in fit.untold:
        console.print(f"  not told: {sentence}", style="dim", highlight=False, markup=False, soft_wrap=True)


def _parameters(fit: SwitchFit) -> Iterator[list[str]]:
    delay, buffer = fit.delay, fit.buffer
    yield ["forwarding", delay.mode or "not told", "", ""]
    yield ["processing delay, ns", *_shown(delay.delay, _NS, 3)]
    size = f"{buffer.least} {buffer.unit}"
    between = "or more" if buffer.below is None else f"{buffer.least} .. {buffer.below - 1}"
    names = {"buffer": "buffer of a port", "queue": "buffer of a priority", "shared": "buffer of all ports"}
    yield [names[buffer.policy], size, between, f"{buffer.lost} lost"]
    for port in fit.ports:
        if port.rate is None:
            yield [
                f"{port.port} rate, Mbit/s",
                f"{port.planned_bps / 1e6:.3f}",
                "as the test says",
                str(port.frames),
            ]
        else:
            yield [f"{port.port} rate, Mbit/s", *_shown(port.rate, 1e6, 3)]
        for name, one in (("guaranteed rate", port.guaranteed), ("packet-scale rate", port.scale)):
            most = "" if one.exceeded is None else f"longer: < {100 * one.exceeded:.3g} % of frames"
            yield [f"{port.port} {name} latency, ns", f"{one.latency_ps / _NS:.3f}", most, str(one.n)]
    for flow, curve in sorted(fit.arrivals.items()):
        yield [
            f"flow {flow} arrivals, Mbit/s + B",
            f"{curve.rate_bps / 1e6:.6g} + {curve.burst_bits / _OCTET:.0f}",
            "",
            str(curve.frames),
        ]


def _shown(one: Estimate, unit: float, digits: int) -> list[str]:
    between = f"{one.low / unit:.{digits}f} .. {one.high / unit:.{digits}f}"
    return [f"{one.value / unit:.{digits}f}", between, str(one.n)]
