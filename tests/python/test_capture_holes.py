"""What captures themselves say they lack: drops, holes, edges, clocks set back, contents that nobody tells apart."""

from __future__ import annotations

import random
import re
import struct
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from simulation import trial
from test_evidence_of_captures import counts, seen
from test_passive import MS, US, Seen, blocks, frame, imported, written
from wiregauge import results
from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.definitions.definition import SENT
from wiregauge.measures.limits import judge_limits
from wiregauge.measures.metrics.flow_plan import LimitPlan
from wiregauge.measures.metrics.judgement import Grade, Judgement
from wiregauge.measures.run_measures import OfRun

TAPS = Path(__file__).resolve().parents[1] / "faults" / "taps"
START = 10**12
EACH = MS
SENT_N = 400
BEFORE, BEHIND = 0, 1


def grade(judgement: Judgement, name: str) -> Grade:
    (found,) = [check for check in judgement.runs[0].checks if check.name == name]
    return found.grade


def option(order: str, code: int, value: bytes) -> bytes:
    return struct.pack(f"{order}HH", code, len(value)) + value + bytes(-len(value) % 4)


def block(order: str, kind: int, body: bytes) -> bytes:
    size = struct.pack(f"{order}I", len(body) + 12)
    return struct.pack(f"{order}I", kind) + size + body + size


def pcapng(
    path: Path,
    packets: Iterable[tuple[int, Seen]],
    *,
    order: str = "<",
    between: Callable[[int, int], int] = lambda side, place: 0,
    statistics: Sequence[int] = (0, 0),
) -> Path:
    """A file of the interfaces `in` and `out`; `between` is how many frames the capture dropped before one."""
    out = [block(order, 0x0A0D0D0A, struct.pack(f"{order}IHHq", 0x1A2B3C4D, 1, 0, -1))]
    for name in (b"in", b"out"):
        options = option(order, 2, name) + option(order, 9, b"\x09") + option(order, 0, b"")
        out.append(block(order, 1, struct.pack(f"{order}HHI", 1, 0, 0) + options))
    places = [0, 0]
    for side, one in packets:
        high, low = divmod(one.nanos, 1 << 32)
        data = one.data + bytes(-len(one.data) % 4)
        body = struct.pack(f"{order}IIIII", side, high, low, len(one.data), len(one.data)) + data
        if dropped := between(side, places[side]):
            body += option(order, 4, struct.pack(f"{order}Q", dropped)) + option(order, 0, b"")
        places[side] += 1
        out.append(block(order, 6, body))
    for side, count in enumerate(statistics):
        if count:
            options = option(order, 7, struct.pack(f"{order}Q", count)) + option(order, 0, b"")
            out.append(block(order, 5, struct.pack(f"{order}III", side, 0, 0) + options))
    path.write_bytes(b"".join(out))
    return path


def sides(
    *, lost: Iterable[int] = (), unseen: Iterable[int] = (), took: int = 20 * US, content: Any = None
) -> list[tuple[int, Seen]]:
    """400 frames each ms by the device, of which some are lost by it and some not in the capture before it."""
    gone, missed = set(lost), set(unseen)
    sent = [Seen(START + EACH * n, frame(n if content is None else content), (1, n)) for n in range(SENT_N)]
    found = [(BEFORE, one) for n, one in enumerate(sent) if n not in missed]
    found += [(BEHIND, replace(one, nanos=one.nanos + took)) for n, one in enumerate(sent) if n not in gone]
    return sorted(found, key=lambda pair: pair[1].nanos)


def decided(judgement: Judgement, measure: str, value: float, bound: str = "at-most") -> str:
    flows = judgement.runs[0].flows
    (found,) = judge_limits((LimitPlan(None, measure, bound, value, "", 1),), flows, OfRun())
    return found.result


# -- frames that a capture says it dropped -------------------------------------------------------------------


