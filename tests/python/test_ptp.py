"""Clocks that synchronise by PTP: from the example to figures, limits, report, truth and captures."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.measures import Judgement
from wiregauge.results import judge, views

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ptp.xml"
CLOCKS = ("arm", "bc", "cam", "gps", "mac", "spare")


def ran(tmp_path: Path, text: str) -> tuple[Judgement, Path]:
    tmp_path.mkdir(exist_ok=True)
    test, out = tmp_path / "test.xml", tmp_path / "out"
    test.write_text(text, encoding="utf-8")
    CliRunner().invoke(app, ["run", str(test), "--bench", "sim", "--out", str(out)])
    return judge(out), out


@pytest.fixture(scope="module")
def example(tmp_path_factory: pytest.TempPathFactory) -> tuple[Judgement, Path]:
    return ran(tmp_path_factory.mktemp("ptp"), EXAMPLE.read_text(encoding="utf-8"))


def truth_of(out: Path) -> pl.DataFrame:
    truth = pl.read_parquet(out / "truth" / "run-0000.parquet")
    return truth.with_columns(pl.col("kind").cast(pl.String))


def test_the_example_is_what_its_comment_says(example: tuple[Judgement, Path]) -> None:
    judgement, _ = example
    run = judgement.runs[0]
    assert [limit.result for limit in run.limits] == ["pass"] * 3
    (domain,) = run.ptp_domains
    assert tuple(clock.node for clock in domain.clocks) == CLOCKS
    assert domain.grandmaster == "gps"
    assert all(clock.synchronised and clock.grandmaster == "gps" for clock in domain.clocks)
    assert all(clock.losses >= 1 and clock.refused == 0 for clock in domain.clocks)
    assert {clock.part for clock in domain.clocks if clock.node == "bc"} == {"boundary-clock"}


def test_what_the_report_says_of_clocks_is_what_the_truth_shows(example: tuple[Judgement, Path]) -> None:
    """From the samples of every clock alone, with none of the simulator's own account of synchronisation."""
    judgement, out = example
    truth = truth_of(out)
    names = {0: "gps", 1: "spare", 2: "mac", 3: "arm", 4: "cam", 6: "bc"}
    shown = truth.filter(pl.col("kind") == "clock-offset").pivot("node", index="time", values="value")
    (domain,) = judgement.runs[0].ptp_domains
    assert domain.synchronised_at_ns is not None
    assert domain.precision_ns is not None
    calm = shown.filter(pl.col("time").is_between(domain.synchronised_at_ns * 1e3 + 2e12, 69.9e12))
    apart = pl.max_horizontal(*map(str, names)) - pl.min_horizontal(*map(str, names))
    widest = float(calm.select(apart.max()).item()) / 1e3
    assert 0 < widest <= domain.precision_ns
    # Before that instant they were not all within the limit, and from it on they are.
    reference = [(pl.col(str(node)) - pl.col("0")).abs() for node in names]
    beyond = pl.max_horizontal(*reference) > domain.max_offset_ns * 1e3
    earlier = shown.filter(pl.col("time") < domain.synchronised_at_ns * 1e3)
    assert earlier.select(beyond.any()).item()
    assert not calm.select(beyond.any()).item()
    # Who is off by how much from true time, in the measured part.
    measured = shown.filter(pl.col("time").is_between(40e12, 120e12))
    for node, name in names.items():
        (clock,) = (one for one in domain.clocks if one.node == name)
        assert float(measured.select(pl.col(str(node)).abs().max()).item()) / 1e3 <= clock.error_ns
    # And a flow between two of them is as uncertain as they were apart, at least.
    mac, arm = (clock for name in ("mac", "arm") for clock in domain.clocks if clock.node == name)
    between = float(measured.select((pl.col("2") - pl.col("3")).abs().max()).item()) / 1e3
    assert 1_000 < between <= mac.apart_ns + arm.apart_ns


