"""Shared by the tests of the simulator: simulation of a test to records and truth, and the arithmetic of the wire.

The arithmetic follows IEEE Std 802.3 alone and deliberately not the program, which would confirm its own
mistakes. All times are integers in picoseconds.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import polars as pl
from msgspec import Struct

from wiregauge import _native, runner
from wiregauge.config import load
from wiregauge.measures import Judgement
from wiregauge.plan import Campaign, as_json

US = 1_000_000
MS = 1_000 * US

PREAMBLE, GAP, SMALLEST, HEADERS = 8, 12, 64, 14 + 4
IP_UDP = 28


def frame(payload: int, protocol: str = "raw", *, tagged: bool = False) -> int:
    """Bytes of a frame, destination address to FCS."""
    inside = payload + {"raw": 0, "tt": 0, "udp": IP_UDP, "be": IP_UDP, "rc": IP_UDP + 1}[protocol]
    return max(SMALLEST, inside + HEADERS + (4 if tagged else 0))


def bits(count: int, rate: int) -> int:
    """Time of `count` bytes at `rate` bit/s, ps; exact at every rate that Ethernet has."""
    time, rest = divmod(count * 8 * 10**12, rate)
    assert rest == 0
    return time


def sending(length: int, rate: int) -> int:
    """Time from the first bit of the preamble to the last bit of the FCS, ps."""
    return bits(PREAMBLE + length, rate)


def occupation(length: int, rate: int) -> int:
    """Time until the next frame may begin, ps."""
    return bits(PREAMBLE + length + GAP, rate)


class Simulated(Struct):
    """A simulated run."""

    plan: Campaign
    report: dict[str, Any]
    records: pl.DataFrame
    messages: pl.DataFrame
    truth: pl.DataFrame
    summary: dict[str, Any]

    def node(self, name: str) -> int:
        """Index of a node."""
        return self.plan.network.names.index(name)

    def at(
        self, point: str, flow: int | None = None, node: str | None = None, port: int | None = None
    ) -> pl.DataFrame:
        """Records of a point in time order, without the warm-up."""
        found = self.records.filter((pl.col("point") == point) & ~pl.col("warm_up"))
        if flow is not None:
            found = found.filter(pl.col("flow") == flow)
        if node is not None:
            found = found.filter(pl.col("node") == self.node(node))
        if port is not None:
            found = found.filter(pl.col("port") == port)
        return found

    def times(self, point: str, flow: int, node: str | None = None) -> dict[int, int]:
        """Times by sequence number, ps; the first of several."""
        rows = self.at(point, flow, node).select("sequence", "time").iter_rows()
        found: dict[int, int] = {}
        for sequence, time in rows:
            found.setdefault(sequence, time)
        return found

    def latencies(self, flow: int) -> list[int]:
        """Latencies in sequence order, from the sender's first bit out to an ideal receiver's application, ps."""
        sent, came = self.times("wire-send", flow), self.times("application-receive", flow)
        return [came[sequence] - sent[sequence] for sequence in sorted(came)]

    def told(self, kind: str) -> int:
        """The number of entries of a kind in the truth."""
        return self.truth.filter(pl.col("kind") == kind).height

    def dropped(self, reason: str, flow: int | None = None) -> int:
        """The number of drops with this reason."""
        return self.at("drop", flow).filter(pl.col("reason") == reason).height


def tables(place: Path) -> tuple[Path, Path, Path]:
    """Paths for the tables of a run: messages, passages, sketches."""
    return place / "messages.parquet", place / "passages.parquet", place / "sketches.parquet"


def simulate(text: str, place: Path, run: int = 0) -> Simulated:
    """Simulates run `run` of a test given as XML; `place` is an empty directory for its files."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / "t.xml"
    file.write_text(text, encoding="utf-8")
    plan = load(file).campaign
    network, planned = as_json(plan.network), as_json(plan.runs[run])
    report = json.loads(_native.simulate_run(network, planned, str(place / "spool")))
    segments = [str(path) for path in sorted((place / "spool").glob("*/*.arrows"))]
    records, messages = place / "records.parquet", place / "messages.parquet"
    summary = json.loads(_native.process_run(network, planned, segments, records, *tables(place)))
    truth = place / "truth.parquet"
    _native.store_beside("truth", plan.runs[run].index, str(place / "spool" / "truth.arrows"), str(truth))
    return Simulated(
        plan,
        report,
        _plain(records),
        _plain(messages),
        _plain(truth),
        summary,
    )


def trial(test: Path, place: Path, jobs: int = 1) -> Judgement:
    """Simulates a test file into the run directory `place` as the program does, and judges it."""
    with runner.open(runner.SimulatorBench(jobs=jobs)) as trials:
        return trials.run(test, place)


def _plain(path: Path) -> pl.DataFrame:
    table = pl.read_parquet(path)
    return table.with_columns(
        pl.col(name).cast(pl.String) for name, kind in table.schema.items() if kind == pl.Categorical
    )


def written(
    network: str, flows: str, tasks: str, *, attributes: str = "", more: str = "", seed: int = 1
) -> str:
    """A test with ideal hosts, so that only the network takes time."""
    return (
        f'<test xmlns="urn:wiregauge:test:2" name="closed" seed="{seed}">'
        f'<network host="ideal">{network}</network><flows>{flows}</flows>'
        f"<tasks {attributes}>{tasks}</tasks>{more}</test>"
    )
