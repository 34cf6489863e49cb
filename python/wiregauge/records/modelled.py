"""Reports of the model on its devices: from a simulation, or from an agent that plays the network.

The forms are those of `wg_sim::report`.
"""

from __future__ import annotations

import msgspec
from msgspec.structs import replace

from wiregauge.records.counters import Counter, Reported, in_ns

__all__ = [
    "ClusterReport",
    "CreditReport",
    "EliminationReport",
    "FilterReport",
    "PortReport",
    "PtpClockReport",
    "PtpDomainReport",
    "Simulation",
    "SwitchReport",
    "SynchroniserReport",
]


class PortReport(Reported, frozen=True):
    """An output port of a switch: frames that it dropped, by reason, and the most bytes that waited there."""

    port: int
    most_waiting_bytes: int
    dropped: dict[str, int] = msgspec.field(default_factory=dict)


class SwitchReport(Reported, frozen=True):
    """The ports of a switch."""

    ports: tuple[PortReport, ...] = ()


class EliminationReport(Reported, frozen=True):
    """The sequence recovery of a flow (IEEE Std 802.1CB), its counters by name, and its latent errors."""

    recovery: dict[str, int] = msgspec.field(default_factory=dict)
    latent_errors: Counter = None


class FilterReport(Reported, frozen=True):
    """A stream filter (IEEE Std 802.1Q, 8.6.5.3) and its counters."""

    flow: int
    matching: int
    passed: int
    not_passing_sdu: int
    not_passing: int
    red: int
    yellow: int


class CreditReport(Reported, frozen=True):
    """The credit of a shaped queue over a run, in 10^-12 bits."""

    node: str
    port: int
    traffic_class: int = msgspec.field(name="class")
    greatest_pbit: int
    greatest_at_ps: int
    least_pbit: int
    least_at_ps: int
    whole_from_ps: int
    """Start of the interval whose every corner the truth file holds, ps."""
    whole_to_ps: int
    """End of that interval, ps."""

    @property
    def max_bit(self) -> float:
        """The greatest credit, bits."""
        return self.greatest_pbit / 10**12

    @property
    def max_at_ns(self) -> float:
        """Instant of the greatest credit, ns of the run."""
        return self.greatest_at_ps / 1000

    @property
    def min_bit(self) -> float:
        """The least credit, bits."""
        return self.least_pbit / 10**12

    @property
    def min_at_ns(self) -> float:
        """Instant of the least credit, ns of the run."""
        return self.least_at_ps / 1000


class SynchroniserReport(Reported, frozen=True):
    """A device of an AS6802 cluster at the end of a run."""

    part: str
    faulty: bool
    state: str
    synchronised: bool
    synchronised_at_ps: int | None
    losses: int
    cliques: tuple[int, ...]
    """Counts of clique detections: synchronous, asynchronous, relative."""
    membership: int
    node: str = ""

    @property
    def synchronised_at_ns(self) -> float | None:
        """Instant of its first synchronisation, ns; None without one."""
        return in_ns(self.synchronised_at_ps)


class ClusterReport(Reported, frozen=True):
    """An AS6802 cluster; times are None where it never was synchronised."""

    domain: int
    priority: int
    precision_bound_ps: int
    precision_ps: int | None
    startup_bound_ps: int
    startup_ps: int | None
    by_name: dict[str, SynchroniserReport] = msgspec.field(name="devices")

    @property
    def devices(self) -> tuple[SynchroniserReport, ...]:
        """The reports of its devices, with their names."""
        return tuple(replace(one, node=name) for name, one in self.by_name.items())

    @property
    def correct(self) -> tuple[SynchroniserReport, ...]:
        """Devices that do not fail on purpose."""
        return tuple(device for device in self.devices if not device.faulty)

    @property
    def precision_ns(self) -> float | None:
        """The greatest difference of its clocks, ns."""
        return in_ns(self.precision_ps)

    @property
    def precision_bound_ns(self) -> float:
        """The bound that the precision must meet, ns."""
        return self.precision_bound_ps / 1000

    @property
    def startup_ns(self) -> float | None:
        """Time until all correct devices were synchronised, ns; None where they never were."""
        return in_ns(self.startup_ps)

    @property
    def startup_bound_ns(self) -> float:
        """The bound that the start-up time must meet, ns."""
        return self.startup_bound_ps / 1000


class PtpClockReport(Reported, frozen=True):
    """A clock of a PTP domain in a run; times are None where it never was synchronised."""

    part: str
    by_port: dict[str, str] = msgspec.field(name="states")
    grandmaster: str | None
    synchronised: bool
    synchronised_at_ps: int | None
    losses: int
    offset_ps: int | None
    error_ps: int
    apart_ps: int
    refused: int
    """Times that it could not be steered as its filter wanted."""
    node: str = ""

    @property
    def follows(self) -> bool:
        """Whether it is an ordinary or boundary clock."""
        return self.part != "transparent-clock"

    @property
    def states(self) -> tuple[str, ...]:
        """The states of its ports at the end, in their order."""
        return tuple(self.by_port.values())

    @property
    def synchronised_at_ns(self) -> float | None:
        """Instant of its first synchronisation, ns; None without one."""
        return in_ns(self.synchronised_at_ps)

    @property
    def offset_ns(self) -> float | None:
        """The greatest offset from the grandmaster while it was synchronised, ns."""
        return in_ns(self.offset_ps)

    @property
    def error_ns(self) -> float:
        """The greatest that it was off by from true time in the measured part, ns."""
        return self.error_ps / 1000

    @property
    def apart_ns(self) -> float:
        """And from the grandmaster of its domain, synchronised or not; from true time while there was none; ns."""
        return self.apart_ps / 1000


class PtpDomainReport(Reported, frozen=True):
    """A PTP domain in a run; times are None where its clocks were never all synchronised."""

    number: int
    max_offset_ps: int
    grandmaster: str | None
    grandmaster_changes: int
    synchronised_at_ps: int | None
    precision_ps: int | None
    by_name: dict[str, PtpClockReport] = msgspec.field(name="clocks")

    @property
    def clocks(self) -> tuple[PtpClockReport, ...]:
        """The reports of its clocks, with their names."""
        return tuple(replace(one, node=name) for name, one in self.by_name.items())

    @property
    def max_offset_ns(self) -> float:
        """Offsets beyond are no synchronisation, ns."""
        return self.max_offset_ps / 1000

    @property
    def synchronised_at_ns(self) -> float | None:
        """First instant at which all its clocks were synchronised, ns; None without one."""
        return in_ns(self.synchronised_at_ps)

    @property
    def precision_ns(self) -> float | None:
        """The greatest difference of its synchronised clocks from then on, ns."""
        return in_ns(self.precision_ps)


class Simulation(Reported, frozen=True):
    """The model's report on its devices: from a simulation, or from an agent that plays the network."""

    records: Counter = None
    switches: dict[str, SwitchReport] = msgspec.field(default_factory=dict)
    frer: dict[int, EliminationReport] = msgspec.field(default_factory=dict)
    """Elimination counters by flow."""
    stream_filters: tuple[FilterReport, ...] = ()
    credits: tuple[CreditReport, ...] = ()
    clusters: tuple[ClusterReport, ...] = ()
    ptp_domains: tuple[PtpDomainReport, ...] = ()