@pytest.mark.parametrize("order", ["<", ">"])
@pytest.mark.parametrize("side", [BEFORE, BEHIND])
@pytest.mark.parametrize("told", ["packets", "statistics", "both"])
def test_drops_are_unknown_whoever_tells_them(told: str, side: int, order: str, tmp_path: Path) -> None:
    lacking = range(100, 120)
    packets = sides(lost=lacking) if side == BEHIND else sides(lost=lacking, unseen=lacking)
    file = pcapng(
        tmp_path / "t.pcapng",
        packets,
        order=order,
        between=lambda at, place: 20 * ((at, place) == (side, 100) and told != "statistics"),
        statistics=[20 * (at == side and told != "packets") for at in range(2)],
    )
    judgement, said, entry = seen(tmp_path / "a", file, code=0)
    assert [tap["dropped"] for tap in entry["taps"]] == [20 * (side == BEFORE), 20 * (side == BEHIND)]
    assert judgement.validity is Grade.DEGRADED
    assert counts(judgement) == ((400, 0, 20) if side == BEHIND else (380, 0, 0))
    assert decided(judgement, "lost", 0) == "undecided"
    assert "20 frames dropped" in said


# -- frames that one capture lacks and does not say so -------------------------------------------------------


def test_a_frame_that_appears_behind_shows_a_hole_before(tmp_path: Path) -> None:
    file = pcapng(tmp_path / "t.pcapng", sides(lost=range(200, 240), unseen=range(200, 280)))
    judgement, said, _ = seen(tmp_path / "a", file, code=0)
    assert judgement.validity is Grade.DEGRADED
    assert grade(judgement, "matching-origins") is Grade.DEGRADED
    assert "40 frames behind the device have no origin before it" in said
    for name in DEFINITIONS:
        if DEFINITIONS[name].of == SENT and name not in ("sent", "unknown", "loss_distance"):
            for bound, value in (("at-most", 1e300), ("at-least", -1e300)):
                assert decided(judgement, name, value, bound) == "undecided", name
    # What was lost for certain is too many, whatever else was.
    file = pcapng(
        tmp_path / "u.pcapng", sides(lost=[*range(50, 60), *range(200, 240)], unseen=range(200, 280))
    )
    judgement, _, _ = seen(tmp_path / "b", file, code=0)
    assert decided(judgement, "lost", 9) == "fail"
    assert decided(judgement, "lost", 10) == "undecided"


def test_nothing_appears_of_whole_captures(tmp_path: Path) -> None:
    file = pcapng(tmp_path / "t.pcapng", sides(lost=[5, 6]))
    judgement, _, _ = seen(tmp_path / "a", file, code=0)
    assert (judgement.validity, counts(judgement)) == (Grade.OK, (400, 2, 0))
    assert decided(judgement, "lost", 2) == "pass"


# -- frames that nobody can tell apart -----------------------------------------------------------------------


@pytest.mark.parametrize("lost", [0, 1, 3, 40])
def test_that_some_were_lost_is_certain_where_it_is_not_known_which(lost: int, tmp_path: Path) -> None:
    file = pcapng(tmp_path / "t.pcapng", sides(lost=range(100, 100 + lost), content=7))
    options = ("--max-residence", "1s")
    judgement, said, _ = seen(tmp_path / "a", file, *options, code=0)
    (flow,) = judgement.runs[0].flows
    assert 0 <= flow.lost <= lost
    assert flow.lost + flow.open_ended + flow.counts["delivered"] <= flow.counts["sent"]
    assert flow.came_at_least > 0
    assert grade(judgement, "arrivals") is Grade.OK
    assert "Nothing arrived" not in said
    if flow.lost:
        assert f"at least {flow.lost} of 400 messages lost" in said
        assert flow.loss.low > 0
        assert flow.loss.ratio == flow.lost / 400
        assert decided(judgement, "lost", flow.lost - 1) == "fail"
        assert decided(judgement, "loss", (flow.lost - 0.5) / 400) == "fail"
        assert decided(judgement, "delivered", 401 - flow.lost, "at-least") == "fail"
    assert decided(judgement, "lost", flow.lost) == "undecided"


