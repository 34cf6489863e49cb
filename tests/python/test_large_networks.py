"""Networks of thousands: the generator of the examples, one simulated and recomputed from its records, its pages."""

from __future__ import annotations

import importlib.util
import itertools
from collections import defaultdict, deque
from pathlib import Path
from types import ModuleType

import polars as pl
import pytest

from simulation import frame, occupation, sending, simulate, trial
from wiregauge.config import load
from wiregauge.figures.model import Line
from wiregauge.figures.network import network_figure
from wiregauge.measures import Judgement
from wiregauge.measures.metrics.series import UNPAIRED
from wiregauge.plan import Campaign, Network
from wiregauge.report.tables import MOST_ROWS, Cell, Head, Section, Table
from wiregauge.runner.benches.capabilities import beyond_namespaces

ROOT = Path(__file__).resolve().parents[2]


def generator() -> ModuleType:
    """The example, as a module."""
    path = ROOT / "examples" / "large_network.py"
    spec = importlib.util.spec_from_file_location("large_network", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def thousand(tmp_path_factory: pytest.TempPathFactory) -> Campaign:
    """The test the generator makes where nobody says otherwise, read from its file as a user does."""
    file = tmp_path_factory.mktemp("large") / "large.xml"
    generator().large_network().write(file)
    return load(file).campaign


def distances(network: Network, source: int) -> dict[int, int]:
    """Links from a node to each other one, by breadth first; an end system hands nothing on."""
    neighbours: dict[int, list[int]] = defaultdict(list)
    for a, b in (link.nodes for link in network.links):
        neighbours[a].append(b)
        neighbours[b].append(a)
    found, front = {source: 0}, deque([source])
    while front:
        at = front.popleft()
        if at != source and network.nodes[at].is_end_system:
            continue
        for other in neighbours[at]:
            if other not in found:
                found[other] = found[at] + 1
                front.append(other)
    return found


@pytest.mark.thorough
def test_the_generator_makes_a_network_of_a_thousand(thousand: Campaign) -> None:
    network, run = thousand.network, thousand.runs[0]
    assert (len(network.end_systems), len(network.nodes), len(run.flows)) == (1_000, 1_050, 4_500)
    assert len({(node.mac, node.ipv4) for node in network.nodes}) == 1_050
    known: dict[int, dict[int, int]] = {}
    for flow in run.flows:
        far = known.setdefault(flow.from_, distances(network, flow.from_))
        (route,) = flow.routes
        assert len(route.hops) == far[flow.to]


def test_namespaces_refuse_what_one_machine_cannot_carry(thousand: Campaign) -> None:
    said = beyond_namespaces(thousand, "kernel")
    assert "the network has 1000 end systems: one machine carries 250 of them in time" in said
    few = generator().large_network(250, 10, 10).compile().campaign
    assert not any("one machine carries" in one for one in beyond_namespaces(few, "kernel"))


def test_one_end_system_more_than_there_may_be(tmp_path: Path) -> None:
    """The line, the limit and the cure; and the same network with one fewer is good."""
    make = generator().large_network
    file = tmp_path / "t.xml"
    make(4_090, 6, 4_090).write(file)
    assert len(load(file).campaign.network.nodes) == 4_096
    make(4_091, 6, 4_091).write(file)
    line = 1 + next(k for k, text in enumerate(file.read_text().splitlines()) if '"sw5"' in text)
    with pytest.raises(Exception, match="4097 end systems") as caught:
        load(file)
    assert (
        f'{file}:{line}: <switch name="sw5">: the network has 4097 end systems, switches and hubs '
        "(limit: 4096); split the test"
    ) in str(caught.value)


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory) -> tuple[Judgement, pl.DataFrame]:
    """300 end systems for a short time, judged; and its raw records."""
    place = tmp_path_factory.mktemp("judged")
    file = place / "t.xml"
    generator().large_network(300, 20, 400, duration="200ms").write(file)
    judgement = trial(file, place / "run")
    files = sorted((place / "run").glob("records/*.parquet"))
    table = pl.read_parquet(files)
    records = table.with_columns(
        pl.col(name).cast(pl.String) for name, kind in table.schema.items() if kind == pl.Categorical
    )
    return judgement, records.filter(~pl.col("warm_up"))


