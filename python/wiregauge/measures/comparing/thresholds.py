"""Thresholds for a change that matters, as a user writes them: `latency.p99=5us`, `10:rtt=5%`, `loss=0.1%`."""

from __future__ import annotations

import re
from collections.abc import Sequence

from msgspec import Struct

from wiregauge.files import nearest
from wiregauge.files.typed_json import Positive
from wiregauge.measures.definitions import DEFINITIONS, SERIES, SHARES
from wiregauge.plan import quantity

SHIFT_QUANTILES: dict[str, float] = {
    "p1": 0.01,
    **{f"p{10 * k}": k / 10 for k in range(1, 10)},
    "p95": 0.95,
    "p99": 0.99,
    "p99.9": 0.999,
    "p99.99": 0.9999,
    "p99.999": 0.99999,
}
"""Deciles and tails; each is compared where n supports it on both sides."""

STATISTICS = ("mean", "sd", *SHIFT_QUANTILES)
TAIL = "max"
"""The greatest value: it has no interval, so no threshold is on it; messages beyond it on either side are counted."""

_FORM = re.compile(
    r"(?:(?P<flow>\d{1,5}):)?(?P<measure>[a-z_]+)(?:\.(?P<statistic>[a-z0-9.]+))?=(?P<value>.+)"
)


class ThresholdError(ValueError):
    """A threshold cannot be parsed; the text is a sentence with the permitted forms."""


class Threshold(Struct, frozen=True):
    """The greatest change of a figure that does not matter: `value` in ns or as a share, or relative to the base."""

    flow: int | None
    measure: str
    statistic: str | None
    written: str
    value: Positive
    relative: bool

    def covers(self, flows: Sequence[int], measure: str, statistic: str | None) -> bool:
        """Whether it speaks of this figure of a flow, which may have another number on either side."""
        return (
            (self.flow is None or self.flow in flows)
            and self.measure == measure
            and (self.statistic == statistic or (self.statistic is None and statistic != TAIL))
        )

    def tolerance(self, base: float) -> float:
        """The threshold in the unit of the figure, whose base value this is."""
        return self.value * abs(base) if self.relative else self.value


def read_threshold(text: str) -> Threshold:
    """Parses `[FLOW:]MEASURE[.STATISTIC]=VALUE`. Raises ThresholdError with the expected form."""
    form = _FORM.fullmatch(text.strip())
    if form is None:
        raise ThresholdError(
            f'"{text}" is no threshold; write [FLOW:]MEASURE[.STATISTIC]=VALUE, as in latency.p99=5us or 10:rtt=5%'
        )
    measure = "lost" if form["measure"] == "loss" else form["measure"]
    if measure not in SERIES and measure not in SHARES:
        known = (
            "has no interval to judge by"
            if measure in DEFINITIONS
            else f"is no measure{nearest(measure, DEFINITIONS)}"
        )
        raise ThresholdError(f'"{text}": {measure} {known}; choose from {", ".join((*SERIES, *SHARES))}')
    statistic = form["statistic"]
    if measure in SHARES and statistic is not None:
        raise ThresholdError(
            f'"{text}": {measure} is one share and has no {statistic}; write {measure}=VALUE'
        )
    if statistic is not None and statistic not in STATISTICS:
        meant = nearest(statistic, STATISTICS)
        raise ThresholdError(
            f'"{text}": {statistic} is not compared{meant}; choose from {", ".join(STATISTICS)}'
        )
    value, relative = _value(text, form["value"].strip(), share=measure in SHARES)
    return Threshold(
        written=form["value"].strip(),
        flow=int(form["flow"]) if form["flow"] else None,
        measure=measure,
        statistic=statistic,
        value=value,
        relative=relative,
    )


def _value(text: str, written: str, *, share: bool) -> tuple[float, bool]:
    """The threshold's value in ns or as a share, and whether it is relative to the base."""
    of_share = share or written.endswith(("%", "ppm", "ppb"))
    try:
        value = quantity.share(written) if of_share else quantity.time_ns(written)
    except quantity.QuantityError as error:
        also = "" if of_share else ", or 5% of the base value"
        raise ThresholdError(f'"{text}": {error}{also}') from None
    if share and value > 1:
        raise ThresholdError(f'"{text}": a share of the messages sent is at most 100%')
    return value, of_share and not share


def chosen(
    thresholds: Sequence[Threshold], flows: Sequence[int], measure: str, statistic: str | None
) -> Threshold | None:
    """The threshold of a figure: one that names flow or statistic beats one for all, the later the earlier."""
    fitting = [t for t in thresholds if t.covers(flows, measure, statistic)]
    return max(
        reversed(fitting), key=lambda t: (t.statistic is not None) + 2 * (t.flow is not None), default=None
    )
