"""Builds the namespaces around a network that the model plays, and prints the kernel's view of them as JSON.

wiregauge-agent enclose -- python around_model.py TEST
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

from msgspec import to_builtins

from wiregauge.config import load
from wiregauge.runner.benches.netns.bench import NetnsBench
from wiregauge.runner.benches.netns.enclosure import ENCLOSED


def within(space: str, *command: str) -> str:
    called = ["nsenter", f"--net=/run/netns/{space}", "--", *command]
    return subprocess.run(called, capture_output=True, text=True, check=True).stdout


def main() -> None:
    os.environ[ENCLOSED] = "1"
    bench = NetnsBench(switches="model")
    bench.build(load(Path(sys.argv[1])).campaign)
    told: dict[str, object] = {"ports": to_builtins(bench.first_ports())}
    for space in sorted(place.name for place in Path("/run/netns").iterdir()):
        if space.startswith("."):
            continue
        links = json.loads(within(space, "ip", "-json", "-details", "addr"))
        told[space] = {
            link["ifname"]: {
                "flags": link["flags"],
                "mtu": link["mtu"],
                "longest_made": link["gro_max_size"],
                "queue": link["qdisc"],
                "mac": link.get("address"),
                "addresses": [one["local"] for one in link["addr_info"]],
                "neighbours": sorted(
                    (one["dst"], one["lladdr"])
                    for one in json.loads(
                        within(space, "ip", "-json", "neigh", "show", "dev", link["ifname"])
                    )
                ),
                "offloads": [
                    line.split(":")[0].strip()
                    for line in within(space, "ethtool", "-k", link["ifname"]).splitlines()
                    if line.split(":")[1].strip() == "on"
                ],
            }
            for link in links
            if link["ifname"] != "lo"
        }
    sys.stdout.write(json.dumps(told))


if __name__ == "__main__":
    main()
