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
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, get_args

from msgspec.structs import replace
from msgspec.structs import replace as changed

from wiregauge.plan import (
    NETWORK,
    NETWORK_NODE,
    Attachment,
    Campaign,
    Misdirect,
    Network,
    Run,
    Switch,
    as_json,
)
from wiregauge.records import Traits
from wiregauge.records.reported import FirstPort, TaskReport
from wiregauge.runner.agent_program import namespaces_here
from wiregauge.runner.agents.bench import AgentBench
from wiregauge.runner.agents.network import HOST_PRIORITY, NETWORK_PRIORITY, AgentPlace
from wiregauge.runner.agents.process import AgentProcess
from wiregauge.runner.bench import BenchError, BeyondBenchError, Fact, Findings
from wiregauge.runner.benches.capabilities import beyond_namespaces, needs_bridges
from wiregauge.runner.benches.netns.capture import SwitchCapture
from wiregauge.runner.benches.netns.enclosure import enclose, is_enclosed
from wiregauge.runner.benches.netns.lent import HostInterface, home, lend, with_addresses
from wiregauge.runner.benches.netns.order import (
    NETWORK_SPACE,
    SWITCHES,
    Order,
    Switches,
    Task,
    network_port,
    space_name,
)
from wiregauge.runner.live.alarms import AlarmLimit
from wiregauge.runner.live.monitor import AlarmMonitor

__all__ = ["NetnsBench"]

_CONTROL: Final = Path("/run/netns/.control")
"""Directory where agents listen: in the enclosure's own file system, which ends with it."""
_BUSY: Final = 2_000
"""Frames per second of all hosts above which the played network needs much of a core."""
_READ_SECONDS: Final = 10.0
_BUILD_SECONDS: Final = 60.0
_NODE_SECONDS: Final = 1.0