@pytest.mark.parametrize("took", [20 * US, 1020 * US, 5010 * US])
@pytest.mark.parametrize("cycle", [1, 3])
def test_how_long_a_flow_stays_is_not_learnt_from_another(cycle: int, took: int, tmp_path: Path) -> None:
    """A flow whose content recurs within what a frame may stay, beside one of which every frame is known."""
    rng = random.Random(cycle)
    flow = [Seen(START + EACH * n, frame(1000 + n % cycle), (1, n)) for n in range(-20, SENT_N + 20)]
    other = [Seen(START + EACH * n + 300 * US, other_flow(frame(n)), (2, n)) for n in range(SENT_N)]
    late = [replace(one, nanos=one.nanos + took + rng.randrange(500)) for one in flow]
    late += [replace(one, nanos=one.nanos + 20 * US) for one in other]
    end = START + EACH * SENT_N
    packets = [(BEFORE, one) for one in flow + other if START <= one.nanos < end]
    packets += [(BEHIND, one) for one in late if START <= one.nanos < end]
    file = pcapng(tmp_path / "t.pcapng", sorted(packets, key=lambda pair: pair[1].nanos))
    compared, done = imported(tmp_path, file)
    by_name = {one["name"]: one for one in compared["flows"]}
    (own,) = [one for name, one in by_name.items() if ":1001 " not in name and one["frames"] >= SENT_N - 5]
    least, greatest = own["residence"]["median"] if own["residence"] else (0, 10**18)
    assert own["matched"] == 0 or abs(own["residence"]["median"][0] - took * 1000) < US * 1000
    assert least <= (took + 500) * 1000
    assert greatest >= took * 1000
    assert "too few frames have a content of their own" in " ".join(done.output.split())


def other_flow(data: bytes) -> bytes:
    """The frame from another port."""
    return data[:34] + struct.pack(">H", 1001) + data[36:]


# -- the edges of captures, of whosever messages -------------------------------------------------------------


