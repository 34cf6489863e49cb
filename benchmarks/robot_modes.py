"""A day of round trips with the three modes of the robot paper of 2016, and how long they take to be found.

The structure of its figure: every 318 s a plateau of 4 µs for 15 s, every 5 s one message 16 µs late, every hour ten
messages in a row late by 15 to 150 µs, on wake-ups of up to 6 µs. At full size that is 8.64 million messages.

`python -m benchmarks.robot_modes [HOURS]` prints what is found. Bar: two minutes for 24 hours of 100 Hz, on two cores.
"""

from __future__ import annotations

import argparse
import resource
import time

import numpy as np
from numpy.typing import NDArray

from benchmarks import table
from wiregauge import stats
from wiregauge.measures.definitions.units import p_text

__all__ = ["PLANTED", "round_trips"]

Floats = NDArray[np.float64]
PLANTED = ((3600.0, 1200.37, 82_500.0), (5.0, 1.0, 16_000.0), (318.0, 60.0, 4_000.0))
"""Period and start in s, and mean height in ns, of each mode; highest first."""


def round_trips(hours: float, step: float = 0.01, seed: int = 1) -> tuple[Floats, Floats]:
    """Times in s, `step` apart, and round trips in ns."""
    rng = np.random.default_rng(seed)
    n = round(hours * 3600 / step)
    t = np.arange(n, dtype=np.float64) * step
    took = 110_000 + np.interp(rng.random(n), [0, 0.99, 1], [0, 250, 5900])
    took += np.interp(rng.random(n), [0, 0.9, 1], [0, 500, 1000])
    took[(t + step / 2 - 60) % 318.0 < 15.01] += 4_000 * (t[(t + step / 2 - 60) % 318.0 < 15.01] >= 60)
    for period, start, count, rise in ((5.0, 1.0, 1, 16_000.0), (3600.0, 1200.37, 10, 15_000.0)):
        for begin in np.arange(start, hours * 3600 - count * step, period):
            first = round(begin / step)
            took[first : first + count] += rise * np.arange(1, count + 1)
    return t, took


def main() -> None:
    """Prints the modes that are found, processor time and memory, and adds the row of the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("hours", nargs="?", type=float, default=24.0)
    parser.add_argument("--smoke", action="store_true", help="a quarter of an hour: that it runs")
    options = parser.parse_args()
    hours = 0.25 if options.smoke else options.hours
    t, took = round_trips(hours)
    began = time.perf_counter()
    found = stats.find_modes(t, took)
    spent = time.perf_counter() - began
    for mode in found.modes:
        print(
            f"every {mode.period.value:.4f} s for {mode.duration.value:.3f} s by {mode.height.value / 1e3:.2f} µs, "
            f"{mode.bands} of {mode.cycles} cycles, {p_text(mode.p_value)}"
        )
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"{len(t)} values: {spent:.1f} s, {peak:.0f} MiB")
    whole = hours == 24.0
    table.add(
        f"recurring modes in {hours:g} h of 100 Hz",
        f"{spent:.1f} s, {peak:.0f} MiB",
        bar="≤ 2 min" if whole else "",
        reached=spent <= 120 if whole else None,
    )


if __name__ == "__main__":
    main()
