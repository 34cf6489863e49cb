"""Limits of a session: pass, fail, or undecided with the reason."""

from __future__ import annotations

import re
from typing import Final, Literal

from msgspec import Struct

from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.definitions.units import duration
from wiregauge.plan.quantity import QuantityError, time_ns
from wiregauge.reflectors.measured import Counts, LimitHeld, Series
from wiregauge.reflectors.times import TIMES

__all__ = ["COUNTED", "Limit", "LimitError", "judge", "read_limit"]

COUNTED: Final = (
    *("lost", "lost_forward", "lost_backward"),
    *("duplicated", "duplicated_forward", "duplicated_backward"),
    *("reordered", "reordered_forward", "reordered_backward"),
)
"""Counts that a limit may be on."""
_STATISTICS: Final = ("min", "mean", "sd", "max", *QUANTILES)
_FORM: Final = re.compile(r"\s*([a-z0-9_.-]+)\s*(<=|>=)\s*(\S.*?)\s*")


class LimitError(ValueError):
    """A limit cannot be read; the text says what to write."""


class Limit(Struct, frozen=True):
    """A limit as it was given."""

    measure: str
    bound: Literal["at-most", "at-least"]
    value: float
    written: str
    unit: Literal["ns", "packets"]


def read_limit(text: str) -> Limit:
    """A limit such as `network.p99 <= 5ms` or `lost <= 0`. Raises LimitError."""
    found = _FORM.fullmatch(text)
    if found is None:
        raise LimitError(
            f"'{text}': write a measure, <= or >=, and a value, for example 'network.p99 <= 5ms'"
        )
    measure, sign, written = found.groups()
    bound: Literal["at-most", "at-least"] = "at-most" if sign == "<=" else "at-least"
    name, _, statistic = measure.partition(".")
    if measure in COUNTED:
        if not written.isdecimal():
            raise LimitError(f"'{text}': write a number of packets, for example '{measure} <= 0'")
        return Limit(measure, bound, float(written), written, "packets")
    if name not in TIMES or statistic not in _STATISTICS:
        raise LimitError(
            f"'{text}': there are {', '.join(COUNTED)}, and {', '.join(TIMES)} each with "
            f"{', '.join('.' + one for one in _STATISTICS)}"
        )
    try:
        return Limit(measure, bound, time_ns(written), written, "ns")
    except QuantityError as error:
        raise LimitError(f"'{text}': {error}") from None


def judge(limit: Limit, series: dict[str, Series], counts: Counts, unfit: str) -> LimitHeld:
    """The result of a limit; `unfit` is why the session answers nothing, or empty."""
    observed, n, reason, uncertainty = _figure(limit, series, counts)
    result: Literal["pass", "fail", "undecided"] = "undecided"
    if unfit:
        reason = unfit
    elif observed is not None:
        is_within = observed <= limit.value if limit.bound == "at-most" else observed >= limit.value
        if abs(observed - limit.value) < uncertainty:
            reason = f"within the {duration(uncertainty)} that both clocks may be wrong"
        else:
            result = "pass" if is_within else "fail"
    return LimitHeld(
        limit.measure,
        limit.bound,
        limit.value,
        limit.written,
        limit.unit,
        observed,
        n,
        result,
        reason,
    )


def _figure(limit: Limit, series: dict[str, Series], counts: Counts) -> tuple[float | None, int, str, float]:
    """Value, n, why there is none, and by how much clocks may falsify it."""
    if limit.unit == "packets":
        count = getattr(counts, limit.measure)
        reason = "the numbers of the answers do not tell the direction" if count is None else ""
        return count, counts.sent, reason, 0.0
    name, _, statistic = limit.measure.partition(".")
    times = series[name]
    uncertainty = times.uncertainty_ns if times.uncertainty_ns is not None and statistic != "sd" else 0.0
    if times.reason:
        return None, 0, times.reason, 0.0
    value: float | None
    if statistic in QUANTILES:
        estimate = times.quantiles.get(statistic)
        value = None if estimate is None else estimate.value
    elif statistic == "mean":
        value = None if times.mean is None else times.mean.value
    else:
        value = getattr(times, statistic)
    reason = f"{times.n} values are too few for it" if value is None else ""
    return value, times.n, reason, uncertainty
