"""The tables of checks: validity, limits, and host settings granted to agents."""

from __future__ import annotations

from collections.abc import Mapping

from wiregauge.measures.definitions import DEFINITIONS
from wiregauge.measures.definitions.units import in_unit, share
from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import Check, Grade, Judgement, LimitResult, RunResult
from wiregauge.records.reported import Grant
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, text_heads

__all__ = ["check_table", "grant_table", "limit_table"]


def check_table(judgement: Judgement) -> Table:
    """One row per check with its worst run; the reasons are listed above it."""
    heads = [
        *text_heads("check", "limit", "observed"),
        Head("runs"),
        Head("grade"),
    ]
    rows = [_check_row(check, "campaign") for check in judgement.checks]
    for position in range(len(judgement.runs[0].checks) if judgement.runs else 0):
        each = [(run, run.checks[position]) for run in judgement.runs]
        run, worst = max(each, key=lambda pair: pair[1].grade)
        hit = sum(check.grade == worst.grade for _, check in each)
        alike = len({check.observed for _, check in each}) == 1
        where = "all" if hit == len(each) else f"{hit} of {len(each)}"
        observed = worst.observed
        if not alike:
            observed += (
                f" (run {run.plan.index})" if worst.grade > Grade.OK else f" (e.g. run {run.plan.index})"
            )
        rows.append(_check_row(worst, where, observed))
    return Table("Checks", heads, [Section("", rows)], lead=3)


def _check_row(check: Check, where: str, observed: str | None = None) -> list[Cell]:
    word = check.grade.name if check.grade >= Grade.DEGRADED else check.grade.label
    return [
        Cell(check.title, kind="text"),
        Cell(check.limit, kind="text"),
        Cell(observed or check.observed, check.reason, "text"),
        Cell(where),
        Cell(
            word,
            check.reason,
            f"grade {'none' if check.grade is Grade.NOT_LOOKED_AT else word.lower()}",
        ),
    ]


def limit_table(judgement: Judgement) -> Table | None:
    """One row per limit and flow, failed ones first and then by margin; None without limits.

    The figure is that of the run with the least margin; the margin is the distance to the limit, negative beyond it,
    and its share of the limit.
    """
    if not judgement.plan.limits:
        return None
    heads = [
        *text_heads("result", "limit", "flow"),
        Head("observed"),
        Head("margin"),
    ]
    groups: dict[tuple[int, str, str, str], list[tuple[RunResult, LimitResult]]] = {}
    for run in judgement.runs:
        for limit in run.limits:
            bound = f"{limit.bound.replace('-', ' ')} {limit.written}"
            groups.setdefault((limit.line, limit.measure, bound, limit.subject), []).append((run, limit))
    rows: list[tuple[int, float, list[Cell]]] = []
    plans = {(f.plan.id, f.plan.destination): f.plan for run in judgement.runs for f in run.flows}
    for (_, measure, bound, _), results in groups.items():
        words = [limit.result.upper() for _, limit in results]
        word = min(words, key=_GRAVITY.index)
        seen = [(limit.margin, limit) for _, limit in results if limit.margin is not None]
        room, worst = min(seen, key=lambda pair: pair[0], default=(None, None))
        why = next((limit.reason for _, limit in results if not limit.holds and limit.reason), "")
        part = room / abs(worst.value) if worst is not None and room is not None and worst.value else None
        same = sum(one == word for one in words)
        where = f"in {same} of {len(words)} runs" if len(judgement.runs) > 1 else ""
        cells = [
            Cell(word, where, f"grade text {word.lower()}", "" if same == len(words) else where),
            Cell(f"{measure} {bound}", kind="text", under=why),
            Cell(_subject(plans, results[0][1]), kind="text name"),
            Cell(quantity(measure, worst.observed), _observed_hint(worst), below=worst.counted)
            if worst
            else Cell("not determined"),
            _room(measure, room, part),
        ]
        # A limit of zero has no margin while it holds, so it ranks after one with a small margin.
        rows.append((_GRAVITY.index(word), part if part is not None else float("inf"), cells))
    rows.sort(key=lambda row: row[:2])
    return Table("Limits", heads, [Section("", [row for _, _, row in rows])], lead=1)


_GRAVITY = ("FAIL", "UNDECIDED", "PASS")


def _observed_hint(limit: LimitResult) -> str:
    """A hint on the figure of another run, where the figure has an interval."""
    ends = [
        quantity(limit.measure, end) if end is not None else "unbounded" for end in (limit.low, limit.high)
    ]
    n = f"n = {limit.n}" if limit.n else ""
    interval = f"95 % interval {ends[0]} to {ends[1]}" if (limit.low, limit.high) != (None, None) else ""
    return "; ".join(part for part in (interval, n) if part)


def _room(measure: str, room: float | None, part: float | None) -> Cell:
    """The margin to a limit, and its share of the limit."""
    if room is None:
        return Cell(NONE)
    sign = "\N{MINUS SIGN}" if room < 0 else ""
    of_limit = f" ({sign}{share(abs(part))})" if part is not None else ""
    return Cell(f"{sign}{quantity(measure, abs(room))}{of_limit}", kind="bad" if room < 0 else "")


def _subject(plans: Mapping[tuple[int, str], FlowPlan], limit: LimitResult) -> str:
    """The subject of a limit: the flow with its two ends, at the judged receiver."""
    plan = plans.get((limit.flow, limit.to)) if limit.flow is not None and limit.to is not None else None
    return limit.subject if plan is None else f"{plan.id}: {plan.source} → {plan.destination}"


def quantity(measure: str, value: float | None) -> str:
    """A value of a limit in the unit of its measure."""
    if value is None:
        return "not determined"
    return in_unit(value, DEFINITIONS[measure.partition(".")[0]].unit)


def grant_table(judgement: Judgement) -> Table | None:
    """The settings that each agent requested of its host, and the results; None when nothing was reported."""
    granted: dict[str, dict[str, Grant]] = {}
    for run in judgement.runs:
        for name, agent in run.agents.items():
            for grant in agent.grants or ():
                granted.setdefault(name, {})[grant.name] = grant
    if not granted:
        return None
    rows = [
        [
            Cell(agent, kind="text"),
            Cell(name, kind="text"),
            Cell(
                "granted" if grant.granted else "refused",
                kind="grade " + ("ok" if grant.granted else "note"),
            ),
            Cell(grant.detail or "", kind="text"),
        ]
        for agent, grants in granted.items()
        for name, grant in grants.items()
    ]
    return Table(
        "Grants",
        [
            *text_heads("end system", "request"),
            Head("result"),
            Head("detail", kind="text"),
        ],
        [Section("", rows)],
        lead=2,
    )
