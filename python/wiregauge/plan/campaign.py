"""The executable test, `wg_plan::Campaign`: decoded once, every reference inside it checked, read by everybody here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Literal

import msgspec

from wiregauge import _native
from wiregauge.plan.base import FlowId, NodeIndex, Picoseconds, Plan, Protocol, convert, written
from wiregauge.plan.clusters import Cluster
from wiregauge.plan.ethernet import HEADERS, IPV4_UDP, SHORTEST, TAG
from wiregauge.plan.network import Attachment, Network, NetworkId, Switch, SwitchChange
from wiregauge.plan.ptp import PtpDomain
from wiregauge.plan.routes import Route
from wiregauge.plan.tasks import (
    Capture,
    ClockStep,
    Cut,
    Incident,
    Inject,
    LinkFault,
    Misdirect,
    Receive,
    Relay,
    RemoteLog,
    Restart,
    Send,
)
from wiregauge.plan.tsn import LinkPriority

__all__ = [
    "Axis",
    "Campaign",
    "Flow",
    "Limit",
    "OtherPlanError",
    "PlanError",
    "Protocol",
    "Run",
    "Synchronise",
    "as_json",
    "decode",
    "plain",
]


class PlanError(ValueError):
    """The text is no plan; the message says what is wrong with it."""


class OtherPlanError(PlanError):
    """The plan is of a schema that this version does not read."""


class Synchronise(Plan, frozen=True, kw_only=True):
    """Synchronisation and comparison of the clocks of end systems."""

    reference: NodeIndex
    """The end system whose clock the others are compared with."""
    asymmetry: Picoseconds | None = None
    """Largest difference between the fixed delays of the two directions between two end systems; None: not
    stated.
    """
    max_offset: Picoseconds | None = None
    """Largest permitted offset of a clock; None: no limit."""
    on_failure: Literal["grade", "refuse"] = written("grade")
    """What happens if a clock exceeds the limit."""
    wait: Picoseconds
    """Time before a run in which clocks must come within the limit."""
    exchange: Picoseconds | None = None
    """Time between two exchanges with each end system; None without exchanges."""
    ptp: Ptp | None = None
    """Settings of linuxptp on every end system; None: it does not run."""
    chrony: bool = written(False)
    """Whether the state of chrony, which runs already, is watched."""

    @property
    def refuse(self) -> bool:
        """Whether a run does not take place while they do not keep to it."""
        return self.on_failure == "refuse"

    @property
    def max_offset_ns(self) -> float | None:
        """The largest permitted clock offset, ns; None without a limit."""
        return None if self.max_offset is None else self.max_offset / 1000

    @property
    def asymmetry_ns(self) -> float | None:
        """Largest difference of the fixed delays of two directions, ns; None where the test does not state it."""
        return None if self.asymmetry is None else self.asymmetry / 1000


class Ptp(Plan, frozen=True):
    """The Precision Time Protocol through linuxptp."""

    timestamps: Literal["hardware", "software"]
    """Where timestamps are taken."""
    steer: bool
    """Whether clocks are set and steered; otherwise they are only compared."""
    interval: Picoseconds
    """Time between two Sync messages, a power of two of a second."""
    kp_thousandths: int
    """Proportional constant of phc2sys, in thousandths."""
    ki_thousandths: int
    """Integral constant of phc2sys, in thousandths."""
    domain: int = written(0)
    """Number of the PTP domain."""
    transport: Literal["l2", "udp"] = written("l2")
    """What carries PTP frames."""
    delay: Literal["e2e", "p2p"] = written("e2e")
    """How delays are measured."""


class Axis(Plan, frozen=True):
    """One swept parameter, its values as written."""

    of: str
    """What is swept: `payload`, `load`, `protocol`, `period`, …"""
    values: tuple[str, ...]
    """The values as written, in the order of the file."""


class VlanTag(Plan, frozen=True):
    """802.1Q tag."""

    id: int
    """VLAN identifier, 1 to 4094 (0: priority-tagged)."""
    priority: int
    """Priority code point, 0 to 7."""


class VirtualLink(Plan, frozen=True):
    """The contract of a rate-constrained flow (ARINC 664 part 7)."""

    id: int
    """Number of the virtual link: the last two bytes of the destination address."""
    bag: Picoseconds
    lmax: int
    sub_links: int
    """Sub-virtual-links, 1 to 4."""
    queue: int
    """Capacity of each sub-virtual-link, in frames."""
    skew_max: Picoseconds
    """Longest time between two copies of a frame at which the second is removed."""
    redundancy_management: bool
    """Whether second copies are removed."""
    jitter: Picoseconds
    """Jitter that a switch allows the virtual link at an input port."""
    priority: int = written(4)
    """Priority at switches with strict priorities: 0 to 3 use the lower, 4 to 7 the upper of the two queues
    for virtual links, which go before all others. The frames carry no tag.
    """
    number_within: bool = False
    """Whether the sequence number is the last byte of the payload: frames are then as long as those of UDP.
    """

    @property
    def switch_priority(self) -> LinkPriority:
        """The priority, of the two in a switch, that the virtual link has."""
        return "low" if self.priority < 4 else "high"


class TtWindow(Plan, frozen=True):
    """A window of one egress port; it repeats with the flow's period."""

    at: Attachment
    """The port."""
    offset: Picoseconds
    """When the window first opens, less than the period."""
    length: Picoseconds
    """How long the window is open."""


