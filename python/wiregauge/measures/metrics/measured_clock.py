"""A clock as exchanges found it. Plain data, apart from who computes it, because results hold it."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.files.typed_json import HIDDEN, Count, Figure, Key, Positive
from wiregauge.stats import Moved

__all__ = ["ClockResult", "WatchedClock"]

Floats = NDArray[np.float64]
_POINTS = 40


class OffsetPoint(Struct, frozen=True):
    """The offset of a clock at a time of its own, and the half-width of its interval."""

    at_s: float
    offset_ns: float
    uncertainty_ns: Positive


class ClockResult(Struct, frozen=True):
    """The clock of a node against that of the reference, as exchanges found it."""

    node: str
    reference: str
    method: str
    """`exchange`."""
    timestamps: str
    """`driver` or `application`: where the timestamps of the exchanges were taken."""
    n: Count
    lost: Annotated[Count, Key("missing")]
    """Exchanges of which a timestamp is missing."""
    delay: Annotated[float, Key("delay_ns")]
    """Least delay there and back, ns."""
    asymmetry: Annotated[Positive, Key("asymmetry_ns")]
    """Most that the fixed delays of the two directions were taken to differ by, ns."""
    stated: Annotated[bool, Key("asymmetry_stated")]
    """Whether the test bounds the asymmetry; else it is the least delay."""
    drift: Annotated[Figure, Key("drift_ppm")]
    drift_uncertainty: Annotated[Figure, Key("drift_uncertainty_ppm")]
    uncertainty: Annotated[Positive, Key("uncertainty_ns")]
    """The most that the offset is uncertain by at any message of the run, ns."""
    t: Annotated[Floats, HIDDEN]
    """Seconds of the node's clock."""
    offset: Annotated[Floats, HIDDEN]
    half_width: Annotated[Floats, HIDDEN]
    trend: Annotated[Floats, HIDDEN]
    """Straight line through `offset`; ns, as both."""
    moved: Annotated[tuple[Moved, ...], HIDDEN] = ()
    """Instants at which it was set or steered."""

    @property
    def offsets(self) -> Annotated[list[OffsetPoint], Key(after="uncertainty_ns")]:
        """Points of the offset, as many as a figure needs."""
        step = max(len(self.t) // _POINTS, 1)
        each: Any = (column[::step].tolist() for column in (self.t, self.offset, self.half_width))
        return list(map(OffsetPoint, *each))


class WatchedClock(Struct, frozen=True):
    """A clock that a synchronisation program steered or compared, as it was observed during a run; ns."""

    node: str
    source: str
    """`ptp4l`, `phc2sys` or `chrony`."""
    n: int
    """Offsets seen from the epoch to the end of the measured part."""
    worst: float | None
    """The observed offset of the largest magnitude, ns; None without any."""
    median_delay: float | None
    states: tuple[str, ...]
    """States during the run, in the order of their first being seen."""
