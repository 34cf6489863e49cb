"""No simulated frame is later than any bound allows. The two share the plan and the lengths of frames, and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from fractions import Fraction
from pathlib import Path

import pytest

from bound_networks import classed, late_hosts, network
from simulation import Simulated, simulate
from wiregauge import bounds
from wiregauge.config import Test, TestError

Method = tuple[str, str, bool]
METHODS: tuple[Method, ...] = (
    ("tfa", "fifo", True),
    ("tfa", "fifo", False),
    ("tfa", "arbitrary", False),
    ("sfa", "fifo", True),
    ("sfa", "fifo", False),
    ("sfa", "arbitrary", True),
    ("pmoo", "arbitrary", True),
)
FIFO = tuple(method for method in METHODS if method[1] == "fifo")
OVERLOADED = (
    "its load is",
    "of output jitter",
    "a shaped class has an idle slope",
    "would never leave",
    "together take",
)
QUICK, ALL = 24, 1000


def worst(run: Simulated) -> dict[tuple[str, str], int]:
    """The longest time from application to application of each flow and receiver, in ps."""
    found: dict[tuple[str, str], int] = {}
    for flow in run.plan.runs[0].flows:
        sent = run.times("application-send", flow.id)
        for receiver in (flow.to, *flow.also_to):
            name = run.plan.network.names[receiver]
            came = run.times("application-receive", flow.id, name)
            late = [came[sequence] - sent[sequence] for sequence in came]
            if late:
                found[str(flow.id), name] = max(late)
    return found


def judge(
    seed: int, place: Path, drawn: Callable[[int], Test] = network, methods: Sequence[Method] = METHODS
) -> tuple[int, float]:
    """Bounds and simulates a network; returns how many pairs were compared and the tightest ratio of them."""
    file = place / "n.xml"
    place.mkdir(parents=True, exist_ok=True)
    file.write_text(drawn(seed).to_xml(), encoding="utf-8")
    try:
        source = bounds.read(file)
        answers = [
            bounds.bound(source, method, multiplexing=order, grouping=grouping)
            for method, order, grouping in methods
        ]
    except TestError as error:
        # A network that is drawn overloaded is no network to judge by.
        if not any(reason in str(error) for reason in OVERLOADED):
            raise
        return 0, 0.0
    answers.append(bounds.bound(source, "plp", grouping=True))
    never_above(answers[-1], answers[0])
    seen = worst(simulate(file.read_text(encoding="utf-8"), place / "run"))
    compared, tightest = 0, 0.0
    for answer in answers:
        for flow in answer.flows:
            for target in flow.targets:
                late = seen.get((flow.flow, target.target))
                if late is None or target.delay is None:
                    continue
                compared += 1
                tightest = max(tightest, late / 1e12 / target.delay)
                assert late <= target.delay * 1e12, (
                    f"network {seed}: flow {flow.flow} to {target.target} took {late} ps, and {answer.method} "
                    f"{answer.multiplexing} grouping {answer.grouping} bounds it by {target.delay * 1e12:.0f} ps"
                )
    return compared, tightest


def never_above(tight: bounds.Answer, loose: bounds.Answer) -> None:
    """Linear programmes are never above total flow analysis, of any flow, exactly."""
    for one, other in zip(tight.flows, loose.flows, strict=True):
        for less, more in zip(one.targets, other.targets, strict=True):
            if more.delay_exact is not None:
                assert less.delay_exact is not None, one.flow
                assert Fraction(less.delay_exact) <= Fraction(more.delay_exact), one.flow


@pytest.mark.parametrize("part", range(4))
def test_no_simulated_delay_exceeds_a_bound(part: int, tmp_path: Path, thorough: bool) -> None:
    networks = ALL if thorough else QUICK
    results = [judge(seed, tmp_path / str(seed)) for seed in range(part, networks, 4)]
    assert sum(compared for compared, _ in results) > 20 * len(results)
    # A bound that nothing comes near would be no judge.
    assert max(tightest for _, tightest in results) > 0.8


@pytest.mark.parametrize("part", range(3))
def test_no_simulated_delay_exceeds_a_bound_of_shaped_and_gated_classes(
    part: int, tmp_path: Path, thorough: bool
) -> None:
    networks = ALL if thorough else QUICK
    ways = METHODS if part == 1 else FIFO
    results = [judge(seed, tmp_path / str(seed), classed, ways) for seed in range(part, networks, 3)]
    assert sum(compared for compared, _ in results) > 5 * len(results)
    assert max(tightest for _, tightest in results) > 0.5


@pytest.mark.parametrize("part", range(2))
def test_no_simulated_delay_exceeds_a_bound_where_hosts_take_time(
    part: int, tmp_path: Path, thorough: bool
) -> None:
    networks = ALL if thorough else QUICK
    results = [judge(seed, tmp_path / str(seed), late_hosts, FIFO) for seed in range(part, networks, 2)]
    assert sum(compared for compared, _ in results) > 10 * len(results)
    assert max(tightest for _, tightest in results) > 0.6


def test_a_planted_fault_is_seen(tmp_path: Path) -> None:
    """A sender that sends twice what the bounded test says breaks its arrival curve, and its bound."""
    test = network(2)
    file = tmp_path / "n.xml"
    file.write_text(test.to_xml(), encoding="utf-8")
    source = bounds.read(file)
    plan = json.loads(source.as_json)
    for send in plan["run"]["sends"]:
        send["payload"], send["pattern"] = 20, {"type": "periodic"}
    flattered = bounds.Source(source.file, source.format, json.dumps(plan))
    honest = bounds.bound(source, grouping=True)
    lower = bounds.bound(flattered, grouping=True)
    seen = worst(simulate(file.read_text(encoding="utf-8"), tmp_path / "run"))
    late = [
        seen[flow.flow, target.target] > target.delay * 1e12
        for answer in (honest, lower)
        for flow in answer.flows
        for target in flow.targets
        if (flow.flow, target.target) in seen and target.delay is not None
    ]
    half = len(late) // 2
    assert not any(late[:half])
    assert any(late[half:])
