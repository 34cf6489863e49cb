"""A clock as exchanges found it. Plain data, apart from who computes it, because results hold it."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from wiregauge.stats import Moved

__all__ = ["ClockResult", "WatchedClock"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ClockResult:
    """The clock of a node against that of the reference, as exchanges found it."""

    node: str
    reference: str
    method: str
    """`exchange`."""
    timestamps: str
    """`driver` or `application`: where the timestamps of the exchanges were taken."""
    n: int
    lost: int
    """Exchanges of which a timestamp is missing."""
    delay: float
    """Least delay there and back, ns."""
    asymmetry: float
    """Most that the fixed delays of the two directions were taken to differ by, ns."""
    stated: bool
    """Whether the test bounds the asymmetry; else it is the least delay."""
    drift: float | None
    drift_uncertainty: float | None
    """ppm."""
    uncertainty: float
    """The most that the offset is uncertain by at any message of the run, ns."""
    t: Floats = field(repr=False)
    """Seconds of the node's clock."""
    offset: Floats = field(repr=False)
    half_width: Floats = field(repr=False)
    trend: Floats = field(repr=False)
    """Straight line through `offset`; ns, as both."""
    moved: tuple[Moved, ...] = ()
    """Instants at which it was set or steered."""


@dataclass(frozen=True, slots=True)
class WatchedClock:
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