def _times(records: pl.DataFrame, point: str, flow: int, node: int) -> dict[int, int]:
    rows = records.filter((pl.col("point") == point) & (pl.col("flow") == flow) & (pl.col("node") == node))
    return dict(rows.select("sequence", "time").iter_rows())


def _gaps(times: list[int]) -> list[int]:
    return [later - earlier for earlier, later in itertools.pairwise(times)]


def test_every_measure_is_that_of_the_raw_records(judged: tuple[Judgement, pl.DataFrame]) -> None:
    judgement, records = judged
    run = judgement.runs[0]
    names = list(judgement.plan.network.names)
    assert len(run.flows) == 400
    by_flow = records.partition_by("flow", as_dict=True)
    for flow in run.flows:
        own = by_flow[(flow.plan.id,)]
        source, target = names.index(flow.plan.source), names.index(flow.plan.destination)
        sent = _times(own, "application-send", flow.plan.id, source)
        came = _times(own, "application-receive", flow.plan.id, target)
        left = _times(own, "driver-send", flow.plan.id, source)
        seen = _times(own, "driver-receive", flow.plan.id, target)
        due = _times(own, "intended-send", flow.plan.id, source)
        wire = sorted(_times(own, "wire-send", flow.plan.id, source).values())
        latency = {k: came[k] - sent[k] for k in sorted(came)}
        assert (flow.counts["sent"], flow.counts["delivered"]) == (len(sent), len(came))
        assert flow.counts["lost"] == len(sent) - len(came)
        expected = {
            "latency": list(latency.values()),
            "driver_latency": [seen[k] - left[k] for k in seen],
            "stack_down": [left[k] - sent[k] for k in came],
            "network": [seen[k] - left[k] for k in came],
            "stack_up": [came[k] - seen[k] for k in came],
            "period": [sent[k + 1] - sent[k] for k in sent if k + 1 in sent],
            "ipdv": [latency[k + 1] - latency[k] for k in latency if k + 1 in latency],
            "receive_period": _gaps(sorted(came.values())),
            "bag_spacing": _gaps(wire),
        }
        if due:
            expected["send_error"] = [sent[k] - due[k] for k in sent]
            expected["service_latency"] = [came[k] - due[k] for k in came]
        for measure, values in expected.items():
            summary = flow.summaries[measure]
            assert summary.n == len(values), (flow.plan.id, measure)
            if values:
                assert summary.value("min") == pytest.approx(min(values) / 1000, abs=1e-3), (
                    flow.plan.id,
                    measure,
                )
                assert summary.value("max") == pytest.approx(max(values) / 1000, abs=1e-3), (
                    flow.plan.id,
                    measure,
                )
                mean = sum(values) / len(values) / 1000
                assert summary.value("mean") == pytest.approx(mean, rel=1e-9, abs=1e-3)


def test_every_frame_takes_its_route_at_the_rate_of_its_links(
    judged: tuple[Judgement, pl.DataFrame],
) -> None:
    """On every wire one frame at a time, and none faster than the sum of its links."""
    judgement, records = judged
    network = judgement.plan.network
    rates = {(end.node, end.port): link.rate_bps for link in network.links for end in link.ends}
    begun = records.filter(pl.col("point").is_in(["wire-send", "switch-out"]))
    for (node, port), rows in begun.group_by("node", "port"):
        ordered = rows.sort("time")
        times, lengths = ordered["time"].to_list(), ordered["length"].to_list()
        for first, second, length in zip(times, times[1:], lengths, strict=False):
            assert second - first >= occupation(length, rates[int(str(node)), int(str(port))])