@pytest.fixture(scope="module")
def own(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("edges")
    text = (TAPS / "cap.xml").read_text(encoding="utf-8")
    (place / "t.xml").write_text(re.sub("<(faults|limits)>.*?</(faults|limits)>", "", text), encoding="utf-8")
    trial(place / "t.xml", place / "r")
    return place / "r" / "captures" / "run-0000"


def cut(path: Path, to: Path, keep: Callable[[int, int], bool]) -> Path:
    """The capture with those of its frames for which `keep` holds of place and number."""
    data, out, at = path.read_bytes(), [], 0
    packets = sum(kind == 6 for kind, _ in blocks(data))
    for kind, body in blocks(data):
        if kind == 6:
            at += 1
        if kind != 6 or keep(at - 1, packets):
            out.append(block("<", kind, body))
    to.write_bytes(b"".join(out))
    return to


@pytest.mark.parametrize("passive", [[], ["--passive"]])
@pytest.mark.parametrize("where", ["end", "begin", "both"])
@pytest.mark.parametrize("short", ["first", "second"])
def test_what_lies_beyond_a_capture_is_not_lost(
    own: Path, short: str, where: str, passive: list[str], tmp_path: Path
) -> None:
    def keep(at: int, of: int) -> bool:
        return (where == "end" or at >= of // 4) and (where == "begin" or at < of - of // 4)

    first, second = sorted(own.glob("*.pcapng"))[:2]
    files = [
        cut(
            path,
            tmp_path / path.name,
            keep if path == {"first": first, "second": second}[short] else lambda at, of: True,
        )
        for path in (first, second)
    ]
    judgement, _, _ = seen(tmp_path / "a", *files, *passive, "--max-clock-offset", "10ns", code=0)
    _, lost, unknown = counts(judgement)
    assert lost == 0
    assert judgement.validity is not Grade.INVALID
    assert unknown > 0 or short == "first"


# -- a clock that is set back inside a file ------------------------------------------------------------------


def set_back(packets: list[tuple[int, Seen]], by: int) -> list[tuple[int, Seen]]:
    half = len(packets) // 2
    return packets[:half] + [(side, replace(one, nanos=one.nanos - by)) for side, one in packets[half:]]


@pytest.mark.parametrize(
    ("by", "wanted"),
    [
        (0, Grade.OK),
        (3 * MS, Grade.DEGRADED),
        (12 * MS, Grade.INVALID),
        (150 * MS, Grade.INVALID),
        (10**12, Grade.INVALID),
    ],
)
def test_times_that_go_back_in_the_order_of_a_file(by: int, wanted: Grade, tmp_path: Path) -> None:
    file = pcapng(tmp_path / "t.pcapng", set_back(sides(), by))
    judgement, said, _ = seen(tmp_path / "a", file, code=4 if wanted is Grade.INVALID else 0)
    assert grade(judgement, "clocks-forward") is wanted
    assert (judgement.validity is Grade.INVALID) == (wanted is Grade.INVALID)
    if wanted is Grade.INVALID:
        assert "reordercap IN OUT" in said


@pytest.mark.parametrize(("often", "wanted"), [(1, Grade.DEGRADED), (2, Grade.DEGRADED), (40, Grade.NOTE)])
def test_a_time_that_goes_back_once_is_held_against_what_was_measured(
    often: int, wanted: Grade, tmp_path: Path
) -> None:
    """A median of 20 us: what may be a clock spoils it; queues put frames out of order all the time."""
    packets: list[tuple[int, Seen]] = []
    every = len(sides()) // often
    for at in range(0, len(sides()), every):
        some = sides()[at : at + every]
        # The frames of 4 ms come before those of the 4 ms before them.
        packets += some[8:16] + some[:8] + some[16:]
    judgement, said, entry = seen(tmp_path / "a", pcapng(tmp_path / "t.pcapng", packets), code=0)
    assert {tap["turns"] for tap in entry["taps"]} == {often}
    assert grade(judgement, "clocks-forward") is wanted
    assert ("a clock was set back, and times on both sides of it" in said) is (wanted is Grade.DEGRADED)


@pytest.mark.parametrize("kept", [1.0, 0.7])
def test_a_capture_beside_a_copy_of_itself_is_of_one_place(own: Path, kept: float, tmp_path: Path) -> None:
    """Also where the copy is no longer the same file, and nobody knows the clocks."""
    first = sorted(own.glob("*.pcapng"))[0]
    copy = cut(first, tmp_path / "copy.pcapng", lambda at, of: at < of * kept)
    copy.write_bytes(copy.read_bytes() + block("<", 0x0BAD, b""))
    for number, options in enumerate(([], ["--max-clock-offset", "1us"])):
        judgement, said, _ = seen(tmp_path / str(number), first, copy, *options, code=4)
        assert judgement.validity is Grade.INVALID
        assert grade(judgement, "transit-time") is Grade.INVALID
        assert "one was made from the other" in said


@pytest.mark.parametrize("took", [20 * US, 1020 * US])
def test_how_long_small_frames_stay_is_not_learnt_from_large_ones(took: int, tmp_path: Path) -> None:
    """One flow has large frames of unique content, and small ones whose content recurs every 1 ms."""
    flow = [Seen(START + EACH * n, frame(7), (1, n)) for n in range(-20, SENT_N + 20)]
    large = [
        Seen(START + EACH * n + 300 * US, frame(n) + bytes(400), (2, n)) for n in range(1000, 1000 + SENT_N)
    ]
    large = [replace(one, nanos=START + EACH * n + 300 * US) for n, one in enumerate(large)]
    late = [replace(one, nanos=one.nanos + took) for one in flow]
    late += [replace(one, nanos=one.nanos + 20 * US) for one in large]
    end = START + EACH * SENT_N
    packets = [(BEFORE, one) for one in flow + large if START <= one.nanos < end]
    packets += [(BEHIND, one) for one in late if START <= one.nanos < end]
    file = pcapng(tmp_path / "t.pcapng", sorted(packets, key=lambda pair: pair[1].nanos))
    compared, done = imported(tmp_path, file)
    (found,) = compared["flows"]
    assert found["matched"] <= SENT_N + 5
    assert found["recurring_ps"] > compared["greatest_ps"]
    assert "too few frames have a content of their own" in " ".join(done.output.split())


def test_two_clocks_in_one_file_are_no_fact_about_networks(tmp_path: Path) -> None:
    packets = [
        (side, replace(one, nanos=one.nanos - 50 * US * (side == BEHIND and n > 400)))
        for n, (side, one) in enumerate(sides())
    ]
    file = pcapng(tmp_path / "t.pcapng", sorted(packets, key=lambda pair: pair[1].nanos))
    judgement, said, _ = seen(tmp_path / "a", file, code=0)
    assert judgement.validity is Grade.DEGRADED
    assert "200 of 400 frames with a content of their own contradict the stated clocks" in said
    assert "was set back by 50 us" in said


def test_a_snap_length_says_how_far_contents_were_compared(tmp_path: Path) -> None:
    whole = [one for side, one in sides() if side == BEFORE]
    files = [
        written(tmp_path / "a.pcap", whole, snap=60),
        written(tmp_path / "b.pcap", [replace(one, nanos=one.nanos + 20 * US) for one in whole]),
    ]
    _, done = imported(tmp_path, *files, "--max-clock-offset", "0ns")
    assert "a capture kept no more than 60 B" in " ".join(done.output.split())
    assert results.judge(tmp_path / "seen").validity is Grade.OK
