"""Service that a flow's receiver got: losses in runs, order, deadlines, availability, contracts, rates.

The message table has the outcome of each message; this module analyses their sequence. Counts are exact, bounds of
shares account for clusters, times are summaries like any other.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Annotated

import numpy as np
import polars as pl
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.files.typed_json import HIDDEN, Count, Figure, Interval, Key, Positive
from wiregauge.files.typed_json import Share as Ratio
from wiregauge.measures.metrics import patterns, sampling
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.arrivals import Arrivals
from wiregauge.measures.metrics.batching import Pending, SeriesRequest, SeriesStatistics
from wiregauge.measures.metrics.columns import ascending
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.silences import open_silences

__all__ = [
    "Availability",
    "Conformity",
    "Deadline",
    "Losses",
    "Rate",
    "Rates",
    "Reordering",
    "Service",
    "Share",
    "availability_of",
    "conformity_of",
    "losses_of",
    "order_of",
    "pool_services",
    "serve",
    "share_of",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

OVERHEAD_BYTES = 20
"""Octets of preamble, start delimiter and least gap, which a frame occupies on the wire besides its own."""
MOST_LENGTHS = 64
"""Number of lengths of loss periods that are listed; longer ones are counted with the longest listed."""


@dataclass(frozen=True, slots=True)
class Share:
    """`count` of `n` with 95 % bounds of the share behind it."""

    count: Count
    n: Count
    low: Ratio
    high: Ratio
    worth: Annotated[Positive, Key("n_effective")]
    most: Annotated[int | None, HIDDEN] = None
    """The count if it happened to all messages of unknown outcome; None without any. `high` is for that case."""

    @property
    def ratio(self) -> Annotated[Ratio | None, Key(after="n")]:
        """The share; None of nothing."""
        return self.count / self.n if self.n else None


@dataclass(frozen=True, slots=True)
class Losses:
    """Losses of the measured part in the order of sequence (RFC 3357)."""

    periods: Count
    longest: Count
    lengths: Annotated[Mapping[int, int], Key(kind=dict[str, Count])]
    """Loss periods by their length in messages; `MOST_LENGTHS` stands for all from there on."""
    least_distance: Count | None
    """Least difference of the sequence numbers of successive losses; None below two."""
    shortest_clear: Count | None
    """Fewest messages between two loss periods; None below two."""
    longest_at_most: Annotated[int | None, HIDDEN] = None
    """The longest period if all messages of unknown outcome were lost; None without any."""


@dataclass(frozen=True, slots=True)
class Reordering:
    """Order of the first intact copies at the final destination (RFC 4737)."""

    share: Annotated[Share, Key(flat=True)]
    extent_max: Count
    extent_mean: Figure
    n_reordered: Annotated[Mapping[int, int], Key(kind=dict[str, Count])]
    """Messages that are n-reordered, for n = 1, 2, 3."""
    n_max: Count
    late_time_max_ns: Figure
    """Longest time a reordered message came after the earliest with a higher number (RFC 4737, 4.3)."""


@dataclass(frozen=True, slots=True)
class Deadline:
    """Messages against the flow's deadline: the late and the lost miss it."""

    deadline_ns: float
    missed: Share
    late: Count
    tardiness_mean_ns: Figure
    """Mean lateness of the late messages, ns."""
    tardiness_max_ns: Figure
    tardiness_half_width_ns: Annotated[Figure, Key("tardiness_uncertainty_ns")] = None
    """95 % half-width of the mean, from sampling."""


