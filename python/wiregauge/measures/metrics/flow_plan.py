"""The plan as it is judged: a flow at each of its receivers, with the task of its sender; times are ns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache

from msgspec import Struct, field

from wiregauge.measures.definitions import PAIR_QUANTILES, QUANTILES, ascending, quantile_named
from wiregauge.measures.metrics.load_plan import InjectPlan, load_plans
from wiregauge.measures.metrics.port_plan import Port, PortPlan, least_ns, port_plans
from wiregauge.plan import Campaign, ClockStep, Cut, Flow, Network, Run, Synchronise
from wiregauge.plan.campaign import TtWindow
from wiregauge.plan.tasks import Periodic, Send
from wiregauge.plan.tsn import LinkPriority

__all__ = [
    "LATE_DIVISOR",
    "LATE_WORDS",
    "CampaignPlan",
    "FlowPlan",
    "InjectPlan",
    "LimitPlan",
    "RunPlan",
    "Schedule",
    "Size",
    "judged_plan",
]

LATE_DIVISOR = 10
"""A message is late that was sent more than its sender's period divided by this after its intended instant. Benches
count by the same: `wg_plan::LATE_DIVISOR`."""
LATE_WORDS = "a tenth of the period"
"""The same limit in words."""


class Schedule(Struct, frozen=True):
    """The expected arrivals of time-triggered frames at a receiver: every `period_ns` at `reception_ns`, by its own
    clock."""

    period_ns: float
    reception_ns: float
    early_ns: float = 0.0
    late_ns: float = 0.0
    """How much before (`early_ns`) and after that instant it accepts a frame."""
    windows: tuple[TtWindow, ...] = ()
    """Intervals in which it may leave each port on its way, ps, by the clock of the port's node."""


class Size(Struct, frozen=True, order=True):
    """Message size of a series: one payload, or the frames of a replay; 0 where neither is known."""

    payload: int
    frames: tuple[int, int] = (0, 0)
    """Shortest and longest frame of a replay, bytes from destination address to FCS."""

    @property
    def tick(self) -> str:
        """On an axis of payloads in bytes."""
        if self.payload:
            return str(self.payload)
        shortest, longest = self.frames
        span = f"{shortest}" if shortest == longest else f"{shortest} to {longest}"
        return f"replay, frames of {span}" if longest else "unknown"

    @property
    def text(self) -> str:
        """The size for a title or a legend."""
        return f"{self.tick} B" if self.payload or self.frames[1] else "payload unknown"


@lru_cache(maxsize=64)
def _quantiles(asked: tuple[str, ...]) -> dict[str, float]:
    """The percentiles always printed and those requested by limits; thousands of flows share them."""
    own = {name: q for name in asked if (q := quantile_named(name)) is not None}
    return dict(sorted((QUANTILES | own).items(), key=lambda one: one[1]))


@lru_cache(maxsize=64)
def _of_pairs(asked: tuple[str, ...], of_pairs: tuple[str, ...]) -> dict[str, float]:
    told = (*PAIR_QUANTILES, *of_pairs)
    return {name: q for name, q in _quantiles(asked).items() if name in told}


class FlowPlan(Struct, frozen=True):
    """A flow of one run at one receiver, with its sender task. A multicast flow has one per receiver."""

    id: int
    protocol: str
    source: str
    destination: str
    path: tuple[str, ...]
    deadline_ns: float | None
    relayed: bool
    payload: int | None
    period_ns: float | None
    count: int
    planted_faults: int
    receiver: int = -1
    multicast: bool = False
    both_networks: bool = False
    bag_ns: float | None = None
    bag_jitter_ns: float | None = None
    lmax: int | None = None
    """Longest frame of its virtual link, bytes from destination address to FCS."""
    polices_frames: bool = False
    """Whether the first switch on its way polices it by frames; else by bytes."""
    skew_max_ns: float | None = None
    link_bps: int | None = None
    """Rate of the link the sender sends on."""
    ways: tuple[tuple[int, ...], ...] = ()
    """The nodes on the way to this receiver, by index, on each network that leads there."""
    leaves: tuple[tuple[int, int], ...] = ()
    """Output ports on its way to this receiver, and back where it is relayed: node, by index, and number."""
    schedule: Schedule | None = None
    frames: tuple[int, int] | None = None
    """Shortest and longest frame of a replay, bytes from destination address to FCS."""
    priority: int = 0
    """Priority of its VLAN tag; 0 without one."""
    link_priority: LinkPriority | None = None
    """Priority that switches give its frames, where they are a virtual link's."""
    least_ns: float = 0.0
    """Least time that the links on its way take, ns, without anything between them."""
    is_periodic: bool = False
    """Whether every message is due a period after the last, so that sends that were never made are known."""
    answers_as: int | None = None
    """The number that its messages have on their way back, where it is another."""
    asked: tuple[str, ...] = ()
    """Percentiles that limits of the test name."""
    asked_of_pairs: tuple[str, ...] = ()
    """Percentiles of pairs of points that limits of the test name."""

    @property
    def late_after_ns(self) -> float | None:
        """A message sent later than this after its intended instant is late; None where nothing sends."""
        return self.period_ns / LATE_DIVISOR if self.period_ns else None

    @property
    def quantiles(self) -> dict[str, float]:
        """The percentiles of its measures: those always printed, and those that limits name."""
        return _quantiles(self.asked)

    @property
    def pair_quantiles(self) -> dict[str, float]:
        """The percentiles of a pair of points: those always printed, and those that limits name."""
        return _of_pairs(self.asked, self.asked_of_pairs)

    @property
    def main(self) -> str:
        """The measure it is there for: the round trip where its messages return."""
        return "rtt" if self.relayed else "latency"

    @property
    def size(self) -> Size:
        """Size of its messages."""
        return Size(self.payload or 0, self.frames or (0, 0))

    @property
    def name(self) -> str:
        """The flow's number, and its receiver where there are several."""
        return f"{self.id} to {self.destination}" if self.multicast else str(self.id)

    def is_called(self, name: str) -> bool:
        """Whether `name` means this flow: its number, or its number and receiver."""
        return name in (str(self.id), self.name, f"{self.id} to {self.destination}")


