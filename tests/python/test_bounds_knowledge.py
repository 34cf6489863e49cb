"""To know more never widens a bound: whichever method, whichever piece of knowledge."""

from __future__ import annotations

import copy
import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from wiregauge import bounds
from wiregauge.bounds.networks import read_bytes

FAULTS = Path(__file__).resolve().parents[1] / "faults"
METHODS: Final = [
    *(("tfa", order, grouped) for order in ("fifo", "arbitrary") for grouped in (False, True)),
    *(("sfa", order, grouped) for order in ("fifo", "arbitrary") for grouped in (False, True)),
    *(("pmoo", "arbitrary", grouped) for grouped in (False, True)),
    *(("plp", "fifo", grouped) for grouped in (False, True)),
]
ROUNDING: Final = 1e-9
Network = dict[str, Any]
Delays = dict[tuple[str, str], float]


def network(draw: random.Random) -> Network:
    """Output ports on ascending paths; some flows have two buckets, some servers two pieces."""
    count = draw.randint(1, 3)
    servers = []
    for place in range(count):
        rates, latencies = [draw.randint(50, 150)], [draw.randint(0, 5)]
        if draw.random() < 0.3:
            rates.append(rates[0] + draw.randint(5, 50))
            latencies.append(latencies[0] + draw.randint(1, 5))
        curve = {"rates": rates, "latencies": latencies}
        capacity = max(rates) + draw.choice((0, 80, 150))
        servers.append({"name": f"s{place}", "service_curve": curve, "capacity": capacity})
    flows = []
    for place in range(draw.randint(2, 4)):
        path = sorted(draw.sample(range(count), draw.randint(1, count)))
        rates, bursts = [draw.randint(1, 5)], [draw.randint(1, 100)]
        if draw.random() < 0.25:
            rates.append(rates[0] * draw.randint(2, 6))
            bursts.append(max(1, bursts[0] // draw.randint(2, 10)))
        curve = {"rates": rates, "bursts": bursts}
        named = [f"s{server}" for server in path]
        flows.append({"name": f"f{place}", "path": named, "arrival_curve": curve, "max_packet_length": 1})
    about = {"name": "p", "packetizer": draw.random() < 0.4}
    return {"network": about, "flows": flows, "servers": servers}


def known_better(draw: random.Random, less: Network) -> Iterator[tuple[str, Network]]:
    """The same network, of which one thing more is known each time."""

    def changed(kind: str) -> tuple[Network, dict[str, Any]]:
        more = copy.deepcopy(less)
        return more, draw.choice(more[kind])

    more, flow = changed("flows")
    curve = flow["arrival_curve"]
    burst, rate = curve["bursts"][0], curve["rates"][0]
    if draw.random() < 0.5:
        burst, rate = burst * draw.randint(2, 20), rate * draw.choice((0.1, 0.3, 0.5, 0.9))
    else:
        burst, rate = burst * draw.choice((0.0, 0.1, 0.5)), rate * draw.randint(2, 10)
    curve["bursts"].append(burst)
    curve["rates"].append(rate)
    yield "another bucket", more

    more, flow = changed("flows")
    flow["arrival_curve"]["bursts"] = [0.0 for _ in flow["arrival_curve"]["bursts"]]
    yield "no burst", more

    more, flow = changed("flows")
    flow["arrival_curve"]["rates"] = [rate / 2 for rate in flow["arrival_curve"]["rates"]]
    yield "a lower rate", more

    more, server = changed("servers")
    curve = server["service_curve"]
    up = min(10, server["capacity"] - max(curve["rates"]))
    curve["rates"] = [rate + up for rate in curve["rates"]]
    yield "a greater rate", more

    more, server = changed("servers")
    server["service_curve"]["latencies"] = [latency / 2 for latency in server["service_curve"]["latencies"]]
    yield "a shorter latency", more

    more, server = changed("servers")
    server["capacity"] = max(*server["service_curve"]["rates"], server["capacity"] - 20)
    yield "shaping by a slower link", more


def delays(of: Network, method: str, order: str, grouped: bool) -> Delays:
    source = read_bytes(json.dumps(of).encode(), Path("ports.json"))
    answer = bounds.bound(source, method, multiplexing=order, grouping=grouped)
    return {
        (flow.flow, target.target): float("inf") if target.delay is None else target.delay
        for flow in answer.flows
        for target in flow.targets
    }


@pytest.mark.parametrize(("method", "order", "grouped"), METHODS)
def test_knowing_more_never_widens(method: str, order: str, grouped: bool) -> None:
    for seed in range(4 if method == "plp" else 12):
        draw = random.Random(seed)
        less = network(draw)
        before = delays(less, method, order, grouped)
        for what, more in known_better(draw, less):
            for end, delay in delays(more, method, order, grouped).items():
                assert delay <= before[end] * (1 + ROUNDING) + ROUNDING, f"{seed}: {what} of {end}"


@pytest.mark.parametrize("name", ["pmoo-one-bucket.json", "pmoo-two-buckets.json"])
def test_a_second_bucket_of_a_crossing_flow_leaves_a_bound_as_it_is(name: str) -> None:
    answer = bounds.bound(bounds.read(FAULTS / name), "pmoo")
    assert {flow.targets[0].delay_exact for flow in answer.flows} == {"1/19950"}
    assert answer.flows[1].targets[0].delay == pytest.approx(50.125e-6, rel=1e-4)


def test_many_flows_with_a_bucket_more_each_have_no_greater_bound() -> None:
    """More parts than are all looked at."""
    one = json.loads((FAULTS / "pmoo-one-bucket.json").read_text())
    crossing = one["flows"][0]
    one["flows"] = [{**copy.deepcopy(crossing), "name": f"f{place}"} for place in range(9)]
    two = copy.deepcopy(one)
    for flow in two["flows"]:
        flow["arrival_curve"]["bursts"].append(16000)
        flow["arrival_curve"]["rates"].append(0.0005)
    before, after = (delays(of, "pmoo", "arbitrary", False) for of in (one, two))
    assert all(after[end] <= before[end] * (1 + ROUNDING) for end in before)