def test_a_large_network_is_drawn_with_few_lines(judged: tuple[Judgement, pl.DataFrame]) -> None:
    judgement, _ = judged
    figure = network_figure(judgement.plan)
    assert figure is not None
    network = judgement.plan.network
    assert len(figure.panels[0].traces) < len(network.links) / 2
    lines = [trace for trace in figure.panels[0].traces if isinstance(trace, Line)]
    drawn = sum(max(1, (len(line.x) - 1) // 2) for line in lines)
    assert drawn == len(network.links), "every link is there"


def test_a_table_is_bounded_and_says_so() -> None:
    rows = [[Cell(str(k))] for k in range(MOST_ROWS + 7)]
    table = Table("t", [Head("flow")], [Section("", rows[:10]), Section("", rows[10:])]).bounded()
    assert table.size == MOST_ROWS
    assert table.notes == [f"The first {MOST_ROWS} of {MOST_ROWS + 7} rows; measures.json has them all."]
    assert Table("t", [Head("flow")], [Section("", rows[:MOST_ROWS])]).bounded().size == MOST_ROWS


def test_no_row_with_a_loss_is_left_out_for_others() -> None:
    """Wherever it stands; and where even those are too many, their number is said."""
    rows = [[Cell(str(k)), Cell("1", kind="bad" if k % 1_000 == 999 else "")] for k in range(3 * MOST_ROWS)]
    table = Table("t", [Head("flow"), Head("lost")], [Section("", rows[:7]), Section("", rows[7:])]).bounded()
    shown = [row for section in table.sections for row in section.rows]
    places = [int(row[0].text) for row in shown]
    assert len(shown) == MOST_ROWS
    assert places == sorted(places)
    assert sum(row[1].kind == "bad" for row in shown) == 15
    assert table.notes == [
        f"15 with losses or faults and the first others, {MOST_ROWS} of {3 * MOST_ROWS} rows; "
        "measures.json has them all."
    ]
    bad = [[Cell(str(k), kind="grade text fail")] for k in range(MOST_ROWS + 3)]
    table = Table("t", [Head("flow")], [Section("", bad)]).bounded()
    assert table.size == MOST_ROWS
    assert f"of {MOST_ROWS + 3} with losses or faults" in table.notes[0]


def test_ports_up_to_1024_are_named_in_vlans_and_windows(tmp_path: Path) -> None:
    """A switch with a link at its last port, in the schema and in the plan."""
    text = (
        '<test xmlns="urn:wiregauge:test:2" name="ports"><network host="ideal">'
        '<end-system name="a"/><end-system name="b"/>'
        '<switch name="sw" delay="0s"><vlan id="7" ports="1 1024"/></switch>'
        '<link between="a sw:1" rate="100Mbit/s"/><link between="b sw:1024" rate="100Mbit/s"/></network>'
        '<flows><flow id="65534" protocol="raw" vlan="7" from="a" to="b"/></flows>'
        '<tasks><send flow="65534" period="1ms" payload="100B" count="3"/><receive flow="65534"/></tasks></test>'
    )
    run = simulate(text, tmp_path / "ports")
    assert set(run.at("switch-out")["port"]) == {1_024}
    assert run.latencies(65_534) == [2 * sending(frame(100, tagged=True), 10**8)] * 3


def crowded(frames: int, limit: str) -> str:
    """A test whose switch holds so many frames of one flow at a time: it takes longer for one than all take to come."""
    return (
        '<test xmlns="urn:wiregauge:test:2" name="crowded"><network host="ideal">'
        '<end-system name="a"/><end-system name="b"/><switch name="sw" delay="50ms" buffer="16MiB"/>'
        '<link between="a sw" rate="1Gbit/s"/><link between="b sw" rate="1Gbit/s"/></network>'
        '<flows><flow id="1" protocol="udp" from="a" to="b"/></flows>'
        f'<tasks><send flow="1" period="2us" payload="18B" count="{frames}"/><receive flow="1"/></tasks>'
        f'<limits><limit flow="1" measure="residence.max" {limit}/></limits></test>'
    )


def test_a_limit_on_residence_is_undecided_where_passages_were_forgotten(tmp_path: Path) -> None:
    """More frames wait in a switch than are remembered: how many is said, and none of them can let a limit pass."""
    results = {}
    for name, frames, limit in (
        ("few", 2_000, 'at-most="10s"'),
        ("many", 9_000, 'at-most="10s"'),
        ("failed", 9_000, 'at-most="1us"'),
    ):
        file = tmp_path / f"{name}.xml"
        file.write_text(crowded(frames, limit), encoding="utf-8")
        (run,) = trial(file, tmp_path / name).runs
        (found,) = run.limits
        residence = run.flows[0].summaries["residence"]
        assert residence.n + residence.excluded.get(UNPAIRED, 0) == frames
        results[name] = found.result, found.missing
    forgotten = 9_000 - 8_192
    assert results == {
        "few": ("pass", 0),
        "many": ("undecided", forgotten),
        "failed": ("fail", forgotten),
    }
