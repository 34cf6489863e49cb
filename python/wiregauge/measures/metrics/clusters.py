"""What devices that synchronise by SAE AS6802 say of a run: states, precision, time to synchronise, cliques."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wiregauge.measures.metrics.reported import number, parts

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


def clusters_of(entry: Mapping[str, object]) -> tuple[ClusterResult, ...]:
    """The clusters a run reports, in the order of the plan."""
    simulation = entry.get("simulation")
    reported = simulation if isinstance(simulation, dict) else {}
    return tuple(
        ClusterResult(
            domain=number(cluster, "domain"),
            priority=number(cluster, "priority"),
            precision_ns=_ns(cluster, "precision_ps"),
            precision_bound_ns=number(cluster, "precision_bound_ps") / 1000,
            startup_ns=_ns(cluster, "startup_ps"),
            startup_bound_ns=number(cluster, "startup_bound_ps") / 1000,
            devices=_devices(cluster.get("devices")),
        )
        for cluster in parts(reported, "clusters")
    )


def _devices(reports: object) -> tuple[SynchroniserResult, ...]:
    found = reports if isinstance(reports, dict) else {}
    return tuple(
        SynchroniserResult(
            node=str(name),
            part=str(device.get("part", "")),
            faulty=bool(device.get("faulty")),
            state=str(device.get("state", "")),
            synchronised=bool(device.get("synchronised")),
            synchronised_at_ns=_ns(device, "synchronised_at_ps"),
            losses=number(device, "losses"),
            cliques=tuple(int(n) for n in device.get("cliques", ())),
            membership=number(device, "membership"),
        )
        for name, device in found.items()
        if isinstance(device, dict)
    )


def _ns(report: Mapping[str, object], key: str) -> float | None:
    value = report.get(key)
    return value / 1000 if isinstance(value, int | float) else None
