"""Bounds of mechanisms against simulations with searched phases, one random network after another."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from pathlib import Path

import pytest

from bound_judge import OVERLOADED
from mechanism_networks import asynchronous, cyclic, replicated
from wiregauge import bounds
from wiregauge._native import simulate_offsets
from wiregauge.config import TestError
from wiregauge.plan import as_json

WAYS = (("tfa", True), ("tfa", False), ("sfa", True), ("sfa", False), ("plp", True))
QUICK, ALL = 20, 1000


def longest(file: Path, seed: int, tries: int) -> dict[tuple[str, str], float]:
    """The longest latencies in true time: with the senders in step, and at other offsets."""
    network, run = bounds.read(file).planned or pytest.fail("it is a test")
    draw = random.Random(seed)
    offsets = [[0] * len(run.sends), [send.offset for send in run.sends]]
    offsets += [[draw.randrange(send.period) for send in run.sends] for _ in range(tries - 2)]
    found: dict[tuple[str, str], float] = {}
    for one in json.loads(simulate_offsets(as_json(network), as_json(run), offsets, False)):
        for own in one["longest"]:
            key = str(own["flow"]), network.names[own["receiver"]]
            found[key] = max(found.get(key, 0.0), own["latency"] / 1e12)
    return found


def judged(text: str, place: Path, seed: int, tries: int) -> dict[tuple[str, str], float]:
    """The share of its least bound that the longest latency of each flow takes; empty for an overloaded network."""
    file = place / f"{seed}.xml"
    file.write_text(text, encoding="utf-8")
    try:
        source = bounds.read(file)
        answers = [bounds.bound(source, way, grouping=grouping) for way, grouping in WAYS]
    except TestError as error:
        if not any(reason in str(error) for reason in OVERLOADED):
            raise
        return {}
    seen = longest(file, seed, tries)
    shares: dict[tuple[str, str], float] = {}
    for answer in answers:
        for flow in answer.flows:
            for target in flow.targets:
                late = seen.get((flow.flow, target.target))
                if late is None or target.delay is None:
                    continue
                share = late / target.delay
                told = f"{late * 1e6} of {target.delay * 1e6} us by {answer.as_text}"
                assert share <= 1, f"{seed}: flow {flow.flow}: {told}"
                key = flow.flow, target.target
                shares[key] = max(shares.get(key, 0.0), share)
    return shares


@pytest.mark.parametrize(
    "networks", [asynchronous, cyclic, replicated], ids=["asynchronous shaping", "cyclic queuing", "copies"]
)
def test_no_simulated_delay_exceeds_a_bound(
    networks: Callable[[int], str], tmp_path: Path, thorough: bool
) -> None:
    shares: list[float] = []
    for seed in range(ALL if thorough else QUICK):
        shares += judged(networks(seed), tmp_path, seed, 8).values()
    assert len(shares) > QUICK
    assert max(shares) > 0.8
