"""Writes the null distributions that `wiregauge.stats.levels` uses to judge changes; takes some ten seconds."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from wiregauge.stats import levels

TABLE = Path(levels.__file__).with_name("changes.npz")


def main() -> None:
    """Simulates each number of blocks and replaces the table."""
    arrays = {}
    for blocks in levels.BLOCKS:
        scales, greatest = levels.simulated(blocks)
        arrays[f"lengths-{blocks}"] = np.array(list(scales))
        arrays[f"scales-{blocks}"] = np.array(list(scales.values()))
        arrays[f"greatest-{blocks}"] = greatest
    np.savez(TABLE, **arrays)  # type: ignore[arg-type]  # its one other name is allow_pickle


if __name__ == "__main__":
    main()
