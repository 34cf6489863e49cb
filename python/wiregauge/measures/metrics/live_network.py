"""What an agent that is the network between the end systems says of itself: by how much it was late, and what it lost.

Every frame has an instant at which the model wants it at its end system, and one at which it is handed to the kernel
there. The difference is the network's *release error*: latency that no switch, line or card of the test caused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from wiregauge.measures.metrics.reported import number, parts
from wiregauge.stats import samples_needed

__all__ = ["NetworkResult", "ReleaseResult", "network_of"]

RARE = 0.001
"""Of what p99.9 leaves out."""


@dataclass(frozen=True, slots=True)
class ReleaseResult:
    """How much later than the model wanted frames left towards an end system, ns."""

    end_system: str
    frames: int
    p50_ns: int
    p99_ns: int
    p999_ns: int
    max_ns: int
    undelivered: int
    """Frames that the kernel did not take."""
    access: str = ""
    """By what the kernel was given them; empty in runs from before it was reported."""

    @property
    def shown_ns(self) -> dict[str, int | None]:
        """What a reader is told, by its name; None where there are too few frames for it."""
        quantiles = {"p50": (0.5, self.p50_ns), "p99": (0.99, self.p99_ns), "p99.9": (0.999, self.p999_ns)}
        told = {
            name: late if self.frames >= samples_needed(q) else None for name, (q, late) in quantiles.items()
        }
        return told | {"max": self.max_ns if self.frames else None}


@dataclass(frozen=True, slots=True)
class NetworkResult:
    """An agent that was the network, in a run."""

    releases: tuple[ReleaseResult, ...]
    frames: int
    """Taken from end systems."""
    moved: int
    """Of these, frames whose instant the model had passed, and which came into it later by as much."""
    most_moved_ns: int
    lost: int
    """Frames that found no room."""

    @property
    def worst(self) -> ReleaseResult | None:
        """The end system towards which one frame in a thousand left latest; None where no frame left."""
        return max((one for one in self.releases if one.frames), key=lambda one: one.p999_ns, default=None)

    @property
    def error_ns(self) -> float:
        """By how much a message may have been late through the network: all but one in a thousand were by less.

        What left late and what came in late, where more than one in a thousand did, add up.
        """
        came_late = self.most_moved_ns if self.moved > RARE * self.frames else 0
        return came_late + (self.worst.p999_ns if self.worst is not None else 0)

    @property
    def unseen(self) -> int:
        """Frames that it lost and no device of the test did."""
        return self.lost + sum(one.undelivered for one in self.releases)


def network_of(entry: Mapping[str, object]) -> NetworkResult | None:
    """What the network of a run reports; None where no agent was it, or it left no report."""
    report = entry.get("network")
    if not isinstance(report, dict):
        return None
    intake = report.get("intake")
    taken = intake if isinstance(intake, dict) else {}
    return NetworkResult(
        releases=tuple(
            ReleaseResult(
                str(one.get("end_system", "")),
                number(one, "frames"),
                number(one, "p50_ns"),
                number(one, "p99_ns"),
                number(one, "p999_ns"),
                number(one, "max_ns"),
                number(one, "undelivered"),
                str(one.get("access", "")),
            )
            for one in parts(report, "releases")
        ),
        frames=number(taken, "frames"),
        moved=number(taken, "moved"),
        most_moved_ns=number(taken, "most_moved_ns"),
        lost=number(taken, "lost"),
    )
