"""Runts, giants and short gaps in the simulator: when they are on the wire, who drops them, what is written down."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulation import GAP, PREAMBLE, bits, simulate, written
from wiregauge import bounds
from wiregauge.config import TestError, load

GIGABIT = 1_000_000_000
NETWORK = (
    '<end-system name="a" {a}/><end-system name="b"/><switch name="s" delay="0ns" {s}/>'
    '<link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/>'
)
FLOW = '<flow id="1" protocol="raw" from="a" to="b"/>'
TASKS = '<send flow="1" period="{period}" frame="{frame}B" count="{count}"/><receive flow="1"/>'


def made(
    *, frame: int = 512, period: str = "100us", count: int = 20, a: str = "", s: str = "", more: str = ""
) -> str:
    """One flow over one switch."""
    tasks = TASKS.format(period=period, frame=frame, count=count)
    return written(NETWORK.format(a=a, s=s), FLOW, tasks, attributes='warm-up="0s"', more=more)


def faults(length: int, more: str = "") -> str:
    struck = f'<wrong-length link="a s" sent-by="a" length="{length}B" flow="1" sequence="3 5-6"/>'
    return f"<faults>{struck}{more}</faults>"


@pytest.mark.parametrize("length", [18, 60, 63, 1519, 1600, 9018])
def test_a_switch_drops_runts_and_giants_and_says_why(length: int, tmp_path: Path) -> None:
    run = simulate(made(more=faults(length)), tmp_path)
    drops = run.at("drop")
    assert drops["sequence"].to_list() == [3, 5, 6]
    assert set(drops["reason"]) == {"filtered"}
    assert set(drops["node"]) == {run.node("s")}
    assert set(drops["length"]) == {length}
    told = run.truth.filter(run.truth["kind"] == "wrong-length")
    assert told["sequence"].to_list() == [3, 5, 6]
    assert set(told["value"]) == {length}
    assert sorted(run.times("application-receive", 1)) == [n for n in range(20) if n not in (3, 5, 6)]
    # It is dropped when its last bit is in, so much later as it is longer.
    sent = run.times("wire-send", 1)
    came = run.times("switch-in", 1)
    assert came[3] - sent[3] == bits(PREAMBLE + length, GIGABIT)
    assert came[4] - sent[4] == bits(PREAMBLE + 512, GIGABIT)


@pytest.mark.parametrize(("length", "gone"), [(60, 64), (1600, 1600)])
def test_a_switch_that_takes_them_forwards_them_and_the_receiver_does_not(
    length: int, gone: int, tmp_path: Path
) -> None:
    """A runt leaves padded, with a message that is cut short; a giant as it is, and the interface drops it."""
    run = simulate(made(s='shortest-frame="18B" longest-frame="2000B"', more=faults(length)), tmp_path)
    assert sorted(run.times("switch-out", 1)) == list(range(20))
    left = {row["sequence"]: row["length"] for row in run.at("switch-out").iter_rows(named=True)}
    assert {left[n] for n in (3, 5, 6)} == {gone}
    assert {left[n] for n in (4, 7)} == {512}
    counts = next(one for one in run.summary["flows"] if one["flow"] == 1)["outcomes"]
    if length < 64:
        assert counts["corrupted"] == 3
    else:
        assert (run.dropped("filtered"), counts["lost"]) == (3, 3)


def test_a_cut_through_switch_forwards_what_it_cannot_know_yet(tmp_path: Path) -> None:
    run = simulate(made(s='forwarding-mode="cut-through"', more=faults(1600)), tmp_path)
    assert sorted(run.times("switch-out", 1)) == list(range(20))
    assert set(run.at("drop")["node"]) == {run.node("b")}


def test_a_wrong_check_sequence_is_the_reason_where_both_are_wrong(tmp_path: Path) -> None:
    both = '<bit-errors link="a s" sent-by="a" rate="1"/>'
    run = simulate(made(more=faults(60, both)), tmp_path)
    assert set(run.at("drop")["reason"]) == {"frame-check"}


def test_a_giant_keeps_the_line_for_as_long_as_it_is(tmp_path: Path) -> None:
    """Two frames due at once: the second leaves a gap behind the first, however long that became."""
    struck = '<faults><wrong-length link="a s" sent-by="a" length="9018B" flow="1" sequence="0"/></faults>'
    burst = '<send flow="1" period="1ms" frame="512B" burst="2" count="4"/><receive flow="1"/>'
    text = written(NETWORK.format(a="", s=""), FLOW, burst, attributes='warm-up="0s"', more=struck)
    sent = simulate(text, tmp_path).times("wire-send", 1)
    assert sent[1] - sent[0] == bits(PREAMBLE + 9018 + GAP, GIGABIT)
    assert sent[3] - sent[2] == bits(PREAMBLE + 512 + GAP, GIGABIT)


@pytest.mark.parametrize("gap", [5, 8, 11, 12])
def test_a_gap_is_as_long_as_it_is_written(gap: int, tmp_path: Path) -> None:
    """The gap holds on the sender's line and, where frames wait, on the switch's."""
    burst = '<send flow="1" period="1ms" frame="64B" burst="20" count="40"/><receive flow="1"/>'
    short = f'interframe-gap="{gap}B"'
    text = written(NETWORK.format(a=short, s=""), FLOW, burst, attributes='warm-up="0s"')
    run = simulate(text, tmp_path)
    sent, left = run.times("wire-send", 1), run.times("switch-out", 1)
    assert {sent[n + 1] - sent[n] for n in range(19)} == {bits(PREAMBLE + 64 + gap, GIGABIT)}
    # The switch leaves the gap of the standard.
    assert {left[n + 1] - left[n] for n in range(19)} == {bits(PREAMBLE + 64 + GAP, GIGABIT)}
    pressed = written(NETWORK.format(a=short, s=short), FLOW, burst, attributes='warm-up="0s"')
    left = simulate(pressed, tmp_path / "pressed").times("switch-out", 1)
    assert {left[n + 1] - left[n] for n in range(19)} == {bits(PREAMBLE + 64 + gap, GIGABIT)}


def test_captures_hold_runts_and_giants_as_long_as_they_are(tmp_path: Path) -> None:
    struck = (
        '<faults><wrong-length link="a s" sent-by="a" length="60B" flow="1" sequence="3"/>'
        '<wrong-length link="a s" sent-by="a" length="1600B" flow="1" sequence="4"/></faults>'
    )
    text = made(more=struck).replace("</tasks>", '<capture on="s"/></tasks>')
    run = simulate(text, tmp_path)
    assert run.at("drop")["length"].to_list() == [60, 1600]
    (capture,) = (tmp_path / "spool").rglob("*.pcapng")
    # With the FCS: those that came in and, but for two, went out again. A capture keeps 1522 B of each.
    lengths = frames(capture.read_bytes())
    assert sorted(set(lengths)) == [60, 512, 1600]
    assert lengths.count(512) == 36


def frames(capture: bytes) -> list[int]:
    """Lengths on the wire of the packets of a little-endian pcapng file."""
    found: list[int] = []
    at = 0
    while at < len(capture):
        kind, length = (int.from_bytes(capture[at + k : at + k + 4], "little") for k in (0, 4))
        if kind == 6:
            found.append(int.from_bytes(capture[at + 24 : at + 28], "little"))
        at += length
    return found


@pytest.mark.parametrize(
    ("network", "said"),
    [
        ('length="512B"', "is no wrong length of a frame"),
        ('length="17B"', "is no wrong length of a frame"),
        ('length="20000B"', "is no wrong length of a frame"),
    ],
)
def test_lengths_that_are_none_are_refused(network: str, said: str, tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(made(more=f'<faults><wrong-length link="a s" share="1%" {network}/></faults>'))
    with pytest.raises(TestError, match=said):
        load(file)


@pytest.mark.parametrize(
    ("network", "faults_of_it", "said"),
    [
        (
            '<hub name="s"/>',
            '<wrong-length link="a s" length="60B" share="1%"/>',
            "whose stations hear every bit",
        ),
        (
            '<switch name="s" kind="mixed-criticality"/>',
            '<wrong-length link="a s" sent-by="s" length="60B" share="1%"/>',
            "windows for time-triggered frames of known lengths",
        ),
        (
            '<switch name="s"><switch-tsn><traffic-class number="0" priorities="0 1 2 3 4 5 6 7"/>'
            "</switch-tsn></switch>",
            '<wrong-length link="a s" sent-by="s" length="60B" share="1%"/>',
            "its sender has traffic classes",
        ),
        ('<hub name="s"/>', "", "whose stations wait for the gap of the standard"),
        (
            '<switch name="s" kind="mixed-criticality" interframe-gap="11B"/>',
            "",
            "windows and shapers are computed",
        ),
        ('<switch name="s" interframe-gap="4B"/>', "", "is out of range"),
        ('<switch name="s" shortest-frame="65B"/>', "", "is out of range"),
        ('<switch name="s" longest-frame="1517B"/>', "", "is out of range"),
    ],
)
def test_where_lengths_and_gaps_are_counted_on_they_are_refused(
    network: str, faults_of_it: str, said: str, tmp_path: Path
) -> None:
    ends = '<end-system name="a" interframe-gap="11B"/><end-system name="b"/>'
    rate = "10Mbit/s" if "hub" in network else "1Gbit/s"
    links = f'<link between="a s" rate="{rate}"/><link between="b s" rate="{rate}"/>'
    text = written(ends + network + links, FLOW, TASKS.format(period="10ms", frame=512, count=20))
    if faults_of_it:
        text = text.replace("</test>", f"<faults>{faults_of_it}</faults></test>")
        text = text.replace(' interframe-gap="11B"', "")
    file = tmp_path / "t.xml"
    file.write_text(text)
    with pytest.raises(TestError, match=said):
        load(file)


def test_what_no_curve_has_is_no_bound(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(made(a='interframe-gap="11B"'))
    with pytest.raises(TestError, match="leave interframe-gap out"):
        bounds.bound(bounds.read(file))