class NetnsBench(AgentBench):
    """The bench of this machine's namespaces, with real-time scheduling by default. Switches are bridges of the kernel,
    or the model plays the network between the end systems. With two `interfaces` of this host frames leave by one and
    arrive at the other over an external cable. Raises BenchError for unavailable interfaces.

    The network exists until a trial needs another one; with lent interfaces there is one for the whole process.
    """

    name = "netns"
    traits = Traits(one_clock=True, driver="veth")

    by_model = "veth to the model"
    """The driver name in calibrations, with the model at the other end: frames cross no bridge of the kernel."""

    def __init__(  # noqa: PLR0913 - each is an option of the command
        self,
        *,
        realtime: bool = True,
        rootless: bool = False,
        interfaces: Sequence[str] | None = None,
        switches: Switches | None = None,
        alarm: Sequence[AlarmLimit] = (),
        on_alarm: Sequence[str] = (),
        metrics: tuple[str, int] | None = None,
        disk: int | None = None,
        capture_around: float | None = None,
    ) -> None:
        monitor = AlarmMonitor(alarm, on_alarm, metrics, disk, capture_around)
        super().__init__(realtime=realtime, monitor=monitor)
        self._rootless = rootless
        if switches is not None and switches not in get_args(Switches):
            known = " or ".join(sorted(get_args(Switches)))
            raise BenchError(f'"{switches}" plays no switches; say {known}')
        if switches is not None and interfaces is not None:
            raise BenchError(
                "there are no switches between two interfaces of this host; leave one of both out"
            )
        self._asked = switches
        # They are visible only before the enclosure.
        self.lent = lend(interfaces) if interfaces is not None else None
        if self.lent is not None:
            driver = ", ".join(f"{one.driver} {one.name}" for one in self.lent)
            self.traits = replace(self.traits, driver=driver)
        self._have_played("kernel" if interfaces is not None else switches or SWITCHES)
        self._standing: Order | None = None
        self._is_built = False
        self._rate: int | None = None
        """Rate of all links where a run has set it, bit/s."""
        self._agents: dict[str, AgentProcess] = {}
        self._captures: dict[str, SwitchCapture] = {}

    def _have_played(self, switches: Switches) -> None:
        """Sets what plays the switches from now on."""
        self._switches: Switches = switches
        if self.lent is None:
            driver = self.by_model if switches == "model" else type(self).traits.driver
            self.traits = replace(self.traits, driver=driver, switches=switches)

    @classmethod
    def availability(cls, found: Findings) -> tuple[bool, str, str]:
        """Available where the machine grants namespaces."""
        return namespaces_here(found)

    def adapt(self, campaign: Campaign) -> Campaign:
        """The campaign with the addresses of lent interfaces.

        A test that needs bridges gets them, unless the user chose the model.
        """
        if self._asked is None and self.lent is None:
            self._have_played("kernel" if needs_bridges(campaign) else SWITCHES)
        beyond = beyond_namespaces(campaign, self._switches)
        if beyond:
            raise BeyondBenchError(beyond)
        return campaign if self.lent is None else with_addresses(campaign, self.lent)

    def enter(self) -> None:
        """Restarts this command inside an enclosure, unless it is there. Raises BenchError where that fails."""
        if not is_enclosed():
            self._monitor.before_enclosure()
            enclose(rootless=self._rootless)
        super().enter()

    # -- the network --------------------------------------------------------------------------------------------

    def build(self, campaign: Campaign) -> None:
        """Builds the network of a campaign, unless it stands."""
        needs, standing = _needs(campaign, self._switches), self._standing
        if standing is not None and not standing.covers(needs):
            if self.lent is not None:
                raise BenchError(
                    "the network that stands here is another one; begin a command for each network"
                )
            if self._is_built:
                self._work_on(standing, "remove")
            self._is_built, self._rate, standing = False, None, None
        if not is_enclosed():
            raise BenchError(
                "the netns bench has to be opened inside its enclosure; use `wiregauge run --bench netns`"
            )
        self._standing = standing or needs
        if not self._is_built:
            self._work_on(self._standing, "build")
            self._is_built = True

    def _work_on(self, network: Order, task: Task) -> None:
        order = changed(network, task=task, link_rate_bps=self._rate)
        if self.lent is not None:
            were_up = tuple(one.name for one in self.lent if one.up)
            order = changed(order, interfaces=self._interfaces, were_up=were_up, home=home())
        seconds = _BUILD_SECONDS + _NODE_SECONDS * len(network.network.nodes)
        try:
            done = subprocess.run(
                [sys.executable, "-m", "wiregauge.runner.benches.netns.network"],
                input=as_json(order),
                pass_fds=() if self.lent is None else (home(),),
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

    @property
    def _network(self) -> Network:
        assert self._standing is not None  # built
        return self._standing.network

    @property
    def _interfaces(self) -> dict[str, str]:
        """Lent interfaces by end system; the others have their own."""
        lent = self.lent or ()
        return {name: one.name for name, one in zip(self._network.names, lent, strict=False)}

    # -- the agents ---------------------------------------------------------------------------------------------

    def open(self, campaign: Campaign, spool: Path) -> Sequence[AgentPlace]:
        """Builds the network, unless it stands, and starts the agents."""
        self.build(campaign)
        spool = spool.resolve()
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
            busy = any(_frames_per_second(run) > _BUSY for run in campaign.runs)
            apart = len(cores) > 2 or (len(cores) == 2 and busy)
            own = cores.pop() if apart else cores[-1]
            places.append(
                AgentPlace(
                    NETWORK,
                    NETWORK_NODE,
                    self._agents[NETWORK].await_listening(),
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
                    node.name,
                    number,
                    self._agents[node.name].await_listening(),
                    interface=self._interfaces.get(node.name, "eth0"),
                    servicing_core=cores[position % len(cores)],
                    fifo_priority=HOST_PRIORITY if self._realtime else 0,
                    shares_run_directory=True,
                    card=model,
                )
            )
        return places

    def _start(self, name: str, number: int, space: str, spool: Path) -> None:
        called = NETWORK if name == NETWORK else f"the agent of {name}"
        self._agents[name] = AgentProcess(called, _CONTROL / str(number), spool, space)

    def agent_failure(self, end_system: str) -> str | None:
        """The reason why this agent is gone, or None."""
        agent = self._agents.get(end_system)
        return agent.failure() if agent is not None else "it was never started"

    def give_up(self, end_system: str) -> str | None:
        """Kills this agent; returns why it was silent, where its process shows it."""
        agent = self._agents.get(end_system)
        return agent.give_up() if agent is not None else None

    def leave(self) -> None:
        """Ends captures and agents and returns lent interfaces; the networks end with the enclosure."""
        self.end_captures()
        ends = [(agent, agent.terminate()) for agent in self._agents.values()]
        for agent, end in ends:
            agent.close(end)
        if self.lent is not None and self._standing is not None:
            self._is_built = False
            # Otherwise the kernel gives physical interfaces back when the enclosure ends.
            with contextlib.suppress(BenchError):
                self._work_on(self._standing, "return")

    # -- the runs -----------------------------------------------------------------------------------------------

    def prepare(self, run: Run, captures: Path) -> None:
        """Sets the rate of all links where the test sweeps it, and starts the captures of switches.

        The model gets both with the run.
        """
        if self._switches == "model":
            return
        assert self._standing is not None  # built
        if run.link_rate_bps != self._rate:
            self._rate = run.link_rate_bps
            self._work_on(self._standing, "shape")
        for capture in run.captures:
            node = self._network.nodes[capture.on]
            if not node.is_end_system:
                # Agents of this run share the folder around it; no other user may write there.
                captures.parent.mkdir(mode=0o700, exist_ok=True)
                captures.mkdir(exist_ok=True)
                file = captures / f"{node.name}.pcapng"
                ports = self._ports(capture.on)
                self._captures[node.name] = SwitchCapture(node, ports, file, capture.snap, self.hold_s)

    def _ports(self, node: int) -> dict[int, int]:
        """The ports of a node with the rates of their links, bit/s."""
        ends = ((link, end) for link in self._network.links for end in link.ends)
        return {end.port: self._rate or link.rate_bps for link, end in ends if end.node == node}

    def _ports_behind(self) -> Mapping[int, Sequence[tuple[str, Attachment]]]:
        """By node the end systems whose links end there, each with the port."""
        found: dict[int, list[tuple[str, Attachment]]] = {}
        nodes = self._network.nodes
        for link in self._network.links:
            for near, far in (link.ends, link.ends[::-1]):
                if nodes[near.node].is_end_system:
                    found.setdefault(far.node, []).append((nodes[near.node].name, far))
        return found

    def keep_frames(self, from_ns: int, to_ns: int) -> None:
        """Has captures of switches write their frames from an interval of CLOCK_REALTIME."""
        for capture in self._captures.values():
            capture.keep(from_ns, to_ns)

    def end_captures(self) -> dict[str, TaskReport]:
        """Ends the captures of switches; returns the report of each switch's task."""
        reports = {name: capture.end() for name, capture in self._captures.items()}
        self._captures.clear()
        return reports

    def first_ports(self) -> dict[str, FirstPort]:
        """The port at the other end of each end system's link, and the frames it has received since its creation."""
        if self._switches == "model":
            counters = _received_by(NETWORK_SPACE)
            ports = {node.name: network_port(number) for number, node in self._network.end_systems.items()}
            return {
                name: FirstPort(f"{NETWORK_SPACE}:{port}", counters[port])
                for name, port in ports.items()
                if port in counters
            }
        found = {}
        for index, ends in self._ports_behind().items():
            node = self._network.nodes[index]
            counters = _received_by(space_name(node))
            for name, end in ends:
                system = node.is_end_system
                port = self._interfaces.get(node.name, "eth0") if system else f"p{end.port}"
                if port in counters:
                    called = node.name if system else f"{node.name}:{end.port}"
                    found[name] = FirstPort(called, counters[port])
        return found

    # -- facts --------------------------------------------------------------------------------------------------

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The facts: the parts of the bench, and what it cannot emulate."""
        if self.lent is not None:
            parts = _facts_of_lent(*self.lent)
        elif self._switches == "model":
            parts = _facts_of_model(realtime=self._realtime)
        else:
            parts = _FACTS_OF_BRIDGES
        common = (
            Fact(
                "clock",
                "one clock for both" if self.lent is not None else "one clock for all end systems",
                "one-way latencies carry no synchronisation error",
            ),
            Fact("control", "back-end network of its own", "no control frame crosses the network under test"),
        )
        return *parts, *common, *(_not_emulated(campaign.network) if parts is _FACTS_OF_BRIDGES else ())


_FACTS_OF_BRIDGES: Final = (
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
)


def _not_emulated(network: Network) -> Iterator[Fact]:
    """What the test says of its network and bridges of the kernel do not do."""
    switches = [node.kind for node in network.nodes if isinstance(node.kind, Switch)]
    if any(switch.processing_delay or switch.drawn_delay for switch in switches):
        yield Fact(
            "time to decide",
            "that of the kernel's bridge",
            "the delays of switches in the test file have no effect on this bench",
        )
    if any(link.delay for link in network.links):
        yield Fact(
            "propagation delay", "not emulated", "the delays of the test file have no effect on this bench"
        )


def _facts_of_lent(first: HostInterface, second: HostInterface) -> Sequence[Fact]:
    return [
        Fact(
            "network",
            f"interfaces {first.name} ({first.driver}) and {second.name} ({second.driver}) of this host",
            "joined by whatever is between them: nothing here shapes or delays",
        )
    ]


def _facts_of_model(*, realtime: bool) -> Sequence[Fact]:
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
    ]


def _received_by(space: str) -> dict[str, int]:
    """Frames received by the interfaces of a namespace, by name; empty where they cannot be read."""
    command = ["nsenter", f"--net=/run/netns/{space}", "--", "cat", "/proc/net/dev"]
    try:
        table = subprocess.run(
            command, capture_output=True, text=True, check=True, timeout=_READ_SECONDS
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


def _needs(campaign: Campaign, switches: Switches) -> Order:
    """The order for the network that a campaign needs."""
    pairs = tuple(sorted(_pairs(campaign)))
    return Order(campaign.network, "build", None, _chosen(campaign), pairs, switches=switches)


def _chosen(campaign: Campaign) -> tuple[tuple[tuple[int, ...], int], ...]:
    """Destination addresses given by flows, each with the number of the end system it leads to."""
    return tuple(
        sorted(
            {
                (flow.addresses.mac.destination, to)
                for run in campaign.runs
                for flow in run.flows
                if flow.addresses.mac.destination is not None
                for to in flow.receivers
            }
        )
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
