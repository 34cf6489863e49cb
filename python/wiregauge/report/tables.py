"""The tables of the report as rows of text cells. The template does the layout, the measures give the figures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.measures.definitions import DEFINITIONS, OUTCOMES, SERIES, SINGLES
from wiregauge.measures.definitions.units import duration, share, untapped
from wiregauge.measures.flow_measures import HOPS
from wiregauge.measures.metrics.hops import Hop
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, RunResult
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.measures.metrics.quantity import Quantity
from wiregauge.measures.metrics.summary import Summary
from wiregauge.measures.quantities import figure_of

US = 1e3
NONE = "\N{EN DASH}"
ZERO = "·"
"""The text for a count of zero where zero is good."""
DRIFT = "\N{NO-BREAK SPACE}\N{UP DOWN ARROW}"
"""The mark of a figure from a non-stationary series."""


class Cell(Struct, frozen=True):
    """A cell: `hint` appears on hover, `kind` is a CSS class, `below` is small text under it, and `under` a line of its
    own under the row, as wide as the table.
    """

    text: str
    hint: str = ""
    kind: str = ""
    below: str = ""
    under: str = ""


class Head(Struct, frozen=True):
    """A column head; `measure` links it to its definition."""

    text: str
    measure: str = ""
    span: int = 1
    unit: str = ""
    kind: str = ""


def text_heads(*texts: str) -> list[Head]:
    """Heads of text columns."""
    return [Head(text, kind="text") for text in texts]


class Section(Struct, frozen=True):
    """Rows under a common heading; the heading is empty where there is one section."""

    title: str
    rows: Sequence[Sequence[Cell]]


MOST_ROWS = 5_000
"""The most rows of a table on a page. Networks of thousands of flows have more; each costs 200 bytes and time."""


class Table(Struct, frozen=True):
    """A table with up to two rows of heads; `groups` spans the columns after the first `lead`."""

    title: str
    heads: Sequence[Head]
    sections: Sequence[Section]
    groups: Sequence[Head] = ()
    lead: int = 1
    notes: Sequence[str] = field(default_factory=tuple)
    complete: str = "measures.json"
    """Where all rows are, of a table that is too long for a page."""

    @property
    def size(self) -> int:
        """The number of rows in all sections."""
        return sum(len(section.rows) for section in self.sections)

    @property
    def half_open(self) -> bool:
        """Whether the line below a figure shows an interval with one end only."""
        cells = (cell for section in self.sections for row in section.rows for cell in row)
        return any(cell.below and "unbounded" in cell.hint for cell in cells)

    def pruned(self) -> Table:
        """The table without columns that are empty, zero or unknown in every row; a note names them.

        Such columns fill a screen and answer no question.
        """
        rows = [row for section in self.sections for row in section.rows]
        if not rows or any(len(row) != len(self.heads) for row in rows):
            return self
        texts = [{row[k].text for row in rows} for k in range(len(self.heads))]
        kept = [k for k, found in enumerate(texts) if found - {"", NONE, ZERO} or (k == 0 and found != {""})]
        if not kept or len(kept) == len(self.heads):
            return self
        notes = []
        for nothing, word in ((ZERO, "0 in every row"), (NONE, "Not known in any row, or not asked for")):
            names = [
                self.heads[k].text
                for k, found in enumerate(texts)
                if k not in kept and nothing in found and (nothing == NONE or NONE not in found)
            ]
            if names:
                notes.append(f"{word}: {', '.join(dict.fromkeys(names))}.")
        begin, groups = self.lead, []
        for group in self.groups:
            span = sum(begin <= k < begin + group.span for k in kept)
            begin += group.span
            if span:
                groups.append(replace(group, span=span))
        return replace(
            self,
            heads=[self.heads[k] for k in kept],
            sections=[
                Section(section.title, [[row[k] for k in kept] for row in section.rows])
                for section in self.sections
            ],
            groups=groups,
            lead=sum(k < self.lead for k in kept),
            notes=[*self.notes, *notes],
        )

    def bounded(self) -> Table:
        """The table with at most `MOST_ROWS` rows; a note gives their total.

        Rows with failures are never left out for others.
        """
        if self.size <= MOST_ROWS:
            return self
        rows = [row for section in self.sections for row in section.rows]
        bad = {place for place, row in enumerate(rows) if any(_is_bad(cell) for cell in row)}
        kept = set(sorted(bad)[:MOST_ROWS])
        others = (place for place in range(len(rows)) if place not in bad)
        kept.update(islice(others, MOST_ROWS - len(kept)))
        sections, first = [], 0
        for section in self.sections:
            own = [row for place, row in enumerate(section.rows, first) if place in kept]
            first += len(section.rows)
            if own:
                sections.append(Section(section.title, own))
        which = f"The first {MOST_ROWS}"
        if max(bad, default=0) >= MOST_ROWS:
            which = f"{len(bad & kept)} with losses or faults and the first others, {MOST_ROWS}"
            if len(bad) > MOST_ROWS:
                which = f"The first {MOST_ROWS} of {len(bad)} with losses or faults,"
        note = f"{which} of {self.size} rows; {self.complete} has them all."
        return replace(self, sections=sections, notes=[*self.notes, note])


def _is_bad(cell: Cell) -> bool:
    """Whether a cell shows a loss, a fault, or a limit that failed or is undecided."""
    return not _BAD.isdisjoint(cell.kind.split())


_BAD = frozenset({"bad", "fail", "undecided", "degraded", "invalid"})


def figures_of(flow: FlowResult, measure: str, shown: Sequence[str]) -> list[Cell]:
    """The cells of a flow at a point, for the heads `shown`."""
    summary = _found(flow.summaries, measure)
    excluded = ", ".join(f"{count} {reason}" for reason, count in summary.excluded.items())
    bound = f"{flow.counts['lost']} of {flow.counts['sent']}; " + loss_text(flow)
    unknown = flow.counts["unknown"]
    lost = Cell(
        str(flow.counts["lost"]),
        bound,
        "bad" if flow.counts["lost"] else "",
        below=f"{unknown} unknown" if unknown else "",
    )
    if flow.unseen:
        lost = Cell(NONE, f"not known: {untapped(flow.unseen)}")
    cells = {
        "n": Cell(
            str(summary.n),
            f"excluded: {excluded}" if excluded else "nothing excluded",
            "first",
            below="of the sample" if summary.of_sample else "",
        ),
        "lost": lost,
        "mean ± u": _mean(summary),
        "sd": _deviation(summary),
        "max": Cell(micro(summary.maximum), f"largest of {summary.n}"),
    }
    return [cells[name] if name in cells else percentile_cell(summary, name) for name in shown]


def loss_text(flow: FlowResult) -> str:
    """The loss ratio with its 95 % bounds in words."""
    loss = flow.loss
    if loss.ratio is None:
        return "nothing was sent"
    if loss.one_sided and loss.ratio == 0:
        return f"loss below {share(loss.high)} (95 %, one-sided, {loss.assumption})"
    if loss.one_sided:
        return f"loss above {share(loss.low)} (95 %, one-sided, {loss.assumption})"
    return f"loss {share(loss.ratio)}, 95 % {share(loss.low)} to {share(loss.high)}"


def micro(ns: float | None) -> str:
    """A time in µs with two decimals, as MAPS prints it; fewer where they are not significant."""
    if ns is None:
        return NONE
    value = ns / US
    if abs(value) >= 1e4:
        return f"{value:.0f}"
    return f"{value:.2f}" if abs(value) < 1e3 else f"{value:.1f}"


def _deviation(summary: Summary) -> Cell:
    bounds = summary.sd_interval
    return Cell(
        micro(summary.sd), f"95 % interval {micro(bounds[0])} to {micro(bounds[1])} µs" if bounds else ""
    )


def time_cell(ns: float | None) -> Cell:
    return Cell(micro(ns))


def _mean(summary: Summary) -> Cell:
    if summary.mean is None:
        return Cell(NONE)
    u = summary.uncertainty
    if u is None:
        return Cell(micro(summary.mean), no_interval(summary.interval_needs), "mean")
    basis = (
        f"spread between {summary.repeats.runs} runs"
        if summary.repeats
        else f"effective n {summary.n_effective:.0f} of {summary.n}"
    )
    hint = (
        f"95 % half-width {duration(u.total)}: sampling {duration(u.sampling)} "
        f"({basis}), clocks {duration(u.clock)}, timestamps {duration(u.timestamp)}"
    )
    moving = summary.stationarity is not None and summary.stationarity.steady is False
    if moving:
        hint += "; not stationary (see Validity): the figures describe this run only"
    return Cell(f"{micro(summary.mean)} ± {micro(u.total)}{DRIFT if moving else ''}", hint, "mean")


def percentile_cell(summary: Summary, name: str) -> Cell:
    percentile = summary.percentiles.get(name)
    return Cell(NONE) if percentile is None else percentile_of(percentile, summary.n, name)


def percentile_of(percentile: Percentile, n: int, name: str) -> Cell:
    """A percentile of n values with its interval below it."""
    if percentile.value is None:
        return Cell(NONE, f"{name} needs {percentile.needed} values, n is {n}", "faint")
    if percentile.low is None and percentile.high is None:
        return Cell(micro(percentile.value), no_interval(percentile.interval_needs))
    low = micro(percentile.low) if percentile.low is not None else "unbounded"
    high = micro(percentile.high) if percentile.high is not None else "unbounded"
    worth = f"; effective n {percentile.worth:.0f} of {n}" if percentile.worth is not None else ""
    return Cell(
        micro(percentile.value),
        f"95 % interval {low} to {high} µs{worth}",
        below=short_interval(percentile.value, percentile.low, percentile.high),
    )


def no_interval(needed: int | None) -> str:
    """The reason why a figure has no interval; `needed` values would give one, None where several runs are too few."""
    return f"no interval: needs n ≥ {needed}" if needed is not None else "no interval: needs more repeats"


def short_interval(value: float, low: float | None, high: float | None) -> str:
    """An interval for the line below its figure; empty where all three print the same.

    With too few values beyond it is half open: then only its known end is shown.
    """
    if low is None or high is None:
        return f"≥ {micro(low)}" if low is not None else f"≤ {micro(high)}" if high is not None else ""
    ends = [micro(low), micro(high)]
    return "" if ends == [micro(value)] * 2 else "…".join(ends)


def place_cell(point: Mapping[str, str]) -> Cell:
    """The point of a sweep as the first cell of a row."""
    return Cell(", ".join(point.values()), kind="text short")


def outcome_table(judgement: Judgement) -> Table:
    """Outcomes of all messages of every run; outcomes that never occurred share one sentence."""
    flows = [(run, flow) for run in judgement.runs for flow in run.flows]
    met = [
        name for name in OUTCOMES if name in ("delivered", "lost") or any(f.outcomes[name] for _, f in flows)
    ]
    absent = [name for name in OUTCOMES if name not in met]
    heads = [
        Head("run"),
        *text_heads("point", "flow"),
        Head("planned"),
        Head("sent", "sent"),
        *(Head(name, name) for name in met),
        Head("loss, 95 %", "loss"),
        Head("last seen", kind="text"),
    ]
    rows = [
        [
            Cell(str(run.plan.index)),
            Cell(point_text(run), kind="text short"),
            Cell(flow_text(flow), kind="text short"),
            Cell(str(flow.planned)),
            Cell(str(flow.counts["sent"])),
            *(_outcome(name, flow.outcomes[name]) if not flow.unseen else Cell(NONE) for name in met),
            Cell(_loss_short(flow), loss_text(flow)),
            Cell(
                ", ".join(f"{count} {place}" for place, count in flow.last_seen.items()), kind="text places"
            ),
        ]
        for run, flow in flows
    ]
    notes = [f"No message of any run had the outcome {', '.join(absent)}."] if absent and rows else []
    unseen = sorted({name for _, flow in flows for name in flow.unseen})
    if unseen:
        notes = [
            f"N{untapped(unseen)[1:]}: what was sent and lost there is not known; sent counts what was seen."
        ]
    return Table("Outcomes", heads, [Section("", rows)], lead=3, notes=notes)


def _outcome(name: str, count: int) -> Cell:
    bad = name in ("lost", "misdirected", "corrupted") and count
    return Cell(str(count) if count else ZERO, kind="bad" if bad else "" if count else "faint")


def _loss_short(flow: FlowResult) -> str:
    loss = flow.loss
    if loss.ratio is None:
        return NONE
    if loss.one_sided and loss.ratio == 0:
        return f"< {share(loss.high, 2)}"
    return f"{share(loss.low, 2)} to {share(loss.high, 2)}"


def point_text(run: RunResult) -> str:
    """The point of a run as text; with the repeat where there are several."""
    text = ", ".join(run.plan.point.values()) or "the test"
    return f"{text}, repeat {run.plan.repeat}" if run.plan.repeat else text


def flow_text(flow: FlowResult) -> str:
    """Number, protocol and kind of a flow as text."""
    to = f" to {flow.plan.destination}" if flow.plan.multicast else ""
    return f"{flow.plan.id} {flow.plan.protocol}" + (" relay" if flow.plan.relayed else "") + to


def percentile_columns(
    judgement: Judgement, table: str
) -> tuple[dict[str, list[Head]], Callable[[Mapping[str, Summary]], dict[str, list[Cell]]]]:
    """Heads of percentiles for each measure, and a function from a flow's summaries to their cells.

    For the measures whose definitions name this table; percentiles used by limits are added to the usual ones.
    """
    chosen = [DEFINITIONS[name] for name in SERIES if DEFINITIONS[name].table == table]
    names = {one.name: judgement.plan.named(one.name, one.usual) for one in chosen}
    heads = {
        one.name: [Head(f"{one.word} {name}", one.name, unit="µs") for name in names[one.name]]
        for one in chosen
    }

    def cells(found: Mapping[str, Summary]) -> dict[str, list[Cell]]:
        return {
            measure: [percentile_cell(_found(found, measure), name) for name in names[measure]]
            for measure in names
        }

    return heads, cells


def _found(summaries: Mapping[str, Summary], measure: str) -> Summary:
    return summaries.get(measure) or Summary(measure, 0, {}, 0)


_PLACED = (
    "ipdv", "service_latency", "driver_latency", "send_error", "period", "receive_period", "delay_variation",
)  # fmt: skip
"""Measures with a fixed place among the columns; other measures of steadiness follow."""


def detail_table(judgement: Judgement) -> Table:
    """The other measures of every point: variation in the network and in the instrument."""
    told, cells_of = percentile_columns(judgement, "steadiness")
    heads = [
        *text_heads("point", "flow"),
        Head("PDV", "pdv", unit="µs"),
        Head("range", "latency", unit="µs"),
        *told["ipdv"],
        Head("|IPDV| max", "ipdv", unit="µs"),
        *told["service_latency"],
        *told["driver_latency"],
        *told["send_error"],
        Head("send error max", "send_error", unit="µs"),
        Head("period", "period", unit="µs"),
        *told["period"],
        *told["receive_period"],
        Head("period jitter", "period_jitter", unit="µs"),
        Head("receive period jitter", "receive_period_jitter", unit="µs"),
        *told["delay_variation"],
    ]
    others = [measure for measure in told if measure not in _PLACED]
    for measure in others:
        heads += [*told[measure], Head(f"{DEFINITIONS[measure].word} max", measure, unit="µs")]
    singles = [name for name in SINGLES if DEFINITIONS[name].table == "steadiness"]
    heads += [Head(DEFINITIONS[name].word, name) for name in singles]
    rows = []
    for point in judgement.points:
        for flow in point.flows:
            s = flow.summaries
            cells = cells_of(s)
            ipdv = [abs(v) for v in (s["ipdv"].minimum, s["ipdv"].maximum) if v is not None]
            needed = s["latency"].percentiles.get("p99.9")
            rows.append(
                [
                    place_cell(point.point),
                    Cell(flow_text(flow), kind="text short"),
                    Cell(micro(flow.spread.pdv()), f"needs {needed.needed} values" if needed else ""),
                    time_cell(flow.spread.span()),
                    *cells["ipdv"],
                    time_cell(max(ipdv, default=None)),
                    *cells["service_latency"],
                    *cells["driver_latency"],
                    *cells["send_error"],
                    time_cell(s["send_error"].maximum),
                    time_cell(s["period"].mean),
                    *cells["period"],
                    *cells["receive_period"],
                    _deviation(s["period"]),
                    _deviation(s["receive_period"]),
                    *cells["delay_variation"],
                    *(
                        cell
                        for measure in others
                        for cell in (*cells[measure], time_cell(_found(s, measure).maximum))
                    ),
                    *(_single(figure_of(flow, name)) for name in singles),
                ]
            )
    return Table("Steadiness", heads, [Section("", rows)], lead=2)


def _single(figure: Quantity) -> Cell:
    if figure.value is None:
        return Cell(NONE, figure.reason)
    interval = figure.shown_interval
    return Cell(figure.shown, f"95 %: {interval}" if interval else "", below=interval)


def hop_table(judgement: Judgement) -> Table:
    """Residence in every switch by output port; no rows without records of switches."""
    heads = [
        *text_heads("point", "flow", "switch"),
        Head("port"),
        Head("n"),
        Head("min", "residence", unit="µs"),
        Head("mean ± u", "residence", unit="µs"),
        Head("p99", "residence", unit="µs"),
        Head("max", "residence", unit="µs"),
    ]
    rows = [
        [
            place_cell(point.point),
            Cell(f"{flow.plan.id} {flow.plan.protocol}", kind="text short"),
            Cell(hop.switch, kind="text short"),
            Cell(str(hop.port)),
            Cell(str(hop.n)),
            time_cell(hop.minimum),
            _hop_mean(hop),
            time_cell(hop.p99),
            time_cell(hop.maximum),
        ]
        for point in judgement.points
        # Passages of a multicast flow count for all receivers: one set of rows.
        for flow in {flow.plan.id: flow for flow in point.flows}.values()
        for hop in flow[HOPS]
    ]
    return Table("Residence in the switches", heads, [Section("", rows)], lead=4)


def _hop_mean(hop: Hop) -> Cell:
    if hop.half_width is None:
        return Cell(micro(hop.mean), "no uncertainty: too few values, or repeats")
    hint = f"95 % half-width {duration(hop.half_width)}, of it timestamps {duration(hop.bound)}"
    return Cell(f"{micro(hop.mean)} ± {micro(hop.half_width)}", hint, "mean")
