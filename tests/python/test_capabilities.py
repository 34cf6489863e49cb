"""Whatever a plan can ask for, namespaces build it, ignore it for a stated reason, or refuse it: nothing falls between.

The plan's own declarations are read, so that a new field fails here until somebody has said which of the three it is.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from wiregauge.config import load
from wiregauge.plan import Campaign, Flow, Link, Node, Plan, Run, Send, Switch
from wiregauge.runner.benches.capabilities import beyond_hosts, beyond_namespaces
from wiregauge.runner.benches.netns.order import Switches

ROOT = Path(__file__).resolve().parents[2]
CAPABILITIES = (ROOT / "python" / "wiregauge" / "runner" / "benches" / "capabilities.py").read_text(
    encoding="utf-8"
)

# What the namespaces and their agents make, or what belongs to the machine they run on.
BUILT: dict[type[Plan], set[str]] = {
    Node: {"name", "kind", "mac", "ipv4", "clock", "line_drift_ppb", "timestamps", "events"},
    Switch: {"port_buffer"},
    Link: {"ends", "rate_bps"},
    Run: {
        *("index", "point", "repeat", "seed", "link_rate_bps", "warm_up", "duration", "drain"),
        *("flows", "sends", "receives", "relays", "injects", "remote_logs", "captures"),
    },
    Flow: {
        *("id", "protocol", "from", "to", "also_to", "deadline", "vlan", "dscp", "routes", "exchange"),
        "addresses",
    },
    Send: {
        *(
            "flow",
            "period",
            "offset",
            "payload",
            "fill",
            "count",
            "warm_up_count",
            "pattern",
            "rate_limit_bps",
        ),
        *("activity", "seed", "pacing", "backend", "transmit_time", "replay"),
    },
}
# The processing delay and the propagation delay: facts of the bench say that they have no effect.
STATED: dict[type[Plan], set[str]] = {Switch: {"processing_delay", "drawn_delay"}, Link: {"delay"}}
# Fields that mean something only beside another that is refused.
IMPLIED: dict[type[Plan], set[str]] = {
    Switch: {"policing", "integration", "raster"},  # kinds other than cots are refused
    Flow: {"network", "virtual_link", "schedule"},  # network B, rc, tt
    Send: {"sub_link", "before_dispatch"},  # rc; tt
}


@pytest.mark.parametrize("part", [Node, Switch, Link, Run, Flow, Send])
def test_every_field_of_the_plan_is_built_stated_or_refused(part: type[Plan]) -> None:
    settled = BUILT[part] | STATED.get(part, set()) | IMPLIED.get(part, set())
    fields = set(part.__struct_encode_fields__)
    refused = {name for name in fields if re.search(rf'"{name}"|\.{name}\b', CAPABILITIES)}
    left = fields - settled - refused
    assert not left, f"{part.__name__}: nobody says what namespaces do with {sorted(left)}"
    gone = settled - fields
    assert not gone, f"{part.__name__}: {sorted(gone)} is settled here, but the plan has no such field"


SENT_ON_EVERY_BENCH = {
    "tagged udp": ('from="a" to="b" priority="5"', ""),
    "code point": ('from="a" to="b" dscp="46"', ""),
    "several receivers": ('from="a" to="b c"', ""),
    "several addresses": ('from="a" to="b" source-mac="02:00:00:00:00:71" source-macs="3"', ""),
    "loopback": ('from="a" to="a"', ""),
    "remote log": ('from="a" to="b"', '<remote-log on="a" to="c"/>'),
    "threads": ('from="a" to="b"', '<inject on="c" to="b" load="10%" payload="64B" burst="1" threads="4"/>'),
}
"""A flow and other tasks for each feature, by name."""


@pytest.mark.parametrize("protocol", ["udp", "be"])
@pytest.mark.parametrize("what", SENT_ON_EVERY_BENCH)
def test_what_agents_send_by_themselves_is_refused_nowhere(what: str, protocol: str, tmp_path: Path) -> None:
    flow, more = SENT_ON_EVERY_BENCH[what]
    given = sent(f'<flow id="1" protocol="{protocol}" {flow}/>', more, tmp_path)
    assert beyond_hosts(given) == []
    for switches in get_args(Switches):
        assert beyond_namespaces(given, switches) == []


def test_what_needs_an_interface_card_only_the_model_has(tmp_path: Path) -> None:
    flow = '<flow id="1" protocol="rc" vl="7" bag="2ms" lmax="200B" from="a" to="b"/>'
    given = sent(flow, "", tmp_path, kind="arinc664")
    (why,) = beyond_hosts(given)
    assert why == "flow 1 is of protocol rc: virtual links need an end system and a switch that know them"
    assert why in beyond_namespaces(given, "kernel")
    assert beyond_namespaces(given, "model") == []


ON_CYCLE = """<test xmlns="urn:wiregauge:test:2" name="t" seed="1"><network>
<end-system name="a">{clock}</end-system><end-system name="b"/><switch name="sw" kind="mixed-criticality"/>
<link between="a sw" rate="1Gbit/s"/><link between="b sw" rate="1Gbit/s"/></network>
<flows><flow id="1" protocol="tt" from="a" to="b" period="2ms" offset="1ms"/></flows>
<tasks><send flow="1" period="2ms" payload="64B" count="10" {place}/><receive flow="1"/></tasks></test>"""


@pytest.mark.parametrize("place", ['cycle-offset="dispatch"', 'cycle-offset="500us"'])
def test_programs_of_hosts_go_by_no_clock_of_a_card(place: str, tmp_path: Path) -> None:
    """Whoever asks for them to is refused where the two clocks differ, and nobody else."""

    def refused(clock: str, place: str) -> list[str]:
        file = tmp_path / "t.xml"
        file.write_text(ON_CYCLE.format(clock=clock, place=place))
        return beyond_namespaces(load(file).campaign, "model")

    (why,) = refused('<clock drift="20ppm"/>', place)
    assert why.startswith('"a" sends flow 1 at one place of the network\'s cycle (cycle-offset)')
    assert refused("", place) == []
    assert refused('<clock drift="20ppm"/>', 'offset="500us"') == []


def sent(flow: str, more: str, folder: Path, *, kind: str = "cots") -> Campaign:
    links = "".join(f'<link between="{name} sw" rate="1Gbit/s"/>' for name in "abc")
    nodes = "".join(f'<end-system name="{name}"/>' for name in "abc")
    file = folder / "t.xml"
    file.write_text(
        '<test xmlns="urn:wiregauge:test:2" name="t" seed="1">'
        f'<network>{nodes}<switch name="sw" kind="{kind}"/>{links}</network><flows>{flow}</flows>'
        f'<tasks><send flow="1" period="2ms" payload="64B" count="10"/><receive flow="1"/>{more}</tasks></test>'
    )
    return load(file).campaign
