"""Virtual links, redundancy, time-triggered windows and the shared medium against what their rules alone imply."""

from __future__ import annotations

import itertools
from pathlib import Path

import polars as pl
import pytest

from simulation import MS, US, Simulated, frame, occupation, sending, simulate, written

RATE = 10**8


def afdx(*, switch: str = 'delay="10us"', systems: str = "a b c d", second: bool = False) -> str:
    """End systems on one ARINC 664 switch, and on a second one of network B."""
    nodes = "".join(f'<end-system name="{name}"/>' for name in systems.split())
    nodes += f'<switch name="sa" kind="arinc664" {switch}/>'
    links = "".join(f'<link between="{name} sa" rate="100Mbit/s"/>' for name in systems.split())
    if second:
        nodes += f'<switch name="sb" kind="arinc664" {switch}/>'
        links += "".join(
            f'<link between="{name} sb" rate="100Mbit/s" network="B"/>' for name in systems.split()
        )
    return nodes + links


def rc(number: int, way: tuple[str, str], bag: str, lmax: int, more: str = "") -> str:
    return (
        f'<flow id="{number}" protocol="rc" from="{way[0]}" to="{way[1]}" bag="{bag}" lmax="{lmax}B" {more}/>'
    )


def feed(number: int, payload: int, period: str, count: int, more: str = "") -> str:
    return (
        f'<send flow="{number}" period="{period}" payload="{payload}B" count="{count}" {more}/>'
        f'<receive flow="{number}"/>'
    )


def test_the_regulator_spaces_a_burst_by_the_bag(tmp_path: Path) -> None:
    """e(k) = max(a(k), e(k - 1) + BAG), to the picosecond."""
    run = simulate(
        written(
            afdx(),
            rc(1, ("a", "b"), "2ms", 300),
            feed(1, 200, "20ms", 35, 'burst="7"'),
        ),
        tmp_path,
    )
    handed = run.times("application-send", 1)
    sent = run.times("wire-send", 1)
    eligible: list[int] = []
    for sequence in range(35):
        earliest = eligible[-1] + 2 * MS if eligible else 0
        eligible.append(max(handed[sequence], earliest))
    assert [sent[sequence] for sequence in range(35)] == eligible


def test_output_jitter_is_what_the_other_virtual_links_send(tmp_path: Path) -> None:
    """Four links eligible at one instant: the last waits for one frame of each other, and no longer."""
    payloads = {1: 100, 2: 700, 3: 300, 4: 1_300}
    run = simulate(
        written(
            afdx(),
            "".join(rc(n, ("a", "b"), "4ms", 1_400) for n in payloads),
            "".join(feed(n, size, "4ms", 20) for n, size in payloads.items()),
        ),
        tmp_path,
    )
    jitter = {
        n: {run.times("wire-send", n)[k] - run.times("application-send", n)[k] for k in range(20)}
        for n in payloads
    }
    lengths = {n: frame(size, "rc") for n, size in payloads.items()}
    before = 0
    for n in payloads:
        assert jitter[n] == {before}
        before += occupation(lengths[n], RATE)


def test_sub_virtual_links_take_turns(tmp_path: Path) -> None:
    """Round robin among the FIFOs that hold a frame, one frame a BAG for all of them together."""
    run = simulate(
        written(
            afdx(),
            rc(1, ("a", "b"), "1ms", 200, 'sub-links="3"') + rc(2, ("a", "b"), "1ms", 200),
            feed(1, 64, "50ms", 6, 'burst="6" sub-link="2"') + feed(2, 64, "50ms", 1),
        ),
        tmp_path,
    )
    sent = sorted(run.times("wire-send", 1).values())
    assert [later - earlier for earlier, later in itertools.pairwise(sent)] == [1 * MS] * 5


LOSS = 0.2


def accepted(loss: float) -> float:
    """Chance that one network delivers a given frame: it must arrive, and not be the first after two lost ones.

    Enumerated over the fate of the frame and its two predecessors: the integrity check takes the number after the
    last one received, or the one after that.
    """
    total = 0.0
    for before2, before1, own in itertools.product((False, True), repeat=3):
        chance = 1.0
        for arrives in (before2, before1, own):
            chance *= 1 - loss if arrives else loss
        if own and (before1 or before2):
            total += chance
    return total