@dataclass(frozen=True, slots=True)
class Availability:
    """Share of messages at which the service was up; it survives one failed message, not two in a row."""

    down: Annotated[Share, Key(kind=Count, read="down.count")]
    outages: Count
    longest: Count
    """Messages of the longest outage."""

    @property
    def ratio(self) -> Annotated[Ratio | None, Key(after="")]:
        """1 less the share of messages at which it was down."""
        return 1 - self.down.ratio if self.down.ratio is not None else None

    @property
    def low(self) -> Annotated[Ratio, Key(after="ratio")]:
        """Lower 95 % bound of the ratio."""
        return 1 - self.down.high

    @property
    def high(self) -> Annotated[Ratio, Key(after="low")]:
        """Upper 95 % bound of the ratio."""
        return 1 - self.down.low

    @property
    def n(self) -> Annotated[Count, Key(after="high")]:
        """Number of messages sent."""
        return self.down.n


@dataclass(frozen=True, slots=True)
class Conformity:
    """Frames outside a contract: `of` names it, `allowed_ns` is its tolerance, `worst_ns` the largest violation."""

    of: Annotated[str, HIDDEN]
    outside: Share
    allowed_ns: tuple[float, float]
    worst_ns: Figure
    missing: Count = 0
    """Number of messages without the timestamps needed."""


@dataclass(frozen=True, slots=True)
class Rate:
    """A rate with its 95 % interval from sampling."""

    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True)
class Rates:
    """Frames per second as intended and as offered by the sender (RFC 2285, 3.5), and the same rates on the wire."""

    intended_per_s: float
    offered_per_s: Annotated[Rate, Key(kind=float, read="offered_per_s.value")]
    bits_per_frame: Annotated[float | None, HIDDEN]
    """Mean bits that a frame occupies on the wire, preamble and gap included; None without recorded lengths."""
    link_bps: Count | None

    @property
    def offered_interval(self) -> Annotated[Interval, Key(after="offered_per_s")]:
        """The 95 % interval of the offered rate."""
        return [self.offered_per_s.low, self.offered_per_s.high]

    @property
    def ratio(self) -> Annotated[float, Key(after="offered_interval")]:
        """Offered over intended."""
        return self.offered_per_s.value / self.intended_per_s

    @property
    def intended_bps(self) -> Annotated[Figure, Key(after="ratio")]:
        """Intended bits per second on the wire."""
        return self.on_wire(self.intended_per_s)

    @property
    def offered_bps(self) -> Annotated[Figure, Key(after="intended_bps")]:
        """Offered bits per second on the wire."""
        return self.on_wire(self.offered_per_s.value)

    def on_wire(self, per_s: float) -> float | None:
        """Bits per second on the wire at a frame rate."""
        return per_s * self.bits_per_frame if self.bits_per_frame is not None else None


@dataclass(frozen=True, slots=True)
class Service:
    """The complete service of one flow at one receiver."""

    losses: Losses
    reordering: Reordering
    availability: Availability
    deadline: Deadline | None
    conformity: tuple[Conformity, ...]
    rates: Rates | None
    goodput: Rate | None


def serve(
    part: Part, flow: FlowPlan, lost: Flags, unknown: Flags | None = None, frames: Conformity | None = None
) -> Pending[Service]:
    """The service of a flow from the rows of its measured part in the order of sequence; flags mark `lost` messages and
    those of `unknown` outcome. `frames` is the conformity of its frames on the wire.

    For a sample only the intervals of its rates are right; `sketched` replaces all else.
    """
    final = "back_rx_app" if flow.relayed else "rx_app"
    late = part.flags("late")
    gone = lost if unknown is None else lost | unknown
    tardy = _tardiness(part, flow, final, lost, late)
    sending, coming = _offered(part), _arriving(part, flow, final, gone)
    silent = [time for time in open_silences(part, ~lost, flow) if time and not part.sampled]
    arrivals = len(coming) if coming is not None else 0
    if coming is not None and silent:
        coming = np.concatenate([coming, np.array(silent, dtype=np.int64)])
    series = [
        (one.astype(np.float64), step) if one is not None and len(one) else None
        for one, step in ((tardy, 1e-3), (sending, 1.0), (coming, 1.0))
    ]

    def told(statistics: Sequence[SeriesStatistics]) -> Service:
        answers = iter(statistics)
        late_by, sent, came = (next(answers).estimate if one is not None else None for one in series)
        return Service(
            losses=losses_of(lost, part.column("sequence").values, unknown),
            reordering=_reordering(part, final, gone),
            availability=availability_of(lost | late, unknown),
            deadline=_deadline(tardy, late_by, flow, lost, late, unknown),
            conformity=conformity_of(part, flow, frames),
            rates=_rates(part, flow, _rate(sending, 1.0, sent)),
            goodput=_goodput(part, coming, arrivals, flow, came),
        )

    return Pending([SeriesRequest(one[0], step=one[1]) for one in series if one is not None], told)


