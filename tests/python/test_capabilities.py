"""Whatever a plan can ask for, namespaces build it, ignore it for a stated reason, or refuse it: nothing falls between.

The plan's own declarations are read, so that a new field fails here until somebody has said which of the three it is.
"""

from __future__ import annotations

import re
from pathlib import Path

from test_plan import fields_of
from wiregauge.benches.capabilities import beyond_namespaces
from wiregauge.config import load

ROOT = Path(__file__).resolve().parents[2]
PLAN = ROOT / "crates" / "plan" / "src"
CAPABILITIES = (ROOT / "python" / "wiregauge" / "benches" / "capabilities.py").read_text(encoding="utf-8")

# What the namespaces and their agents make, or what belongs to the machine they run on.
BUILT = {
    "Node": {"name", "kind", "mac", "ipv4", "line_drift_ppb", "timestamps", "events"},
    "SwitchModel": {"port_buffer"},
    "Link": {"ends", "rate_bps"},
    "Run": {
        *("index", "point", "repeat", "seed", "link_rate_bps", "warm_up", "duration", "drain"),
        *("flows", "sends", "receives", "relays", "injects", "captures"),
    },
    "Flow": {"id", "protocol", "from", "to", "deadline", "vlan", "routes", "exchange", "addresses"},
    "Send": {
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
STATED = {"SwitchModel": {"processing_delay", "drawn_delay"}, "Link": {"delay"}}
# Fields that mean something only beside another that is refused.
IMPLIED = {
    "SwitchModel": {"policing", "integration", "raster"},  # kinds other than cots are refused
    # rc, tt, several receivers, network B
    "Flow": {"also_to", "network", "virtual_link", "schedule"},
    "Send": {"sub_link"},  # rc
}


def fields(file: str, struct: str) -> set[str]:
    """Names of the public fields of a struct of the plan."""
    text = (PLAN / file).read_text(encoding="utf-8")
    body = re.search(rf"pub struct {struct} \{{(.*?)\n\}}", text, re.DOTALL)
    assert body is not None, struct
    return set(fields_of(body.group(1)))


def test_every_field_of_the_plan_is_built_stated_or_refused() -> None:
    for file, struct in (
        ("network.rs", "Node"),
        ("network.rs", "SwitchModel"),
        ("network.rs", "Link"),
        ("campaign/mod.rs", "Run"),
        ("campaign/flows.rs", "Flow"),
        ("campaign/tasks.rs", "Send"),
    ):
        settled = BUILT[struct] | STATED.get(struct, set()) | IMPLIED.get(struct, set())
        refused = {name for name in fields(file, struct) if re.search(rf'"{name}"|\.{name}\b', CAPABILITIES)}
        left = fields(file, struct) - settled - refused
        assert not left, f"{struct}: nobody says what namespaces do with {sorted(left)}"
        gone = settled - fields(file, struct)
        assert not gone, f"{struct}: {sorted(gone)} is settled here, but the plan has no such field"


def test_several_receivers_are_refused_by_name() -> None:
    refused = beyond_namespaces(load(ROOT / "examples" / "multicast.xml").campaign, "kernel")
    assert "flow 10 has several receivers: the agents send to one" in refused