@pytest.mark.parametrize("seed", [1, 2])
def test_redundancy_delivers_what_either_network_does(tmp_path: Path, seed: int) -> None:
    """Independent losses on A and B: exact enumeration against 40 000 messages."""
    count, other = 40_000, 0.1
    run = simulate(
        written(
            afdx(second=True),
            rc(1, ("a", "b"), "1ms", 200),
            feed(1, 64, "1ms", count),
            more='<faults><loss link="b sa" share="20%" sent-by="sa"/>'
            '<loss link="a sb" share="10%" sent-by="a"/></faults>',
            seed=seed,
        ),
        tmp_path,
    )
    expected = 1 - (1 - accepted(LOSS)) * (1 - accepted(other))
    delivered = run.at("application-receive").height
    # Neighbours share predecessors, so deviations are up to sqrt(3) wider than a binomial's; four of them.
    deviation = (3 * count * expected * (1 - expected)) ** 0.5
    assert abs(delivered - count * expected) < 4 * deviation
    # Without the second network it would be far less, and without the integrity check more.
    assert delivered > count * accepted(other) + 4 * deviation
    assert delivered < count * (1 - LOSS * other)
    assert run.summary["flows"][0]["delivered"] == delivered
    assert run.summary["flows"][0]["lost"] == count - delivered


def test_both_copies_come_and_one_is_delivered(tmp_path: Path) -> None:
    run = simulate(
        written(afdx(second=True), rc(1, ("a", "b"), "1ms", 200), feed(1, 64, "1ms", 500)), tmp_path
    )
    assert run.at("wire-receive").height == 1_000
    assert run.dropped("second-copy") == 500
    assert run.at("application-receive").height == 500
    assert run.summary["flows"][0]["outcomes"]["delivered"] == 500


def worst_case(offsets: dict[int, int], place: Path) -> int:
    """Greatest latency of link 1 when three others start at these offsets (ns) within a BAG."""
    sources = {1: "a", 2: "b", 3: "c", 4: "d"}
    payloads = {1: 300, 2: 1_000, 3: 600, 4: 200}
    run = simulate(
        written(
            afdx(systems="a b c d e", switch='delay="10us"'),
            "".join(rc(n, (source, "e"), "4ms", frame(payloads[n], "rc")) for n, source in sources.items()),
            "".join(
                f'<send flow="{n}" period="4ms" payload="{payloads[n]}B" count="3" '
                f'offset="{1_000_000 + offsets[n]}ns"/>'
                f'<receive flow="{n}"/>'
                for n in sources
            ),
        ),
        place,
    )
    return max(run.latencies(1))


def test_the_worst_merge_of_virtual_links_is_found_by_searching_offsets(tmp_path: Path) -> None:
    """Worst is when every other frame is in at the switch just before: its port then sends all of them first.

    By hand: the frame's own two transmissions, the switch, and one occupation of each other virtual link; reached when
    the longest began an instant before, and the others arrived meanwhile.
    """
    lengths = {n: frame(size, "rc") for n, size in {1: 300, 2: 1_000, 3: 600, 4: 200}.items()}
    by_hand = 2 * sending(lengths[1], RATE) + 10 * US + sum(occupation(lengths[n], RATE) for n in (2, 3, 4))
    own_in = sending(lengths[1], RATE)
    found = []
    # All others are in together with ours or up to three microseconds around it, in every combination.
    grid = (-3_000, -1, 0, 3_000)
    for step, around in enumerate(itertools.product(grid, repeat=3)):
        offsets = {
            n: (own_in - sending(lengths[n], RATE)) // 1_000 + shift
            for n, shift in zip((2, 3, 4), around, strict=True)
        }
        found.append(worst_case({1: 0, **offsets}, tmp_path / str(step)))
    assert max(found) <= by_hand
    # An instant's difference: the others came 1 ns before.
    assert by_hand - max(found) <= 1_000


def test_a_single_virtual_link_stays_below_the_published_bound(tmp_path: Path) -> None:
    """End system, switch, end system, 1000 B each ms at 100 Mbit/s: network calculus bounds it by 178.006 us."""
    run = simulate(
        written(
            afdx(switch='delay="0s"'), rc(1, ("a", "b"), "1ms", frame(1_000, "rc")), feed(1, 1_000, "1ms", 50)
        ),
        tmp_path,
    )
    assert set(run.latencies(1)) == {2 * sending(frame(1_000, "rc"), RATE)}
    assert max(run.latencies(1)) <= 178_006_000