class TtReception(Plan, frozen=True):
    """The expected arrival of a time-triggered frame at a receiver."""

    at: Attachment
    """The port at which the frame arrives."""
    offset: Picoseconds
    """The instant of reception, less than the period."""


class TimeTriggered(Plan, frozen=True, kw_only=True):
    """The schedule of a time-triggered flow (SAE AS6802)."""

    id: int
    """Critical-traffic identifier: the last two bytes of the destination address."""
    period: Picoseconds
    """Time between two dispatches."""
    offset: Picoseconds
    """Instant of the first dispatch, less than the period."""
    longest_frame: int
    """Longest frame, destination address to FCS, in bytes."""
    queue: int | None = None
    """Messages that wait at the sender for their dispatch; None: only the last one."""
    windows: tuple[TtWindow, ...]
    """Windows of the egress ports on its routes, the sender's own port first."""
    early: Picoseconds
    """How long before the planned instant of reception a frame is accepted."""
    late: Picoseconds
    """How long after the planned instant of reception a frame is accepted."""
    receptions: tuple[TtReception, ...]
    """Planned instants at which the last bit of a frame is in, by receiver."""


class AddressEnds(Plan, frozen=True):
    """MAC or IPv4 addresses at both ends."""

    source: tuple[int, ...] | None = None
    destination: tuple[int, ...] | None = None


class PortEnds(Plan, frozen=True):
    """UDP ports at both ends."""

    source: int | None = None
    destination: int | None = None


class Addresses(Plan, frozen=True):
    """Addresses a flow's frames carry in place of those of its end systems."""

    mac: AddressEnds = AddressEnds()
    """MAC addresses."""
    macs: PortEnds = PortEnds()
    """Number of MAC addresses that messages take in turn, from `mac` on."""
    ipv4: AddressEnds = AddressEnds()
    """IPv4 addresses."""
    port: PortEnds = PortEnds()
    """UDP ports."""


class LatentErrors(Plan, frozen=True):
    """Latent error detection (IEEE Std 802.1CB, 7.4.4)."""

    paths: int
    """Member streams (frerSeqRcvyLatentErrorPaths), at least 2."""
    difference: int
    """Missing or surplus copies beyond which there is an error (frerSeqRcvyLatentErrorDifference)."""
    period: Picoseconds
    """Time between two tests (frerSeqRcvyLatentErrorPeriod), more than zero."""
    reset_period: Picoseconds
    """Time between two resets (frerSeqRcvyLatentResetPeriod), more than zero."""


