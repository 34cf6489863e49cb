"""The agent that is the network between the end systems: how it is told so, and what its report comes to."""

from __future__ import annotations

import io
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from rich.console import Console

import synthetic
from wiregauge.config import load
from wiregauge.measures import Judgement
from wiregauge.measures.comparing.differences import differences
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.metrics.live_network import NetworkResult, ReleaseResult
from wiregauge.measures.metrics.percentiles import unsupported
from wiregauge.measures.validity.network_error import network_error
from wiregauge.plan import NETWORK, NETWORK_NODE
from wiregauge.records import RunDirectory
from wiregauge.records.gaps import gaps_of
from wiregauge.records.reported import Intake, LoadFate, ReleaseReport, RunEntry
from wiregauge.report.write import write
from wiregauge.results import judge, show_json
from wiregauge.results.show_text import show_text
from wiregauge.runner.agents.client import Agent
from wiregauge.runner.agents.network import AgentPlace
from wiregauge.runner.agents.pool import AgentPool
from wiregauge.runner.agents.reports import finished_run
from wiregauge.runner.agents.stream_trials import try_streams
from wiregauge.runner.agents.watching import watch
from wiregauge.runner.rpc import agent_pb2 as pb

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PORTS = (("mac", "h0"), ("sensor", "h1"))


def place(name: str, **more: Any) -> AgentPlace:
    if name == NETWORK:
        return AgentPlace(
            NETWORK, NETWORK_NODE, "unix:/nowhere", "", 1, 60, True, network_ports=PORTS, **more
        )
    return AgentPlace(name, 0, "unix:/nowhere", "eth0", 0, 50, True, card=True, **more)