def share_of(flags: Flags, unknown: Flags | None = None) -> Share:
    """The share of messages to which something happened, in the order of sending; to `unknown` ones it may have."""
    if not flags.any() and (unknown is None or not unknown.any()):
        return _none_of(len(flags))
    worth = stats.flags_worth(flags)
    count = int(np.count_nonzero(flags))
    bound = stats.share_bound(count, len(flags), worth)
    share = Share(count, len(flags), bound.low, bound.high, worth)
    if unknown is None or not unknown.any():
        return share
    worst = share_of(flags | unknown)
    return replace(share, high=worst.high, most=worst.count)


@lru_cache(maxsize=1024)
def _none_of(n: int) -> Share:
    """The share of an event that happened to none of `n` messages."""
    bound = stats.share_bound(0, n, float(n))
    return Share(0, n, bound.low, bound.high, float(n))


def losses_of(lost: Flags, sequence: Integers, unknown: Flags | None = None) -> Losses:
    """Losses among messages in the order of sending; `sequence` are their numbers, `unknown` may be lost, too."""
    if unknown is not None and unknown.any():
        worst = losses_of(lost | unknown, sequence)
        return replace(losses_of(lost, sequence), longest_at_most=worst.longest)
    if not lost.any():
        return Losses(0, 0, {}, None, None)
    lengths = patterns.run_lengths(lost)
    sizes, counts = np.unique(np.minimum(lengths, MOST_LENGTHS), return_counts=True)
    distances = patterns.loss_distances(lost, sequence)
    clear = patterns.clear_lengths(lost)
    return Losses(
        periods=len(lengths),
        longest=int(lengths.max()),
        lengths=dict(zip(sizes.tolist(), counts.tolist(), strict=True)),
        least_distance=int(distances.min()) if len(distances) else None,
        shortest_clear=int(clear.min()) if len(clear) else None,
    )


def _reordering(part: Part, final: str, lost: Flags) -> Reordering:
    flags = part.flags("reordered")
    share = share_of(flags[~lost])
    if not share.count:
        return Reordering(share, 0, None, {1: 0, 2: 0, 3: 0}, 0, None)
    recorded = part.column("reorder_extent").values[flags].astype(np.float64)
    came = Arrivals()
    came.take_rows(part.frame.filter(pl.Series(~lost)), final)
    came.finish()
    return order_of(share, int(recorded.max()), float(recorded.mean()), came)


def order_of(share: Share, extent_max: int, extent_mean: float | None, came: Arrivals) -> Reordering:
    """The order of arrivals from the messages that tracking marks as reordered, and the extent of overtaking."""
    late = came.late_time_max
    return Reordering(
        share=share,
        extent_max=extent_max,
        extent_mean=extent_mean,
        n_reordered=dict(came.n_reordered),
        n_max=came.n_max,
        late_time_max_ns=late / 1000 if late is not None else None,
    )


def availability_of(failed: Flags, unknown: Flags | None = None) -> Availability:
    """Availability over messages in the order of sending; `unknown` ones may have failed, too."""
    if not failed.any() and (unknown is None or not unknown.any()):
        return Availability(share_of(failed), 0, 0)
    found = patterns.outages(failed)
    down = share_of(found.down)
    if unknown is not None and unknown.any():
        worst = share_of(patterns.outages(failed | unknown).down)
        down = replace(down, high=worst.high, most=worst.count)
    return Availability(down, found.number, found.longest)