@pytest.mark.parametrize("policing", ["bytes", "frames"])
def test_policed_traffic_keeps_its_contract_whatever_comes(tmp_path: Path, policing: str) -> None:
    """In any stretch of time no more passes than Lmax (1 + J / BAG) and Lmax / BAG times its length."""
    lmax, bag, jitter = 1_000, 2 * MS, 500 * US
    run = simulate(
        written(
            afdx(switch=f'delay="10us" policing="{policing}"'),
            rc(1, ("a", "b"), "2ms", lmax, 'jitter="500us"') + rc(2, ("c", "b"), "2ms", 400),
            feed(1, 300, "2ms", 200) + feed(2, 300, "2ms", 200),
            more='<faults><babble flow="1" from="50ms" until="300ms" period="70us" length="500B"/></faults>',
        ),
        tmp_path,
    )
    assert run.dropped("policed", 1) > 1_000
    passed = (
        run.records.filter((pl_col("point") == "switch-out") & (pl_col("flow") == 1))
        .select("time", "length")
        .rows()
    )
    cost = [length if policing == "bytes" else lmax for _, length in passed]
    for first in range(0, len(passed), 17):
        spent = 0
        for last in range(first, min(first + 400, len(passed))):
            spent += cost[last]
            stretch = passed[last][0] - passed[first][0]
            # The port may have delayed the first frame by one other, which shortens the stretch.
            stretch += occupation(lmax, RATE)
            assert spent * bag <= lmax * (bag + jitter + stretch)
    assert len(set(run.latencies(2))) <= 2_000
    assert run.summary["flows"][1]["lost"] == 0


def pl_col(name: str) -> pl.Expr:

    return pl.col(name)


def mixed(integration: str, *, load: str = "") -> str:
    """A time-triggered flow through a switch, beside a flood of the longest frames at the same port."""
    return written(
        '<end-system name="a"/><end-system name="b"/><end-system name="flood"/>'
        f'<switch name="sw" kind="mixed-criticality" delay="4us" integration="{integration}"/>'
        + "".join(f'<link between="{name} sw" rate="100Mbit/s"/>' for name in ("a", "flood", "b")),
        '<flow id="1" protocol="tt" from="a" to="b" period="1ms" offset="100us" late="500us" window="200us"/>'
        '<flow id="2" protocol="raw" from="flood" to="b"/>',
        '<send flow="1" period="1ms" payload="100B" count="400"/><receive flow="1"/>'
        f'<send flow="2" period="{"173us" if load else "900ms"}" payload="1500B"/><receive flow="2"/>',
        attributes='duration="450ms"',
    )


@pytest.mark.parametrize("integration", ["timely-block", "preemption", "shuffling"])
def test_a_time_triggered_frame_waits_no_longer_than_its_integration_allows(
    tmp_path: Path, integration: str
) -> None:
    quiet = simulate(mixed(integration), tmp_path / "quiet")
    loaded = simulate(mixed(integration, load="on"), tmp_path / "loaded")
    idle = set(_on_the_wire(quiet))
    assert len(idle) == 1
    (undisturbed,) = idle
    waits = [latency - undisturbed for latency in _on_the_wire(loaded)]
    assert loaded.summary["flows"][0]["lost"] == 0
    longest, gap = occupation(frame(1_500), RATE), occupation(64, RATE) - sending(64, RATE)
    allowed = {"timely-block": 0, "preemption": gap, "shuffling": longest}[integration]
    assert max(waits) <= allowed
    assert min(waits) >= 0
    if integration != "timely-block":
        assert max(waits) > allowed // 2
    # The flood arrives whole all the same: what was aborted was sent again.
    assert loaded.summary["flows"][1]["lost"] == 0
    assert loaded.at("application-receive", 2).height == loaded.at("application-send", 2).height


def _on_the_wire(run: Simulated) -> list[int]:
    """From the switch's taking of a frame until it leaves: the window's part is constant, the rest is waiting."""
    came = run.times("wire-receive", 1)
    due = run.times("wire-send", 1)
    return [came[sequence] - due[sequence] for sequence in sorted(came)]


