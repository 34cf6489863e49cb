"""What devices that synchronise by SAE AS6802 say of a run: states, precision, time to synchronise, cliques."""

from __future__ import annotations

from dataclasses import dataclass

from wiregauge.records.reported import Simulation, in_ns

__all__ = ["ClusterResult", "SynchroniserResult", "clusters_of"]


@dataclass(frozen=True, slots=True)
class SynchroniserResult:
    """A device of a cluster at the end of a run."""

    node: str
    part: str
    faulty: bool
    state: str
    synchronised: bool
    synchronised_at_ns: float | None
    losses: int
    cliques: tuple[int, ...]
    """By synchronous, asynchronous and relative detection."""
    membership: int


@dataclass(frozen=True, slots=True)
class ClusterResult:
    """A cluster in a run; times in ns, None where it never was synchronised."""

    domain: int
    priority: int
    precision_ns: float | None
    precision_bound_ns: float
    startup_ns: float | None
    startup_bound_ns: float
    devices: tuple[SynchroniserResult, ...]

    @property
    def correct(self) -> tuple[SynchroniserResult, ...]:
        """Devices that do not fail on purpose."""
        return tuple(device for device in self.devices if not device.faulty)


def clusters_of(simulation: Simulation | None) -> tuple[ClusterResult, ...]:
    """The clusters a run reports, in the order of the plan."""
    return tuple(
        ClusterResult(
            domain=one.domain,
            priority=one.priority,
            precision_ns=in_ns(one.precision_ps),
            precision_bound_ns=one.precision_bound_ps / 1000,
            startup_ns=in_ns(one.startup_ps),
            startup_bound_ns=one.startup_bound_ps / 1000,
            devices=tuple(
                SynchroniserResult(
                    node=name,
                    part=device.part,
                    faulty=device.faulty,
                    state=device.state,
                    synchronised=device.synchronised,
                    synchronised_at_ns=in_ns(device.synchronised_at_ps),
                    losses=device.losses,
                    cliques=device.cliques,
                    membership=device.membership,
                )
                for name, device in one.devices.items()
            ),
        )
        for one in (simulation.clusters if simulation is not None else ())
    )
