"""The median of a part of a long series."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from wiregauge import _native


def median_of(values: NDArray[np.float64]) -> float:
    """As `np.median` of known values, in a tenth of its time where they are few; NaN without any."""
    return _native.section_medians(values, [0, len(values)])[0]
