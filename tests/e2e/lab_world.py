"""A lab of hosts on one machine: each a namespace of networks, mounts and names, with its own agent and state.

    wiregauge-agent enclose -- python lab_world.py FOLDER AGENT HOST[=OFFSET,DRIFT] …

builds it, starts an agent on every host, prints their output as JSON lines, and runs until its standard input
ends. Hosts have eth0 on a back-end network (10.77.0.0/24) and eth1 and eth2 on the network under test (10.88.0.0/24 and
10.88.1.0/24, one segment); a process that enters the enclosure has 10.77.0.1 and, as eth1, 10.88.0.1. A line of
standard input is an order, answered by a line when it is done:

    kill HOST | start HOST [CLOCK] | stop HOST | continue HOST | down HOST PORT | up HOST PORT
    unplug HOST | boot HOST | small HOST KILOBYTES | large HOST | wire HOST INTERFACE ADDRESS OTHER INTERFACE

An unplugged host is gone with its interfaces; it boots with new ones and reports another boot until the agent is
started again. Small limits the disk for a host's records, for an agent that is then started; large restores it.

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
"""The bridge and the network of each port of a host."""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def build(hosts: list[str]) -> None:
    """Creates two bridges in a namespace of switches, and every host with a port at each."""
    Path("/run/netns").mkdir(exist_ok=True)
    ip("link", "set", "lo", "up")
    ip("netns", "add", "switches")
    for bridge in ("control", "test"):
        ip("-n", "switches", "link", "add", bridge, "type", "bridge")
        ip("-n", "switches", "link", "set", bridge, "up")
    for number, host in enumerate(["", *hosts]):
        plug(number, host)


def plug(number: int, host: str) -> None:
    """Creates a host with its interfaces, each on its bridge; without a name it is the enclosure itself."""
    space = []
    if host:
        ip("netns", "add", host)
        ip("-n", host, "link", "set", "lo", "up")
        space = ["-n", host]
    # With two interfaces on one segment, each answers for its own address only.
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
    """Powers a host off: its interfaces are gone at once, its network when no process is left in it."""
    for port in range(len(PORTS)):
        ip("-n", "switches", "link", "del", f"p{number}-{port}")
    ip("netns", "del", host)


def wire(end: tuple[str, str, str], other: tuple[str, str]) -> None:
    """Adds a cable from one host to another, which gets no address at its end."""
    (host, inside, address), (there, outside) = end, other
    ip("-n", host, "link", "add", inside, "type", "veth", "peer", "name", outside, "netns", there)
    quiet = f"echo 1 > /proc/sys/net/ipv6/conf/{outside}/disable_ipv6"
    subprocess.run(["ip", "netns", "exec", there, "sh", "-c", quiet], check=False)
    ip("-n", host, "addr", "add", address, "dev", inside)
    ip("-n", host, "link", "set", inside, "up")
    ip("-n", there, "link", "set", outside, "up")
    # The kernel checks carriers once a second.
    for space, interface in ((host, inside), (there, outside)):
        look = ["ip", "-json", "-n", space, "link", "show", "dev", interface]
        while (
            json.loads(subprocess.run(look, capture_output=True, check=True).stdout)[0]["operstate"] != "UP"
        ):
            time.sleep(0.05)


def serve(
    host: str, number: int, folder: Path, agent: str, clock: str, *, booted: bool = False
) -> subprocess.Popen[str]:
    """Starts the agent of a host, as a service would; `booted`: its kernel reports a new boot."""
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
    """The agent's message when it is ready: either "listening …" or "joining … CODE"."""
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