class Frer(Plan, frozen=True, kw_only=True):
    """Frame replication and elimination (IEEE Std 802.1CB); the flow's routes are those of its member streams."""

    replicate_at: NodeIndex
    """Node that numbers and copies its frames: its sender, or a switch that all routes pass before they part.
    """
    eliminate_at: NodeIndex
    """Node that removes the copies: its receiver, or a switch that all routes pass after they met."""
    intermediate: bool = False
    """Whether switches on the way remove copies where routes meet and make them where routes part, so that
    each link carries one copy.
    """
    history_length: int | None = None
    """Length of the history of vector recovery, in sequence numbers; None: match recovery."""
    reset: Picoseconds
    """Time without a passed frame after which any sequence number is accepted."""
    individual: Literal["match", "vector"] | None = None
    """Algorithm of individual recovery within each member stream; None: there is none."""
    latent_errors: LatentErrors | None = None
    """Latent error detection; None: there is none."""


class Flow(Plan, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A stream of numbered messages from one end system to one or several others."""

    id: FlowId
    """Number of the flow."""
    protocol: Protocol
    """The protocol that carries it."""
    from_: NodeIndex
    """Sending end system."""
    to: NodeIndex
    """Receiving end system; the first of them where the flow is multicast."""
    also_to: tuple[NodeIndex, ...] = ()
    """The others of a multicast flow, in the order of the file."""
    deadline: Picoseconds | None
    """Age at the application beyond which a message is late; None: no message is late."""
    vlan: VlanTag | None
    """802.1Q tag of its frames."""
    dscp: int = 0
    """Differentiated services code point of its IPv4 packets (RFC 2474), 0 to 63."""
    routes: tuple[Route, ...]
    """Routes to each receiver on each of its networks: network A first, receivers in their order. A loopback
    has none. With `frer` those of its member streams.
    """
    network: NetworkId | None = "A"
    """The network that carries it; None: both, each frame is sent on A and on B."""
    virtual_link: VirtualLink | None = None
    """Contract of a rate-constrained flow."""
    schedule: TimeTriggered | None = None
    """Schedule of a time-triggered flow."""
    frer: Frer | None = None
    """Where its frames are copied and the copies removed; None: nowhere."""
    addresses: Addresses = Addresses()
    """Addresses its frames carry in place of those of its end systems."""
    exchange: bool = False
    """Two-way exchange that compares clocks; no flow under test."""

    @property
    def is_loopback(self) -> bool:
        """Whether its sender is its receiver; its messages come to no interface."""
        return self.ends == (self.from_, self.from_)

    @property
    def receivers(self) -> tuple[int, ...]:
        """The receivers in the order of the file."""
        return (self.to, *self.also_to)

    @property
    def ends(self) -> tuple[int, ...]:
        """The sender and the receivers."""
        return (self.from_, *self.receivers)

    def frame_length(self, payload: int) -> int:
        """Octets of a frame with so much payload, from destination address to frame check sequence, without R-TAG."""
        inside = payload + (IPV4_UDP if self.protocol in ("udp", "be", "rc") else 0)
        if self.virtual_link is not None and not self.virtual_link.number_within:
            inside += 1
        return max(inside + HEADERS + (TAG if self.vlan else 0), SHORTEST)

    def ways_to(self, receiver: int) -> tuple[tuple[int, ...], ...]:
        """The different paths to a receiver, as node numbers, on each network that leads there."""
        ways = (route.nodes for route in self.routes)
        return tuple(dict.fromkeys(way for way in ways if way and way[-1] == receiver))


class Run(Plan, frozen=True, kw_only=True, dict=True):
    """One point of the sweep, once."""

    index: int
    """Position in `Campaign.runs`."""
    point: dict[str, str]
    """The axis values of this run, as written; empty without a sweep."""
    repeat: int
    """0-based number of the repeat."""
    seed: int
    """Seed of this run, derived from the campaign's."""
    link_rate_bps: int | None = None
    """Rate of every link in bit/s, where the sweep sets it; None: each link has its own."""
    switches: SwitchChange = SwitchChange()
    """Settings of switches that the sweep changes."""
    warm_up: Picoseconds
    """Time before the measured part. Messages sent in it are marked and excluded from every measure."""
    duration: Picoseconds
    """Length of the measured part."""
    drain: Picoseconds
    """Wait for frames in flight after the last planned send."""
    flows: tuple[Flow, ...]
    """Flows with the axis values applied."""
    sends: tuple[Send, ...]
    """Sender tasks."""
    receives: tuple[Receive, ...]
    """Receiver tasks."""
    relays: tuple[Relay, ...]
    """Relay tasks."""
    injects: tuple[Inject, ...]
    """Background load."""
    remote_logs: tuple[RemoteLog, ...] = ()
    """Remote logging tasks."""
    captures: tuple[Capture, ...] = ()
    """Capture tasks."""
    link_faults: tuple[LinkFault, ...] = ()
    """Faults of links."""
    incidents: tuple[Incident, ...] = ()
    """Events in the network at stated instants, ascending."""
    clusters: tuple[Cluster, ...] = ()
    """Clusters that synchronise by SAE AS6802."""
    ptp_domains: tuple[PtpDomain, ...] = ()
    """Domains of clocks that synchronise by PTP."""

    @cached_property
    def send_of(self) -> dict[int, Send]:
        """Sender tasks by flow."""
        return {send.flow: send for send in self.sends}

    @cached_property
    def relay_of(self) -> dict[tuple[int, int], Relay]:
        """Relay tasks by flow and receiver."""
        return {(relay.flow, relay.on): relay for relay in self.relays}

    def planted_clocks(self, network: Network) -> set[NodeIndex]:
        """End systems whose agents write times as a wrong clock shows them.

        A clock that a protocol of the test keeps is that of the card, which the programs of a host do not read.
        """
        clusters = {device for cluster in self.clusters for device in cluster.devices}
        kept = clusters | {clock.node for domain in self.ptp_domains for clock in domain.clocks}
        stepped = {one.kind.node for one in self.incidents if isinstance(one.kind, ClockStep)}
        wrong = {number for number, node in network.end_systems.items() if node.clock is not None}
        return (wrong | stepped) - kept

    @property
    def planned_s(self) -> float:
        """Duration of the run with warm-up and drain, s."""
        return (self.warm_up + self.duration + self.drain) / 1e12

    @property
    def disturbances(self) -> tuple[str, ...]:
        """Kinds of the planted faults and incidents, one entry each."""
        return (*(fault.kind.type for fault in self.link_faults), *(one.kind.type for one in self.incidents))

    @property
    def most_load_percent(self) -> int:
        """The heaviest background load of an end system."""
        return round(max((inject.load_ppm for inject in self.injects), default=0) / 10_000)


class Limit(Plan, frozen=True):
    """A limit on a measure; `value` in ns, messages, bit/s or (loss) as a share of 1. No flow: all."""

    flow: FlowId | None
    """The flow it judges; None: all flows."""
    measure: str
    """Name of the measure, for example `latency.p99` or `lost`."""
    bound: Literal["at-most", "at-least"]
    """Whether `value` is the largest or the smallest allowed."""
    value: float
    """The limit in the measure's base unit: ns, messages, bit/s, one per second, or a share of 1."""
    written: str
    """The limit as written."""
    line: int
    """Line in the test file; 0 when built in code."""


class Campaign(Plan, frozen=True, kw_only=True):
    """A whole test: one network and the runs its sweep expands to."""

    schema: int
    """`PLAN_SCHEMA` of the writer."""
    name: str
    """Name of the test."""
    seed: int
    """Seed every random choice of the campaign derives from."""
    bench: Literal["sim", "netns", "lab"] = written("sim")
    """The bench it runs on, unless the command line names one."""
    network: Network
    """The network under test."""
    synchronise: Synchronise | None = None
    """How the clocks of its end systems are kept together and compared."""
    axes: tuple[Axis, ...]
    """Swept parameters in the order of the file; empty for a single run."""
    repeats: int
    """How often each point is measured."""
    runs: tuple[Run, ...]
    """The runs, points in the order of the axes (the last axis fastest), repeats innermost."""
    limits: tuple[Limit, ...]
    """Limits the measures are judged against."""
    warnings: tuple[str, ...]
    """What is allowed but worth knowing, one sentence each."""

    @property
    def planned_s(self) -> float:
        """Duration of all runs with warm-up and drain, s."""
        return sum(run.warm_up + run.duration + run.drain for run in self.runs) / 1e12

    def polices_frames(self, run: Run, flow: Flow) -> bool:
        """Whether the first switch on a flow's way polices virtual links by frames, in this run; else by bytes."""
        first = (
            self.network.nodes[flow.routes[0].hops[0].to].kind
            if flow.routes and flow.routes[0].hops
            else None
        )
        own = first.policing if isinstance(first, Switch) else None
        return (run.switches.policing or own) == "frames"


def decode(raw: object) -> Campaign:
    """The plan of a manifest, or of the compiler. Raises PlanError, OtherPlanError for another schema."""
    schema = raw.get("schema", _native.PLAN_SCHEMA) if isinstance(raw, dict) else _native.PLAN_SCHEMA
    if schema != _native.PLAN_SCHEMA:
        raise OtherPlanError(
            f"plan schema {schema} is unknown to this wiregauge, which reads {_native.PLAN_SCHEMA}"
        )
    try:
        campaign = convert(raw, Campaign)
    except msgspec.ValidationError as error:
        raise PlanError(f"{error}; the file was not written by wiregauge or is damaged") from None
    _check(campaign)
    return campaign


def planned_runs(raw: object) -> int:
    """The number of runs of a plan that is not decoded, which of thousands takes long; 0 where that is none."""
    found = raw.get("runs") if isinstance(raw, dict) else None
    return len(found) if isinstance(found, list) else 0


def plain(part: Plan) -> dict[str, Any]:
    """A plan, or a part of one, as it stands in JSON."""
    found: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(part))
    return found