def test_the_report_has_table_and_picture(example: tuple[Judgement, Path]) -> None:
    judgement, out = example
    page = (out / "report.html").read_text(encoding="utf-8")
    assert "PTP" in page
    assert "boundary clock" in page
    assert "ptp-offsets" in page
    drawn = {shape.node: shape for shape in views(judgement).ptp}
    assert set(drawn) == set(CLOCKS)
    assert not len(drawn["gps"].t)
    assert drawn["mac"].distance[:5].max() > 10_000
    assert drawn["mac"].distance[-20:].max() < 200
    assert "spare" in [to for _, to in drawn["mac"].changes]
    assert drawn["mac"].changes[-1][1] == "gps"


def dissected(tmp_path: Path, edits: dict[str, str], fields: list[str]) -> list[list[str]]:
    """What tshark says of PTP in a capture at `arm`, without faults and limits, and with these edits."""
    if shutil.which("tshark") is None:
        pytest.skip("tshark is not installed: the capture was written, but not read by another program")
    text = EXAMPLE.read_text(encoding="utf-8")
    text = re.sub("<faults>.*</faults>|<limits>.*</limits>", "", text, flags=re.S)
    edits = edits | {
        'warm-up="40s" duration="80s"': 'warm-up="8s" duration="4s"',
        "</tasks>": '<capture on="arm"/></tasks>',
    }
    for old, new in edits.items():
        assert old in text
        text = text.replace(old, new)
    _, out = ran(tmp_path, text)
    (capture,) = out.rglob("*.pcapng")
    wanted = [word for name in fields for word in ("-e", name)]
    command = ["tshark", "-r", str(capture), "-Y", "ptp", "-T", "fields", *wanted]
    told = subprocess.run(command, check=True, capture_output=True, text=True)
    return [line.split("\t") for line in told.stdout.splitlines()]


def test_wireshark_reads_what_the_frames_say(tmp_path: Path) -> None:
    rows = dissected(tmp_path, {}, ["ptp.v2.messagetype", "eth.dst", "ptp.v2.correction.ns", "_ws.malformed"])
    kinds = {int(row[0], 0) for row in rows}
    assert {0x0, 0x1, 0x8, 0x9, 0xB} <= kinds  # Sync, Delay_Req, Follow_Up, Delay_Resp, Announce
    assert {row[1] for row in rows} == {"01:1b:19:00:00:00"}
    assert not any(row[3] for row in rows)
    # Behind the transparent clock a Sync says what it was there: 7.76 us, and a frame of each kind at most.
    # Only the last ones: earlier this clock was a master itself.
    waited = [float(row[2]) for row in rows if int(row[0], 0) == 0x0][-24:]
    assert len(waited) == 24
    assert min(waited) == pytest.approx(7_760, abs=9)
    assert max(waited) < 7_760 + 123_040 + 117_600
    assert max(waited) > 20_000


def test_peer_delay_goes_to_the_address_that_bridges_keep(tmp_path: Path) -> None:
    edits = {'boundary-clocks="bc" transparent-clocks="tc"': 'boundary-clocks="bc tc" profile="gptp"'}
    rows = dissected(tmp_path, edits, ["ptp.v2.messagetype", "eth.dst", "ptp.v2.majorsdoid"])
    kinds = {int(row[0], 0) for row in rows}
    assert {0x0, 0x2, 0x3, 0x8, 0xA, 0xB} <= kinds
    assert 0x1 not in kinds
    assert {row[1] for row in rows} == {"01:80:c2:00:00:0e"}
    assert {int(row[2], 0) for row in rows} == {1}


def test_a_domain_that_loses_its_only_master_fails_its_limits(tmp_path: Path) -> None:
    text = EXAMPLE.read_text(encoding="utf-8").replace(' until="95s"', "")
    slaves = "".join(f'<ptp-clock name="{name}" role="slave-only"/>' for name in ("spare", "mac", "arm"))
    text = text.replace('<ptp-clock name="spare" priority1="110"/>', slaves)
    text = text.replace('boundary-clocks="bc" transparent-clocks="tc"', 'transparent-clocks="bc tc"')
    text = re.sub(
        "<limits>.*</limits>", '<limits><limit measure="ptp_missing" at-most="0"/></limits>', text, flags=re.S
    )
    judgement, _ = ran(tmp_path, text)
    (limit,) = judgement.runs[0].limits
    assert limit.result in ("fail", "undecided")
    assert limit.observed is not None
    assert limit.observed >= 4


