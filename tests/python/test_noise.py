"""Host noise: from what agents spool to events beside the messages they explain."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import synthetic
from wiregauge._native import PLAN_SCHEMA
from wiregauge.measures import explaining
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.measures.validity.host_noise import noise_events, noise_view
from wiregauge.plan import EndSystem, Network, Node, plain
from wiregauge.records import RunDirectory
from wiregauge.records.noise import _lines, store_noise
from wiregauge.results import judge

MS = 10**9
EMPTY = {
    "schema": PLAN_SCHEMA,
    "name": "t",
    "seed": 1,
    "axes": [],
    "repeats": 1,
    "runs": [],
    "limits": [],
    "warnings": [],
}


def spool(place: Path, text: str, node: str = "mac") -> RunDirectory:
    names = ["sw1", node]
    nodes = [Node(name, EndSystem(), (2, 0, 0, 0, 0, 1), (198, 18, 0, 1)) for name in names]
    network = plain(Network(tuple(nodes), ()))
    directory = RunDirectory(place, {"plan": {**EMPTY, "network": network}})
    folder = directory.spool(0, names.index(node))
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "noise.tsv").write_text(text)
    return directory


def line(at_ms: float, counter: str, key: str, value: int) -> str:
    return f"{round(at_ms * MS)}\t{counter}\t{key}\t{value}\n"


def test_a_line_without_its_end_is_left_out(tmp_path: Path) -> None:
    directory = spool(tmp_path, line(0, "steal_ns", "cpu0", 10) + "100000\tsteal_ns\tcpu0\t12")
    store_noise(directory, 0)
    table = pl.read_parquet(directory.noise(0))
    assert table.rows() == [(0, "mac", "steal_ns", "cpu0", 10)]
    assert pl.read_parquet_metadata(directory.noise(0))["wiregauge.kind"] == "noise"


def test_without_agents_there_is_no_file(tmp_path: Path) -> None:
    directory = RunDirectory(tmp_path, {})
    store_noise(directory, 0)
    assert not directory.noise(0).exists()


@given(st.text())
def test_no_text_breaks_the_reader(text: str) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "noise.tsv"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        for row in _lines(path, "mac"):
            assert len(row) == 5
            assert row[1] == "mac"


@pytest.fixture
def judged(tmp_path: Path) -> Path:
    """A synthetic run; its hosts were quiet, but for one look."""
    place = synthetic.make(tmp_path / "run")
    text = ""
    switches, steal, frames = 0, 10_000_000, 0
    for look in range(12):
        switches += 900 if look == 6 else 30
        steal += 20_000_000 if look == 6 else 0
        frames += 100
        text += line(100 * look, "switches", "cpu0", switches) + line(100 * look, "rx_frames", "eth0", frames)
        if look in (0, 6):  # agents write what changed
            text += line(100 * look, "steal_ns", "cpu0", steal)
    directory = spool(place, text)
    store_noise(directory, 0)
    return place


def test_events_are_what_is_beyond_the_usual(judged: Path) -> None:
    directory = open_recorded(judged)
    run = judge(judged).runs[0]
    events = list(noise_events(directory, run))
    assert [(event.since, event.at, event.node) for event in events] == [(0.5, 0.6, "mac")] * 2
    told = " ".join(event.text for event in events)
    assert "900 context switches on cpu0, usually 30" in told
    assert "the hypervisor took 20.00 ms of cpu0" in told


@pytest.mark.parametrize(
    ("report", "explains"),
    [
        ({}, True),
        ({"streams": [{"kind": "absorb"}]}, False),
        ({"access_points": [{"protocol": "udp-frames"}]}, False),
        ({"streams": [{"kind": "inject"}], "access_points": [{"protocol": "udp"}]}, True),
        ({"streams": [{"kind": "absorb"}], "access_points": [{"protocol": "udp", "socket_drops": 3}]}, True),
    ],
)
def test_a_socket_that_swallows_by_design_explains_nothing(
    tmp_path: Path, report: dict[str, object], explains: bool
) -> None:
    place = synthetic.make(tmp_path / "run")
    text = "".join(line(100 * look, "socket_drops", "RcvbufErrors", 50 * look) for look in range(4))
    directory = spool(place, text)
    store_noise(directory, 0)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest["runs"][0]["agents"]["mac"].update(report)
    (place / "manifest.json").write_text(json.dumps(manifest))
    opened, run = open_recorded(place), judge(place).runs[0]
    told = [event.text for event in noise_events(opened, run) if "RcvbufErrors" in event.text]
    assert bool(told) == explains
    view = noise_view(opened, run)
    assert bool(view and view.panels) == explains


def test_the_picture_keeps_every_peak(judged: Path) -> None:
    view = noise_view(open_recorded(judged), judge(judged).runs[0])
    assert view is not None
    panels = {title: rows for title, _, rows in view.panels}
    assert max(panels["Stolen time"][0].value) == 20
    assert max(panels["Context switches on the servicing core"][0].value) == 900
    assert view.interval_s == pytest.approx(0.1)


def test_readers_of_host_events_include_the_noise() -> None:
    from wiregauge.measures.explaining.around import READERS

    assert {reader.__name__ for reader in READERS} >= {"_from_agents", "_from_noise", "_from_clocks"}
    assert explaining.explain is not None
