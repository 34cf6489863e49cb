"""Replication and elimination (IEEE Std 802.1CB): the example, a ring, what is counted and limited, who refuses it."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest

from simulation import Simulated, simulate, trial
from wiregauge import results
from wiregauge.config import load
from wiregauge.measures import explaining
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.flow_measures import ELIMINATION
from wiregauge.measures.quantities import quantity
from wiregauge.runner.benches.capabilities import beyond_hosts

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
RING = (EXAMPLES / "ring-frer.xml").read_text(encoding="utf-8")
SWITCHES = 30


def ring(cut: int | None, *, frer: bool = True) -> str:
    """Flows both ways round a ring of 30 switches; link `cut`, from r1 r2 on, is cut in the middle."""
    links = "".join(
        f'<link between="r{at} r{at % SWITCHES + 1}" rate="1Gbit/s" delay="100ns"/>'
        for at in range(1, SWITCHES + 1)
    )
    one = " ".join(f"r{at}" for at in range(1, 12))
    other = "r1 " + " ".join(f"r{at}" for at in range(SWITCHES, 10, -1))
    ways = f'<path via="{one}"/>' + (f'<path via="{other}"/>' if frer else "")
    back = f'<path via="{" ".join(reversed(one.split()))}"/>'
    back += f'<path via="{" ".join(reversed(other.split()))}"/>' if frer else ""
    ends, switches = (
        '<frer history-length="8"/>',
        '<frer history-length="8" replicate-at="r11" eliminate-at="r1"/>',
    )
    fault = f'<faults><cut link="r{cut} r{cut % SWITCHES + 1}" from="10003us"/></faults>' if cut else ""
    return f"""<test xmlns="urn:wiregauge:test:2" name="ring">
      <network host="ideal"><end-system name="a"/><end-system name="b"/><switch name="r[1-{SWITCHES}]" delay="1us"/>
        <link between="a r1" rate="1Gbit/s"/><link between="b r11" rate="1Gbit/s"/>{links}</network>
      <flows><flow id="1" protocol="raw" from="a" to="b">{ends if frer else ""}{ways}</flow>
        <flow id="2" protocol="udp" from="b" to="a">{switches if frer else ""}{back}</flow></flows>
      <tasks duration="20ms"><send flow="1" period="500us" payload="64B"/><receive flow="1"/>
        <send flow="2" period="500us" payload="500B"/><receive flow="2"/></tasks>{fault}
      <limits><limit measure="lost" at-most="0"/><limit measure="elimination.lost" at-most="0"/></limits></test>"""


def counts(run: Simulated) -> list[tuple[int, int, int]]:
    return [(flow["sent"], flow["lost"], flow["duplicated"]) for flow in run.summary["flows"]]


@pytest.mark.parametrize("cut", [1, 10, 11, 20, 30])
def test_a_ring_loses_nothing_whichever_link_is_cut(cut: int, tmp_path: Path) -> None:
    # Every one of the 30 links is cut in crates/sim/tests/scenarios/frer.rs.
    run = simulate(ring(cut), tmp_path / "both")
    assert counts(run) == [(40, 0, 0), (40, 0, 0)]
    dropped = run.records.filter(pl.col("point") == "drop")
    assert set(dropped["reason"]) == {"second-copy"}
    one_way = simulate(ring(cut, frer=False), tmp_path / "one")
    assert (counts(one_way)[0][1] > 0) == (cut <= 10)


def test_the_example_is_what_it_says(tmp_path: Path) -> None:
    run = simulate(RING, tmp_path / "run")
    assert counts(run) == [(100, 0, 0), (100, 0, 0)]
    found = run.report["frer"]
    brake, camera = found["1"], found["2"]
    # Messages 30 to 69 have one copy.
    assert brake["came"] == camera["came"] == [60, 100]
    assert (brake["node"], brake["recovery"]["passed"], brake["recovery"]["discarded"]) == (
        "control",
        100,
        60,
    )
    assert (camera["node"], camera["recovery"]["passed"], camera["recovery"]["discarded"]) == ("r1", 100, 60)
    assert brake["latent_errors"] > 0
    assert "latent_errors" not in camera
    # The tag is there between copying and elimination only: of the camera's frames at no end system.
    lengths = run.records.filter(pl.col("flow") == 2).group_by("point").agg(pl.col("length").unique())
    by_point = dict(lengths.iter_rows())
    plain = 14 + 20 + 8 + 1200 + 4
    assert by_point["wire-send"] == by_point["wire-receive"] == [plain]
    assert sorted(by_point["switch-out"]) == [plain, plain + 6]


def test_a_copy_that_went_the_long_way_is_explained_by_it(tmp_path: Path) -> None:
    """While the link is cut, copies arrive the other way round the ring alone; no port took longer for it."""
    trial(EXAMPLES / "ring-frer.xml", tmp_path / "run")
    brake, camera = explaining.explain(results.judge(tmp_path / "run"), worst=3).flows
    for found, nodes in ((brake, ["brake", "r1", "r6", "r5", "r4", "r3"]), (camera, ["camera", "r3", "r4"])):
        for message in found.worst:
            assert message.cause == "copy"
            assert "by the path that usually takes" in message.sentence
            assert sum(step.took for step in message.steps) == pytest.approx(message.value, abs=0.01)
            came_by = [step.title.split()[1] for step in message.steps if step.kind == "link"]
            assert came_by[: len(nodes)] == nodes


def test_elimination_is_limited_and_shown(tmp_path: Path) -> None:
    [judged] = trial(EXAMPLES / "ring-frer.xml", tmp_path / "run").runs
    one, two = judged.flows
    assert quantity(one, "elimination.passed").value == 100
    assert quantity(one, "elimination.discarded").value == 60
    assert (quantity(one, "elimination.latent_errors").value or 0) > 0
    assert set(one[ELIMINATION]) == set(DEFINITIONS["elimination"].statistics)
    # A flow without latent error detection has no such figure.
    assert "latent_errors" not in two[ELIMINATION]
    assert all(limit.holds for limit in judged.limits)
    broken = tmp_path / "broken.xml"
    strict = RING.replace(
        'measure="elimination.rogue" at-most="0"', 'measure="elimination.discarded" at-most="59"'
    )
    broken.write_text(strict, encoding="utf-8")
    [judged] = trial(broken, tmp_path / "broken").runs
    found = [limit.result for limit in judged.limits if limit.measure == "elimination.discarded"]
    assert found == ["fail", "fail"]


def test_a_ladder_saves_what_two_ways_lose(tmp_path: Path) -> None:
    [judged] = trial(EXAMPLES / "ladder-frer.xml", tmp_path / "run").runs
    assert all(limit.holds for limit in judged.limits)
    over, apart = judged.flows
    assert over.counts["lost"] < apart.counts["lost"]
    assert all((quantity(one, "elimination.discarded").value or 0) > 0 for one in (over, apart))


def test_links_that_all_copies_take_are_warned_of(tmp_path: Path) -> None:
    assert not load(EXAMPLES / "ring-frer.xml").campaign.warnings
    behind = RING.replace('<switch name="r[1-6]"', '<switch name="s"/>\n    <switch name="r[1-6]"')
    behind = behind.replace(
        '<link between="control r3"', '<link between="s r3" rate="1Gbit/s"/><link between="control s"'
    )
    behind = behind.replace('via="r1 r2 r3"', 'via="r1 r2 r3 s"').replace("r4 r3", "r4 r3 s")
    file = tmp_path / "behind.xml"
    file.write_text(behind, encoding="utf-8")
    [said] = load(file).campaign.warnings
    assert said.endswith('all member streams take the link from "r3" to "s"; what is lost there is lost')


def test_benches_of_real_frames_refuse_it() -> None:
    said = beyond_hosts(load(EXAMPLES / "ring-frer.xml").campaign)
    assert [one for one in said if "<frer>" in one] == [
        f"flow {flow} has <frer>: the interfaces and switches of this bench neither copy frames nor remove copies"
        for flow in (1, 2)
    ]
