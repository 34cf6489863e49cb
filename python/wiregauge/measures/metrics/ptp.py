"""What the simulator says of clocks that synchronise by PTP."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wiregauge.measures.metrics.reported import number, parts

__all__ = ["PtpClockResult", "PtpDomainResult", "ptp_domains_of"]


@dataclass(frozen=True, slots=True)
class PtpClockResult:
    """A clock of a domain in a run; times in ns, None where it never was synchronised."""

    node: str
    part: str
    states: tuple[str, ...]
    """Of its ports at the end, in their order."""
    grandmaster: str | None
    synchronised: bool
    synchronised_at_ns: float | None
    losses: int
    offset_ns: float | None
    """The greatest offset from the grandmaster while it was synchronised."""
    error_ns: float
    """The greatest that it was off by from true time in the measured part."""
    refused: int
    """Times that it could not be steered as its filter wanted."""

    @property
    def follows(self) -> bool:
        """It is an ordinary or boundary clock."""
        return self.part != "transparent-clock"


@dataclass(frozen=True, slots=True)
class PtpDomainResult:
    """A domain in a run; times in ns, None where its clocks were never all synchronised."""

    number: int
    max_offset_ns: float
    grandmaster: str | None
    grandmaster_changes: int
    synchronised_at_ns: float | None
    precision_ns: float | None
    clocks: tuple[PtpClockResult, ...]


def ptp_domains_of(entry: Mapping[str, object]) -> tuple[PtpDomainResult, ...]:
    """The domains a run reports, in the order of the plan."""
    simulation = entry.get("simulation")
    return tuple(
        PtpDomainResult(
            number=number(domain, "number"),
            max_offset_ns=number(domain, "max_offset_ps") / 1000,
            grandmaster=_text(domain, "grandmaster"),
            grandmaster_changes=number(domain, "grandmaster_changes"),
            synchronised_at_ns=_ns(domain, "synchronised_at_ps"),
            precision_ns=_ns(domain, "precision_ps"),
            clocks=_clocks(domain.get("clocks")),
        )
        for domain in parts(simulation if isinstance(simulation, dict) else {}, "ptp_domains")
    )


def _clocks(reports: object) -> tuple[PtpClockResult, ...]:
    found = reports if isinstance(reports, dict) else {}
    return tuple(
        PtpClockResult(
            node=str(name),
            part=str(clock.get("part", "")),
            states=tuple(str(state) for state in dict(clock.get("states", {})).values()),
            grandmaster=_text(clock, "grandmaster"),
            synchronised=bool(clock.get("synchronised")),
            synchronised_at_ns=_ns(clock, "synchronised_at_ps"),
            losses=number(clock, "losses"),
            offset_ns=_ns(clock, "offset_ps"),
            error_ns=number(clock, "error_ps") / 1000,
            refused=number(clock, "refused"),
        )
        for name, clock in found.items()
        if isinstance(clock, dict)
    )


def _text(report: Mapping[str, object], key: str) -> str | None:
    value = report.get(key)
    return value if isinstance(value, str) else None


def _ns(report: Mapping[str, object], key: str) -> float | None:
    value = report.get(key)
    return value / 1000 if isinstance(value, int | float) else None
