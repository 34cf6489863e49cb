"""What the simulator says of clocks that synchronise by PTP."""

from __future__ import annotations

from dataclasses import dataclass

from wiregauge.records.reported import Simulation, in_ns

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
    apart_ns: float
    """And from the grandmaster of its domain, synchronised or not; from true time while there was none."""
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


def ptp_domains_of(simulation: Simulation | None) -> tuple[PtpDomainResult, ...]:
    """The domains a run reports, in the order of the plan."""
    return tuple(
        PtpDomainResult(
            number=one.number,
            max_offset_ns=one.max_offset_ps / 1000,
            grandmaster=one.grandmaster,
            grandmaster_changes=one.grandmaster_changes,
            synchronised_at_ns=in_ns(one.synchronised_at_ps),
            precision_ns=in_ns(one.precision_ps),
            clocks=tuple(
                PtpClockResult(
                    node=name,
                    part=clock.part,
                    states=tuple(clock.states.values()),
                    grandmaster=clock.grandmaster,
                    synchronised=clock.synchronised,
                    synchronised_at_ns=in_ns(clock.synchronised_at_ps),
                    losses=clock.losses,
                    offset_ns=in_ns(clock.offset_ps),
                    error_ns=clock.error_ps / 1000,
                    apart_ns=clock.apart_ps / 1000,
                    refused=clock.refused,
                )
                for name, clock in one.clocks.items()
            ),
        )
        for one in (simulation.ptp_domains if simulation is not None else ())
    )
