"""Report of an agent that plays the network between the end systems: its lateness and its losses.

Every frame has an instant at which the model wants it at its end system, and one at which it is handed to the kernel
there. The difference is the network's *release error*: latency that no switch, line or card of the test caused.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Final

from msgspec import Meta, Struct

from wiregauge.files.typed_json import HIDDEN, Count, Figure, Key, Positive
from wiregauge.measures.metrics.percentiles import Percentile
from wiregauge.records.reported import ForeignFrames, OverlongFrames

__all__ = [
    "RARE",
    "Cost",
    "NetworkResult",
    "ReleaseResult",
    "no_network",
]

RARE: Final = 0.001
"""Share of frames that p99.9 leaves out."""
_SHOWN: Final = ("p50", "p99", "p99.9")
_INTERVALS: Final = Meta(
    description="95 % intervals of the percentiles by name; without single frames there are none"
)


class ReleaseResult(Struct, frozen=True):
    """Release error of frames towards an end system, ns: how much later than the model wanted they left."""

    end_system: str
    frames: Count
    percentiles: Annotated[Mapping[str, Percentile], HIDDEN]
    """Percentiles by name; without intervals where only the agent's own summary is left."""
    max_ns: Figure
    undelivered: Annotated[Count, Meta(description="frames that the kernel did not take")]
    access: Annotated[str, HIDDEN] = ""
    """Interface by which the kernel was given frames; empty in runs from before it was reported."""

    def value(self, statistic: str) -> float | None:
        """A percentile, or `max`; None where there are too few frames for it."""
        if statistic == "max":
            return self.max_ns
        found = self.percentiles.get(statistic)
        return found.value if found is not None else None

    @property
    def shown(self) -> dict[str, Percentile]:
        """The percentiles that are shown, by name."""
        return {name: self.percentiles[name] for name in _SHOWN}

    @property
    def p50_ns(self) -> Annotated[Figure, Key(after="frames")]:
        """The median."""
        return self.value("p50")

    @property
    def p99_ns(self) -> Annotated[Figure, Key(after="p50_ns")]:
        """The 99th percentile of the release error, ns; None with too few frames."""
        return self.value("p99")

    @property
    def p999_ns(self) -> Annotated[Figure, Key(after="p99_ns")]:
        """The 99.9th percentile of the release error, ns; None with too few frames."""
        return self.value("p99.9")

    @property
    def intervals_ns(self) -> Annotated[dict[str, tuple[Figure, Figure]], _INTERVALS, Key(after="max_ns")]:
        """The 95 % intervals of the percentiles shown, by name; those without one are absent."""
        return {
            name: (one.low, one.high)
            for name, one in self.shown.items()
            if one.low is not None or one.high is not None
        }

    @property
    def late_ns(self) -> float:
        """The 99.9th percentile, ns; the maximum where there are too few frames for that."""
        rare = self.value("p99.9")
        return rare if rare is not None else self.max_ns or 0.0


class Cost(Struct, frozen=True):
    """Processor time of the network per incoming frame, ns, without waiting."""

    taking_ns: Annotated[Positive, Meta(description="to take a frame out of the ports")]
    model_ns: Annotated[Positive, Meta(description="for the model, with its records")]
    handing_ns: Annotated[Positive, Meta(description="to hand frames to the kernel")]

    @property
    def total_ns(self) -> float:
        """Sum of the three, ns."""
        return self.taking_ns + self.model_ns + self.handing_ns


class NetworkResult(Struct, frozen=True, kw_only=True):
    """An agent that was the network, in a run."""

    frames: Annotated[Count, Meta(description="taken from end systems")] = 0
    moved: Annotated[Count, Meta(description="of these, whose instant the model had passed")] = 0
    most_moved_ns: Count = 0
    lost: Annotated[Count, Meta(description="that found no room")] = 0
    """Those that were too long are among them."""
    releases: tuple[ReleaseResult, ...] = ()
    foreign: Annotated[
        tuple[ForeignFrames, ...] | None,
        Meta(
            description="frames that are not of the test, by where they came from; null: nobody counted them"
        ),
    ] = None
    overlong: Annotated[
        tuple[OverlongFrames, ...], Meta(description="frames longer than any of Ethernet")
    ] = ()
    cost: Annotated[
        Cost | None,
        Meta(description="of a core, for each frame that was taken; waiting is not in it"),
    ] = None
    """None where it was not reported, or no frame came in."""

    @property
    def worst(self) -> ReleaseResult | None:
        """The end system towards which one frame in a thousand left latest; None where no frame left."""
        return max((one for one in self.releases if one.frames), key=lambda one: one.late_ns, default=None)

    @property
    def error_ns(self) -> float:
        """Bound of a message's lateness through the network, ns, exceeded by one in a thousand at most.

        What left late and what came in late, where more than one in a thousand did, add up.
        """
        came_late = self.most_moved_ns if self.moved > RARE * self.frames else 0
        return came_late + (self.worst.late_ns if self.worst is not None else 0)

    @property
    def unseen(self) -> int:
        """Frames that it lost and no device of the test did."""
        return self.lost + sum(one.undelivered for one in self.releases)


def no_network(switches: str, network: NetworkResult | None) -> str:
    """The reason why nothing is known of a played network; `switches`: its player, as in the traits."""
    if switches == "model":
        return "" if network is not None else "the network left no report"
    if switches == "kernel":
        return "bridges of the kernel say nothing of how late they are"
    return "no agent is the network between the end systems"
