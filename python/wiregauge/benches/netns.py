"""Real frames between network namespaces of one machine.

Every end system is a network namespace. The network between them can be played in two ways. *Kernel*: every switch is
a namespace, too; links are veth pairs; a commercial switch is the kernel's bridge whose ports are shaped to the rate of
their links. *Model*: one more process, an agent that is the network, has the other end of every end system's veth pair
and plays switches, links and interface cards like the simulator, in real time. Testmaster and agents talk over the
loopback of the enclosure, a network of its own: control never shares a queue with what is measured.

All of it is inside the enclosure made by `wiregauge-agent enclose`: namespaces for processes, mounts and networks that
end with the process they belong to. The machine is clean again without any cleaning up; `close` only ends the agents
regularly.

The road not taken: named namespaces on the host, with a clean-up at the next start. They survive a crash, and
two runs at a time would have to agree on names.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from wiregauge.benches.base import (
    AgentPlace,
    BenchError,
    Fact,
    Reach,
    agent_program,
)
from wiregauge.benches.names import (
    NETWORK_PRIORITY,
    NETWORK_SPACE,
    SWITCHES,
    Order,
    Switches,
    Task,
    network_port,
    space_name,
)
from wiregauge.benches.tap import Tap
from wiregauge.plan import NETWORK, NETWORK_NODE, Attachment, Campaign, Misdirect, Run, Switch, as_json

__all__ = ["ENCLOSED", "NetnsBench"]

ENCLOSED: Final = "WIREGAUGE_ENCLOSED"
"""Environment variable that is set inside the enclosure."""

_CONTROL: Final = Path("/run/netns/.control")
"""Directory where agents listen: in the enclosure's own file system, which ends with it."""
_BUSY: Final = 2_000
"""Frames per second of all hosts above which the played network needs much of a core."""
_START_SECONDS: Final = 10.0
_BUILD_SECONDS: Final = 60.0
_NODE_SECONDS: Final = 1.0
_LEAVE_SECONDS: Final = 2.0
_PRIORITY: Final = 50
"""SCHED_FIFO priority of the threads of agents that send and receive."""


@dataclass
class _Agent:
    process: subprocess.Popen[bytes]
    errors: list[str]
    reader: threading.Thread


