"""A lab of hosts on one machine: each a namespace of networks, mounts and names, with its own agent and state.

    wiregauge-agent enclose -- python lab_world.py FOLDER AGENT HOST[=OFFSET,DRIFT] …

builds it, starts an agent on every host, prints what they print as JSON lines, and stands until its standard input
ends. Hosts have eth0 on a back-end network (10.77.0.0/24) and eth1 on the network under test (10.88.0.0/24); whoever
enters the enclosure has 10.77.0.1 and, as eth1, 10.88.0.1. Everything ends with the enclosure.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def build(hosts: list[str]) -> None:
    """Two bridges in a namespace of switches, and every host with a port at each."""
    Path("/run/netns").mkdir(exist_ok=True)
    ip("link", "set", "lo", "up")
    ip("netns", "add", "switches")
    for bridge in ("control", "test"):
        ip("-n", "switches", "link", "add", bridge, "type", "bridge")
        ip("-n", "switches", "link", "set", bridge, "up")
    for number, host in enumerate(["", *hosts]):
        space = []
        if host:
            ip("netns", "add", host)
            ip("-n", host, "link", "set", "lo", "up")
            space = ["-n", host]
        for port, (bridge, net) in enumerate((("control", "10.77.0"), ("test", "10.88.0"))):
            inside, outside = f"eth{port}", f"p{number}-{port}"
            place = ["netns", host] if host else []
            ip(
                "-n",
                "switches",
                "link",
                "add",
                outside,
                "type",
                "veth",
                "peer",
                "name",
                "x",
                *(["netns", str(os.getpid())]),
            )
            ip("link", "set", "x", "name", inside, *place)
            ip(*space, "addr", "add", f"{net}.{number + 1}/24", "dev", inside)
            ip(*space, "link", "set", inside, "up")
            ip("-n", "switches", "link", "set", outside, "master", bridge, "up")


def serve(host: str, number: int, folder: Path, agent: str, clock: str) -> subprocess.Popen[str]:
    """The agent of a host, as a service would start it."""
    state = folder / host
    state.mkdir(exist_ok=True)
    config = state / "agent.toml"
    if not config.exists():
        config.write_text('interfaces = ["eth1"]\naddresses = ["10.88.0.0/24"]\n', encoding="utf-8")
    command = [
        agent,
        "serve",
        "--listen",
        f"tls:10.77.0.{number + 1}:47170",
        "--announce",
        "--die-with-parent",
    ]
    command += ["--state", str(state / "keys"), "--spool", str(state / "spool"), "--config", str(config)]
    (state / "spool").mkdir(mode=0o700, exist_ok=True)
    named = f"hostname {host} && exec " + " ".join(command)
    return subprocess.Popen(
        ["ip", "netns", "exec", host, "unshare", "--uts", "--mount", "sh", "-c", named],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ({"WIREGAUGE_PLANTED_CLOCK": clock} if clock else {}),
    )


def tell(fact: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


def main() -> None:
    folder, agent, *named = sys.argv[1:]
    hosts = [name.partition("=") for name in named]
    build([name for name, _, _ in hosts])
    agents = {
        name: serve(name, number, Path(folder), agent, clock)
        for number, (name, _, clock) in enumerate(hosts, 1)
    }
    for name, process in agents.items():
        assert process.stdout is not None
        # Either "listening …" or "joining … CODE".
        said = ""
        while not said.startswith(("listening ", "joining ")):
            said = process.stdout.readline()
            if not said:
                sys.exit(f"the agent of {name} did not start")
        tell({"host": name, "said": said.split()})
    tell({"pid": os.getpid()})
    sys.stdin.read()


if __name__ == "__main__":
    main()
