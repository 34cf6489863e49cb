"""The part of the executable test that judging needs, read from `manifest.json`.

Mirrors `wg_plan::Campaign`; times become nanoseconds. Every missing or mistyped key is one sentence that names the
file and the key, never a traceback.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from wiregauge.records import RunDirectoryError

__all__ = [
    "CampaignPlan",
    "FlowPlan",
    "InjectPlan",
    "LimitPlan",
    "Link",
    "Node",
    "RunDirectoryError",
    "RunPlan",
    "get",
    "objects",
    "read_plan",
]

T = TypeVar("T")
LARGEST_FLOW = 65_534


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
class Node:
    """An end system (`end-system`) or a switch (`switch`)."""

    name: str
    kind: str


@dataclass(frozen=True, slots=True)
class Link:
    """A full-duplex link between two nodes, by index."""

    ends: tuple[int, int]
    rate_bps: int
    delay_ns: float


@dataclass(frozen=True, slots=True)
class FlowPlan:
    """A flow of one run with what its sender task was told."""

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


def read_plan(raw: Mapping[str, object], where: str) -> CampaignPlan:
    """The campaign in a manifest. Raises RunDirectoryError for an unknown schema or a damaged plan."""
    schema = get(raw, "schema", int, where)
    if schema != 2:
        raise RunDirectoryError(f"{where}: plan schema {schema} is unknown to this wiregauge, which reads 2")
    network = get(raw, "network", dict, where)
    nodes = tuple(
        Node(get(n, "name", str, where), get(get(n, "kind", dict, where), "type", str, where))
        for n in objects(network, "nodes", where)
    )
    links = tuple(_link(link, len(nodes), where) for link in objects(network, "links", where))
    axes = {
        get(axis, "of", str, where): tuple(str(v) for v in get(axis, "values", list, where))
        for axis in objects(raw, "axes", where)
    }
    return CampaignPlan(
        name=get(raw, "name", str, where),
        nodes=nodes,
        links=links,
        axes=axes,
        repeats=get(raw, "repeats", int, where),
        runs=tuple(_run(run, nodes, links, where) for run in objects(raw, "runs", where)),
        limits=tuple(_limit(limit, where) for limit in objects(raw, "limits", where)),
        warnings=tuple(str(w) for w in get(raw, "warnings", list, where)),
    )


def _ns(obj: Mapping[str, object], key: str, where: str) -> float:
    return get(obj, key, int, where) / 1000


def _link(raw: Mapping[str, object], nodes: int, where: str) -> Link:
    ends = [get(end, "node", int, where) for end in objects(raw, "ends", where)]
    if len(ends) != 2 or not all(0 <= end < nodes for end in ends):
        raise RunDirectoryError(f"{where}: a link does not join two nodes of the plan; the file is damaged")
    return Link((ends[0], ends[1]), get(raw, "rate_bps", int, where), _ns(raw, "delay", where))


def _name(nodes: Sequence[Node], index: int, where: str) -> str:
    if not 0 <= index < len(nodes):
        raise RunDirectoryError(
            f"{where}: node {index} is not in the plan, which has {len(nodes)}; the file is damaged"
        )
    return nodes[index].name


def _run(raw: Mapping[str, object], nodes: Sequence[Node], links: Sequence[Link], where: str) -> RunPlan:
    sends = {get(s, "flow", int, where): s for s in objects(raw, "sends", where)}
    relays = {get(r, "flow", int, where): r for r in objects(raw, "relays", where)}
    flows = []
    for flow in objects(raw, "flows", where):
        number = get(flow, "id", int, where)
        if not 1 <= number <= LARGEST_FLOW:
            raise RunDirectoryError(
                f"{where}: flow {number} is not between 1 and {LARGEST_FLOW}; the file is damaged"
            )
        send = sends.get(number)
        relay = relays.get(number)
        deadline = flow.get("deadline")
        flows.append(
            FlowPlan(
                id=number,
                protocol=get(flow, "protocol", str, where),
                source=_name(nodes, get(flow, "from", int, where), where),
                destination=_name(nodes, get(flow, "to", int, where), where),
                path=tuple(
                    _name(nodes, n if isinstance(n, int) else -1, where)
                    for n in get(flow, "path", list, where)
                ),
                deadline_ns=deadline / 1000 if isinstance(deadline, int) else None,
                relayed=relay is not None,
                payload=get(send, "payload", int, where) if send else None,
                period_ns=_ns(send, "period", where) if send else None,
                count=get(send, "count", int, where) if send else 0,
                planted_faults=len(objects(relay, "faults", where)) if relay else 0,
            )
        )
    return RunPlan(
        index=get(raw, "index", int, where),
        point={str(k): str(v) for k, v in get(raw, "point", dict, where).items()},
        repeat=get(raw, "repeat", int, where),
        seed=get(raw, "seed", int, where),
        warm_up_ns=_ns(raw, "warm_up", where),
        duration_ns=_ns(raw, "duration", where),
        flows=tuple(flows),
        injects=tuple(_inject(i, nodes, links, where) for i in objects(raw, "injects", where)),
    )


def _inject(
    raw: Mapping[str, object], nodes: Sequence[Node], links: Sequence[Link], where: str
) -> InjectPlan:
    on = get(raw, "on", int, where)
    rates = [link.rate_bps for link in links if on in link.ends]
    return InjectPlan(
        on=_name(nodes, on, where),
        to=_name(nodes, get(raw, "to", int, where), where),
        load_ppm=get(raw, "load_ppm", int, where),
        payload=get(raw, "payload", int, where),
        burst=get(raw, "burst", int, where),
        interval_ns=_ns(raw, "interval", where),
        rate_bps=rates[0] if rates else 0,
    )


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