def test_a_raster_gives_alternate_slots(tmp_path: Path) -> None:
    """Slots of 200 us from local time zero: even ones for time-triggered frames, odd ones for all others."""
    run = simulate(
        written(
            '<end-system name="a"/><end-system name="b"/>'
            '<switch name="sw" kind="mixed-criticality" delay="4us" raster="200us" raster-others="1"/>'
            '<link between="a sw" rate="100Mbit/s"/><link between="b sw" rate="100Mbit/s"/>',
            '<flow id="2" protocol="be" from="a" to="b"/>',
            '<send flow="2" period="1037us" payload="500B" count="300"/><receive flow="2"/>',
        ),
        tmp_path,
    )
    slot, length = 200 * US, frame(500, "be")
    out = run.times("switch-out", 2)
    taken = run.times("switch-in", 2)
    for sequence, began in out.items():
        ready = taken[sequence] + 4 * US
        phase = ready % (2 * slot)
        fits = slot <= phase and phase + occupation(length, RATE) <= 2 * slot
        expected = ready if fits else ready - phase + slot + (0 if phase < slot else 2 * slot)
        assert began == expected


def test_messages_faster_than_the_schedule_are_superseded(tmp_path: Path) -> None:
    """MAPS 2015: of several messages within one period only the last is transmitted."""
    run = simulate(
        written(
            '<end-system name="a"/><end-system name="b"/><switch name="sw" kind="mixed-criticality"/>'
            '<link between="a sw" rate="100Mbit/s"/><link between="b sw" rate="100Mbit/s"/>',
            '<flow id="1" protocol="tt" from="a" to="b" period="4ms" offset="500us"/>',
            '<send flow="1" period="1ms" payload="100B" count="400"/><receive flow="1"/>',
        ),
        tmp_path,
    )
    assert run.at("application-receive").height == 101
    assert run.dropped("superseded") == 299
    sent = sorted(run.times("wire-send", 1).values())
    assert {time % (4 * MS) for time in sent} == {500 * US}


HUB = (
    "".join(f'<end-system name="s{i}"/>' for i in range(6))
    + '<hub name="h" delay="300ns"/>'
    + "".join(f'<link between="s{i} h" rate="10Mbit/s" delay="500ns"/>' for i in range(6))
)


def test_a_quiet_hub_is_a_cable(tmp_path: Path) -> None:
    run = simulate(
        written(
            HUB,
            '<flow id="1" protocol="raw" from="s0" to="s1"/>',
            '<send flow="1" period="10ms" payload="64B" count="50"/><receive flow="1"/>',
        ),
        tmp_path,
    )
    assert set(run.latencies(1)) == {sending(frame(64), 10**7) + 2 * 500_000 + 300_000}


def test_a_shared_medium_carries_one_frame_at_a_time(tmp_path: Path) -> None:
    """Six stations offer 96 %: what comes through is clean, in order per station, and less than the medium holds."""
    flows = "".join(f'<flow id="{i + 1}" protocol="raw" from="s{i}" to="s{(i + 1) % 6}"/>' for i in range(6))
    tasks = "".join(
        f'<send flow="{i + 1}" load="16%" payload="400B" distribution="exponential"/><receive flow="{i + 1}"/>'
        for i in range(6)
    )
    run = simulate(written(HUB, flows, tasks, attributes='duration="2s" drain="200ms"'), tmp_path)
    came = run.at("wire-receive").select("time", "flow", "sequence").rows()
    duration = sending(frame(400), 10**7)
    for (first, *_), (second, *_) in itertools.pairwise(sorted(came)):
        # Two clean frames never share the medium; stations differ in distance by nothing here.
        assert second - first >= duration
    for flow in range(1, 7):
        own = [sequence for _, number, sequence in came if number == flow]
        assert own == sorted(own)
    carried = len(came) * occupation(frame(400), 10**7)
    assert 0.6 * 2_000 * MS < carried < 2_000 * MS
    sent = run.at("application-send").height
    assert run.told("collision") > 100
    assert len(came) + run.dropped("excessive-collisions") + run.dropped("late-collision") <= sent
    assert run.dropped("late-collision") == 0