def as_json(part: Plan) -> str:
    """A plan, or a part of one, as JSON text."""
    return msgspec.json.encode(part).decode()


def _check(campaign: Campaign) -> None:
    """Whether every number of a node or link is one of the network."""
    for what, numbers, there in (
        ("node", _named_nodes(campaign), campaign.network.nodes),
        ("link", _named_links(campaign.runs), campaign.network.links),
    ):
        unknown = next((number for number in numbers if not 0 <= number < len(there)), None)
        if unknown is not None:
            raise PlanError(
                f"{what} {unknown} is not in the plan, which has {len(there)}; the file is damaged"
            )


def _named_nodes(campaign: Campaign) -> Iterator[int]:
    for link in campaign.network.links:
        yield from link.nodes
    if campaign.synchronise is not None:
        yield campaign.synchronise.reference
    for run in campaign.runs:
        for flow in run.flows:
            yield from flow.ends
        for relay in run.relays:
            yield from (f.kind.to for f in relay.faults if isinstance(f.kind, Misdirect))
        for tasks in (run.receives, run.relays, run.injects, run.remote_logs, run.captures):
            yield from (task.on for task in tasks)
        yield from (inject.to for inject in run.injects)
        yield from (log.to for log in run.remote_logs)
        for route in _routes(run):
            yield from route.nodes
        for incident in run.incidents:
            if isinstance(incident.kind, ClockStep):
                yield incident.kind.node
            elif isinstance(incident.kind, Restart):
                yield incident.kind.switch


def _routes(run: Run) -> Iterator[Route]:
    for flow in run.flows:
        yield from flow.routes
    for relay in run.relays:
        yield from relay.detours
    yield from (inject.route for inject in run.injects)
    yield from (log.route for log in run.remote_logs)


def _named_links(runs: Iterable[Run]) -> Iterator[int]:
    for run in runs:
        yield from (hop.link for route in _routes(run) for hop in route.hops)
        yield from (fault.link for fault in run.link_faults)
        yield from (incident.kind.link for incident in run.incidents if isinstance(incident.kind, Cut))
