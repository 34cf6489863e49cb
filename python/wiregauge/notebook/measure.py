"""One measure of one flow at one point: its figures, its values, its pictures."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from fractions import Fraction
from html import escape
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

import numpy as np
import polars as pl
from msgspec import Struct
from msgspec.structs import replace

from wiregauge import stats
from wiregauge.files import nearest, write_whole
from wiregauge.measures import DEFINITIONS, Definition, Judgement, Summary
from wiregauge.measures.definitions import QUANTILES
from wiregauge.measures.distribution import Distribution, distribution
from wiregauge.measures.extremes import Course, CourseShape, courses
from wiregauge.measures.metrics.judgement import Series
from wiregauge.measures.metrics.quantity import Quantity, of_summary
from wiregauge.measures.quantities import STATISTICS
from wiregauge.measures.sketched.repeats import percentile_of
from wiregauge.notebook.choosing import Chosen
from wiregauge.notebook.errors import WiregaugeError, in_one_class
from wiregauge.results.shapes import Member, Shapes, Side, key_of

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

    from wiregauge.figures import Figure as Drawn

__all__ = ["KINDS", "Kind", "Measure", "Picture"]

Kind = Literal["density", "percentiles", "time", "cdf", "box", "histogram"]
KINDS: tuple[str, ...] = get_args(Kind)
"""The figures of a measure in the registry of figures."""
_ONE_REPEAT = "each repeat has a time of its own; choose one, as in repeat=0"
_PRINTED = {Fraction(str(q)): name for name, q in QUANTILES.items()}
_MARKS = 6000


class Picture(Struct, frozen=True):
    """A figure as SVG text; a notebook shows it."""

    svg: str

    def save(self, path: str | PathLike[str]) -> None:
        """Writes the SVG, in the place of whatever is there."""
        write_whole(Path(path), self.svg)

    def __repr__(self) -> str:
        return f"<Picture: {len(self.svg)} characters of SVG>"

    def _repr_svg_(self) -> str:
        return self.svg


class Measure:
    """A measure that has a distribution. Times are in ns, signed; the warm-up is not in it.

    >>> latency = run.latency(flow=10)
    >>> latency.n, latency.unit
    (500, 'ns')
    >>> latency.mean()
    <latency.mean = 9.066 µs (95 %: 8.957 µs to 9.176 µs, n = 500)>
    """

    def __init__(self, name: str, chosen: Chosen, judgement: Judgement) -> None:
        self._name = name
        self._chosen = chosen
        self._judgement = judgement

    @property
    def name(self) -> str:
        """As limits and tables name it."""
        return self._name

    @property
    def definition(self) -> Definition:
        """Title, formula, unit and source."""
        return DEFINITIONS[self._name]

    @property
    def unit(self) -> str:
        """Of every figure and value."""
        return self.definition.unit

    @property
    def label(self) -> str:
        """Flow and point in words."""
        return self._chosen.label

    @property
    def n(self) -> int:
        """Values that entered."""
        return self._summary.n

    @property
    def excluded(self) -> Mapping[str, int]:
        """Messages without a value, by reason."""
        return dict(self._summary.excluded)

    def percentile(self, p: float) -> Quantity:
        """The `p`-th percentile (nearest rank) with its 95 % interval; not determined where n does not support it.

        >>> run.latency(flow=10).percentile(75)
        <latency.p75 = 9.919 µs (95 %: 9.744 µs to 10.07 µs, n = 500)>
        >>> run.latency(flow=10).percentile(99.9)
        <latency.p99.9: not determined (p99.9 needs 2995 values, there are 500)>
        """
        if not 0 < p < 100:
            raise WiregaugeError(
                f"percentile({p}): a percentile lies between 0 and 100, as in percentile(99.9)"
            )
        q = Fraction(str(p)) / 100
        if q in _PRINTED:
            return of_summary(self._summary, _PRINTED[q])
        name, n = f"p{p:g}", self.n
        # Below the median it is the least values that say whether n supports it.
        needed = stats.samples_needed(max(q, 1 - q))
        if n < needed:
            reason = f"{name} needs {needed} values, there are {n}"
            return Quantity(self._name, name, None, self.unit, n, None, None, reason)
        flows = [flow for _, flow in self._chosen.members]
        if any(flow.sampled is not None for flow in flows):
            known = percentile_of(self._name, flows, q)
            return Quantity(self._name, name, known.value, self.unit, n, known.low, known.high)
        runs = [series.value for series in self._series if len(series.value)]
        pooled = np.sort(np.concatenate(runs))
        interval = (
            stats.repeated_quantile_interval([np.sort(values) for values in runs], pooled, q)
            if len(runs) > 1
            else stats.quantile_interval(runs[0], pooled, q)
        )
        value = stats.quantile(pooled, q)
        return Quantity(self._name, name, value, self.unit, n, interval.low, interval.high)

    def median(self) -> Quantity:
        """The 50th percentile."""
        return self.percentile(50)

    def mean(self) -> Quantity:
        """The mean; its interval holds sampling, clock and timestamp error."""
        return of_summary(self._summary, "mean")

    def sd(self) -> Quantity:
        """The standard deviation with its interval."""
        return of_summary(self._summary, "sd")

    def min(self) -> Quantity:
        """The least value; exact, so it has no interval."""
        return of_summary(self._summary, "min")

    def max(self) -> Quantity:
        """The greatest value; exact, so it has no interval, and it says nothing of values rarer than one in n."""
        return of_summary(self._summary, "max")

    def table(self) -> pl.DataFrame:
        """Every printed figure: `statistic`, `value_ns`, `low_ns`, `high_ns`, `n`, `reason`."""
        figures = [of_summary(self._summary, statistic) for statistic in STATISTICS]
        return pl.DataFrame(
            {
                "statistic": [figure.statistic for figure in figures],
                "value_ns": [figure.value for figure in figures],
                "low_ns": [figure.low for figure in figures],
                "high_ns": [figure.high for figure in figures],
                "n": [figure.n for figure in figures],
                "reason": [figure.reason or None for figure in figures],
            },
            schema_overrides={
                **dict.fromkeys(("value_ns", "low_ns", "high_ns"), pl.Float64),
                "reason": pl.String,
            },
        )

    def series(self) -> pl.DataFrame:
        """Every value in measured order: `run`, `time_s` (since the run's epoch), `value_ns`.

        Of a run too large to be held in memory the values of its sample; `n` counts all, and `columns` has all.
        Times are of sending; those of `receive_period` and `residence` are of arriving and of leaving the switch.

        >>> run.latency(flow=10).series().columns
        ['run', 'time_s', 'value_ns']
        """
        parts = [
            pl.DataFrame(
                {"time_s": series.t, "value_ns": series.value},
                schema={"time_s": pl.Float64, "value_ns": pl.Float64},
            ).select(
                pl.lit(run.plan.index, pl.UInt32).alias("run"), pl.col("time_s").fill_nan(None), "value_ns"
            )
            for (run, _), series in zip(self._chosen.members, self._series, strict=True)
        ]
        return pl.concat(parts)

    def columns(
        self, most: int = 2000, begin_s: float | None = None, end_s: float | None = None
    ) -> pl.DataFrame:
        """Messages sent from `begin_s` to before `end_s`, in at most `most` columns of time, each exact; of one run.

        Of `receive_period` and `bag_spacing` it is arrivals, and the silences before the first and after the last; of
        `residence` passages through switches: by the instants of arriving and leaving.

        `from_s` and `to_s` are the first and the last sending of a column; `messages`, `lost` and `unknown` count, `n`
        of them have a value, and `least_ns` and `greatest_ns` are the extremes of these, whatever the size of the run.
        Of fewer than twice so many messages each is a column.

        >>> run.latency(flow=10).columns(most=1)["greatest_ns"].max() == run.latency(flow=10).max().value
        True
        """
        shape = self._over_time(most, begin_s, end_s)
        return pl.DataFrame(
            {
                "from_s": shape.begin,
                "to_s": shape.end,
                "messages": shape.messages,
                "lost": shape.lost,
                "unknown": shape.unknown,
                "n": shape.n,
                "least_ns": shape.least,
                "least_at_s": shape.least_at,
                "greatest_ns": shape.greatest,
                "greatest_at_s": shape.greatest_at,
            }
        ).with_columns(pl.col("least_ns", "least_at_s", "greatest_ns", "greatest_at_s").fill_nan(None))

    def histogram(self, bins: int = 50) -> pl.DataFrame:
        """Counts in `bins` equal classes from the least to the greatest value: `from_ns`, `to_ns`, `count`.

        The last class includes its upper edge; the counts add to n.
        """
        shape = self._histogram(bins)
        return pl.DataFrame({"from_ns": shape.edges[:-1], "to_ns": shape.edges[1:], "count": shape.counts})

    def figure(self, kind: Kind = "density", bins: int = 50) -> Figure:
        """A Plotly figure: `density`, `percentiles`, `time` (of one run), `cdf`, `box` or `histogram`.

        Needs the extra `notebook`; `picture` does not.
        """
        try:
            from plotly.graph_objects import Figure as PlotlyFigure
        except ImportError:
            raise WiregaugeError(
                "figure() needs plotly, which is not installed here; install it with "
                "pip install 'wiregauge[notebook]', or call picture(), which needs nothing more"
            ) from None

        from wiregauge.figures import interactive

        figure = self._drawn(kind, bins)
        drawn = interactive.draw(figure)
        made = PlotlyFigure({"data": drawn["data"], "layout": drawn["layout"]})
        if figure.notes:
            note = {"text": f"<i>{' '.join(figure.notes)}</i>", "font": {"size": 11}, "showarrow": False}
            below = {"xref": "paper", "yref": "paper", "x": 0, "y": 0, "xanchor": "left", "yanchor": "top"}
            made.add_annotation({**note, **below, "yshift": -44})
            made.update_layout(margin_b=76, height=interactive.height(figure) + 24)
        return made

    def picture(self, kind: Kind = "density", bins: int = 50) -> Picture:
        """The same figure, drawn once and for all: an SVG that every notebook shows and paper takes."""
        from wiregauge.figures import printed

        with tempfile.TemporaryDirectory(prefix="wiregauge-") as folder:
            (path,) = printed.save(self._drawn(kind, bins), Path(folder), {"svg"})
            return Picture(path.read_text(encoding="utf-8"))

    def _drawn(self, kind: Kind, bins: int) -> Drawn:
        from wiregauge.figures.distributions import histograms
        from wiregauge.figures.registry import FIGURES, Drawing

        if kind not in KINDS:
            raise WiregaugeError(
                f'"{kind}" is no kind of figure{nearest(kind, KINDS)}; there are {", ".join(KINDS)}'
            )
        self._distribution()  # there are values
        if kind == "time" and len(self._chosen.members) > 1:
            raise WiregaugeError(_ONE_REPEAT)
        made = self._shapes()
        figure = (
            histograms(made, self._name, bins)
            if kind == "histogram"
            else FIGURES[kind].draw(Drawing([Side(self._judgement)], made), self._name)
        )
        if figure is None:
            raise WiregaugeError(f"{self._name} of {self.label} has no values to show as {kind}")
        return replace(figure, title=f"{self.definition.title}: {self.label}")

    def _shapes(self) -> Shapes:
        """The data of figures of this flow and point alone."""
        chosen = self._chosen
        first = chosen.members[0][0].plan.index
        key = key_of(chosen.flow, {}, first, label=lambda _flow, _side: self.label)
        members = [Member(key, self._judgement, run.plan, flow) for run, flow in chosen.members]
        return Shapes({key: chosen.flow}, {key: chosen.flow}, members, marks=_MARKS)

    def _course(self) -> Course | None:
        """Of all messages of the run; None where there is no value."""
        if len(self._chosen.members) > 1:
            raise WiregaugeError(_ONE_REPEAT)
        ((run, flow),) = self._chosen.members
        if not self._summary.n:
            # As between clocks that nobody compared: there are times, and no figure of them.
            return None
        with in_one_class():
            return courses(self._judgement, run.plan, [flow]).of(flow.plan, self._name)

    def _over_time(self, most: int, begin_s: float | None = None, end_s: float | None = None) -> CourseShape:
        if most < 1:
            raise WiregaugeError(f"most = {most}: there is at least one column")
        course = self._course()
        if course is None:
            raise WiregaugeError(f"{self._name} of {self.label} has no values to show")
        return course.columns(most, begin_s, end_s)

    def __repr__(self) -> str:
        return f"<{self.definition.title} of {self.label}: {_short(self._summary)}>"

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{escape(figure.statistic)}</td><td>{escape(figure.shown)}</td>"
            f"<td>{escape(figure.shown_interval)}</td></tr>"
            for figure in (of_summary(self._summary, statistic) for statistic in STATISTICS)
        )
        definition = self.definition
        left_out = ", ".join(f"{count} {reason}" for reason, count in self.excluded.items()) or "none"
        return (
            f"<b>{escape(definition.title)}</b> of {escape(self.label)}"
            f"<br><code>{escape(definition.formula)}</code><br><small>{escape(definition.source)}</small>"
            f"<table><thead><tr><th></th><th>value</th><th>95 % interval</th></tr></thead><tbody>{rows}</tbody></table>"
            f"<small>n = {self.n}; not in it: {escape(left_out)}</small>"
        )

    @property
    def _summary(self) -> Summary:
        return self._chosen.flow.summaries.get(self._name) or Summary(self._name, 0, {}, 0)

    @property
    def _series(self) -> tuple[Series, ...]:
        empty = Series(np.empty(0), np.empty(0))
        return tuple(flow.series.get(self._name, empty) for _, flow in self._chosen.members)

    def _distribution(self) -> Distribution:
        held = distribution(self._chosen.flow, self._name)
        if held is None:
            raise WiregaugeError(f"{self._name} of {self.label} has no values to show")
        return held

    def _histogram(self, bins: int) -> stats.HistogramShape:
        if bins < 1:
            raise WiregaugeError(f"bins = {bins}: a histogram has at least one class")
        held = self._distribution()
        low, high = float(held.values.min()), float(held.values.max())
        return held.histogram(np.linspace(low, high if high > low else low + 1.0, bins + 1))


def _short(summary: Summary) -> str:
    if not summary.n:
        return "no values"
    figures = [of_summary(summary, statistic) for statistic in ("p50", "p99", "max")]
    known = ", ".join(f"{figure.statistic} {figure.shown}" for figure in figures if figure.value is not None)
    return f"{known}, n = {summary.n}"
