"""Rules for which figures of two flows are compared, and which of those are judged."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from wiregauge import stats
from wiregauge.measures.comparing.comparison import Dropped
from wiregauge.measures.comparing.judging import LEVEL
from wiregauge.measures.comparing.matching import FlowPair
from wiregauge.measures.comparing.thresholds import SHIFT_QUANTILES, TAIL, Threshold, chosen
from wiregauge.measures.definitions import MAIN, SERIES, SHARES
from wiregauge.measures.metrics.judgement import FlowResult

__all__ = [
    "Rules",
    "common",
    "dropped",
    "every_statistic",
    "has",
    "judged_figures",
    "supported",
    "wanted_statistics",
]

JUDGED_STATISTICS = frozenset({"mean", TAIL, "p10", "p50", "p90", "p99", "p99.9", "p99.99", "p99.999"})
"""Statistics of the main measures that are judged by default; neighbouring deciles would only widen all intervals."""


class Rules(Struct, frozen=True):
    """Rules for judging shifts: thresholds, whether only those are judged, and the level at which all hold together."""

    thresholds: Sequence[Threshold]
    equivalence: bool
    joint_level: float = LEVEL

    def threshold(self, pair: FlowPair, measure: str, statistic: str | None) -> Threshold | None:
        return chosen(self.thresholds, (pair.base.plan.id, pair.new.plan.id), measure, statistic)

    def judges(self, pair: FlowPair, measure: str, statistic: str | None) -> bool:
        """Whether a figure is judged: a threshold replaces the default for its whole measure; unnamed figures are
        only shown."""
        if self.threshold(pair, measure, statistic) is not None:
            return True
        if self.equivalence or self.spoken(pair, measure):
            return False
        if statistic is None:
            # Without events on either side nothing could have been found (Tarone, Biometrics 46, 1990).
            return bool(pair.base.counts[measure] or pair.new.counts[measure])
        return measure in MAIN and statistic in JUDGED_STATISTICS

    def spoken(self, pair: FlowPair, measure: str) -> bool:
        """Whether a threshold is about the measure at all."""
        flows = (pair.base.plan.id, pair.new.plan.id)
        return any(t.measure == measure and (t.flow is None or t.flow in flows) for t in self.thresholds)


def common(pair: FlowPair) -> list[str]:
    return [name for name in SERIES if has(pair.base, name) and has(pair.new, name)]


def has(flow: FlowResult, measure: str) -> bool:
    return measure in flow.summaries and flow.summaries[measure].n > 0


def _holds(n: int, statistic: str) -> bool:
    """Whether n values support a statistic, at the lower tail as at the upper."""
    q = SHIFT_QUANTILES.get(statistic)
    return q is None or stats.supported(n, max(q, 1 - q))


def supported(pair: FlowPair, measure: str) -> list[str]:
    """Quantiles that n supports on both sides."""
    n = min(pair.base.summaries[measure].n, pair.new.summaries[measure].n)
    return [name for name in SHIFT_QUANTILES if _holds(n, name)]


def dropped(pair: FlowPair, rules: Rules) -> tuple[Dropped, ...]:
    """Figures that cannot be judged: measures of one side only, percentiles that n does not support."""
    found = []
    for name in SERIES:
        held_by = has(pair.base, name), has(pair.new, name)
        spoken = rules.spoken(pair, name)
        if held_by[0] != held_by[1]:
            if spoken or (name in MAIN and not rules.equivalence):
                found.append(Dropped(f"{name}: on the {'base' if held_by[0] else 'new'} side only", spoken))
            continue
        if not held_by[0]:
            continue
        sizes = pair.base.summaries[name].n, pair.new.summaries[name].n
        for statistic, q in SHIFT_QUANTILES.items():
            threshold = rules.threshold(pair, name, statistic)
            named = threshold is not None and threshold.statistic is not None
            held = [_holds(n, statistic) for n in sizes]
            if all(held) or not rules.judges(pair, name, statistic) or not (any(held) or named):
                continue
            need = stats.samples_needed(max(q, 1 - q))
            found.append(
                Dropped(
                    f"{name}.{statistic}: needs {need} values on either side, there are {sizes[0]} and {sizes[1]}",
                    named,
                )
            )
    return tuple(found)


def judged_figures(pair: FlowPair, rules: Rules) -> int:
    """Judged figures of a pair of flows."""
    figures: list[tuple[str, str | None]] = [
        (name, statistic) for name in common(pair) for statistic in every_statistic(pair, name)
    ]
    if pair.base.counts["sent"] and pair.new.counts["sent"]:
        figures += [(name, None) for name in SHARES]
    return sum(rules.judges(pair, name, statistic) for name, statistic in figures)


def wanted_statistics(pair: FlowPair, name: str, rules: Rules, *, in_full: bool) -> tuple[str, ...]:
    """The statistics of a measure: all, or the judged ones and a few more (`FlowComparison`)."""
    every = every_statistic(pair, name)
    if in_full:
        return every
    judged = {one for one in every if rules.judges(pair, name, one)}
    if not judged and name not in MAIN:
        return ()
    return (*_LEADING, *(one for one in every[len(_LEADING) :] if one in judged | _SHOWN_ALWAYS))


def every_statistic(pair: FlowPair, name: str) -> tuple[str, ...]:
    """The statistics of a measure that both sides have: mean, standard deviation, greatest value, quantiles."""
    return (*_LEADING, *supported(pair, name))


_LEADING = ("mean", "sd", TAIL)
_SHOWN_ALWAYS = frozenset({"p50", "p99", "p99.9"})
"""Percentiles of the main measures that tables show, judged or not."""
