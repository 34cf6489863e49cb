"""The executable test, `wg_plan::Campaign`: decoded once, every reference inside it checked, read by everybody here."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import cached_property
from typing import Any, Literal

import msgspec

from wiregauge import _native
from wiregauge.plan.base import FlowId, NodeIndex, Picoseconds, Plan, convert, written
from wiregauge.plan.clusters import Cluster
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

Protocol = Literal["udp", "raw", "be", "rc", "tt"]


class PlanError(ValueError):
    """The text is no plan; the message says what is wrong with it."""


class OtherPlanError(PlanError):
    """The plan is of a schema that this version does not read."""


class Synchronise(Plan, frozen=True, kw_only=True):
    """Synchronisation and comparison of the clocks of end systems."""

    reference: NodeIndex
    asymmetry: Picoseconds | None = None
    max_offset: Picoseconds | None = None
    on_failure: Literal["grade", "refuse"] = written("grade")
    wait: Picoseconds
    exchange: Picoseconds | None = None
    ptp: Ptp | None = None
    chrony: bool = written(False)

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
    steer: bool
    interval: Picoseconds
    kp_thousandths: int
    ki_thousandths: int
    domain: int = written(0)
    transport: Literal["l2", "udp"] = written("l2")
    delay: Literal["e2e", "p2p"] = written("e2e")


class Axis(Plan, frozen=True):
    """One swept parameter, its values as written."""

    of: str
    values: tuple[str, ...]


class VlanTag(Plan, frozen=True):
    """802.1Q tag."""

    id: int
    priority: int


class VirtualLink(Plan, frozen=True):
    """The contract of a rate-constrained flow (ARINC 664 part 7)."""

    id: int
    bag: Picoseconds
    lmax: int
    sub_links: int
    queue: int
    skew_max: Picoseconds
    redundancy_management: bool
    jitter: Picoseconds
    priority: int = written(4)
    number_within: bool = False

    @property
    def switch_priority(self) -> LinkPriority:
        """The priority, of the two in a switch, that the virtual link has."""
        return "low" if self.priority < 4 else "high"


class TtWindow(Plan, frozen=True):
    """A window of one egress port; it repeats with the flow's period."""

    at: Attachment
    offset: Picoseconds
    length: Picoseconds


class TtReception(Plan, frozen=True):
    """The expected arrival of a time-triggered frame at a receiver."""

    at: Attachment
    offset: Picoseconds


class TimeTriggered(Plan, frozen=True, kw_only=True):
    """The schedule of a time-triggered flow (SAE AS6802)."""

    id: int
    period: Picoseconds
    offset: Picoseconds
    longest_frame: int
    queue: int | None = None
    windows: tuple[TtWindow, ...]
    early: Picoseconds
    late: Picoseconds
    receptions: tuple[TtReception, ...]


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
    macs: PortEnds = PortEnds()
    """Number of MAC addresses that messages take in turn, from `mac` on."""
    ipv4: AddressEnds = AddressEnds()
    port: PortEnds = PortEnds()


class LatentErrors(Plan, frozen=True):
    """Latent error detection (IEEE Std 802.1CB, 7.4.4)."""

    paths: int
    difference: int
    period: Picoseconds
    reset_period: Picoseconds


class Frer(Plan, frozen=True, kw_only=True):
    """Frame replication and elimination (IEEE Std 802.1CB); the flow's routes are those of its member streams."""

    replicate_at: NodeIndex
    eliminate_at: NodeIndex
    intermediate: bool = False
    """Whether switches on the way remove copies where paths meet and make them where paths part."""
    history_length: int | None = None
    """Length of the history for vector recovery; None: match recovery."""
    reset: Picoseconds
    individual: Literal["match", "vector"] | None = None
    latent_errors: LatentErrors | None = None


class Flow(Plan, frozen=True, kw_only=True, rename={"from_": "from"}):
    """A stream of numbered messages from one end system to one or several others."""

    id: FlowId
    protocol: Protocol
    from_: NodeIndex
    to: NodeIndex
    also_to: tuple[NodeIndex, ...] = ()
    deadline: Picoseconds | None
    vlan: VlanTag | None
    dscp: int = 0
    routes: tuple[Route, ...]
    """Routes to each receiver on each of its networks."""
    network: NetworkId | None = "A"
    """The network that carries it; None: both, each frame is sent on A and on B."""
    virtual_link: VirtualLink | None = None
    schedule: TimeTriggered | None = None
    frer: Frer | None = None
    addresses: Addresses = Addresses()
    exchange: bool = False
    """Compares clocks; no flow under test."""

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

    def ways_to(self, receiver: int) -> tuple[tuple[int, ...], ...]:
        """The different paths to a receiver, as node numbers, on each network that leads there."""
        ways = (route.nodes for route in self.routes)
        return tuple(dict.fromkeys(way for way in ways if way and way[-1] == receiver))


class Run(Plan, frozen=True, kw_only=True, dict=True):
    """One point of the sweep, once."""

    index: int
    point: dict[str, str]
    repeat: int
    seed: int
    link_rate_bps: int | None = None
    switches: SwitchChange = SwitchChange()
    warm_up: Picoseconds
    duration: Picoseconds
    drain: Picoseconds
    flows: tuple[Flow, ...]
    sends: tuple[Send, ...]
    receives: tuple[Receive, ...]
    relays: tuple[Relay, ...]
    injects: tuple[Inject, ...]
    remote_logs: tuple[RemoteLog, ...] = ()
    captures: tuple[Capture, ...] = ()
    link_faults: tuple[LinkFault, ...] = ()
    incidents: tuple[Incident, ...] = ()
    clusters: tuple[Cluster, ...] = ()
    ptp_domains: tuple[PtpDomain, ...] = ()

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
    measure: str
    bound: Literal["at-most", "at-least"]
    value: float
    written: str
    line: int


class Campaign(Plan, frozen=True, kw_only=True):
    """A whole test: one network and the runs its sweep expands to."""

    schema: int
    name: str
    seed: int
    bench: Literal["sim", "netns", "lab"] = written("sim")
    network: Network
    synchronise: Synchronise | None = None
    axes: tuple[Axis, ...]
    repeats: int
    runs: tuple[Run, ...]
    limits: tuple[Limit, ...]
    warnings: tuple[str, ...]

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
