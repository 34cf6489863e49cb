"""Real frames between network namespaces of one machine.

Every end system and every switch is a network namespace; links are veth pairs; a commercial switch is the
kernel's bridge whose ports are shaped to the rate of their links. Testmaster and agents talk over the loopback
of the enclosure, a network of its own: control never shares a queue with what is measured.

All of it lives inside the enclosure that `wiregauge-agent enclose` made: namespaces for processes, mounts and
networks that end with the process they belong to. Nothing here has to clean up for the machine to be clean
again; `close` only ends the agents in good order.

The road not taken: named namespaces on the host, with a clean-up at the next start. They survive a crash, and
two runs at a time would have to agree on names.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from pyroute2 import NetNS, netns
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import sched_tbf

from wiregauge.benches.base import AgentPlace, BenchError, Fact, agent_program

__all__ = ["ENCLOSED", "NetnsBench"]

ENCLOSED: Final = "WIREGAUGE_ENCLOSED"
"""Environment variable that says this process is inside the enclosure."""

# Preamble and start delimiter (8), frame check sequence (4) and inter-frame gap (12) occupy a wire but are
# not in the kernel's idea of a frame. The shaper counts them, or small frames would get too much of the line.
_WIRE_OVERHEAD: Final = 24
# One largest frame with its overhead and a tag: the least a token bucket must hold to let it pass at all.
_BUCKET: Final = 1_546
_HOST_QUEUE: Final = 4 << 20
_TICK_NS: Final = 64  # unit of tbf's bucket depth in the kernel interface (PSCHED_SHIFT 6)
_NTF_MASTER: Final = 0x04
_NUD_PERMANENT: Final = 0x80
_RATE32_MAX: Final = (1 << 32) - 1
_START_SECONDS: Final = 10.0


@dataclass
class _Agent:
    process: subprocess.Popen[bytes]
    errors: list[str]
    reader: threading.Thread


class NetnsBench:
    """End systems and switches as namespaces."""

    name = "netns"

    def __init__(self, campaign: dict[str, Any], *, realtime: bool = True) -> None:
        self._nodes: list[dict[str, Any]] = campaign["network"]["nodes"]
        self._links: list[dict[str, Any]] = campaign["network"]["links"]
        self._realtime = realtime
        self._agents: dict[str, _Agent] = {}
        self._spaces: dict[int, NetNS] = {}

    # -- building -------------------------------------------------------------------------------------------

    def open(self) -> Sequence[AgentPlace]:
        """Builds the network and starts the agents."""
        if ENCLOSED not in os.environ:
            raise BenchError(
                "the netns bench has to be opened inside its enclosure; use `wiregauge run --bench netns`"
            )
        try:
            for index, _ in enumerate(self._nodes):
                self._build_node(index)
            for link in self._links:
                self._build_link(link)
            self._teach_addresses()
        except (OSError, NetlinkError) as error:
            raise BenchError(
                f"the kernel refused to build the network: {error}; `wiregauge doctor` shows what this machine grants"
            ) from error
        return self._start_agents()

    def _build_node(self, index: int) -> None:
        node = self._nodes[index]
        netns.create(self._space_name(index))
        _quieten(self._space_name(index))
        space = NetNS(self._space_name(index))
        self._spaces[index] = space
        space.link("set", index=space.link_lookup(ifname="lo")[0], state="up")
        if node["kind"]["type"] != "end-system":
            space.link("add", ifname="br0", kind="bridge", br_stp_state=0, br_mcast_snooping=0)
            space.link("set", index=space.link_lookup(ifname="br0")[0], state="up")

    def _build_link(self, link: dict[str, Any]) -> None:
        (a, b) = link["ends"]
        self._spaces[a["node"]].link(
            "add",
            ifname=self._port_name(a),
            kind="veth",
            peer={"ifname": self._port_name(b), "net_ns_fd": self._space_name(b["node"])},
        )
        for end in (a, b):
            node = self._nodes[end["node"]]
            space = self._spaces[end["node"]]
            index = space.link_lookup(ifname=self._port_name(end))[0]
            if node["kind"]["type"] == "end-system":
                space.link("set", index=index, address=_mac(node), state="up")
                space.addr("add", index=index, address=_ipv4(node), prefixlen=15)
                queue = _HOST_QUEUE
            else:
                space.link("set", index=index, master=space.link_lookup(ifname="br0")[0], state="up")
                queue = node["kind"]["buffer_bytes"]
            _shape(space, index, link["rate_bps"], queue)

    def _teach_addresses(self) -> None:
        """Fixed neighbours and forwarding entries: no ARP and no flooding among the measured frames."""
        end_systems = [i for i, node in enumerate(self._nodes) if node["kind"]["type"] == "end-system"]
        for here in end_systems:
            space = self._spaces[here]
            index = space.link_lookup(ifname="eth0")[0]
            for there in end_systems:
                if there != here:
                    space.neigh(
                        "add",
                        dst=_ipv4(self._nodes[there]),
                        lladdr=_mac(self._nodes[there]),
                        ifindex=index,
                        state=_NUD_PERMANENT,
                    )
        for switch, node in enumerate(self._nodes):
            if node["kind"]["type"] == "end-system":
                continue
            space = self._spaces[switch]
            for target, port in self._next_ports(switch).items():
                index = space.link_lookup(ifname=f"p{port}")[0]
                space.fdb(
                    "add",
                    ifindex=index,
                    lladdr=_mac(self._nodes[target]),
                    flags=_NTF_MASTER,
                    state=_NUD_PERMANENT,
                )

    def _next_ports(self, switch: int) -> dict[int, int]:
        """Output port of this switch for every end system; the plan has made sure the network is a tree."""
        neighbours: dict[int, list[tuple[int, int]]] = {}
        for link in self._links:
            a, b = link["ends"]
            neighbours.setdefault(a["node"], []).append((b["node"], a["port"]))
            neighbours.setdefault(b["node"], []).append((a["node"], b["port"]))
        ports: dict[int, int] = {}
        for first, port in neighbours.get(switch, []):
            seen, front = {switch, first}, [first]
            while front:
                node = front.pop()
                if self._nodes[node]["kind"]["type"] == "end-system":
                    ports[node] = port
                    continue
                for beyond, _ in neighbours.get(node, []):
                    if beyond not in seen:
                        seen.add(beyond)
                        front.append(beyond)
        return ports

    # -- agents ---------------------------------------------------------------------------------------------

    def _start_agents(self) -> Sequence[AgentPlace]:
        program = agent_program()
        names = [node["name"] for node in self._nodes if node["kind"]["type"] == "end-system"]
        spaces = [self._space_name(i) for i, node in enumerate(self._nodes) if node["kind"]["type"] == "end-system"]
        for name, space in zip(names, spaces, strict=True):
            process = subprocess.Popen(
                [
                    str(program),
                    "serve",
                    "--listen",
                    "127.0.0.1:0",
                    "--netns",
                    f"/run/netns/{space}",
                    "--die-with-parent",
                    "--announce",
                ],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                start_new_session=True,  # the terminal's Ctrl-C is the testmaster's to handle
            )
            errors: list[str] = []
            reader = threading.Thread(target=_drain, args=(process, errors), daemon=True)
            self._agents[name] = _Agent(process, errors, reader)
        cores = sorted(os.sched_getaffinity(0))
        places = []
        for position, (name, agent) in enumerate(self._agents.items()):
            places.append(
                AgentPlace(
                    end_system=name,
                    address=_await_announcement(name, agent),
                    interface="eth0",
                    servicing_core=cores[position % len(cores)],
                    fifo_priority=50 if self._realtime else 0,
                    shares_run_directory=True,
                )
            )
            agent.reader.start()
        return places

    def agent_failure(self, end_system: str) -> str | None:
        """Why this agent is gone, or None."""
        agent = self._agents.get(end_system)
        if agent is None:
            return "it was never started"
        code = agent.process.poll()
        if code is None:
            return None
        how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{how}: {agent.errors[-1]}" if agent.errors else how

    def facts(self) -> Sequence[Fact]:
        """What a reader must know of this bench."""
        facts = [
            Fact(
                "network",
                "network namespaces joined by veth pairs",
                "no physical layer: no bit errors, no line coding",
            ),
            Fact(
                "switch",
                "kernel bridge, one queue per port",
                "store and forward in memory; fixed forwarding entries",
            ),
            Fact(
                "line rate",
                "token bucket (tbf) on both ends of every link",
                "the rate holds over several frames and counts 24 B of wire overhead for each; "
                "a lone frame pays no serialisation delay",
            ),
            Fact(
                "clock", "one clock for all end systems", "one-way latencies carry no synchronisation error"
            ),
            Fact("control", "back-end network of its own", "no control frame crosses the network under test"),
        ]
        if any(link["delay"] for link in self._links):
            facts.append(
                Fact(
                    "propagation delay",
                    "not emulated",
                    "the delays of the test file have no effect on this bench",
                )
            )
        return facts

    def close(self) -> None:
        """Ends the agents; the networks go with the enclosure."""
        for agent in self._agents.values():
            with contextlib.suppress(OSError):
                agent.process.terminate()
        for agent in self._agents.values():
            try:
                agent.process.wait(timeout=2)
            except subprocess.TimeoutExpired:
                agent.process.kill()
                agent.process.wait()
        for space in self._spaces.values():
            with contextlib.suppress(Exception):
                space.close()
        self._spaces.clear()

    # -- names ----------------------------------------------------------------------------------------------

    def _space_name(self, index: int) -> str:
        node = self._nodes[index]
        prefix = "es" if node["kind"]["type"] == "end-system" else "sw"
        return f"{prefix}-{node['name']}"

    def _port_name(self, end: dict[str, Any]) -> str:
        if self._nodes[end["node"]]["kind"]["type"] == "end-system":
            return "eth0"
        return f"p{end['port']}"


def _mac(node: dict[str, Any]) -> str:
    return ":".join(f"{byte:02x}" for byte in node["mac"])


def _ipv4(node: dict[str, Any]) -> str:
    return ".".join(str(byte) for byte in node["ipv4"])


def _quieten(space: str) -> None:
    """No IPv6 in the namespace: neighbour discovery would put frames of its own among the measured ones."""
    with Path("/proc/self/ns/net").open() as home:
        netns.setns(space)
        try:
            for which in ("all", "default"):
                # A kernel without IPv6 has nothing to switch off.
                with contextlib.suppress(FileNotFoundError):
                    Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1", encoding="ascii")
        finally:
            netns.setns(home.fileno())


class _WireTbf:
    """pyroute2's `tbf` with the two parameters it leaves out: wire overhead and a bucket of exact depth.

    The library computes the bucket in whole microseconds, which above 1 Gbit/s is less than a frame, and has no
    way to name the overhead; its table of plugins is the place it offers for that.
    """

    parent = TC_H_ROOT
    options = sched_tbf.options

    @staticmethod
    def get_parameters(keywords: dict[str, Any]) -> dict[str, Any]:
        rate: int = keywords["rate"]
        depth_ns = -(-_BUCKET * 1_000_000_000 // rate)
        parameters = {
            "rate": rate,
            "rate_overhead": _WIRE_OVERHEAD,
            "limit": keywords["limit"],
            "buffer": -(-depth_ns // _TICK_NS),
            "mtu": 0,
        }
        return {"attrs": [["TCA_TBF_PARMS", parameters], ["TCA_TBF_RTAB", True]]}

    @staticmethod
    def fix_request(request: dict[str, Any]) -> None:
        request.pop("rate", None)
        request.pop("limit", None)


def _shape(space: NetNS, index: int, rate_bps: int, queue_bytes: int) -> None:
    rate = rate_bps // 8
    if rate > _RATE32_MAX:
        # Beyond 34 Gbit/s the classic parameter overflows, and no token bucket in software is that fast.
        return
    space.tc("modules")["tbf"] = _WireTbf
    space.tc("add", "tbf", index, 0x10000, rate=rate, limit=queue_bytes)


def _await_announcement(name: str, agent: _Agent) -> str:
    """The address the agent says it listens on."""
    line: list[bytes] = []
    assert agent.process.stdout is not None
    stdout = agent.process.stdout
    waiter = threading.Thread(target=lambda: line.append(stdout.readline()), daemon=True)
    waiter.start()
    waiter.join(_START_SECONDS)
    if line and line[0].startswith(b"listening "):
        return line[0].decode().split()[1]
    agent.process.kill()
    assert agent.process.stderr is not None
    said = agent.process.stderr.read().decode(errors="replace").strip().splitlines()
    raise BenchError(f"the agent of {name} did not start: {said[-1] if said else 'it said nothing'}")


def _drain(process: subprocess.Popen[bytes], lines: list[str]) -> None:
    assert process.stderr is not None
    for raw in process.stderr:
        lines.append(raw.decode(errors="replace").rstrip())
        del lines[:-50]