def test_limits_of_a_run_without_domains_are_undecided(tmp_path: Path) -> None:
    first = (EXAMPLE.parent / "first.xml").read_text(encoding="utf-8")
    limits = '<limits><limit measure="ptp_missing" at-most="0"/></limits>'
    head, tail = first.rsplit("</test>", 1)
    if "<limits>" in head:
        head = head[: head.index("<limits>")]
    judgement, _ = ran(tmp_path, f"{head}{limits}</test>{tail}")
    (limit,) = judgement.runs[0].limits
    assert limit.result == "undecided"
    assert "ptp-domain" in limit.reason


def test_what_clocks_share_with_their_grandmaster_makes_no_flow_uncertain(tmp_path: Path) -> None:
    """The grandmaster runs 50 ppm slow: after a minute clocks are 3 ms off true time, not off one another."""
    text = """<test xmlns="urn:wiregauge:test:2" name="slow"><network host="ideal">
      <end-system name="a"><clock granularity="8ns" drift="-50ppm"/></end-system>
      <end-system name="b"><clock granularity="8ns" drift="20ppm"/></end-system><switch name="s"/>
      <link between="a s" rate="1Gbit/s" delay="100ns"/><link between="b s" rate="1Gbit/s" delay="100ns"/></network>
      <flows><flow id="1" protocol="raw" from="a" to="b"/></flows>
      <synchronise><ptp-domain ordinary-clocks="a b" transparent-clocks="s" sync-interval="125ms"
        delay-interval="125ms"><ptp-clock name="a" role="grandmaster-only"/></ptp-domain></synchronise>
      <tasks warm-up="50s" duration="10s"><send flow="1" period="100ms" payload="64B"/><receive flow="1"/></tasks>
      </test>"""
    judgement, out = ran(tmp_path, text)
    run = judgement.runs[0]
    assert run.validity.word == "VALID", run.checks
    truth = truth_of(out).filter((pl.col("kind") == "clock-offset") & (pl.col("time") > 50e12))
    assert float(truth["value"].abs().max()) > 2.4e9  # type: ignore[arg-type]
    perfect = re.sub('<synchronise>.*</synchronise>| drift="[^"]*"', "", text, flags=re.S)
    exact, _ = ran(tmp_path / "exact", perfect)
    found, wanted = (one.flows[0].summaries["latency"] for one in (run, exact.runs[0]))
    assert found.minimum is not None
    assert wanted.minimum is not None
    assert abs(found.minimum - wanted.minimum) <= found.clock
    run_away, _ = ran(tmp_path / "free", text[: text.index("<synchronise>")] + text[text.index("<tasks") :])
    assert run_away.runs[0].validity.word != "VALID"


def ring(cut: int, seconds: int) -> str:
    """Copies both ways round a ring of 30 switches, with gates, and PTP from a over all of them; a link is cut."""
    joined = "".join(
        f'<link between="r{at} r{at % 30 + 1}" rate="1Gbit/s" delay="100ns"/>' for at in range(1, 31)
    )
    classes = (
        '<traffic-class number="0" priorities="0 1 2 3 4 5"/><traffic-class number="1" priorities="6 7"/>'
    )
    gates = '<gate-schedule><gate-entry open="1" for="500us"/><gate-entry open="0 1" for="500us"/></gate-schedule>'
    switches = "".join(
        f'<switch name="r{at}" delay="1us"><switch-tsn>{classes}{gates}</switch-tsn>'
        f'<clock drift="{at * 37 % 100 - 50}ppm" granularity="8ns"/></switch>'
        for at in range(1, 31)
    )
    ways = [range(1, 12), [1, *range(30, 10, -1)]]
    paths = "".join(f'<path via="{" ".join(f"r{at}" for at in way)}"/>' for way in ways)
    boundary = " ".join(f"r{at}" for at in range(1, 31))
    return f"""<test xmlns="urn:wiregauge:test:2" name="ring"><network host="ideal">
      <end-system name="a"><clock granularity="8ns"/></end-system>
      <end-system name="b"><clock granularity="8ns" drift="40ppm"/></end-system>{switches}
      <link between="a r1" rate="1Gbit/s"/><link between="b r11" rate="1Gbit/s"/>{joined}</network>
      <flows><flow id="1" protocol="raw" from="a" to="b" vlan="2" priority="6"><frer history-length="8"/>{paths}
      </flow></flows>
      <synchronise><ptp-domain ordinary-clocks="a b" boundary-clocks="{boundary}" announce-interval="500ms"
        sync-interval="125ms" delay-interval="125ms" max-offset="10us"><ptp-clock name="a" priority1="1"/></ptp-domain>
      </synchronise>
      <tasks warm-up="{seconds // 2}s" duration="{seconds // 2}s">
        <send flow="1" period="50ms" payload="64B"/><receive flow="1"/></tasks>
      <faults><cut link="r{cut} r{cut % 30 + 1}" from="{seconds * 3 // 4}s"/></faults></test>"""


