"""The part of the executable test that judging needs, read from `manifest.json`.

Mirrors `wg_plan::Campaign`; times become nanoseconds. Every missing or mistyped key is one sentence that names the
file and the key, never a traceback.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from wiregauge.measures.definitions import PAIR_QUANTILES, QUANTILES, ascending, quantile_named
from wiregauge.plan import receivers
from wiregauge.records import RunDirectoryError

__all__ = [
    "LATE_DIVISOR",
    "LATE_WORDS",
    "CampaignPlan",
    "ClockPlan",
    "FlowPlan",
    "InjectPlan",
    "LimitPlan",
    "Link",
    "Node",
    "RunDirectoryError",
    "RunPlan",
    "Schedule",
    "Size",
    "SynchronisePlan",
    "get",
    "objects",
    "read_plan",
]

T = TypeVar("T")
LARGEST_FLOW = 65_534
LATE_DIVISOR = 10
"""A message is late that was sent more than its sender's period divided by this after its intended instant. Benches
count by the same: `wg_plan::LATE_DIVISOR`."""
LATE_WORDS = "a tenth of the period"
"""The same, for sentences."""


def get(obj: Mapping[str, object], key: str, kind: type[T], where: str) -> T:
    """`obj[key]` if it is a `kind`; an int serves as a float. Raises RunDirectoryError naming `where` and the key."""
    if key not in obj:
        raise RunDirectoryError(
            f'{where}: "{key}" is missing; the file was not written by wiregauge or is damaged'
        )
    value = obj[key]
    if kind is float and isinstance(value, int) and not isinstance(value, bool):
        value = float(value)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise RunDirectoryError(
            f'{where}: "{key}" should be {_NAMES.get(kind, kind.__name__)}, not {type(value).__name__}; '
            "the file is damaged"
        )
    return value


_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    str: "a string",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
}


def objects(obj: Mapping[str, object], key: str, where: str) -> list[dict[str, object]]:
    """`obj[key]` as a list of objects."""
    items = get(obj, key, list, where)
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise RunDirectoryError(f'{where}: "{key}"[{number}] should be an object; the file is damaged')
    return items


@dataclass(frozen=True, slots=True)
class ClockPlan:
    """A simulated clock that the test makes imperfect."""

    offset_ns: float
    drift_ppb: float
    wander_ppb: float
    granularity_ns: float
    temperature: tuple[tuple[float, float], ...] = ()
    """Changes of drift: when (ns after the epoch), by how much (ppb)."""

    def error_bound_ns(self, length_ns: float) -> float:
        """The most it can be off within `length_ns` of its epoch: without wander exactly, with it at three sigma."""
        warmer = sum(abs(ppb) * max(length_ns - at, 0.0) for at, ppb in self.temperature) * 1e-9
        seconds = length_ns / 1e9
        # The drift walks at random once a second; its integral has the variance sigma^2 t^3 / 3.
        walked = 3 * self.wander_ppb * math.sqrt(seconds**3 / 3)
        steady = abs(self.offset_ns) + abs(self.drift_ppb) * length_ns * 1e-9
        return steady + warmer + walked + self.granularity_ns


@dataclass(frozen=True, slots=True)
class Node:
    """An end system (`end-system`), a switch (`switch`) or a hub (`hub`).

    `model` says what a switch forwards by; `clock` what is known of a clock that is not perfect.
    """

    name: str
    kind: str
    model: str = ""
    clock: ClockPlan | None = None
    policing: str = ""


@dataclass(frozen=True, slots=True)
class Link:
    """A link between two nodes, by index; `ports` are its ports there, `network` is A or B."""

    ends: tuple[int, int]
    rate_bps: int
    delay_ns: float
    ports: tuple[int, int] = (0, 0)
    network: str = "A"


@dataclass(frozen=True, slots=True)
class Schedule:
    """When a receiver expects a time-triggered frame: every `period_ns` at `reception_ns`, by its own clock."""

    period_ns: float
    reception_ns: float
    early_ns: float = 0.0
    late_ns: float = 0.0
    """How much before and after that it accepts one."""


@dataclass(frozen=True, slots=True, order=True)
class Size:
    """How large the messages of a series are: one payload, or the frames of a replay; 0 where neither is known."""

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
        """In a title or a legend."""
        return f"{self.tick} B" if self.payload or self.frames[1] else "payload unknown"


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """A flow of one run at one receiver, with what its sender task was told. A multicast flow has one per receiver."""

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
    link_bit_per_s: int | None = None
    """Rate of the link the sender sends on."""
    ways: tuple[tuple[int, ...], ...] = ()
    """The nodes on the way to this receiver, by index, on each network that leads there."""
    schedule: Schedule | None = None
    frames: tuple[int, int] | None = None
    """Of a replay: its shortest and its longest frame, bytes from destination address to FCS."""
    asked: tuple[str, ...] = ()
    """Percentiles that limits of the test name."""
    asked_of_pairs: tuple[str, ...] = ()
    """Those of them that are of pairs of points."""

    @property
    def late_after_ns(self) -> float | None:
        """A message sent later than this after its intended instant is late; None where nothing sends."""
        return self.period_ns / LATE_DIVISOR if self.period_ns else None

    @property
    def quantiles(self) -> dict[str, float]:
        """The percentiles that are told of its measures: those always printed, and those that limits name."""
        own = {name: q for name in self.asked if (q := quantile_named(name)) is not None}
        return dict(sorted((QUANTILES | own).items(), key=lambda one: one[1]))

    @property
    def pair_quantiles(self) -> dict[str, float]:
        """The percentiles that are told of a pair of points."""
        told = (*PAIR_QUANTILES, *self.asked_of_pairs)
        return {name: q for name, q in self.quantiles.items() if name in told}

    @property
    def size(self) -> Size:
        """How large its messages are."""
        return Size(self.payload or 0, self.frames or (0, 0))

    @property
    def name(self) -> str:
        """Its number, and its receiver where there are several."""
        return f"{self.id} to {self.destination}" if self.multicast else str(self.id)


@dataclass(frozen=True, slots=True)
class InjectPlan:
    """Background load of one end system."""

    on: str
    to: str
    load_ppm: int
    payload: int
    burst: int
    interval_ns: float
    rate_bps: int


@dataclass(frozen=True, slots=True)
class RunPlan:
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
    """What the test does to the network on purpose, by kind, one entry each."""
    cut_links: tuple[int, ...] = ()
    stepped: Mapping[str, float] = field(default_factory=dict)
    """By node: the sum of what its clock is set by, forth and back, ns."""

    @property
    def load(self) -> str | None:
        """The swept load as written, or the planned background load; None without any."""
        if "load" in self.point:
            return self.point["load"]
        loads = sorted({inject.load_ppm for inject in self.injects})
        return f"{loads[-1] / 10_000:g}%" if loads else None


@dataclass(frozen=True, slots=True)
class LimitPlan:
    """A limit as the test states it; `value` in ns, messages, bit/s or (loss) as a share of 1."""

    flow: int | None
    measure: str
    bound: str
    value: float
    written: str
    line: int

    @property
    def distribution(self) -> str:
        """What it is a percentile of: `latency` of `latency.p99.9`, and of a pair of points measure and pair."""
        return self.measure.partition(".p")[0] if self.percentile else ""

    @property
    def percentile(self) -> str:
        """`p99.9` of `latency.p99.9`; empty where it names none."""
        name = "p" + self.measure.partition(".p")[2]
        return name if quantile_named(name) is not None else ""


@dataclass(frozen=True, slots=True)
class SynchronisePlan:
    """How clocks are kept together and compared."""

    reference: str
    asymmetry_ns: float | None
    """Most that the fixed delays of two directions differ by; None where the test does not say."""
    within_ns: float | None
    refuse: bool
    exchange_ns: float | None
    """Time between two exchanges; None without."""
    ptp: bool
    steered: bool
    """Whether PTP sets the clocks."""
    chrony: bool


@dataclass(frozen=True, slots=True)
class CampaignPlan:
    """The whole test."""

    name: str
    nodes: tuple[Node, ...]
    links: tuple[Link, ...]
    axes: Mapping[str, tuple[str, ...]]
    repeats: int
    runs: tuple[RunPlan, ...]
    limits: tuple[LimitPlan, ...]
    warnings: tuple[str, ...]
    synchronise: SynchronisePlan | None = None

    def named(self, measure: str, usual: Iterable[str] = ()) -> tuple[str, ...]:
        """The `usual` percentiles and those of a measure that limits name, in ascending order."""
        own = {limit.percentile for limit in self.limits if limit.distribution.partition(".")[0] == measure}
        return ascending({*usual, *own})


def read_plan(raw: Mapping[str, object], where: str) -> CampaignPlan:
    """The campaign in a manifest. Raises RunDirectoryError for an unknown schema or a damaged plan."""
    schema = get(raw, "schema", int, where)
    if schema != 2:
        raise RunDirectoryError(f"{where}: plan schema {schema} is unknown to this wiregauge, which reads 2")
    network = get(raw, "network", dict, where)
    nodes = tuple(_node(n, where) for n in objects(network, "nodes", where))
    links = tuple(_link(link, len(nodes), where) for link in objects(network, "links", where))
    axes = {
        get(axis, "of", str, where): tuple(str(v) for v in get(axis, "values", list, where))
        for axis in objects(raw, "axes", where)
    }
    limits = tuple(_limit(limit, where) for limit in objects(raw, "limits", where))
    asked = tuple(dict.fromkeys(limit.percentile for limit in limits if limit.percentile))
    of_pairs = tuple(
        dict.fromkeys(limit.percentile for limit in limits if limit.distribution.startswith("pair_latency."))
    )
    return CampaignPlan(
        name=get(raw, "name", str, where),
        nodes=nodes,
        links=links,
        axes=axes,
        repeats=get(raw, "repeats", int, where),
        runs=tuple(
            replace(
                run, flows=tuple(replace(flow, asked=asked, asked_of_pairs=of_pairs) for flow in run.flows)
            )
            for run in (_run(run, nodes, links, where) for run in objects(raw, "runs", where))
        ),
        limits=limits,
        warnings=tuple(str(w) for w in get(raw, "warnings", list, where)),
        synchronise=_synchronise(get(raw, "synchronise", dict, where), nodes, where)
        if raw.get("synchronise") is not None
        else None,
    )


def _synchronise(raw: Mapping[str, object], nodes: Sequence[Node], where: str) -> SynchronisePlan:
    def time(key: str) -> float | None:
        return _ns(raw, key, where) if raw.get(key) is not None else None

    ptp = get(raw, "ptp", dict, where) if raw.get("ptp") is not None else None
    return SynchronisePlan(
        reference=_name(nodes, get(raw, "reference", int, where), where),
        asymmetry_ns=time("asymmetry"),
        within_ns=time("within"),
        refuse=raw.get("otherwise") == "refuse",
        exchange_ns=time("exchange"),
        ptp=ptp is not None,
        steered=ptp is not None and ptp.get("steer") is True,
        chrony=raw.get("chrony") is True,
    )


def _ns(obj: Mapping[str, object], key: str, where: str) -> float:
    return get(obj, key, int, where) / 1000


def _link(raw: Mapping[str, object], nodes: int, where: str) -> Link:
    ends = [get(end, "node", int, where) for end in objects(raw, "ends", where)]
    if len(ends) != 2 or not all(0 <= end < nodes for end in ends):
        raise RunDirectoryError(f"{where}: a link does not join two nodes of the plan; the file is damaged")
    ports = [get(end, "port", int, where) for end in objects(raw, "ends", where)]
    return Link(
        (ends[0], ends[1]),
        get(raw, "rate_bps", int, where),
        _ns(raw, "delay", where),
        (ports[0], ports[1]),
        "B" if raw.get("network") == "B" else "A",
    )


def _node(raw: Mapping[str, object], where: str) -> Node:
    kind = get(raw, "kind", dict, where)
    clock = raw.get("clock")
    return Node(
        get(raw, "name", str, where),
        get(kind, "type", str, where),
        str(kind.get("kind", "")),
        _clock(clock, where) if isinstance(clock, dict) else None,
        str(kind.get("policing", "")),
    )


def _clock(raw: Mapping[str, object], where: str) -> ClockPlan:
    def figure(of: Mapping[str, object], key: str, divisor: float = 1.0) -> float:
        return get(of, key, int, where) / divisor if key in of else 0.0

    steps = objects(raw, "temperature", where) if "temperature" in raw else []
    return ClockPlan(
        figure(raw, "offset", 1000),
        figure(raw, "drift_ppb"),
        figure(raw, "wander_ppb"),
        figure(raw, "granularity", 1000),
        tuple((figure(step, "at", 1000), figure(step, "drift_ppb")) for step in steps),
    )


def _polices_frames(run: Mapping[str, object], nodes: Sequence[Node], flow: Mapping[str, object]) -> bool:
    """Whether the first switch on a flow's way polices virtual links by frames, in this run."""
    changed = run.get("switches")
    swept = changed.get("policing") if isinstance(changed, dict) else None
    path = flow.get("path")
    first = path[1] if isinstance(path, list) and len(path) > 1 else None
    own = nodes[first].policing if isinstance(first, int) and 0 <= first < len(nodes) else ""
    return (swept or own) == "frames"


