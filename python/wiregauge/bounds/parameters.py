"""The parameters of a network that may change a little: rates and frames of flows, rates and delays of links, delays of
switches.

A parameter lists its values step by step away from the present one, towards longer bounds or towards shorter ones. The
values are finer than what the test language allows, since the question is how far the network is from a limit.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from wiregauge.bounds.knobs import BAGS_MS, bits_per_second
from wiregauge.bounds.networks import Source, with_plan
from wiregauge.plan import Network, Run, Switch
from wiregauge.plan.ethernet import HEADERS, IPV4_UDP, LONGEST, SHORTEST
from wiregauge.plan.network import Distribution
from wiregauge.plan.quantity import rate_text, time_text

__all__ = ["EACH", "KINDS", "RESOLUTION", "Parameter", "Parameters", "Step", "parameters_of", "together"]

RESOLUTION: Final = 0.01
"""The ratio of neighbouring values, less one."""
_MOST: Final = 1000.0
"""The greatest factor that is tried."""
_STEPS: Final = math.ceil(math.log(_MOST) / math.log1p(RESOLUTION))
_LEAST_ADDED: Final = 1000
"""The smallest delay that is added, ps."""
_MOST_ADDED: Final = 10**12
_PS: Final = 1e12


KINDS: Final = {
    "rate": ("rate of a flow, by the period of its sender", "all flows"),
    "bag": ("rate of a virtual link, by its BAG", "all virtual links"),
    "frame": ("payload of a flow, with its Lmax", "all flows"),
    "link-rate": ("rate of a link", "all links"),
    "propagation": ("propagation delay of a link", "all links"),
    "processing": ("processing delay of a switch", "all switches"),
}
"""What a kind of parameters is, and the name of all of its parameters together."""

EACH: Final = "each"
"""How the value of several parameters together begins."""

Change = Callable[[Any], Any]
"""From a network, in the form that `Parameters.source` knows, to the changed one."""


class Step(Struct, frozen=True):
    """A value: as text, as a ratio to the present one (of a delay: what is added, s), and the change that makes it."""

    text: str
    factor: float | None
    added: float | None
    change: Change


class Parameter(Struct, frozen=True):
    """A parameter and its values, each further from the present one than the last."""

    kind: str
    """One of `KINDS`."""
    element: str
    before: str
    count: int
    at: Callable[[int], Step]


class Parameters(Protocol):
    """The parameters of a network."""

    def of_flow(self, flow: str) -> Iterator[Parameter]:
        """The parameters of a flow, by its name in the answer."""

    def of_server(self, server: str) -> Iterator[Parameter]:
        """The parameters of the link and the node of an output port."""

    def source(self, change: Change) -> Source:
        """The network with a change."""


def parameters_of(source: Source, *, worse: bool) -> Parameters | None:
    """The parameters of a network, `worse` towards longer bounds; None for a format without limits."""
    if source.format == "plan":
        return _Test(source, worse=worse)
    return _Physical(source, worse=worse) if source.format == "physical" else None


def together(several: Sequence[Parameter]) -> Parameter:
    """Parameters of one kind as one, each the same number of steps from its present value."""

    def at(index: int) -> Step:
        steps = [one.at(index) for one in several]
        added = steps[0].added
        factor = max(
            (step.factor for step in steps if step.factor), key=lambda one: max(one, 1 / one), default=None
        )
        text = f"{EACH} x {factor:.4g}" if factor is not None else f"{EACH} {1e6 * (added or 0.0):+.3f}us"
        if several[0].kind == "frame":
            text = f"{EACH} {index + 1} B {'more' if (factor or 1.0) > 1 else 'less'}"

        def change(network: Any) -> Any:
            for step in steps:
                network = step.change(network)
            return network

        return Step(text, factor, added, change)

    kind = several[0].kind
    return Parameter(kind, KINDS[kind][1], "as they are", min(one.count for one in several), at)


def _factor(index: int) -> float:
    return float((1 + RESOLUTION) ** (index + 1))


class _Test:
    """Parameters of a compiled test."""

    def __init__(self, source: Source, *, worse: bool) -> None:
        assert source.planned is not None, "the source of a test has its plan"
        self._worse, self._source = worse, source
        self._network, self._run = source.planned

    def of_flow(self, flow: str) -> Iterator[Parameter]:
        place = next((k for k, one in enumerate(self._run.flows) if str(one.id) == flow), None)
        if place is None or self._run.flows[place].protocol == "tt":
            return
        sends = [k for k, one in enumerate(self._run.sends) if str(one.flow) == flow]
        if not sends:
            return
        if self._run.flows[place].virtual_link is not None:
            yield self._bag(place)
        else:
            yield self._rate(flow, sends)
        yield self._frame(place, sends)

    def of_server(self, server: str) -> Iterator[Parameter]:
        name, _, port = server.rpartition(":")
        for place, link in enumerate(self._network.links):
            ends = {(self._network.names[end.node], str(end.port)) for end in link.ends}
            if (name, port) in ends:
                yield from self._link(place)
        for place, node in enumerate(self._network.nodes):
            if node.name == name and isinstance(node.kind, Switch):
                yield self._processing(place, node.kind)

    def source(self, change: Change) -> Source:
        return with_plan(self._source, *change((self._network, self._run)))

    def _rate(self, flow: str, sends: Sequence[int]) -> Parameter:
        periods = {k: self._run.sends[k].period for k in sends}

        def at(index: int) -> Step:
            factor = _factor(index) if self._worse else 1 / _factor(index)
            changed = {k: max(1, round(period / factor)) for k, period in periods.items()}

            def change(network: Network, run: Run) -> _Planned:
                sends = {k: replace(run.sends[k], period=period) for k, period in changed.items()}
                return network, replace(run, sends=_put(run.sends, sends))

            return Step(", ".join(map(_rounded, changed.values())), factor, None, _of_plan(change))

        before = ", ".join(map(time_text, periods.values()))
        return Parameter("rate", f"flow {flow}", before, _STEPS, at)

    def _bag(self, place: int) -> Parameter:
        flow = self._run.flows[place]
        bag = 0 if flow.virtual_link is None else flow.virtual_link.bag
        values = [ms * 10**9 for ms in (BAGS_MS[::-1] if self._worse else BAGS_MS)]
        further = [one for one in values if (one < bag if self._worse else one > bag)]

        def at(index: int) -> Step:
            value = further[index]
            return Step(time_text(value), bag / value, None, _of_plan(_with_contract(place, bag=value)))

        return Parameter("bag", f"flow {flow.id}", time_text(bag), len(further), at)

    def _frame(self, place: int, sends: Sequence[int]) -> Parameter:
        flow = self._run.flows[place]
        payloads = {k: self._run.sends[k].payload for k in sends}
        longest = max(payloads.values())
        lmax = None if flow.virtual_link is None else flow.virtual_link.lmax
        if self._worse:
            most = LONGEST - HEADERS - (IPV4_UDP if flow.protocol in ("udp", "rc") else 0)
            count = min(most - longest, LONGEST if lmax is None else LONGEST - lmax)
        else:
            count = longest - 1

        def at(index: int) -> Step:
            more = index + 1 if self._worse else -(index + 1)
            least = None if lmax is None else max(SHORTEST, lmax + more)

            def change(network: Network, run: Run) -> _Planned:
                sends = {
                    k: replace(run.sends[k], payload=max(1, size + more)) for k, size in payloads.items()
                }
                run = replace(run, sends=_put(run.sends, sends))
                return (network, run) if least is None else _with_contract(place, lmax=least)(network, run)

            text = f"{longest + more}B" + ("" if least is None else f", Lmax {least}B")
            return Step(text, (longest + more) / longest, None, _of_plan(change))

        before = f"{longest}B" + ("" if lmax is None else f", Lmax {lmax}B")
        return Parameter("frame", f"flow {flow.id}", before, max(0, count), at)

    def _link(self, place: int) -> Iterator[Parameter]:
        link = self._network.links[place]
        element = f"link {' '.join(self._network.names[node] for node in link.nodes)}"

        def with_link(**fields: Any) -> Change:
            def change(network: Network, run: Run) -> _Planned:
                changed = {place: replace(network.links[place], **fields)}
                return replace(network, links=_put(network.links, changed)), run

            return _of_plan(change)

        def at(index: int) -> Step:
            factor = 1 / _factor(index) if self._worse else _factor(index)
            value = max(1, round(link.rate_bps * factor))
            return Step(rate_text(value), factor, None, with_link(rate_bps=value))

        yield Parameter("link-rate", element, rate_text(link.rate_bps), _STEPS, at)
        yield self._delay("propagation", element, link.delay, lambda more: with_link(delay=link.delay + more))

    def _processing(self, place: int, switch: Switch) -> Parameter:
        drawn = switch.drawn_delay
        delay = switch.processing_delay if drawn is None else min(ps for _, ps in drawn.quantiles)

        def with_delay(more: int) -> Change:
            def change(network: Network, run: Run) -> _Planned:
                if drawn is None:
                    kind = replace(switch, processing_delay=delay + more)
                else:
                    # A drawn delay is moved as a whole.
                    moved = tuple((part, ps + more) for part, ps in drawn.quantiles)
                    kind = replace(switch, drawn_delay=Distribution(moved))
                changed = {place: replace(network.nodes[place], kind=kind)}
                return replace(network, nodes=_put(network.nodes, changed)), run

            return _of_plan(change)

        return self._delay("processing", f"switch {self._network.names[place]}", delay, with_delay)

    def _delay(self, kind: str, element: str, delay: int, change: Callable[[int], Change]) -> Parameter:
        """A delay that grows by steps of 1 % of what is added, or shrinks to nothing in hundredths."""
        added: list[int] = []
        if self._worse:
            more = float(_LEAST_ADDED)
            while more < _MOST_ADDED:
                added.append(round(more))
                more *= 1 + RESOLUTION
        else:
            hundredths = (-round(delay * part * RESOLUTION) for part in range(1, 101))
            added = [one for one in dict.fromkeys(hundredths) if one]

        def at(index: int) -> Step:
            more = added[index]
            return Step(_rounded(delay + more), None, more / _PS, change(more))

        return Parameter(kind, element, time_text(delay), len(added), at)


_Planned = tuple[Network, Run]
_Item = TypeVar("_Item")


def _of_plan(change: Callable[[Network, Run], _Planned]) -> Change:
    return lambda planned: change(*planned)


def _put(items: tuple[_Item, ...], changed: Mapping[int, _Item]) -> tuple[_Item, ...]:
    """The items with those at some places replaced."""
    return tuple(changed.get(k, item) for k, item in enumerate(items))


def _with_contract(place: int, **fields: int) -> Callable[[Network, Run], _Planned]:
    """Another contract of a virtual link."""

    def change(network: Network, run: Run) -> _Planned:
        flow = run.flows[place]
        assert flow.virtual_link is not None, "only virtual links have a contract"
        link = replace(flow.virtual_link, **fields)
        changed = {place: replace(flow, virtual_link=link)}
        return network, replace(run, flows=_put(run.flows, changed))

    return change


class _Physical:
    """Parameters of a physical network: periods and payloads of flows, capacities of links, as numbers."""

    def __init__(self, source: Source, *, worse: bool) -> None:
        self._worse, self._source = worse, source
        self._children: list[dict[str, Any]] = json.loads(source.as_json)["tree"]["children"]

    def of_flow(self, flow: str) -> Iterator[Parameter]:
        for place, one in enumerate(self._children):
            own = one["attributes"]
            if one["tag"] == "flow" and own.get("name") == flow:
                yield from self._scaled("rate", f"flow {flow}", place, "period", " ms", inverse=True)
                yield from self._scaled("frame", f"flow {flow}", place, "max-payload", " B", inverse=False)

    def of_server(self, server: str) -> Iterator[Parameter]:
        for place, one in enumerate(self._children):
            own = one["attributes"]
            if one["tag"] != "link":
                continue
            ends = {
                f"{own.get('from')}-{own.get('fromPort', 'o0')}",
                f"{own.get('to')}-{own.get('toPort', 'i0')}",
            }
            if server in ends:
                element = f"link {own.get('from')} to {own.get('to')}"
                yield from self._scaled(
                    "link-rate", element, place, "transmission-capacity", "", inverse=True, capacity=True
                )

    def source(self, change: Change) -> Source:
        parts = json.loads(self._source.as_json)
        parts["tree"]["children"] = change(parts["tree"]["children"])
        return replace(self._source, as_json=json.dumps(parts))

    def _scaled(
        self,
        kind: str,
        element: str,
        place: int,
        name: str,
        unit: str,
        *,
        inverse: bool,
        capacity: bool = False,
    ) -> Iterator[Parameter]:
        """An attribute that is a plain number, or with `capacity` a rate; `inverse`: less of it gives longer bounds."""
        network: dict[str, str] = next(
            (one["attributes"] for one in self._children if one["tag"] == "network"), {}
        )
        written = self._children[place]["attributes"].get(name) or (network.get(name) if capacity else None)
        value = bits_per_second(written) if capacity else _number(written)
        if not value:
            return
        # A rate of a flow is the inverse of its period, so its factor is told the other way round.
        of_rate = kind == "rate"

        def at(index: int) -> Step:
            grown = _factor(index) if self._worse != inverse else 1 / _factor(index)
            text = f"{value * grown:.9g}"

            def change(children: list[dict[str, Any]]) -> list[dict[str, Any]]:
                children[place]["attributes"][name] = text
                return children

            return Step(f"{text}{unit}", 1 / grown if of_rate else grown, None, change)

        yield Parameter(kind, element, f"{written}{unit}", _STEPS, at)


def _rounded(ps: int) -> str:
    """A time to the nanosecond, as the test language writes it."""
    return time_text(1000 * round(ps / 1000))


def _number(text: str | None) -> float | None:
    try:
        return None if text is None else float(text)
    except ValueError:
        return None