class NetnsBench:
    """End systems as namespaces, and a network that the kernel or the model plays, by `switches`."""

    def __init__(self, campaign: Campaign, *, realtime: bool = True, switches: Switches = SWITCHES) -> None:
        self._switches = switches
        self._network = campaign.network
        self._nodes = campaign.network.nodes
        self._chosen = _chosen(campaign)
        self._pairs = sorted(_pairs(campaign))
        self._busy = any(_frames_per_second(run) > _BUSY for run in campaign.runs)
        self._realtime = realtime
        self._rate: int | None = None
        self._built = False
        self._agents: dict[str, _Agent] = {}
        self._taps: dict[str, Tap] = {}
        self.hold_s: float | None = None
        self._interfaces: dict[str, str] = {}

    def is_for(self, campaign: Campaign, switches: Switches) -> bool:
        """Whether a campaign needs exactly this network, or fewer of the paths that are configured in it."""
        needed = (campaign.network, _chosen(campaign), switches)
        same = needed == (self._network, self._chosen, self._switches)
        return same and _pairs(campaign) <= set(self._pairs)

    def remove(self) -> None:
        """Removes the network to make room for another. It must not be open."""
        if self._built:
            self._work_on_network("remove")
            self._built = False

    def build(self) -> None:
        """Builds the network, unless it exists."""
        if ENCLOSED not in os.environ:
            raise BenchError(
                "the netns bench has to be opened inside its enclosure; use `wiregauge run --bench netns`"
            )
        if not self._built:
            self._work_on_network("build")
            self._built = True

    def open(self, spool: Path) -> Sequence[AgentPlace]:
        """Builds the network, unless it exists, and starts the agents, which write below `spool`."""
        self.build()
        return self._start_agents(spool.resolve())

    def prepare(self, run: Run, captures: Path) -> None:
        """Sets the rate of all links where the test sweeps it, and starts the captures of switches.

        The model gets both with the run.
        """
        if self._switches == "model":
            return
        if run.link_rate_bps != self._rate:
            self._rate = run.link_rate_bps
            self._work_on_network("shape")
        for capture in run.captures:
            node = self._nodes[capture.on]
            if not node.is_end_system:
                # Agents of this run share the folder around it; no other user may write there.
                captures.parent.mkdir(mode=0o700, exist_ok=True)
                captures.mkdir(exist_ok=True)
                self._taps[node.name] = Tap(
                    node,
                    self._ports(capture.on),
                    captures / f"{node.name}.pcapng",
                    capture.snap,
                    self.hold_s,
                )

    def keep_frames(self, from_ns: int, to_ns: int) -> None:
        """Has captures of switches write their frames from an interval of CLOCK_REALTIME."""
        for tap in self._taps.values():
            tap.keep(from_ns, to_ns)

    def end_captures(self) -> dict[str, dict[str, Any]]:
        """Ends the captures of switches; returns the report of each switch's task."""
        reports = {name: tap.end() for name, tap in self._taps.items()}
        self._taps.clear()
        return reports

    def first_ports(self) -> dict[str, dict[str, Any]]:
        """The port at the other end of each end system's link, and the frames it has received since its creation."""
        if self._switches == "model":
            counters = _received_by(NETWORK_SPACE)
            ports = {node.name: network_port(number) for number, node in self._network.end_systems.items()}
            return {
                name: {"port": f"{NETWORK_SPACE}:{port}", "received": counters[port]}
                for name, port in ports.items()
                if port in counters
            }
        behind: dict[int, list[tuple[str, Attachment]]] = {}
        for link in self._network.links:
            for near, far in (link.ends, link.ends[::-1]):
                if self._nodes[near.node].is_end_system:
                    behind.setdefault(far.node, []).append((self._nodes[near.node].name, far))
        found = {}
        for index, ends in behind.items():
            node = self._nodes[index]
            counters = _received_by(space_name(node))
            for name, end in ends:
                system = node.is_end_system
                port = self._interfaces.get(node.name, "eth0") if system else f"p{end.port}"
                if port in counters:
                    called = node.name if system else f"{node.name}:{end.port}"
                    found[name] = {"port": called, "received": counters[port]}
        return found

    def _ports(self, node: int) -> dict[int, int]:
        """The ports of a node with the rates of their links, bit/s."""
        ends = ((link, end) for link in self._network.links for end in link.ends)
        return {end.port: self._rate or link.rate_bps for link, end in ends if end.node == node}

    def _order(self, task: Task) -> Order:
        """The order for the builder of the network."""
        chosen, pairs = tuple(self._chosen), tuple(self._pairs)
        return Order(self._network, task, self._rate, chosen, pairs, switches=self._switches)

    def _passed_on(self) -> tuple[int, ...]:
        """File descriptors that the builder needs."""
        return ()

    def _work_on_network(self, task: Task) -> None:
        seconds = _BUILD_SECONDS + _NODE_SECONDS * len(self._nodes)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "wiregauge.benches.network"],
                input=as_json(self._order(task)),
                pass_fds=self._passed_on(),
                capture_output=True,
                text=True,
                timeout=seconds,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise BenchError(f"the kernel did not {task} the network within {seconds:.0f} s") from error
        if done.returncode != 0:
            said = done.stderr.strip().splitlines()
            raise BenchError(
                f"{said[-1] if said else f'the network could not be made (task {task})'}; "
                "`wiregauge doctor` shows what this machine grants"
            )

    def _start_agents(self, spool: Path) -> Sequence[AgentPlace]:
        _CONTROL.mkdir(mode=0o700, exist_ok=True)
        self._agents.clear()
        systems = self._network.end_systems
        model = self._switches == "model"
        if model:
            self._start(NETWORK, NETWORK_NODE, NETWORK_SPACE, spool)
        for number, node in systems.items():
            self._start(node.name, number, space_name(node), spool)
        places = []
        cores = sorted(os.sched_getaffinity(0))
        if model:
            # Of two cores it gets one to itself only under heavy load: agents do better with both.
            apart = len(cores) > 2 or (len(cores) == 2 and self._busy)
            own = cores.pop() if apart else cores[-1]
            places.append(
                AgentPlace(
                    NETWORK,
                    NETWORK_NODE,
                    self._listening(NETWORK),
                    "",
                    servicing_core=own,
                    fifo_priority=NETWORK_PRIORITY if self._realtime else 0,
                    shares_run_directory=True,
                    own_core=apart,
                    network_ports=tuple(
                        (node.name, network_port(number)) for number, node in systems.items()
                    ),
                )
            )
        for position, (number, node) in enumerate(systems.items()):
            places.append(
                AgentPlace(
                    end_system=node.name,
                    node=number,
                    address=self._listening(node.name),
                    interface=self._interfaces.get(node.name, "eth0"),
                    servicing_core=cores[position % len(cores)],
                    fifo_priority=_PRIORITY if self._realtime else 0,
                    shares_run_directory=True,
                    card=model,
                )
            )
        return places

    def _start(self, name: str, number: int, space: str, spool: Path) -> None:
        """Starts an agent in a namespace."""
        process = subprocess.Popen(
            [
                str(agent_program()),
                "serve",
                "--listen",
                f"unix:{_CONTROL}/{number}",
                "--netns",
                f"/run/netns/{space}",
                "--spool",
                str(spool),
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

    def _listening(self, name: str) -> str:
        """Waits until an agent that was started listens; its address."""
        agent = self._agents[name]
        address = _await_announcement(name, agent)
        agent.reader.start()
        return address

    def agent_failure(self, end_system: str) -> str | None:
        """The reason why this agent is gone, or None."""
        agent = self._agents.get(end_system)
        if agent is None:
            return "it was never started"
        code = agent.process.poll()
        if code is None:
            return None
        how = f"killed by signal {-code}" if code < 0 else f"ended with code {code}"
        return f"{how}: {agent.errors[-1]}" if agent.errors else how

    def give_up(self, end_system: str) -> str | None:
        """Kills this agent; returns why it was silent, where its process shows it."""
        agent = self._agents.get(end_system)
        if agent is None or agent.process.poll() is not None:
            return None
        stopped = _state(agent.process.pid) in ("T", "t")
        agent.process.kill()
        return "its process was stopped (SIGSTOP)" if stopped else None

    def look(self, reach: Reach) -> Sequence[Fact]:
        """No facts: the network is built, not found."""
        del reach
        return ()

    def facts(self) -> Sequence[Fact]:
        """The facts that a reader must know of this bench."""
        if self._switches == "model":
            return _facts_of_model(self._realtime)
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
        if any(
            isinstance(node.kind, Switch) and (node.kind.processing_delay or node.kind.drawn_delay)
            for node in self._nodes
        ):
            facts.append(
                Fact(
                    "time to decide",
                    "that of the kernel's bridge",
                    "the delays of switches in the test file have no effect on this bench",
                )
            )
        if any(link.delay for link in self._network.links):
            facts.append(
                Fact(
                    "propagation delay",
                    "not emulated",
                    "the delays of the test file have no effect on this bench",
                )
            )
        return facts

    def close(self) -> None:
        """Ends captures and agents; the networks end with the enclosure."""
        self.end_captures()
        for agent in self._agents.values():
            with contextlib.suppress(OSError):
                agent.process.terminate()
        end = time.monotonic() + _LEAVE_SECONDS
        for agent in self._agents.values():
            try:
                agent.process.wait(timeout=max(end - time.monotonic(), 0.0))
            except subprocess.TimeoutExpired:
                agent.process.kill()
                agent.process.wait()


def _facts_of_model(realtime: bool) -> Sequence[Fact]:
    """The facts that a reader must know where the model plays the network."""
    return [
        Fact(
            "network",
            "switches, links and interface cards played by the simulator's engine in real time",
            "one process between the namespaces of the end systems, at the other ends of their veth pairs",
        ),
        Fact(
            "line",
            "modelled at the rate of the test",
            "serialisation, propagation and the delays of switches hold to the picosecond in the model; by how much "
            "frames left it late is measured and stated with every run",
        ),
        Fact(
            "physical layer",
            "none",
            "no line coding, no bit errors but those that the test plants",
        ),
        Fact(
            "end systems",
            "the kernel's stack and an agent",
            "from the application to the interface times are real; behind it the card is the model's",
        ),
        Fact(
            "priority of the network",
            f"SCHED_FIFO {NETWORK_PRIORITY}" if realtime else "ordinary scheduling",
            "above that of the agents" if realtime else "as the command asked",
        ),
        Fact("clock", "one clock for all end systems", "one-way latencies carry no synchronisation error"),
        Fact("control", "back-end network of its own", "no control frame crosses the network under test"),
    ]


def _received_by(space: str) -> dict[str, int]:
    """Frames received by the interfaces of a namespace, by name; empty where they cannot be read."""
    command = ["nsenter", f"--net=/run/netns/{space}", "--", "cat", "/proc/net/dev"]
    try:
        table = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_START_SECONDS
        ).stdout
    except (OSError, subprocess.SubprocessError):
        return {}
    # proc_net(5): after two header lines a line for each interface; the second figure is frames received.
    rows = (line.partition(":") for line in table.splitlines()[2:])
    return {name.strip(): int(figures.split()[1]) for name, _, figures in rows}


def _frames_per_second(run: Run) -> float:
    """The average frames per second that hosts send in a run."""
    messages = sum(send.count for send in run.sends) / max(run.duration / 1e12, 1e-9)
    return messages + sum(inject.burst * 1e12 / inject.interval for inject in run.injects)


def _chosen(campaign: Campaign) -> list[tuple[tuple[int, ...], int]]:
    """Destination addresses given by flows, each with the number of the end system it leads to."""
    return sorted(
        {
            (flow.addresses.mac.destination, to)
            for run in campaign.runs
            for flow in run.flows
            if flow.addresses.mac.destination is not None
            for to in flow.receivers
        }
    )


def _pairs(campaign: Campaign) -> set[tuple[int, int]]:
    """Pairs of communicating nodes, both ways, by plan numbers: for messages, loads, misdirected ones and clocks."""
    met: set[tuple[int, int]] = set()
    for run in campaign.runs:
        met.update((flow.from_, to) for flow in run.flows for to in flow.receivers)
        met.update((inject.on, inject.to) for inject in run.injects)
        met.update(
            (relay.on, fault.kind.to)
            for relay in run.relays
            for fault in relay.faults
            if isinstance(fault.kind, Misdirect)
        )
    if campaign.synchronise is not None:
        met.update((campaign.synchronise.reference, other) for other in campaign.network.end_systems)
    return {pair for a, b in met for pair in ((a, b), (b, a)) if a != b}


def _state(process: int) -> str:
    """The state letter of a process, proc(5); empty where it is gone."""
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0]
    except (OSError, IndexError):
        return ""


def _await_announcement(name: str, agent: _Agent) -> str:
    """Waits for the address that the agent announces."""
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
    who = NETWORK if name == NETWORK else f"the agent of {name}"
    raise BenchError(f"{who} did not start: {said[-1] if said else 'it said nothing'}")


def _drain(process: subprocess.Popen[bytes], lines: list[str]) -> None:
    assert process.stderr is not None
    for raw in process.stderr:
        lines.append(raw.decode(errors="replace").rstrip())
        del lines[:-50]
