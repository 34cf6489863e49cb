"""Bounds of flows whose senders and gates have known instants."""

from __future__ import annotations

import json
import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from bound_judge import OVERLOADED
from bound_networks import phased
from wiregauge import bounds
from wiregauge._native import simulate_offsets
from wiregauge.config import TestError
from wiregauge.plan import as_json

EXAMPLES = Path(__file__).parents[2] / "examples"
QUICK, ALL = 40, 1000


def latencies(file: Path, seed: int) -> dict[tuple[str, str], float]:
    """The longest latencies in true time: with the file's offsets, and with others of senders that are not periodic."""
    network, run = bounds.read(file).planned or pytest.fail("it is a test")
    draw = random.Random(seed)
    free = [send.pattern is not None for send in run.sends]
    offsets = [
        [
            draw.randrange(send.period) if turn and moves else send.offset
            for send, moves in zip(run.sends, free, strict=True)
        ]
        for turn in range(4 if any(free) else 1)
    ]
    longest: dict[tuple[str, str], float] = {}
    for one in json.loads(simulate_offsets(as_json(network), as_json(run), offsets, False)):
        for own in one["longest"]:
            key = str(own["flow"]), network.names[own["receiver"]]
            longest[key] = max(longest.get(key, 0.0), own["latency"] / 1e12)
    return longest


def shares(answer: bounds.Answer, seen: dict[tuple[str, str], float]) -> dict[tuple[str, str], float]:
    """The share of its bound that each simulated latency takes."""
    targets = ((flow.flow, target) for flow in answer.flows for target in flow.targets)
    return {
        (flow, target.target): seen[flow, target.target] / target.delay
        for flow, target in targets
        if target.delay is not None and (flow, target.target) in seen
    }


def judged(
    seed: int, place: Path
) -> tuple[dict[tuple[str, str], float], dict[tuple[str, str], float]] | None:
    """Shares of the bounds with known phases, and with any; None for a network that is overloaded."""
    file = place / f"{seed}.xml"
    file.write_text(phased(seed), encoding="utf-8")
    try:
        source = bounds.read(file)
        known, free = bounds.bound(source), bounds.bound(source, phases="any")
    except TestError as error:
        if not any(reason in str(error) for reason in OVERLOADED):
            raise
        return None
    seen = latencies(file, seed)
    return shares(known, seen), shares(free, seen)


@pytest.mark.parametrize("part", range(4))
def test_no_simulated_delay_exceeds_a_bound_of_known_phases(
    part: int, tmp_path: Path, thorough: bool
) -> None:
    known: list[float] = []
    gained = 0
    for seed in range(part, ALL if thorough else QUICK, 4):
        found = judged(seed, tmp_path)
        if found is None:
            continue
        above = {key: share for key, share in found[0].items() if share > 1}
        assert not above, f"{seed}: {above}"
        known += found[0].values()
        gained += sum(found[0][key] > share + 1e-9 for key, share in found[1].items())
    assert len(known) > 25
    assert max(known) > 0.999
    assert gained > len(known) / 4


def gate_lists(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Every gate control list of a plan."""
    for node in plan["network"]["nodes"]:
        settings = [*node.get("kind", {}).get("tsn", []), node.get("tsn", {})]
        for tsn in settings:
            yield from tsn.get("schedules", [])
            if isinstance(tsn.get("schedule"), dict):
                yield tsn["schedule"]


def gates_earlier(plan: dict[str, Any]) -> None:
    for schedule in gate_lists(plan):
        schedule["base_time"] -= 30_000_000


def sent_later(plan: dict[str, Any]) -> None:
    for send in plan["run"]["sends"]:
        send["offset"] += 25_000_000


def ideal_clocks(plan: dict[str, Any]) -> None:
    for node in plan["network"]["nodes"]:
        node.pop("clock", None)


def no_guard_bands(plan: dict[str, Any]) -> None:
    for node in plan["network"]["nodes"]:
        for tsn in node.get("kind", {}).get("tsn", []):
            tsn.pop("guard_band", None)


def shorter_others(plan: dict[str, Any]) -> None:
    """Every second sender has the shortest frames."""
    for send in plan["run"]["sends"][::2]:
        send["payload"] = 20


FAULTS = (gates_earlier, sent_later, ideal_clocks, no_guard_bands, shorter_others)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.__name__)
def test_phases_made_wrong_in_the_bounded_plan_are_seen(
    fault: Callable[[dict[str, Any]], None], tmp_path: Path
) -> None:
    seen = 0
    for seed in range(80):
        file = tmp_path / f"{seed}.xml"
        file.write_text(phased(seed), encoding="utf-8")
        try:
            source = bounds.read(file)
            plan = json.loads(source.as_json)
            fault(plan)
            wrong = bounds.bound(bounds.Source(source.file, source.format, json.dumps(plan)))
        except TestError:
            continue
        seen += any(share > 1 for share in shares(wrong, latencies(file, seed)).values())
        if seen > 2:
            break
    assert seen > 2


def test_a_message_that_meets_open_gates_takes_what_is_simulated() -> None:
    """Three lines of 10.4 us and two switches of 5 us; at the second a gap of 960 ns may last 160 ns longer."""
    (flow, *_) = bounds.bound(bounds.read(EXAMPLES / "gates.xml")).flows
    (target,) = flow.targets
    assert target.delay_exact == "517/12500000"
    assert sum(target.hops) == pytest.approx(31.36e-6)


def test_unknown_phases_give_the_bound_of_curves() -> None:
    answer = bounds.bound(bounds.read(EXAMPLES / "gates.xml"), phases="any")
    assert answer.phases == "any"
    delay = answer.flows[0].targets[0].delay
    assert delay is not None
    assert delay > 1e-3


AHEAD = """<test xmlns="urn:wiregauge:test:2" name="ahead" seed="1">
<network host="ideal"><end-system name="a"><clock offset="5ms"/></end-system>
<end-system name="b"/><end-system name="z"/><switch name="s" buffer="1MiB"/>
<link between="a s" rate="100Mbit/s"/><link between="b s" rate="100Mbit/s"/><link between="z s" rate="100Mbit/s"/>
</network>
<flows><flow id="1" protocol="raw" from="a" to="z"/><flow id="2" protocol="raw" from="b" to="z"/></flows>
<tasks duration="20ms"><send flow="1" period="1ms" payload="1000B"/><receive flow="1"/>
<send flow="2" period="1ms" payload="1000B"/><receive flow="2"/></tasks></test>"""


def test_what_a_clock_ahead_makes_due_at_the_epoch_comes_at_once(tmp_path: Path) -> None:
    """Six messages of flow 1 are sent together: without them its bound would be half of what is simulated."""
    file = tmp_path / "ahead.xml"
    file.write_text(AHEAD, encoding="utf-8")
    found = shares(bounds.bound(bounds.read(file)), latencies(file, 0))
    assert 0.8 < found["1", "z"] <= 1
    assert found["2", "z"] <= 1
