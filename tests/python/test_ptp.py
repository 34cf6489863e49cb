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
from wiregauge.measures import Judgement, judge, views

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "ptp.xml"
CLOCKS = ("arm", "bc", "cam", "gps", "mac", "spare")


def ran(tmp_path: Path, text: str) -> tuple[Judgement, Path]:
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