def asked(agent: Agent, monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What it is asked instead of a program."""
    heard: list[Any] = []

    def call(_name: str, request: Any, reply: Any, **_rest: object) -> Any:
        heard.append(request)
        return reply()

    monkeypatch.setattr(agent, "_call", call)
    return heard


def test_the_network_is_prepared_with_the_other_ends_of_all_links(monkeypatch: pytest.MonkeyPatch) -> None:
    campaign = load(EXAMPLES / "demo.xml").campaign
    network, mac = Agent(place(NETWORK)), Agent(place("mac"))
    requests = []
    for agent in (network, mac):
        heard = asked(agent, monkeypatch)
        agent.prepare(campaign.network, campaign.runs[0], 3, {})
        agent.close()
        requests += heard
    between, at_mac = requests
    assert between.end_system == ""
    assert list(between.ports) == []
    assert [(one.end_system, one.interface) for one in between.network_ports] == list(PORTS)
    assert (between.card, between.fifo_priority, between.servicing_core) == (False, 60, 1)
    assert at_mac.card
    assert list(at_mac.network_ports) == []
    assert [(one.port, one.interface) for one in at_mac.ports] == [(1, "eth0")]


def test_errors_name_the_network() -> None:
    agent = Agent(place(NETWORK))
    silent = agent.is_silent(8)
    agent.close()
    assert str(silent) == "the network gave no sign of life for 8 s"
    assert silent.agent == NETWORK


class Counting:
    """An agent that has counted so much, and is done."""

    def __init__(self, name: str, sent: int) -> None:
        self.place, self.sent = place(name), sent
        self.interfaces: list[str] = []

    def watch(self, _interval_ms: int, _over: threading.Event) -> Iterator[Any]:
        yield pb.Progress(sent=self.sent, received=self.sent, done=True, live=pb.LiveFigures(number=1))

    def received_frames(self, interface: str = "") -> int:
        self.interfaces.append(interface)
        return 8 * (len(self.interfaces) > 1)

    def try_stream(self, _kind: str, _number: int, frames: int) -> int:
        return frames

    def unwatch(self) -> None: ...

    def release(self) -> None: ...

    def close(self) -> None: ...


def test_messages_that_the_network_carries_are_counted_at_their_ends() -> None:
    agents = [Counting(NETWORK, 100), Counting("mac", 3), Counting("sensor", 4)]
    pool = AgentPool([one.place for one in agents])
    for agent in pool.agents:
        agent.close()
    pool.agents = list(agents)  # type: ignore[arg-type]  # they stand in for agents
    shown: list[tuple[float, int, int]] = []
    heard: list[str] = []
    watch(pool, 1.0, lambda *told: shown.append(told), lambda name, _: heard.append(name))
    assert pool.network is pool.agents[0]
    assert list(pool.by_name) == ["mac", "sensor"]
    assert all(sent <= 7 for _, sent, _ in shown)
    assert NETWORK not in heard
    pool.close()


def test_streams_are_tried_as_far_as_the_network() -> None:
    campaign = load(EXAMPLES / "demo.xml").campaign
    agents: dict[str, Any] = {name: Counting(name, 0) for name in ("mac", "sensor")}
    network: Any = Counting(NETWORK, 0)
    choice: Any = pb.StreamChoice(kind="send", number=10, backend="packet", can_be_tried=True)
    run = campaign.runs[0]
    (trial,) = try_streams(agents, {"mac": [choice]}, run, campaign.network.names, network)
    assert trial.succeeded
    assert trial.to == NETWORK
    assert network.interfaces[0] == "h0"
    assert agents["sensor"].interfaces == []


def synthetic_run(path: Path, switches: str = "model", **entry: Any) -> Path:
    """A run directory of one run with the model between its end systems, unless it is said who."""
    made = synthetic.make(
        path / "run", synthetic.Recipe(protocols=("udp",), payloads=(64,), messages=100, warm_up=0)
    )
    manifest = json.loads((made / "manifest.json").read_text(encoding="utf-8"))
    manifest["traits"]["switches"] = switches
    manifest["runs"][0].update(entry)
    (made / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    return made


WHOLE = {"complete": True, "intake": {"frames": 9, "moved": 0, "most_moved_ns": 0, "lost": 0}, "releases": []}


@pytest.mark.parametrize(
    ("entry", "node", "cause"),
    [
        ({"network": WHOLE}, "", ""),
        ({"state": "partial"}, None, "the network ended early"),
        ({"state": "partial", "network": {**WHOLE, "complete": False}}, None, "the network ended early"),
        (
            {"network": {**WHOLE, "intake": {**WHOLE["intake"], "lost": 2}}},  # type: ignore[dict-item]
            None,
            "2 frames did not get into the network: no room, or not taken before its end",
        ),
        (
            {"network": {**WHOLE, "releases": [{"end_system": "sensor", "undelivered": 3}]}},
            1,
            "3 frames of the network to sensor were refused by the kernel",
        ),
    ],
)
def test_messages_are_not_called_lost_that_the_network_lost_sight_of(
    tmp_path: Path, entry: dict[str, Any], node: object, cause: str
) -> None:
    found = gaps_of(RunDirectory.open(synthetic_run(tmp_path, **entry)), 0, [])
    of_network = [gap for gap in found if gap["cause"] != "its agent ended early"]
    assert [(gap["node"], gap["cause"]) for gap in of_network] == ([(node, cause)] if cause else [])
    assert all(gap["frames"] for gap in of_network)


def test_what_the_network_leaves_comes_to_the_places_of_a_simulation(tmp_path: Path) -> None:
    directory = RunDirectory.open(synthetic_run(tmp_path))
    spool = directory.spool(0, NETWORK_NODE)
    for name in ("simulator/000000.arrows", "truth.arrows", "captures/sw1.pcapng", "noise.tsv"):
        file = spool / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.touch()
    of_agent = directory.spool(0, 0) / "000000.arrows"
    of_agent.parent.mkdir()
    of_agent.touch()
    assert directory.segments(0) == sorted([spool / "simulator" / "000000.arrows", of_agent])
    assert directory.spooled_beside("truth", 0) == spool / "truth.arrows"
    assert directory.capture_files(0) == {"sw1.pcapng": spool / "captures" / "sw1.pcapng"}
    assert directory.spooled_by(spool) == NETWORK


def test_a_report_says_of_the_network_what_only_the_network_has() -> None:
    release = pb.PortRelease(end_system="a", frames=3, p999_ns=4000, max_ns=5000, access="af_xdp")
    told = pb.AgentReport(releases=[release], intake=pb.ArrivalIntake(frames=4, moved=1))
    report = finished_run(told).report
    assert report.intake == Intake(frames=4, moved=1)
    assert report.releases == (ReleaseReport("a", 3, p999_ns=4000, max_ns=5000, access="af_xdp"),)
    assert report.foreign == ()
    of_network = {"releases", "intake", "captures", "foreign", "overlong"}
    assert not of_network & msgspec.to_builtins(finished_run(pb.AgentReport()).report).keys()


def entered(report: pb.AgentReport) -> RunEntry:
    entry = RunEntry()
    finished_run(report).enter_network(entry)
    return entry


def test_captures_of_the_model_stand_where_those_at_bridges_do_and_its_loads_with_it() -> None:
    task = pb.TaskReport(kind="capture", planned=9, done=7, passed_over=2)
    told = json.dumps({"agents": {}, "switches": {}, "loads": [{"entered": 9, "left": 7}]})
    report = pb.AgentReport(
        intake=pb.ArrivalIntake(frames=1),
        simulation_json=told,
        captures=[pb.DeviceCapture(node="sw1", task=task)],
        foreign=[pb.ForeignFrames(end_system="a", ether_type=0x86DD, frames=2, dropped={"buffer-full": 1})],
    )
    entry = entered(report)
    assert (entry.captures["sw1"].done, entry.captures["sw1"].passed_over) == (7, 2)
    assert entry.network is not None
    assert entry.network.loads == (LoadFate(entered=9, left=7),)
    assert entry.network.foreign is not None
    assert entry.network.foreign[0].dropped == {"buffer-full": 1}
    assert entry.all_simulation == {"switches": {}}


def test_a_network_that_failed_is_reported_by_why_alone() -> None:
    entry = entered(pb.AgentReport(incomplete_reason="its thread failed"))
    assert entry.network is not None
    assert entry.network.incomplete_reason == "its thread failed"
    assert entry.captures == {}


def test_numbers_of_64_bits_and_figures_of_an_agent_are_numbers_in_the_entry() -> None:
    """Protocol buffers write them as text, and figures as JSON in a text."""
    stream = pb.StreamReport(kind="send", number=7, figures_json='{"offered": 9, "of_another": [1]}')
    told = pb.AgentReport(complete=True, records_written=1 << 40, streams=[stream])
    written = msgspec.to_builtins(finished_run(told, 37).report)
    assert (written["records_written"], written["clock_read_ns"]) == (1 << 40, 37)
    assert written["streams"][0]["figures"] == {"offered": 9, "of_another": [1]}
    assert finished_run(told).report.streams[0].figures.offered == 9


def foreign(kind: int = 0x86DD, line_ns: int = 5_000, **more: Any) -> dict[str, Any]:
    counts = {"frames": 3, "bytes": 240, "delivered": 6, "line_ns": line_ns, "dropped": {}}
    return {"end_system": "sensor", "ether_type": kind, **counts, **more}


def test_frames_of_others_are_noted_and_degrade_what_they_took_much_of(tmp_path: Path) -> None:
    def of(name: str, rows: list[dict[str, Any]] | None) -> Check:
        network = {**WHOLE, "end_system": NETWORK, "releases": [release(late_ns=100)]}
        if rows is not None:
            network["foreign"] = rows
        return check_of(judge(synthetic_run(tmp_path / name, network=network)), "network-foreign")

    assert of("none", []).grade == Grade.OK
    assert of("untold", None).grade == Grade.NOT_LOOKED_AT
    few = of("few", [foreign(), foreign(0, dropped={"buffer-full": 2}), foreign(0x4242, end_system="")])
    assert few.grade == Grade.NOTE
    assert "3 IPv6 (0x86DD) from sensor" in few.observed
    assert "3 of IEEE 802.3 with a length from sensor" in few.observed
    assert "3 of further kinds" in few.observed
    assert "18 copies handed to end systems, buffer full 2; they had lines for 15.00 µs" in few.observed
    much = of("much", [foreign(line_ns=10**9)])
    assert much.grade == Grade.DEGRADED
    assert "they had lines for 1.000 s" in much.reason


def test_frames_that_an_offload_has_put_together_are_lost_by_the_network_with_the_cure(
    tmp_path: Path,
) -> None:
    told = {"end_system": "sensor", "interface": "h1", "frames": 4, "longest": 9_014}
    network = {
        **WHOLE,
        "end_system": NETWORK,
        "intake": {"frames": 400, "moved": 0, "most_moved_ns": 0, "lost": 4},
        "releases": [release(late_ns=100)],
        "overlong": [told],
    }
    check = check_of(judge(synthetic_run(tmp_path, network=network)), "network-lost")
    assert check.grade > Grade.NOTE
    assert check.observed == "0 without room, 0 refused by the kernel, 4 too long for a line"
    assert "4 frames of up to 9014 B from sensor" in check.reason
    assert "ethtool -K h1 gro off lro off" in check.reason


def release(late_ns: int, frames: int = 400, **more: Any) -> dict[str, Any]:
    times = {"p50_ns": 900, "p99_ns": late_ns, "p999_ns": late_ns, "max_ns": 2 * late_ns}
    return {"end_system": "sensor", "frames": frames, "undelivered": 0, **times, **more}


def judged(path: Path, intake: dict[str, int] | None = None, **of_release: Any) -> Any:
    """The judgement of a stored run whose network says so of itself."""
    network = {
        **WHOLE,
        "end_system": NETWORK,
        "intake": {"frames": 400, "moved": 0, "most_moved_ns": 0, "lost": 0, **(intake or {})},
        "releases": [release(**of_release), release(10**9, 0, end_system="flooder")],
    }
    return judge(synthetic_run(path, network=network))


def check_of(judgement: Judgement, name: str) -> Check:
    return next(check for check in judgement.runs[0].checks if check.name == name)


def test_a_network_in_time_is_in_order_and_says_by_how_much(tmp_path: Path) -> None:
    judgement = judged(tmp_path, late_ns=2_000)
    check = check_of(judgement, "network-error")
    assert check.grade == Grade.OK
    assert "late by 900.0 ns at p50, 2.000 µs at p99" in check.observed
    assert "to sensor, n = 400" in check.observed
    assert check_of(judgement, "network-lost").grade == Grade.OK


@pytest.mark.parametrize(
    ("intake", "late_ns"),
    [({}, 50_000_000), ({"moved": 9, "most_moved_ns": 50_000_000}, 100)],
)
def test_a_network_that_is_late_degrades_whichever_half_is(
    tmp_path: Path, intake: dict[str, int], late_ns: int
) -> None:
    check = check_of(judged(tmp_path, intake, late_ns=late_ns), "network-error")
    assert check.grade == Grade.DEGRADED
    assert "times the median latency" in check.reason


def test_one_frame_in_ten_thousand_that_was_moved_is_no_error(tmp_path: Path) -> None:
    intake = {"frames": 40_000, "moved": 4, "most_moved_ns": 50_000_000}
    assert check_of(judged(tmp_path, intake, late_ns=100), "network-error").grade == Grade.OK


def test_a_limit_is_what_the_error_is_held_against(tmp_path: Path) -> None:
    late = unsupported(QUANTILES)
    network = NetworkResult(frames=400, releases=(ReleaseResult("sensor", 400, late, 1_200.0, 0),))
    evidence = {"switches": "model", "network": network}
    judgement = judged(tmp_path, late_ns=100)
    run = judgement.runs[0]
    of_limit = LimitPlan(10, "latency.max", "at-most", 10_000.0, "10us", 3)

    def of(*limits: LimitPlan) -> Grade:
        known: Any = SimpleNamespace(**evidence, flows=run.flows, limits=limits, gaps=(), total=lambda _: 0)
        return next(iter(network_error(known))).grade

    assert of() == Grade.OK
    assert of(of_limit) == Grade.DEGRADED, "12 % of 10 µs"
    assert of(replace(of_limit, value=20_000.0)) == Grade.OK
    assert of(replace(of_limit, bound="at-least")) == Grade.OK
    assert of(replace(of_limit, flow=77)) == Grade.OK


def test_what_the_network_lost_itself_is_a_check_of_its_own(tmp_path: Path) -> None:
    check = check_of(judged(tmp_path, {"lost": 2}, late_ns=100, undelivered=1), "network-lost")
    assert check.grade > Grade.NOTE
    assert check.observed == "2 without room, 1 refused by the kernel"


def test_bridges_have_nothing_to_look_at_and_the_simulator_no_such_check(tmp_path: Path) -> None:
    bridges = judge(synthetic_run(tmp_path / "bridges", "kernel"))
    check = check_of(bridges, "network-error")
    assert check.grade == Grade.NOT_LOOKED_AT
    assert "bridges of the kernel" in check.observed


def test_report_and_show_state_the_networks_own_error(tmp_path: Path) -> None:
    judgement = judged(tmp_path, late_ns=2_000, intake={"moved": 3, "most_moved_ns": 7_000})
    page = write(judgement.directory, judgement).read_text(encoding="utf-8")
    assert "The network's own error" in page or "The network&#39;s own error" in page
    assert "3 came late into the model, by 7.00 µs at most" in page
    shown: Any = show_json(judgement)
    (run,) = shown["runs"]
    assert run["network"]["moved"] == 3
    assert [one["end_system"] for one in run["network"]["releases"]] == ["sensor", "flooder"]
    console = Console(record=True, width=200, file=io.StringIO())
    show_text(judgement, console)
    assert "the network's own error: late by" in console.export_text()
    plain = judge(synthetic_run(tmp_path / "plain", "kernel"))
    assert all("network" not in one for one in show_json(plain)["runs"])


def test_runs_with_bridges_and_with_the_model_differ_and_compare_says_so(tmp_path: Path) -> None:
    played = judged(tmp_path, late_ns=2_000)
    bridges = judge(synthetic_run(tmp_path / "bridges", "kernel"))
    told = "what plays switches and links: bridges of the kernel against the model, in real time"
    assert told in differences(bridges, played)
    assert not any("plays switches" in line for line in differences(played, played))


def test_load_that_full_queues_of_the_model_dropped_is_where_it_was_to_be() -> None:
    report = pb.AgentReport(
        intake=pb.ArrivalIntake(frames=1),
        simulation_json=json.dumps({"agents": {}, "switches": {"sw1": {"ports": [{"port": 1}]}}}),
    )
    assert entered(report).all_simulation == {"switches": {"sw1": {"ports": [{"port": 1}]}}}