def _tardiness(part: Part, flow: FlowPlan, final: str, lost: Flags, late: Flags) -> Floats | None:
    """Lateness of the late messages that arrived, ns; None without a deadline."""
    if flow.deadline_ns is None:
        return None
    came, sent = part.column(final), part.column("tx_app")
    of = late & ~lost
    for column in (came, sent):
        of = of if column.known is None else of & column.known
    return (came.values[of] - sent.values[of]) / 1000 - flow.deadline_ns


def _deadline(
    over: Floats | None,
    estimate: stats.MeanEstimate | None,
    flow: FlowPlan,
    lost: Flags,
    late: Flags,
    unknown: Flags | None,
) -> Deadline | None:
    if over is None or flow.deadline_ns is None:
        return None
    return Deadline(
        flow.deadline_ns,
        share_of(lost | late, unknown),
        int(np.count_nonzero(late & ~lost)),
        float(over.mean()) if len(over) else None,
        float(over.max()) if len(over) else None,
        estimate.half_width if estimate is not None else None,
    )


def conformity_of(part: Part, flow: FlowPlan, frames: Conformity | None = None) -> tuple[Conformity, ...]:
    """The contracts of critical traffic that the flow has: of its virtual link, its two networks, its schedule.

    `frames` is the conformity of its frames on the wire with the first, where they were recorded.
    """
    found = []
    if flow.bag_ns is not None and flow.bag_jitter_ns is not None:
        found.append(frames if frames is not None else _of_messages(part, flow.bag_ns, flow.bag_jitter_ns))
    if flow.both_networks and flow.skew_max_ns is not None:
        measured = part.frame
        skew = (measured["rx_wire_b"] - measured["rx_wire"]).abs().drop_nulls().to_numpy()
        # A message of which the network delivered one copy has no skew, and its skew is not missing.
        alone = [pl.col(f"tx_wire{of}").is_not_null() & pl.col(f"rx_wire{of}").is_null() for of in ("", "_b")]
        whole = measured.height - int(measured.select(pl.any_horizontal(alone).sum()).item())
        found.append(
            _contract("skew", skew > round(flow.skew_max_ns * 1000), (0.0, flow.skew_max_ns), skew, whole)
        )
    if flow.schedule is not None:
        plan = flow.schedule
        period, planned = round(plan.period_ns * 1000), round(plan.reception_ns * 1000)
        came = part.column("rx_wire").present()
        error = (came - planned + period // 2) % period - period // 2
        outside = (error < round(-plan.early_ns * 1000)) | (error > round(plan.late_ns * 1000))
        found.append(_contract("window", outside, (-plan.early_ns, plan.late_ns), np.abs(error), part.height))
    return tuple(found)


def _of_messages(part: Part, bag_ns: float, jitter_ns: float) -> Conformity:
    """Conformity from messages alone, each of maximum length; `contracts` uses frames, where they were recorded."""
    times = ascending(part.column("tx_wire").present())
    bag, allowed = round(bag_ns * 1000), round(jitter_ns * 1000)
    refused, early = patterns.policed(times, np.ones_like(times), 1, bag, allowed)
    return _contract("bag", refused, (0.0, jitter_ns), early, part.height)


def _contract(
    of: str, outside: Flags, allowed: tuple[float, float], size: Integers, messages: int
) -> Conformity:
    worst = float(size.max()) / 1000 if len(size) else None
    return Conformity(of, share_of(outside), allowed, worst, max(messages - len(size), 0))


def _offered(part: Part) -> Integers | None:
    """Times between sends, ps, in their order; None below two messages whose intended and real sending are known."""
    of = _both(part)
    if (part.height if of is None else int(np.count_nonzero(of))) < 2:
        return None
    return _distances(part, "tx_app", of)


def _arriving(part: Part, flow: FlowPlan, final: str, gone: Flags) -> Integers | None:
    """Times between arrivals, ps, in their order; None where a payload is not known."""
    return _distances(part, final, ~gone if gone.any() else None) if flow.payload is not None else None


def _both(part: Part) -> Flags | None:
    """Messages whose intended and real sending are known; None where all are."""
    known = [one for one in (part.column("intended").known, part.column("tx_app").known) if one is not None]
    return np.logical_and.reduce(known) if known else None


def _distances(part: Part, name: str, of: Flags | None) -> Integers:
    column, stretch = part.column(name), part.stretch()
    if column.known is not None:
        of = column.known if of is None else of & column.known
    times = column.values if of is None else column.values[of]
    if stretch is None:
        ordered = ascending(times)
        return ordered[1:] - ordered[:-1]
    order = np.argsort(times, kind="stable")
    inside = ~sampling.seams((stretch if of is None else stretch[of])[order])
    return np.diff(times[order])[inside]


def _rates(part: Part, flow: FlowPlan, offered: Rate | None) -> Rates | None:
    of = _both(part)

    def own(name: str) -> Integers:
        values = part.column(name).values
        return values if of is None else values[of]

    if offered is None:
        return None
    planned, numbers = _extent(own("intended")), _extent(own("sequence"))
    if planned <= 0:
        return None
    lengths = own("length")
    lengths = lengths[lengths > 0]
    return Rates(
        numbers / planned * 1e12,
        offered,
        8 * (float(lengths.mean()) + OVERHEAD_BYTES) if len(lengths) else None,
        flow.link_bps,
    )


def _extent(values: Integers) -> int:
    return int(values.max()) - int(values.min())


def _goodput(
    part: Part, distances: Integers | None, arrivals: int, flow: FlowPlan, estimate: stats.MeanEstimate | None
) -> Rate | None:
    """Over the `distances` of arrivals and the open silences; `arrivals` after the first. 0 where there is none."""
    if flow.payload is None:
        return None
    if not arrivals and part.height > 1 and not part.sampled:
        return Rate(0.0, None, None)
    return _rate(distances, 8.0 * flow.payload, estimate, arrivals)


def _rate(
    distances: Integers | None, each: float, estimate: stats.MeanEstimate | None, count: int | None = None
) -> Rate | None:
    """`each` per mean distance of the times (ps) in order, per second; None below two or where no time passed.

    `count` is how many of the distances end with an event, where not all do.
    """
    if distances is None or estimate is None:
        return None
    passed = int(distances.sum())
    if not passed:
        return None
    value = each * 1e12 * (len(distances) if count is None else count) / passed
    half = estimate.half_width
    if half is None:
        return Rate(value, None, None)
    high = value * estimate.mean / (estimate.mean - half) if half < estimate.mean else None
    return Rate(value, value * estimate.mean / (estimate.mean + half), high)


# -- repeats --------------------------------------------------------------------------------------------------


def pool_services(services: Sequence[Service]) -> Service:
    """Repeats of one flow as one: counts add, extremes stay extremes, shares see the spread between the runs."""
    deadlines = [service.deadline for service in services if service.deadline is not None]
    return Service(
        losses=_pooled_losses([service.losses for service in services]),
        reordering=_pooled_reordering([service.reordering for service in services]),
        availability=Availability(
            _pooled_share([service.availability.down for service in services]),
            sum(service.availability.outages for service in services),
            max(service.availability.longest for service in services),
        ),
        deadline=_pooled_deadline(deadlines) if deadlines else None,
        conformity=tuple(
            Conformity(
                members[0].of,
                _pooled_share([member.outside for member in members]),
                members[0].allowed_ns,
                _most(member.worst_ns for member in members),
                sum(member.missing for member in members),
            )
            for members in zip(*(service.conformity for service in services), strict=True)
        ),
        rates=_pooled_rates([service.rates for service in services if service.rates is not None]),
        goodput=_pooled_rate([service.goodput for service in services if service.goodput is not None]),
    )


def _pooled_share(shares: Sequence[Share]) -> Share:
    counts, sizes = [share.count for share in shares], [share.n for share in shares]
    worth = stats.repeated_share_worth(counts, sizes)
    bound = stats.share_bound(sum(counts), sum(sizes), worth)
    share = Share(sum(counts), sum(sizes), bound.low, bound.high, worth)
    if all(one.most is None for one in shares):
        return share
    worst = _pooled_share(
        [replace(one, count=one.count if one.most is None else one.most, most=None) for one in shares]
    )
    return replace(share, high=worst.high, most=worst.count)


def _pooled_losses(losses: Sequence[Losses]) -> Losses:
    lengths: dict[int, int] = {}
    for one in losses:
        for length, count in one.lengths.items():
            lengths[length] = lengths.get(length, 0) + count
    return Losses(
        sum(one.periods for one in losses),
        max(one.longest for one in losses),
        dict(sorted(lengths.items())),
        _least(one.least_distance for one in losses),
        _least(one.shortest_clear for one in losses),
        max(most)
        if (most := [one.longest_at_most for one in losses if one.longest_at_most is not None])
        else None,
    )


def _pooled_reordering(orders: Sequence[Reordering]) -> Reordering:
    total = sum(order.share.count for order in orders)
    extents = [order.extent_mean * order.share.count for order in orders if order.extent_mean is not None]
    return Reordering(
        _pooled_share([order.share for order in orders]),
        max(order.extent_max for order in orders),
        sum(extents) / total if total else None,
        {n: sum(order.n_reordered[n] for order in orders) for n in (1, 2, 3)},
        max(order.n_max for order in orders),
        _most(order.late_time_max_ns for order in orders),
    )


def _pooled_deadline(deadlines: Sequence[Deadline]) -> Deadline:
    late = sum(deadline.late for deadline in deadlines)
    over = [
        deadline.tardiness_mean_ns * deadline.late
        for deadline in deadlines
        if deadline.tardiness_mean_ns is not None
    ]
    return Deadline(
        deadlines[0].deadline_ns,
        _pooled_share([deadline.missed for deadline in deadlines]),
        late,
        sum(over) / late if late else None,
        _most(deadline.tardiness_max_ns for deadline in deadlines),
        _spread([(d.tardiness_mean_ns, d.late) for d in deadlines if d.tardiness_mean_ns is not None]),
    )


def _pooled_rates(rates: Sequence[Rates]) -> Rates | None:
    offered = _pooled_rate([rate.offered_per_s for rate in rates])
    if offered is None:
        return None
    lengths = [rate.bits_per_frame for rate in rates if rate.bits_per_frame is not None]
    return Rates(
        float(np.mean([rate.intended_per_s for rate in rates])),
        offered,
        float(np.mean(lengths)) if lengths else None,
        rates[0].link_bps,
    )


def _pooled_rate(rates: Sequence[Rate]) -> Rate | None:
    """The mean over the runs with Student's interval from their spread; the run's own where there is one."""
    if len(rates) < 2:
        return rates[0] if rates else None
    values = np.array([rate.value for rate in rates])
    half = stats.repeated_mean_half_width(values, np.full(len(rates), 1 / len(rates))) or 0.0
    mean = float(values.mean())
    return Rate(mean, max(mean - half, 0.0), mean + half)


def _spread(means: Sequence[tuple[float, int]]) -> float | None:
    total = sum(n for _, n in means)
    weights = np.array([n / total for _, n in means])
    return stats.repeated_mean_half_width(np.array([mean for mean, _ in means]), weights)


def _least(values: Iterable[int | None]) -> int | None:
    return min((value for value in values if value is not None), default=None)


def _most(values: Iterable[float | None]) -> float | None:
    return max((value for value in values if value is not None), default=None)