def _name(nodes: Sequence[Node], index: int, where: str) -> str:
    if not 0 <= index < len(nodes):
        raise RunDirectoryError(
            f"{where}: node {index} is not in the plan, which has {len(nodes)}; the file is damaged"
        )
    return nodes[index].name


def _run(raw: Mapping[str, object], nodes: Sequence[Node], links: Sequence[Link], where: str) -> RunPlan:
    sends = {get(s, "flow", int, where): s for s in objects(raw, "sends", where)}
    rate = get(raw, "link_rate_bps", int, where) if "link_rate_bps" in raw else None
    relays = {
        (get(r, "flow", int, where), get(r, "on", int, where)): r for r in objects(raw, "relays", where)
    }
    flows: list[FlowPlan] = []
    exchanges: list[FlowPlan] = []
    for flow in objects(raw, "flows", where):
        number = get(flow, "id", int, where)
        if not 1 <= number <= LARGEST_FLOW:
            raise RunDirectoryError(
                f"{where}: flow {number} is not between 1 and {LARGEST_FLOW}; the file is damaged"
            )
        send = sends.get(number)
        deadline = flow.get("deadline")
        try:
            to = receivers(flow)
        except ValueError as error:
            raise RunDirectoryError(f"{where}: flow {number}: {error}; the file is damaged") from None
        link = flow.get("virtual_link")
        (exchanges if flow.get("exchange") is True else flows).extend(
            FlowPlan(
                id=number,
                protocol=get(flow, "protocol", str, where),
                source=_name(nodes, get(flow, "from", int, where), where),
                destination=_name(nodes, receiver, where),
                path=tuple(_name(nodes, node, where) for node in _path(flow, receiver, where)),
                ways=_ways(flow, receiver, where),
                deadline_ns=deadline / 1000 if isinstance(deadline, int) else None,
                relayed=(number, receiver) in relays,
                # The sizes of a capture are many: what needs one is not given.
                payload=get(send, "payload", int, where) if send and "replay" not in send else None,
                period_ns=_ns(send, "period", where) if send else None,
                count=get(send, "count", int, where) if send else 0,
                planted_faults=len(objects(relays[number, receiver], "faults", where))
                if (number, receiver) in relays
                else 0,
                receiver=receiver,
                multicast=len(to) > 1,
                both_networks="network" in flow and flow["network"] is None,
                bag_ns=_ns(link, "bag", where) if isinstance(link, dict) else None,
                bag_jitter_ns=_ns(link, "jitter", where)
                if isinstance(link, dict) and "jitter" in link
                else None,
                lmax=get(link, "lmax", int, where) if isinstance(link, dict) else None,
                polices_frames=_polices_frames(raw, nodes, flow),
                skew_max_ns=_ns(link, "skew_max", where)
                if isinstance(link, dict) and "skew_max" in link
                else None,
                link_bit_per_s=rate or _first_rate(links, get(flow, "from", int, where)),
                schedule=_schedule(flow.get("schedule"), receiver, where),
                frames=_frames(send, where) if send and "replay" in send else None,
            )
            for receiver in to
        )
    incidents = objects(raw, "incidents", where) if "incidents" in raw else []
    faults = objects(raw, "link_faults", where) if "link_faults" in raw else []
    deeds = [get(deed, "kind", dict, where) for deed in (*faults, *incidents)]
    kinds = [get(deed, "type", str, where) for deed in deeds]
    stepped: dict[str, float] = {}
    for deed, kind in zip(deeds, kinds, strict=True):
        if kind == "clock-step":
            node = _name(nodes, get(deed, "node", int, where), where)
            stepped[node] = stepped.get(node, 0.0) + abs(_ns(deed, "by", where))
    return RunPlan(
        index=get(raw, "index", int, where),
        point={str(k): str(v) for k, v in get(raw, "point", dict, where).items()},
        repeat=get(raw, "repeat", int, where),
        seed=get(raw, "seed", int, where),
        warm_up_ns=_ns(raw, "warm_up", where),
        duration_ns=_ns(raw, "duration", where),
        flows=tuple(flows),
        exchanges=tuple(exchanges),
        injects=tuple(_inject(i, nodes, links, where) for i in objects(raw, "injects", where)),
        link_rate_bps=rate,
        captures=tuple(
            _name(nodes, get(capture, "on", int, where), where) for capture in objects(raw, "captures", where)
        )
        if "captures" in raw
        else (),
        disturbances=tuple(kinds),
        cut_links=tuple(
            get(deed, "link", int, where) for deed, kind in zip(deeds, kinds, strict=True) if kind == "cut"
        ),
        stepped=stepped,
    )


