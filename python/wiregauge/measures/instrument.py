"""The range of a figure within the errors of its flow's instrument, apart from chance.

A one-way time is read off two clocks. The error of their difference has a bound, not a spread: no averaging reduces it,
and the truth may lie anywhere within it (RFC 7679, 3.7.3). Where no bound is known, every figure that rests on it may
have any value. Where messages were faster than the links on their way (`line_time`), the time of the links and the
waits on them is such an unknown.

A network that an agent plays is late itself, and the lateness of every frame is stored: the range includes the figure
without it (`without_lateness`).
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf, isfinite

import numpy as np

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.flow_measures import PAIRS
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult
from wiregauge.measures.metrics.pairs import crosses
from wiregauge.measures.metrics.quantity import Quantity

__all__ = [
    "LATE_RELEASE",
    "Range",
    "by_clocks",
    "constant_cancels",
    "instrument_range",
    "one_way",
    "too_fast",
    "with_late_release",
]

Range = tuple[float, float]

_SPREADS = ("sd", "mad")
"""Statistics that an error common to all values leaves as they are."""
_VARIATIONS = ("ipdv", "delay_variation", "range", "pdv")
"""Measures that are differences of latencies: a constant offset is in none of them, a drift or a step in all."""
_OF_NEIGHBOURS = ("ipdv",)
"""Measures that are differences of consecutive messages."""


LATE_RELEASE = frozenset(
    {
        *("latency", "driver_latency", "service_latency", "return_latency", "rtt", "network", "lateness"),
        *("receive_period", "receive_period_jitter", "ipdv", "delay_variation", "range", "pdv"),
        *("latency_with_loss", "pair_latency", "goodput", "effective_bandwidth", "reorder_late_time"),
        *(name for name, definition in DEFINITIONS.items() if definition.judges_lateness),
    }
)
"""Measures with the instants in them at which hosts have their frames: those of which a played network is late."""
_BEHIND_RELEASE = {
    **dict.fromkeys(("rx_drv", "rx_app", "back_tx_app", "back_tx_drv"), 1),
    **dict.fromkeys(("back_rx_drv", "back_rx_app"), 2),
}
"""Number of hosts that were handed the message before it reached a point."""


def one_way(figure: Quantity, flow: FlowPlan) -> bool:
    """Whether the clocks of both ends are in a figure."""
    measure = figure.measure
    if measure == "pair_latency":
        between = figure.statistic.partition(".")[0].partition("-")
        return crosses(between[0], between[2])
    if measure in _VARIATIONS or measure == "effective_bandwidth":
        return True
    if measure == "latency_with_loss":
        return not flow.relayed
    if measure in _COUNTED_LATE:
        return flow.deadline_ns is not None and not flow.relayed
    found = DEFINITIONS.get(measure)
    return found is not None and found.between_clocks(relayed=flow.relayed) != 0


def constant_cancels(figure: Quantity) -> bool:
    """Whether constant clock offsets leave a figure unchanged."""
    return figure.measure in _VARIATIONS or figure.statistic.rpartition(".")[2] in _SPREADS


def instrument_range(figure: Quantity, flow: FlowResult, *, exact: bool) -> Range | None:
    """The range of a flow's figure; None where the instrument leaves nothing open.

    `exact`: the bench reads timestamps without error, as in virtual time; then only figures of inexact clocks have a
    range.
    """
    band, value = _without_lateness(figure, flow, by_clocks(figure, flow, exact=exact)), figure.value
    if value is None:
        value = figure.stands_for
    if value is None or not too_fast(figure, flow):
        return band
    low, high = band or (value, value)
    ends = {"more": (low, inf), "less": (0.0, high), "either": (-inf, inf)}
    return ends[DEFINITIONS[figure.measure].links]


def too_fast(figure: Quantity, flow: FlowResult) -> bool:
    """Whether a figure lacks the time of links, because messages of the flow were faster than them."""
    if flow.line_time is None or not flow.line_time.too_fast:
        return False
    if figure.measure == "pair_latency":
        between = figure.statistic.partition(".")[0].partition("-")
        return crosses(between[0], between[2])
    if figure.measure in _COUNTED_LATE:
        return flow.plan.deadline_ns is not None
    found = DEFINITIONS.get(figure.measure)
    return found is not None and bool(found.links)


def _without_lateness(figure: Quantity, flow: FlowResult, band: Range | None) -> Range | None:
    """The range extended by the figure without the lateness of a played network."""
    in_time = flow.in_time.get(figure.name)
    return band if in_time is None else _with(figure, *_hull(in_time, band or in_time))


def _hull(one: Range, other: Range) -> Range:
    return min(one[0], other[0]), max(one[1], other[1])


def with_late_release(figure: Quantity, flow: FlowResult, most: float) -> Range | None:
    """The range of a figure where only the largest lateness of single frames is known, ns.

    None where lateness is not in it. Two frames of any message, or of neighbours, may be late by that.
    """
    value = figure.value if figure.value is not None else figure.stands_for
    if value is None or not most or figure.measure not in LATE_RELEASE:
        return None
    if figure.measure == "pair_latency":
        start, _, end = figure.statistic.partition(".")[0].partition("-")
        if _BEHIND_RELEASE.get(start, 0) == _BEHIND_RELEASE.get(end, 0):
            return None
    if figure.measure == "goodput":
        return 0.0, inf
    if (counted := _COUNTED_LATE.get(figure.measure)) is not None:
        # A relayed flow counts messages late by their round trip: the effect on it has no bound here.
        return counted(figure, flow, inf if flow.plan.relayed else most)
    if figure.measure == "effective_bandwidth":
        return _of_bandwidth(flow, most)
    return _around(value, 2 * most)


def by_clocks(figure: Quantity, flow: FlowResult, *, exact: bool) -> Range | None:
    """The range of a figure within the errors of clocks and timestamps; None where they leave nothing open."""
    if figure.measure in _VARIATIONS:
        return _of_variation(figure, flow)
    latency = flow.summaries.get("latency")
    # A figure without value, from clocks that were never compared, needs no range.
    if latency is None or flow.uncompared or not one_way(figure, flow.plan) or (exact and not latency.clock):
        return None
    most = latency.clock + latency.timestamp
    counted = _COUNTED_LATE.get(figure.measure)
    if counted is not None:
        return counted(figure, flow, most)
    if figure.measure == "effective_bandwidth":
        return _of_bandwidth(flow, most)
    if figure.value is None or not isfinite(figure.value):
        return None
    if figure.statistic.rpartition(".")[2] in _SPREADS:
        return _around(figure.value, flow.clock_wanders, least=0.0)
    return _around(figure.value, max(most, _of_pair(figure, flow)))


def _of_variation(figure: Quantity, flow: FlowResult) -> Range | None:
    """Also for clocks that were never compared: their offset cancels in these, but they may have drifted by any
    amount."""
    if figure.value is None or not isfinite(figure.value):
        return None
    if figure.measure not in _OF_NEIGHBOURS:
        return _around(figure.value, 2 * flow.clock_wanders, least=0.0)
    # A steady drift is negligible between neighbours: only clocks that are known to change make it wrong.
    changes = 2 * flow.clock_varies
    return _around(figure.value, changes) if isfinite(changes) else None


def _around(value: float, by: float, *, least: float = -inf) -> Range | None:
    return (max(value - by, least), value + by) if by else None


def _of_pair(figure: Quantity, flow: FlowResult) -> float:
    """The error bound of times between two points, ns, placement on the wire included."""
    between = figure.statistic.partition(".")[0]
    return next((pair.bound for pair in flow[PAIRS] if f"{pair.start}-{pair.end}" == between), 0.0)


def _of_bandwidth(flow: FlowResult, most: float) -> Range | None:
    mean, payload = flow.summaries["latency"].mean, flow.plan.payload
    if mean is None or payload is None:
        return None
    low, high = mean - most, mean + most
    return 8e9 * payload / high if isfinite(high) else 0.0, 8e9 * payload / low if low > 0 else inf


# -- against a deadline ---------------------------------------------------------------------------------------


def _late_between(flow: FlowResult, most: float) -> tuple[int, int]:
    """The fewest and the most messages that may have been late, for clocks that are off by up to `most`."""
    deadline = flow.plan.deadline_ns or 0.0
    if not isfinite(most):
        return 0, flow.summaries["latency"].n
    sketch = flow.sketches.get("latency")
    if sketch is not None:
        surely = int(sketch.count[np.maximum(sketch.low, sketch.minimum) - most > deadline].sum())
        return surely, int(sketch.count[np.minimum(sketch.high, sketch.maximum) + most > deadline].sum())
    took = flow.series["latency"].value
    return int(np.count_nonzero(took - most > deadline)), int(np.count_nonzero(took + most > deadline))


def _late(figure: Quantity, flow: FlowResult, most: float) -> Range | None:
    low, high = _late_between(flow, most)
    return _with(figure, float(low), float(high))


def _missed(figure: Quantity, flow: FlowResult, most: float) -> Range | None:
    low, high = _late_between(flow, most)
    lost, sent = flow.counts["lost"], flow.counts["sent"]
    return _with(figure, (low + lost) / sent, (high + lost) / sent) if sent else None


def _tardiness(figure: Quantity, flow: FlowResult, most: float) -> Range | None:
    """The mean of the late ones lies between 0 and the most."""
    slowest = flow.summaries["latency"].maximum
    if slowest is None or flow.plan.deadline_ns is None:
        return None
    worst, least = slowest - flow.plan.deadline_ns + most, slowest - flow.plan.deadline_ns - most
    return _with(figure, max(least, 0.0) if figure.statistic == "max" else 0.0, max(worst, 0.0))


def _availability(figure: Quantity, flow: FlowResult, most: float) -> Range | None:
    """A message that fails brings down itself and the next at most."""
    low, high = _late_between(flow, most)
    value, late, sent = figure.value, flow.counts["late"], flow.counts["sent"]
    if value is None or not sent:
        return None
    return max(value - 2 * max(high - late, 0) / sent, 0.0), min(value + 2 * max(late - low, 0) / sent, 1.0)


def _with(figure: Quantity, low: float, high: float) -> Range | None:
    """The range with the figure itself, which is of timestamps as they are."""
    value = figure.value if figure.value is not None else figure.stands_for
    if value is None:
        return None
    low, high = min(low, value), max(high, value)
    return (low, high) if low < high else None


_COUNTED_LATE: dict[str, Callable[[Quantity, FlowResult, float], Range | None]] = {
    "late": _late,
    "deadline_missed": _missed,
    "tardiness": _tardiness,
    "availability": _availability,
}
"""The range of each measure that judges lateness."""
