"""Service that a flow's receiver got: losses in runs, order, deadlines, availability, contracts, rates.

Types of these results, with their JSON keys and how repeats are pooled, and those that follow from flags alone.
Counts are exact, bounds of shares account for clusters, times are summaries like any other.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Annotated

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from wiregauge import stats
from wiregauge.files.typed_json import HIDDEN, Count, Figure, Interval, Key, Positive
from wiregauge.files.typed_json import Share as Ratio
from wiregauge.measures.metrics import patterns
from wiregauge.measures.metrics.arrays import Part
from wiregauge.measures.metrics.columns import ascending
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.pooling import (
    ADDED,
    FIRST,
    LEAST,
    MOST,
    SUM,
    Pooled,
    added,
    known,
    weighted,
)

__all__ = [
    "Availability",
    "Conformity",
    "Deadline",
    "Losses",
    "Rate",
    "Rates",
    "Reordering",
    "Share",
    "availability_of",
    "conformity_of",
    "losses_of",
    "pool_rates",
    "share_of",
]

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]

MOST_LENGTHS = 64
"""Number of lengths of loss periods that are listed; longer ones are counted with the longest listed."""


class Share(Struct, frozen=True):
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


class Rate(Struct, frozen=True):
    """A rate with its 95 % interval from sampling."""

    value: float
    low: float | None
    high: float | None


def pool_shares(shares: Sequence[Share]) -> Share:
    """The share in all repeats; its bounds see the spread between them."""
    counts, sizes = [share.count for share in shares], [share.n for share in shares]
    worth = stats.repeated_share_worth(counts, sizes)
    bound = stats.share_bound(sum(counts), sum(sizes), worth)
    share = Share(sum(counts), sum(sizes), bound.low, bound.high, worth)
    if all(one.most is None for one in shares):
        return share
    worst = pool_shares(
        [replace(one, count=one.count if one.most is None else one.most, most=None) for one in shares]
    )
    return replace(share, high=worst.high, most=worst.count)


def pool_rates(rates: Sequence[Rate]) -> Rate:
    """The mean over the runs with Student's interval from their spread; the run's own where there is one."""
    if len(rates) < 2:
        return rates[0]
    values = np.array([rate.value for rate in rates])
    half = stats.repeated_mean_half_width(values, np.full(len(rates), 1 / len(rates))) or 0.0
    mean = float(values.mean())
    return Rate(mean, max(mean - half, 0.0), mean + half)


def _mean(values: Sequence[float | None]) -> float | None:
    found = known(values)
    return float(np.mean(found)) if found else None


def _spread(deadlines: Sequence[Deadline]) -> float | None:
    """Half-width of the mean tardiness from its spread between repeats."""
    late = [(d.tardiness_mean_ns, d.late) for d in deadlines if d.tardiness_mean_ns is not None]
    total = sum(n for _, n in late)
    weights = np.array([n / total for _, n in late])
    return stats.repeated_mean_half_width(np.array([mean for mean, _ in late]), weights)


_SHARES, _MEAN = Pooled(pool_shares), Pooled(_mean)
_SORTED = Pooled(lambda each: dict(sorted(added(each).items())))


class Losses(Struct, frozen=True):
    """Losses of the measured part in the order of sequence (RFC 3357)."""

    periods: Annotated[Count, SUM]
    longest: Annotated[Count, MOST]
    lengths: Annotated[Mapping[int, int], Key(kind=dict[str, Count]), _SORTED]
    """Loss periods by their length in messages; `MOST_LENGTHS` stands for all from there on."""
    least_distance: Annotated[Count | None, LEAST]
    """Least difference of the sequence numbers of successive losses; None below two."""
    shortest_clear: Annotated[Count | None, LEAST]
    """Fewest messages between two loss periods; None below two."""
    longest_at_most: Annotated[int | None, HIDDEN, MOST] = None
    """The longest period if all messages of unknown outcome were lost; None without any."""


class Reordering(Struct, frozen=True):
    """Order of the first intact copies at the final destination (RFC 4737)."""

    share: Annotated[Share, Key(flat=True), _SHARES]
    extent_max: Annotated[Count, MOST]
    extent_mean: Annotated[Figure, weighted("extent_mean", lambda order: order.share.count)]
    n_reordered: Annotated[Mapping[int, int], Key(kind=dict[str, Count]), ADDED]
    """Messages that are n-reordered, for n = 1, 2, 3."""
    n_max: Annotated[Count, MOST]
    late_time_max_ns: Annotated[Figure, MOST]
    """Longest time a reordered message came after the earliest with a higher number (RFC 4737, 4.3)."""


class Deadline(Struct, frozen=True):
    """Messages against the flow's deadline: the late and the lost miss it."""

    deadline_ns: Annotated[float, FIRST]
    missed: Annotated[Share, _SHARES]
    late: Annotated[Count, SUM]
    tardiness_mean_ns: Annotated[Figure, weighted("tardiness_mean_ns", lambda deadline: deadline.late)]
    """Mean lateness of the late messages, ns."""
    tardiness_max_ns: Annotated[Figure, MOST]
    tardiness_half_width_ns: Annotated[
        Figure, Key("tardiness_uncertainty_ns"), Pooled(_spread, of_members=True)
    ] = None
    """95 % half-width of the mean, from sampling."""


class Availability(Struct, frozen=True):
    """Share of messages at which the service was up; it survives one failed message, not two in a row."""

    down: Annotated[Share, Key(kind=Count, read="down.count"), _SHARES]
    outages: Annotated[Count, SUM]
    longest: Annotated[Count, MOST]
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


class Conformity(Struct, frozen=True):
    """Frames outside a contract: `of` names it, `allowed_ns` is its tolerance, `worst_ns` the largest violation."""

    of: Annotated[str, HIDDEN, FIRST]
    outside: Annotated[Share, _SHARES]
    allowed_ns: Annotated[tuple[float, float], FIRST]
    worst_ns: Annotated[Figure, MOST]
    missing: Annotated[Count, SUM] = 0
    """Number of messages without the timestamps needed."""


class Rates(Struct, frozen=True):
    """Frames per second as intended and as offered by the sender (RFC 2285, 3.5), and the same rates on the wire."""

    intended_per_s: Annotated[float, _MEAN]
    offered_per_s: Annotated[Rate, Key(kind=float, read="offered_per_s.value"), Pooled(pool_rates)]
    bits_per_frame: Annotated[float | None, HIDDEN, _MEAN]
    """Mean bits that a frame occupies on the wire, preamble and gap included; None without recorded lengths."""
    link_bps: Annotated[Count | None, FIRST]

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
