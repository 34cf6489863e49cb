"""Streams of one place: imported from captures, judged by a contract, and shown again."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from msgspec import Struct

from wiregauge.terminal import BAD_INPUT, exit_code, fail, make_console, put, put_lines

if TYPE_CHECKING:
    from wiregauge.contracts import Contract
    from wiregauge.streams import Observed

_BEFORE_AND_BEHIND = 2

ContractFile = Annotated[
    Path | None,
    typer.Option(
        "--contract",
        metavar="FILE",
        help="Judge the streams of one place by a contract: TOML, a table of virtual links (CSV), or a test (XML).",
        show_default=False,
    ),
]
TimestampError = Annotated[
    str | None,
    typer.Option(
        "--timestamp-error",
        metavar="TIME",
        help="With --contract: how wrong a time between two frames may be, for example 20us of kernel timestamps.",
        show_default="the step of its timestamps",
    ),
]


class ContractOptions(Struct, frozen=True):
    """What `import` is told of a contract."""

    contract: ContractFile = None
    learn: Annotated[
        Path | None,
        typer.Option(
            "--learn",
            metavar="FILE",
            help="Write what the streams of one place keep as a contract (TOML), to be edited and given to --contract.",
            show_default=False,
        ),
    ] = None
    timestamp_error: TimestampError = None
    dropped: Annotated[
        int | None,
        typer.Option(
            "--dropped",
            metavar="N",
            min=0,
            help="Streams of one place: frames that the capture lacks, where its file does not state it; tcpdump "
            "prints how many.",
            show_default="unknown",
        ),
    ] = None

    @property
    def are_given(self) -> bool:
        """Whether there are any."""
        return any(one is not None for one in (self.contract, self.learn, self.timestamp_error, self.dropped))


def import_streams(
    captures: Sequence[Path],
    out: Path,
    options: ContractOptions,
    *,
    as_json: bool,
    unless_two: bool = False,
) -> int | None:
    """Stores and shows the streams of one place; returns the exit code.

    `unless_two`: None, and nothing stored, if two interfaces may be before and behind a device.
    """
    from wiregauge.streams import StreamsError, networks_seen, observe, written

    contract, error_ns = contract_of(options.contract, options.timestamp_error)
    if options.learn is not None:
        check_new(options.learn)
    try:
        observed = observe(captures, options.dropped)
        if unless_two and len(observed.taps) == _BEFORE_AND_BEHIND and not networks_seen(observed):
            return None
        observed = judged(observed, contract, error_ns)
        written(observed, out)
    except StreamsError as error:
        fail(str(error), BAD_INPUT)
    if options.learn is not None:
        _learn(observed, options.learn)
    page = page_of(observed, out)
    code = show_streams(observed, as_json=as_json)
    if not as_json:
        put(f"report: {page}")
    return code


def page_of(observed: Observed, out: Path) -> Path:
    """Writes the page of streams into their directory; returns its path."""
    from wiregauge.records import RunDirectoryError
    from wiregauge.report import write_streams

    try:
        return write_streams(observed, out)
    except RunDirectoryError as error:
        fail(str(error), BAD_INPUT)


def contract_of(path: Path | None, timestamp_error: str | None) -> tuple[Contract | None, float]:
    """The contract of a file, and how wrong a time between two frames may be, ns."""
    from wiregauge.plan.quantity import QuantityError, time_ns

    if path is None:
        if timestamp_error is not None:
            fail("--timestamp-error has an effect with --contract only; leave it out", BAD_INPUT)
        return None, 0.0
    from wiregauge.contracts import ContractError, contract_of_test, read_contract

    try:
        error_ns = time_ns(timestamp_error) if timestamp_error is not None else 0.0
        if path.suffix.lower() == ".xml":
            from wiregauge.cli.shared import load_test

            loaded = load_test(path)
            return contract_of_test(loaded.campaign, str(path), loaded.xml), error_ns
        return read_contract(path), error_ns
    except QuantityError as error:
        fail(f"--timestamp-error {error}", BAD_INPUT)
    except ContractError as error:
        fail(str(error), BAD_INPUT)


def judged(observed: Observed, contract: Contract | None, error_ns: float) -> Observed:
    """Streams with the results of a contract, if there is one."""
    if contract is None:
        return observed
    from wiregauge.contracts import judge

    return judge(observed, contract, error_ns)


def check_new(path: Path) -> None:
    """Refuses to write over a file, which may have been edited since it was learnt."""
    if path.exists():
        fail(f"{path}: exists, and may have been edited; delete it, or write another file", BAD_INPUT)


def _learn(observed: Observed, path: Path) -> None:
    from wiregauge.contracts import learnt
    from wiregauge.files import ForeignFileError, unwritten, write_whole

    try:
        write_whole(path, learnt(observed))
    except ForeignFileError as error:
        fail(str(error), BAD_INPUT)
    except OSError as error:
        fail(unwritten(path, error), BAD_INPUT)


def report_directory(place: Path) -> None:
    """Writes the page of the streams that a directory holds."""
    from wiregauge.streams import StreamsError, opened

    try:
        put(f"report: {page_of(opened(place), place)}")
    except StreamsError as error:
        fail(str(error), BAD_INPUT)


def show_streams(observed: Observed, *, as_json: bool) -> int:
    """Shows streams, the verdict of a contract first; returns the exit code."""
    from wiregauge.streams import json_text, lines, tables, verdict_lines

    if as_json:
        put_lines(json_text(observed).splitlines())
    else:
        for told in (verdict_lines, lines):
            for line in told(observed):
                put(line)
        tables(observed, make_console())
    return code_of(observed)


def code_of(observed: Observed) -> int:
    """The exit code of streams and their contract."""
    return exit_code(
        answered=observed.complete,
        failed=observed.verdict == "FAIL",
        undecided=observed.verdict == "UNDECIDED",
    )