def _frames(send: Mapping[str, object], where: str) -> tuple[int, int]:
    """Shortest and longest frame of a replay, as they are sent."""
    replay = get(send, "replay", dict, where)
    # A trace is written as gap:length, each as often as *times says.
    lengths = [int(length) for length in re.findall(r":([0-9]+)", get(replay, "trace", str, where))]
    least = get(replay, "least", int, where)
    return max(least, min(lengths, default=0)), max(least, max(lengths, default=0))


def _path(flow: Mapping[str, object], receiver: int, where: str) -> list[int]:
    """The way to `receiver` on the first network that leads there."""
    first = get(flow, "path", list, where)
    further = objects(flow, "further_paths", where) if "further_paths" in flow else []
    ways = [first, *(get(path, "nodes", list, where) for path in further)]
    chosen = next((way for way in ways if way and way[-1] == receiver), first)
    return [node if isinstance(node, int) else -1 for node in chosen]


def _ways(flow: Mapping[str, object], receiver: int, where: str) -> tuple[tuple[int, ...], ...]:
    further = objects(flow, "further_paths", where) if "further_paths" in flow else []
    all_of_them = [
        get(flow, "path", list, where),
        *(get(path, "nodes", list, where) for path in further),
    ]
    ways = (tuple(node for node in way if isinstance(node, int)) for way in all_of_them)
    return tuple(dict.fromkeys(way for way in ways if way and way[-1] == receiver))


