"""Linear programmes of classes can fail: with a rule that is wrong in the bounded plan, simulation exceeds the bound.

For each kind of rule (static priorities, shapers with credit and asynchronous ones, cyclic queues, gates, windows of
time-triggered frames, virtual links beside classes, fragments, and shapers beside windows and gates) the search drives
the simulator towards the bound of the honest plan, and never above it. The same bound of a plan in which that rule is
better than it is in the simulated network is exceeded: by a rule that was wrong in a programme it would be too.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from simulation import written
from wiregauge import bounds
from wiregauge.bounds.searching import goals, search
from wiregauge.bounds.short_runs import short_runs

Plan = dict[str, Any]


def text(inside: str, *, kind: str = "cots", more: str = "", flows: str = "", tasks: str = "") -> str:
    """Flow 1 of priority 7 and flow 2 of priority 0 over one switch to `z`, ports in the order they are passed in."""
    ends = "".join(f'<end-system name="{name}"/>' for name in ("a", "b", "z", *(("t",) if flows else ())))
    links = "".join(
        f'<link between="{name} s" rate="100Mbit/s"/>' for name in ("a", "b", *(("t",) if flows else ()), "z")
    )
    protocol = "be" if kind == "mixed-criticality" else "raw"
    network = (
        f'{ends}<switch name="s" kind="{kind}" delay="0ns" buffer="512KiB" {more}>{inside}</switch>{links}'
    )
    own = (
        f'<flow id="1" protocol="{protocol}" from="a" to="z" vlan="7" priority="7"/>'
        f'<flow id="2" protocol="{protocol}" from="b" to="z" vlan="7" priority="0"/>'
    )
    sends = (
        '<send flow="1" period="10ms" payload="500B" burst="5"/><receive flow="1"/>'
        '<send flow="2" period="10ms" payload="1400B"/><receive flow="2"/>'
    )
    return written(network, own + flows, sends + tasks, attributes='duration="50ms"')


CLASSES = (
    '<switch-tsn><traffic-class number="0" priorities="0 1 2 3 4 5 6"/>'
    '<traffic-class number="1" priorities="7">{}</traffic-class>{}</switch-tsn>'
)
STRICT = text(CLASSES.format("", ""))
SHAPED = text(CLASSES.format('<cbs idle-slope="20Mbit/s"/>', ""))
GATED = text(
    CLASSES.format(
        "",
        '<gate-schedule><gate-entry for="700us" open="1"/><gate-entry for="300us" open="0"/></gate-schedule>',
    )
)
ASYNCHRONOUS = text(
    CLASSES.format(
        '<ats longest-residence="50ms"><scheduler flow="1" rate="20Mbit/s" burst="542B"/></ats>', ""
    )
)
CYCLIC = text(
    '<switch-tsn><traffic-class number="0" priorities="0 1 2 3 4 5"/>'
    '<traffic-class number="1" priorities="6"/><traffic-class number="2" priorities="7"/>'
    '<cyclic-queuing classes="1 2" cycle="1ms"/></switch-tsn>'
)
WINDOW = {
    "kind": "mixed-criticality",
    "flows": '<flow id="9" protocol="tt" from="t" to="z" period="2ms" offset="100us" window="600us"/>',
    "tasks": '<send flow="9" period="2ms" payload="1000B"/><receive flow="9"/>',
}
WINDOWS = text("", **WINDOW)
SHAPED_BESIDE_WINDOWS = text(CLASSES.format('<cbs idle-slope="20Mbit/s"/>', ""), **WINDOW)
SHAPED_BEHIND_GATES = text(
    CLASSES.format(
        '<cbs idle-slope="20Mbit/s"/>',
        '<gate-schedule><gate-entry for="200us" open="0"/><gate-entry for="800us" open="1"/></gate-schedule>',
    )
)
LINKS = (
    text(CLASSES.format("", "").replace('number="0"', 'number="0" virtual-links="low high"'), kind="arinc664")
    .replace(
        'id="1" protocol="raw" from="a" to="z" vlan="7" priority="7"',
        'id="1" protocol="rc" from="a" to="z" bag="8ms"',
    )
    .replace('protocol="raw"', 'protocol="be"')
    .replace('payload="500B" burst="5"', 'payload="500B"')
    .replace('payload="1400B"', 'payload="1400B" burst="5"')
    .replace('between="b s" rate="100Mbit/s"', 'between="b s" rate="1Gbit/s"')
)


def switch_of(plan: Plan) -> Plan:
    kind: Plan = next(node["kind"] for node in plan["network"]["nodes"] if node["name"] == "s")
    return kind


def below_goes_first(plan: Plan) -> None:
    """The class of flow 2 is the more urgent one."""
    low, high = switch_of(plan)["tsn"][0]["classes"]
    low["priorities"], high["priorities"] = high["priorities"], low["priorities"]


def twice_the_slope(plan: Plan, times: int = 2) -> None:
    for one in switch_of(plan)["tsn"][0]["classes"]:
        if one.get("idle_slope_bps"):
            one["idle_slope_bps"] *= times


def twice_the_rate(plan: Plan) -> None:
    """The bucket of flow 1 fills twice as fast."""
    switch_of(plan)["tsn"][0]["classes"][1]["asynchronous"]["schedulers"][0]["rate_bps"] *= 2


def half_the_cycle(plan: Plan) -> None:
    switch_of(plan)["tsn"][0]["cyclic"]["cycle"] //= 2


def thrice_the_slope(plan: Plan) -> None:
    twice_the_slope(plan, 3)


def longer_open(plan: Plan) -> None:
    """The gate of the class of flow 2 is open for 700 us of a cycle, and not for 300."""
    first, second = switch_of(plan)["tsn"][0]["schedules"][0]["entries"]
    first["length"], second["length"] = second["length"], first["length"]


def no_windows(plan: Plan) -> None:
    for flow in plan["run"]["flows"]:
        if flow.get("schedule"):
            flow["schedule"]["windows"] = []


def before_classes(plan: Plan) -> None:
    """Virtual links wait in no class."""
    for one in switch_of(plan)["tsn"][0]["classes"]:
        one.pop("virtual_links", None)


def in_fragments(plan: Plan) -> None:
    """The frames of flow 2 are cut for those of flow 1."""
    switch_of(plan)["tsn"][0]["classes"][0]["preemptable"] = True


@pytest.mark.parametrize(
    ("network", "flow", "fault", "tightness"),
    [
        (ASYNCHRONOUS, "1", twice_the_rate, 0.8),
        (CYCLIC, "1", half_the_cycle, 0.6),
        (STRICT, "2", below_goes_first, 0.8),
        (SHAPED, "1", twice_the_slope, 0.8),
        (GATED, "2", longer_open, 0.6),
        # A bound leaves the whole of a window to frames that take a part of it.
        (WINDOWS, "2", no_windows, 0.3),
        (LINKS, "1", before_classes, 0.8),
        (STRICT, "1", in_fragments, 0.8),
        (SHAPED_BESIDE_WINDOWS, "1", thrice_the_slope, 0.5),
        (SHAPED_BEHIND_GATES, "1", thrice_the_slope, 0.5),
    ],
    ids=[
        "asynchronous shaping",
        "cyclic queuing",
        "static priorities",
        "credit-based shaper",
        "gates",
        "windows",
        "virtual links in a class",
        "fragments",
        "shaper beside windows",
        "shaper behind gates",
    ],
)
def test_a_rule_of_a_class_that_is_wrong_is_seen(
    network: str, flow: str, fault: Callable[[Plan], None], tightness: float, tmp_path: Path
) -> None:
    file = tmp_path / "t.xml"
    file.write_text(network, encoding="utf-8")
    source = bounds.read(file)
    plan = json.loads(source.as_json)
    fault(plan)
    assert plan != json.loads(source.as_json)
    flattered = bounds.Source(source.file, source.format, json.dumps(plan))
    # The search moves the offsets of senders.
    answers = [bounds.bound(one, "plp", grouping=True, phases="any") for one in (source, flattered)]
    honest, lower = (goals([answer], [flow], ["z"])[0] for answer in answers)
    found = search(short_runs(file, honest.bound), [honest], seconds=20, seed=1).found[0]
    assert found.latency is not None
    simulated = found.latency / 1e12
    assert lower.bound < simulated <= honest.bound, (lower.bound, simulated, honest.bound)
    assert found.tightness is not None
    assert found.tightness > tightness