@pytest.mark.parametrize("cut", range(1, 31))
def test_a_ring_with_copies_gates_and_ptp_loses_nothing_whichever_link_is_cut(
    cut: int, tmp_path: Path
) -> None:
    judgement, _ = ran(tmp_path, ring(cut, 8))
    counts = judgement.runs[0].flows[0].counts
    assert (counts["sent"], counts["delivered"], counts["lost"]) == (80, 80, 0)


def test_the_ring_keeps_its_time_when_a_link_is_cut(tmp_path: Path) -> None:
    judgement, _ = ran(tmp_path, ring(5, 800))
    (domain,) = judgement.runs[0].ptp_domains
    assert judgement.runs[0].flows[0].counts["lost"] == 0
    assert all(clock.grandmaster == "a" and clock.synchronised for clock in domain.clocks)
    losses = {clock.node: clock.losses for clock in domain.clocks}
    assert losses["r1"] == 0
    # r6 heard its master over the link that is cut, and now hears it the other way round.
    assert losses["r6"] >= 1


UNAWARE = """<test xmlns="urn:wiregauge:test:2" name="unaware" seed="1">
  <network host="ideal">
    <end-system name="gm"><clock granularity="8ns"/></end-system>
    <end-system name="dev"><clock granularity="8ns" drift="20ppm"/></end-system> <end-system name="load"/>
    <switch name="sw" delay="2us"/>
    <link between="gm sw" rate="1Gbit/s" delay="50ns"/> <link between="sw dev" rate="100Mbit/s" delay="50ns"/>
    <link between="load sw" rate="1Gbit/s"/>
  </network>
  <flows> <flow id="1" protocol="udp" from="gm" to="dev"/> </flows>
  <synchronise>
    <ptp-domain ordinary-clocks="gm dev" sync-interval="125ms" delay-interval="125ms" {servo}>
      <ptp-clock name="gm" priority1="100"/>
    </ptp-domain>
  </synchronise>
  <tasks warm-up="40s" duration="60s">
    <send flow="1" period="1s" payload="64B"/> <receive flow="1"/>
    {load}
  </tasks>
</test>"""
BURSTS = '<inject on="load" to="dev" load="0.4%" frame="1518B"/>'


def test_the_servo_of_ptp4l_bears_queues_that_lead_the_kalman_filter_astray(tmp_path: Path) -> None:
    """A switch that knows no PTP: one Sync in 25 waits behind up to ten frames, 1.2 ms, and is taken for an offset.

    Without load both have the error that links of two rates make: a Delay_Req is stored 5.2 us longer than a Sync.
    """

    def error_us(servo: str, load: str) -> float:
        judgement, _ = ran(
            tmp_path / re.sub(r"\W", "", servo + load[:9]), UNAWARE.format(servo=servo, load=load)
        )
        (domain,) = judgement.runs[0].ptp_domains
        return next(clock.error_ns for clock in domain.clocks if clock.node == "dev") / 1e3

    kalman = 'servo="kalman"'
    assert 2 < error_us("", "") < 3
    assert 2 < error_us(kalman, "") < 3
    plain = error_us("", BURSTS)
    assert 40 < plain < 0.25 * error_us(kalman, BURSTS)
    # With the constants for software timestamps, which follow a single offset less.
    assert 4 < error_us('kp="0.1" ki="0.001"', BURSTS) < 0.25 * plain
