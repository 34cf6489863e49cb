"""A network as written: a test file, or a format of another tool. Rust interprets it."""

from __future__ import annotations

import codecs
import json
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any, Final, NoReturn

from lxml import etree
from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.config import Diagnostic, TestError, reading
from wiregauge.config.contradicted import Lines, line_named, lines_of, refuse, told
from wiregauge.config.diagnostics import shown
from wiregauge.config.groups import expanded
from wiregauge.config.loading import compile_tree, plain_tree
from wiregauge.plan import Campaign, Network, Run, as_json
from wiregauge.plan.planted import contradictions

__all__ = [
    "RUN_ONLY",
    "Source",
    "every_network",
    "in_run",
    "of_campaign",
    "read",
    "read_bytes",
    "read_every",
    "run_name",
    "with_plan",
]

RUN_ONLY: Final = {"index": 0, "point": {}, "repeat": 0, "seed": 0}
"""Keys in which two runs may differ without any effect on bounds."""


class Source(Struct, frozen=True):
    """A network to bound."""

    file: str
    format: str
    """`output-ports`, `physical` or `plan`."""
    as_json: str
    """The network as JSON, which the native side reads."""
    planned: tuple[Network, Run] | None = None
    """The network and run of a test as planned; None for other formats."""
    notes: tuple[str, ...] = ()
    """Notes on faults that the test plants and its bounds leave out, a sentence each."""
    loses: bool = False
    """Whether the test plants losses: its bounds then hold for the frames that arrive."""
    runs: tuple[int, ...] = ()
    """The runs of a test with this network: the repeats of a point of its sweep, or of several."""
    point: Mapping[str, str] = field(default_factory=dict)
    """The point of a swept test; empty otherwise."""
    lines: Callable[[str], int] = field(default=lambda _: 0)
    """Line of an element of a test, by its name in messages; 0 where unknown."""


def read(path: Path, run: int = 0) -> Source:
    """Reads a network, that of run `run` where a test is swept. Raises `TestError`."""
    return read_bytes(reading.read(path), path, run)


def read_every(path: Path) -> list[Source]:
    """Reads every different network of a file: one, or those of a swept test's points. Raises `TestError`."""
    file, read_as = str(path), _read(reading.read(path), path)
    if isinstance(read_as, Source):
        return [read_as]
    return every_network(read_as.campaign, file, read_as.root)


def read_bytes(data: bytes, path: Path, run: int = 0) -> Source:
    """Reads a network as `read` does, from the text that is, or would be, the file `path`."""
    file, read_as = str(path), _read(data, path)
    if isinstance(read_as, Source):
        return read_as
    campaign = read_as.campaign
    if not 0 <= run < len(campaign.runs):
        _refuse(
            file, 0, "--run", f"the test has no run {run}", f"choose one of 0 to {len(campaign.runs) - 1}"
        )
    return of_campaign(campaign, run, file, read_as.root)


class _Test(Struct, frozen=True):
    campaign: Campaign
    root: etree._Element


def _read(data: bytes, path: Path) -> Source | _Test:
    file = str(path)
    data = data.removeprefix(codecs.BOM_UTF8)
    if data.lstrip()[:1] in (b"{", b"["):
        try:
            text = data.decode("utf-8")
        except UnicodeDecodeError as error:
            line = data.count(b"\n", 0, error.start) + 1
            _refuse(file, line, "", "the file is not UTF-8", "save it as UTF-8")
        return _source(file, "output-ports", {"text": text})
    root = reading.parse(data, file)
    tree = plain_tree(root)
    if tree["tag"] == "elements":
        return _source(file, "physical", {"tree": tree})
    if tree["tag"] != "test":
        message = f"<{shown(tree['tag'])}> is no network"
        _refuse(
            file,
            tree["line"],
            "",
            message,
            "name a test, a physical network (<elements>) or one of output ports (JSON)",
        )
    return _Test(compile_tree(root, file, path.parent), root)


def every_network(campaign: Campaign, file: str, root: etree._Element | None = None) -> list[Source]:
    """The different networks of a compiled test, as `of_campaign` makes them; runs with the same bounds share one."""
    alike: dict[str, list[int]] = {}
    for place, run in enumerate(campaign.runs):
        alike.setdefault(json.dumps({**json.loads(as_json(run)), **RUN_ONLY}), []).append(place)
    found = []
    for runs in alike.values():
        first = campaign.runs[runs[0]]
        try:
            found.append(replace(of_campaign(campaign, runs[0], file, root), runs=tuple(runs)))
        except TestError as error:
            if len(alike) == 1:
                raise
            raise in_run(error, runs[0], first.point) from error
    return found


def in_run(error: TestError, run: int, point: Mapping[str, str]) -> TestError:
    """The error with the run it occurred in."""
    whose = run_name(run, point)
    said = [replace(one, message=f"in {whose}: {one.message}") for one in error.diagnostics]
    return TestError(said, error.total - len(said))


def run_name(run: int, point: Mapping[str, str]) -> str:
    """A run's name in texts, with its point of a sweep: `run 1 (rate 10Mbit/s)`."""
    values = ", ".join(f"{axis} {value}" for axis, value in point.items())
    return f"run {run} ({values})" if values else f"run {run}"


def of_campaign(campaign: Campaign, run: int, file: str, root: etree._Element | None = None) -> Source:
    """The network of a run of a compiled test; `file` is named in diagnostics.

    `root` is its text, for lines, where it is not that file. Raises `TestError` where a planted fault contradicts an
    assumption of every bound.
    """
    network, planned = campaign.network, campaign.runs[run]

    @cache
    def text() -> etree._Element | None:
        own = root
        if own is None and Path(file).is_file():
            own = reading.parse(reading.read(Path(file)), file)
        return None if own is None else expanded(own, file).root

    @cache
    def lines() -> Lines:
        return lines_of(text())

    planted = contradictions(network, planned, "bounds")
    refuse(planted, file, text, "a bound")
    parts = {"network": network, "run": planned}
    limits = [json.loads(as_json(limit)) for limit in campaign.limits]
    written = {key: json.loads(as_json(part)) for key, part in parts.items()}
    source = _source(file, "plan", {"name": campaign.name, "limits": limits, **written})
    return replace(
        source,
        planned=(network, planned),
        notes=tuple(told(planted, text)),
        loses=any(one.loses for one in planted),
        runs=(run,),
        point=planned.point,
        lines=lambda element: line_named(lines(), element),
    )


def with_plan(source: Source, network: Network, run: Run) -> Source:
    """The source of a test with another network and run; its limits stay."""
    kept = {
        **json.loads(source.as_json),
        "network": json.loads(as_json(network)),
        "run": json.loads(as_json(run)),
    }
    return replace(source, as_json=json.dumps(kept), planned=(network, run))


def _source(file: str, form: str, parts: dict[str, Any]) -> Source:
    return Source(file, form, json.dumps({"format": form, **parts}))


def _refuse(file: str, line: int, element: str, message: str, cure: str) -> NoReturn:
    raise TestError([Diagnostic(file, line, element, message, "", cure)])