class RunPlan(Struct, frozen=True):
    """One run of the campaign."""

    index: int
    point: Mapping[str, str]
    repeat: int
    seed: int
    warm_up_ns: float
    duration_ns: float
    flows: tuple[FlowPlan, ...]
    injects: tuple[InjectPlan, ...]
    exchanges: tuple[FlowPlan, ...] = ()
    """Flows that compare clocks; they are not under test."""
    link_rate_bps: int | None = None
    """Rate of every link where the sweep sets it."""
    captures: tuple[str, ...] = ()
    """Nodes with a capture."""
    disturbances: tuple[str, ...] = ()
    """Kinds of the planted faults and incidents, one entry each."""
    cut_links: tuple[int, ...] = ()
    ports: Mapping[Port, PortPlan] = field(default_factory=dict)
    """Output ports on the ways of flows that send whatever waits for them, in the order of arrival."""
    stepped: Mapping[str, float] = field(default_factory=dict)
    """Sum of the steps by which each node's clock is set, ns, absolute values."""

    @property
    def load(self) -> str | None:
        """The swept load as written, or the planned background load; None without any."""
        if "load" in self.point:
            return self.point["load"]
        loads = sorted({inject.load_ppm for inject in self.injects})
        return f"{loads[-1] / 10_000:g}%" if loads else None


class LimitPlan(Struct, frozen=True):
    """A limit as the test states it; `value` in ns, messages, bit/s, bits or (loss) as a share of 1."""

    flow: int | None
    measure: str
    bound: str
    value: float
    written: str
    line: int

    @property
    def distribution(self) -> str:
        """The distribution of a percentile: `latency` for `latency.p99.9`, measure and pair for a pair of points;
        else empty."""
        return self.measure.partition(".p")[0] if self.percentile else ""

    @property
    def percentile(self) -> str:
        """`p99.9` of `latency.p99.9`; empty where it names none."""
        name = "p" + self.measure.partition(".p")[2]
        return name if quantile_named(name) is not None else ""


class CampaignPlan(Struct, frozen=True):
    """The whole test."""

    name: str
    network: Network
    axes: Mapping[str, tuple[str, ...]]
    repeats: int
    runs: tuple[RunPlan, ...]
    limits: tuple[LimitPlan, ...]
    warnings: tuple[str, ...]
    synchronise: Synchronise | None = None

    def named(self, measure: str, usual: Iterable[str] = ()) -> tuple[str, ...]:
        """The `usual` percentiles and those of a measure that limits name, in ascending order."""
        own = {limit.percentile for limit in self.limits if limit.distribution.partition(".")[0] == measure}
        return ascending({*usual, *own})

    def port_rates(self, run: RunPlan) -> dict[Port, int]:
        """The rate of the link at each node and port in a run, bit/s."""
        rate = run.link_rate_bps
        return {
            (end.node, end.port): rate or link.rate_bps for link in self.network.links for end in link.ends
        }


def judged_plan(campaign: Campaign) -> CampaignPlan:
    """The plan of a run directory."""
    limits = tuple(
        LimitPlan(one.flow, one.measure, one.bound, one.value, one.written, one.line)
        for one in campaign.limits
    )
    asked = tuple(dict.fromkeys(limit.percentile for limit in limits if limit.percentile))
    of_pairs = tuple(
        dict.fromkeys(limit.percentile for limit in limits if limit.distribution.startswith("pair_latency."))
    )
    return CampaignPlan(
        name=campaign.name,
        network=campaign.network,
        axes={axis.of: axis.values for axis in campaign.axes},
        repeats=campaign.repeats,
        runs=tuple(_run(campaign, run, asked, of_pairs) for run in campaign.runs),
        limits=limits,
        warnings=campaign.warnings,
        synchronise=campaign.synchronise,
    )