def _schedule(raw: object, receiver: int, where: str) -> Schedule | None:
    if not isinstance(raw, dict):
        return None
    for reception in objects(raw, "receptions", where):
        # Port 1 is the one on network A, or the only one.
        at = get(reception, "at", dict, where)
        if at.get("node") == receiver and at.get("port") == 1:
            return Schedule(
                _ns(raw, "period", where),
                _ns(reception, "offset", where),
                _ns(raw, "early", where) if "early" in raw else 0.0,
                _ns(raw, "late", where) if "late" in raw else 0.0,
            )
    return None


def _inject(
    raw: Mapping[str, object], nodes: Sequence[Node], links: Sequence[Link], where: str
) -> InjectPlan:
    on = get(raw, "on", int, where)
    return InjectPlan(
        on=_name(nodes, on, where),
        to=_name(nodes, get(raw, "to", int, where), where),
        load_ppm=get(raw, "load_ppm", int, where),
        payload=get(raw, "payload", int, where),
        burst=get(raw, "burst", int, where),
        interval_ns=_ns(raw, "interval", where),
        rate_bps=_first_rate(links, on) or 0,
    )


def _first_rate(links: Sequence[Link], node: int) -> int | None:
    return next((link.rate_bps for link in links if node in link.ends), None)


def _limit(raw: Mapping[str, object], where: str) -> LimitPlan:
    flow = raw.get("flow")
    bound = get(raw, "bound", str, where)
    if bound not in ("at-most", "at-least"):
        raise RunDirectoryError(
            f'{where}: a limit is "at-most" or "at-least", not "{bound}"; the file is damaged'
        )
    return LimitPlan(
        flow=flow if isinstance(flow, int) else None,
        measure=get(raw, "measure", str, where),
        bound=bound,
        value=get(raw, "value", float, where),
        written=get(raw, "written", str, where),
        line=get(raw, "line", int, where),
    )
