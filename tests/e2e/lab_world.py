"""A lab of hosts on one machine: each a namespace of networks, mounts and names, with its own agent and state.

    wiregauge-agent enclose -- python lab_world.py FOLDER AGENT HOST[=OFFSET,DRIFT] …

builds it, starts an agent on every host, prints what they print as JSON lines, and stands until its standard input
ends. Hosts have eth0 on a back-end network (10.77.0.0/24) and eth1 and eth2 on the network under test (10.88.0.0/24 and
10.88.1.0/24, one segment); whoever enters the enclosure has 10.77.0.1 and, as eth1, 10.88.0.1. A line of standard input
is an order, answered by a line when it is done:

    kill HOST | start HOST [CLOCK] | stop HOST | continue HOST | down HOST PORT | up HOST PORT
    unplug HOST | boot HOST | small HOST KILOBYTES | large HOST | wire HOST INTERFACE ADDRESS OTHER INTERFACE

Unplugged, a host is gone with its interfaces; it boots with new ones, and its kernel calls it another boot until the
agent is started again. Small makes the disk of a host's records so small, for an agent that is started then; large
takes that back.

Everything ends with the enclosure.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
import uuid
from pathlib import Path

PORTS = (("control", "10.77.0"), ("test", "10.88.0"), ("test", "10.88.1"))
"""By port of a host the bridge it is at, and its network."""


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
        plug(number, host)


def plug(number: int, host: str) -> None:
    """A host with its interfaces, each on its bridge; without a name it is whoever enters the enclosure."""
    space = []
    if host:
        ip("netns", "add", host)
        ip("-n", host, "link", "set", "lo", "up")
        space = ["-n", host]
    # Two interfaces on one segment: each answers for its own address only, and hears the other.
    enter = ["ip", "netns", "exec", host] if host else []
    knob = "; ".join(
        f"echo 1 > /proc/sys/net/ipv4/conf/all/{name}" for name in ("arp_ignore", "accept_local")
    )
    subprocess.run([*enter, "sh", "-c", knob], check=True)
    for port, (bridge, net) in enumerate(PORTS):
        inside, outside = f"eth{port}", f"p{number}-{port}"
        place = ["netns", host] if host else []
        peer = ["peer", "name", "x", "netns", str(os.getpid())]
        ip("-n", "switches", "link", "add", outside, "type", "veth", *peer)
        ip("link", "set", "x", "name", inside, *place)
        ip(*space, "addr", "add", f"{net}.{number + 1}/24", "dev", inside)
        ip(*space, "link", "set", inside, "up")
        ip("-n", "switches", "link", "set", outside, "master", bridge, "up")


def unplug(number: int, host: str) -> None:
    """A host without power: its interfaces are gone at once, and its network when nobody is in it any more."""
    for port in range(len(PORTS)):
        ip("-n", "switches", "link", "del", f"p{number}-{port}")
    ip("netns", "del", host)


def wire(end: tuple[str, str, str], other: tuple[str, str]) -> None:
    """A cable from one host to another, which has no address at its end of it."""
    (host, inside, address), (there, outside) = end, other
    ip("-n", host, "link", "add", inside, "type", "veth", "peer", "name", outside, "netns", there)
    quiet = f"echo 1 > /proc/sys/net/ipv6/conf/{outside}/disable_ipv6"
    subprocess.run(["ip", "netns", "exec", there, "sh", "-c", quiet], check=False)
    ip("-n", host, "addr", "add", address, "dev", inside)
    ip("-n", host, "link", "set", inside, "up")
    ip("-n", there, "link", "set", outside, "up")
    # The kernel looks at carriers once a second.
    for space, interface in ((host, inside), (there, outside)):
        look = ["ip", "-json", "-n", space, "link", "show", "dev", interface]
        while (
            json.loads(subprocess.run(look, capture_output=True, check=True).stdout)[0]["operstate"] != "UP"
        ):
            time.sleep(0.05)


def serve(
    host: str, number: int, folder: Path, agent: str, clock: str, *, booted: bool = False
) -> subprocess.Popen[str]:
    """The agent of a host, as a service would start it; `booted`, of a host whose kernel says that it has booted."""
    state = folder / host
    state.mkdir(exist_ok=True)
    config = state / "agent.toml"
    if not config.exists():
        allowed = 'interfaces = ["eth1", "eth2"]\naddresses = ["10.88.0.0/23"]\nprograms = ["ptp4l"]\n'
        config.write_text(allowed, encoding="utf-8")
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
    boot = ""
    if booted:
        (state / "boot_id").write_text(f"{uuid.uuid4()}\n", encoding="ascii")
        boot = f"mount --bind {state / 'boot_id'} /proc/sys/kernel/random/boot_id && "
    named = f"hostname {host} && {boot}exec " + " ".join(command)
    return subprocess.Popen(
        ["ip", "netns", "exec", host, "unshare", "--uts", "--mount", "sh", "-c", named],
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | ({"WIREGAUGE_PLANTED_CLOCK": clock} if clock else {}),
    )


def tell(fact: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(fact) + "\n")
    sys.stdout.flush()


def said_by(name: str, process: subprocess.Popen[str]) -> list[str]:
    """What an agent says when it is ready: either "listening …" or "joining … CODE"."""
    assert process.stdout is not None
    said = ""
    while not said.startswith(("listening ", "joining ")):
        said = process.stdout.readline()
        if not said:
            sys.exit(f"the agent of {name} did not start")
    return said.split()


def main() -> None:  # noqa: C901, PLR0912 - one case an order
    folder, agent, *named = sys.argv[1:]
    hosts = {name: (number, clock) for number, (name, _, clock) in enumerate(map(parted, named), 1)}
    build(list(hosts))

    def start(name: str, planted: str = "", *, booted: bool = False) -> subprocess.Popen[str]:
        number, clock = hosts[name]
        return serve(name, number, Path(folder), agent, planted or clock, booted=booted)

    agents = {name: start(name) for name in hosts}
    for name, process in agents.items():
        tell({"host": name, "said": said_by(name, process)})
    tell({"pid": os.getpid()})
    for order in sys.stdin:
        match order.split():
            case ["kill", name]:
                agents[name].kill()
                agents[name].wait()
            case ["start", name, *clock]:
                agents[name] = start(name, *clock)
                said_by(name, agents[name])
            case ["stop", name]:
                agents[name].send_signal(signal.SIGSTOP)
            case ["continue", name]:
                agents[name].send_signal(signal.SIGCONT)
            case ["unplug", name]:
                agents[name].kill()
                agents[name].wait()
                unplug(hosts[name][0], name)
            case ["boot", name]:
                plug(hosts[name][0], name)
                agents[name] = start(name, booted=True)
                said_by(name, agents[name])
            case ["small", name, kilobytes]:
                options = f"size={kilobytes}k,mode=700"
                place = str(Path(folder) / name / "spool")
                subprocess.run(["mount", "-t", "tmpfs", "-o", options, "none", place], check=True)
            case ["wire", name, inside, address, other, there]:
                wire((name, inside, address), (other, there))
            case ["large", name]:
                subprocess.run(["umount", str(Path(folder) / name / "spool")], check=True)
            case [("down" | "up") as state, name, port]:
                ip("-n", "switches", "link", "set", f"p{hosts[name][0]}-{port}", state)
            case _:
                sys.exit(f"no order: {order}")
        tell({"done": order.strip()})


def parted(text: str) -> tuple[str, str, str]:
    return text.partition("=")


if __name__ == "__main__":
    main()
