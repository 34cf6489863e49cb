"""The bench of namespaces where the model plays what is between them."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from wiregauge.benches import agent_program

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="there is no ethtool")
def test_every_end_system_has_one_whole_link_to_the_network_and_nobody_speaks_there() -> None:
    command = [str(agent_program()), "enclose", "--", sys.executable, str(HERE / "around_model.py")]
    done = subprocess.run(
        [*command, str(EXAMPLES / "demo.xml")], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    ports = told.pop("ports")
    assert ports == {
        "mac": {"port": "network:h0", "received": 0},
        "sensor": {"port": "network:h1", "received": 0},
    }
    # No namespace of a switch.
    assert sorted(told) == ["es-mac", "es-sensor", "network"]
    assert sorted(told["network"]) == ["h0", "h1"]
    for port in told["network"].values():
        assert {"NOARP", "UP", "LOWER_UP"} <= set(port["flags"])
        assert port["addresses"] == []
    for name, other in (("mac", "sensor"), ("sensor", "mac")):
        (own,), (there,) = (told[f"es-{one}"].items() for one in (name, other))
        assert own[0] == "eth0"
        assert own[1]["neighbours"] == [[there[1]["addresses"][0], there[1]["mac"]]]
    for space in told.values():
        for link in space.values():
            assert (link["queue"], link["mtu"]) == ("noqueue", 1600)
            # A checksum, a tag or a segment that is left to an interface is wrong behind a packet socket.
            assert set(link["offloads"]) <= {"highdma"}