def _run(campaign: Campaign, run: Run, asked: tuple[str, ...], of_pairs: tuple[str, ...]) -> RunPlan:
    names = campaign.network.names

    def flows(exchange: bool) -> tuple[FlowPlan, ...]:
        return tuple(
            _flow(campaign, run, flow, receiver, asked, of_pairs)
            for flow in run.flows
            if flow.exchange is exchange
            for receiver in flow.receivers
        )

    incidents = [incident.kind for incident in run.incidents]
    stepped: dict[str, float] = {}
    for step in (incident for incident in incidents if isinstance(incident, ClockStep)):
        stepped[names[step.node]] = stepped.get(names[step.node], 0.0) + abs(step.by / 1000)
    return RunPlan(
        index=run.index,
        point=run.point,
        repeat=run.repeat,
        seed=run.seed,
        warm_up_ns=run.warm_up / 1000,
        duration_ns=run.duration / 1000,
        flows=flows(exchange=False),
        exchanges=flows(exchange=True),
        injects=load_plans(campaign.network, run),
        ports=port_plans(campaign.network, run),
        link_rate_bps=run.link_rate_bps,
        captures=tuple(names[capture.on] for capture in run.captures),
        disturbances=run.disturbances,
        cut_links=tuple(incident.link for incident in incidents if isinstance(incident, Cut)),
        stepped=stepped,
    )


def _is_periodic(send: Send) -> bool:
    return isinstance(send.pattern, Periodic | None) and send.activity is None and send.replay is None


def _flow(
    campaign: Campaign,
    run: Run,
    flow: Flow,
    receiver: int,
    asked: tuple[str, ...],
    of_pairs: tuple[str, ...],
) -> FlowPlan:
    names = campaign.network.names
    ways = flow.ways_to(receiver)
    send, relay, link = run.send_of.get(flow.id), run.relay_of.get((flow.id, receiver)), flow.virtual_link
    replay = send.replay if send else None
    return FlowPlan(
        id=flow.id,
        protocol=flow.protocol,
        source=names[flow.from_],
        destination=names[receiver],
        path=tuple(names[node] for node in (ways[0] if ways else ())),
        ways=ways,
        leaves=_leaves(flow, receiver, relayed=relay is not None),
        deadline_ns=_ns(flow.deadline),
        relayed=relay is not None,
        answers_as=relay.back if relay else None,
        # A capture has many sizes: values that need a single one are omitted.
        payload=send.payload if send and not replay else None,
        period_ns=send.period / 1000 if send else None,
        count=send.count if send else 0,
        is_periodic=send is not None and _is_periodic(send),
        planted_faults=len(relay.faults) if relay else 0,
        receiver=receiver,
        multicast=bool(flow.also_to),
        both_networks=flow.network is None,
        bag_ns=link.bag / 1000 if link else None,
        bag_jitter_ns=link.jitter / 1000 if link else None,
        lmax=link.lmax if link else None,
        polices_frames=campaign.polices_frames(run, flow),
        skew_max_ns=link.skew_max / 1000 if link else None,
        link_bps=run.link_rate_bps or campaign.network.first_rate(flow.from_),
        schedule=_schedule(flow, receiver),
        priority=flow.vlan.priority if flow.vlan is not None else 0,
        link_priority=link.switch_priority if link else None,
        frames=replay.frames if replay else None,
        least_ns=least_ns(
            campaign.network,
            run,
            [route for route in flow.routes if route.nodes and route.nodes[-1] == receiver],
            send,
        ),
        asked=asked,
        asked_of_pairs=of_pairs,
    )


def _leaves(flow: Flow, receiver: int, *, relayed: bool) -> tuple[tuple[int, int], ...]:
    routes = [route for route in flow.routes if route.nodes and route.nodes[-1] == receiver]
    out = [(hop.from_, hop.from_port) for route in routes for hop in route.hops]
    back = [(hop.to, hop.to_port) for route in routes for hop in route.hops] if relayed else []
    return tuple(dict.fromkeys([*out, *back]))


def _ns(picoseconds: int | None) -> float | None:
    return None if picoseconds is None else picoseconds / 1000


def _schedule(flow: Flow, receiver: int) -> Schedule | None:
    plan = flow.schedule
    # Port 1 is the one on network A, or the only one.
    found = (one for one in plan.receptions if (one.at.node, one.at.port) == (receiver, 1)) if plan else ()
    return next(
        (
            Schedule(plan.period / 1000, one.offset / 1000, plan.early / 1000, plan.late / 1000, plan.windows)
            for one in found
            if plan
        ),
        None,
    )
