"""The table of clocks that synchronise by PTP in the simulator."""

from __future__ import annotations

from wiregauge.measures.definitions.units import duration
from wiregauge.measures.metrics.judgement import Judgement
from wiregauge.records.modelled import PtpClockReport, PtpDomainReport
from wiregauge.report.tables import Cell, Head, Section, Table, place_cell

__all__ = ["ptp_table"]


def ptp_table(judgement: Judgement) -> Table:
    """Every clock of every domain, by run."""
    heads = [
        Head("point", kind="text"),
        Head("clock", kind="text"),
        Head("part", kind="text"),
        Head("ports at the end", kind="text"),
        Head("grandmaster", kind="text"),
        Head("synchronised at"),
        Head("worst offset", "ptp_offset"),
        Head("losses", "ptp_losses"),
        Head("refused"),
    ]
    sections = [
        Section(_title(domain), [[place_cell(run.plan.point), *_row(clock)] for clock in domain.clocks])
        for run in judgement.runs
        for domain in run.ptp_domains
    ]
    return Table("PTP", heads, sections)


def _title(domain: PtpDomainReport) -> str:
    def told(value: float | None) -> str:
        return "never" if value is None else duration(value)

    changes = domain.grandmaster_changes
    return (
        f"domain {domain.number}: grandmaster {domain.grandmaster or 'none'}, {changes} change{'s' * (changes != 1)}; "
        f"all within {duration(domain.max_offset_ns)} after {told(domain.synchronised_at_ns)}, "
        f"precision {told(domain.precision_ns)}"
    )


def _row(clock: PtpClockReport) -> list[Cell]:
    follows = clock.follows
    return [
        Cell(clock.node, kind="text short"),
        Cell(clock.part.replace("-", " "), kind="text short"),
        Cell(", ".join(clock.states), kind="text short"),
        Cell(clock.grandmaster or "", kind="text short"),
        Cell(duration(clock.synchronised_at_ns) if follows else ""),
        Cell(duration(clock.offset_ns) if follows else ""),
        Cell(str(clock.losses) if follows else ""),
        Cell(str(clock.refused) if follows else ""),
    ]
