"""A run directory in a notebook: every figure with its interval, every message as a Polars frame, figures to zoom into.

`open` an existing run directory or `simulate` a test; both give a `Run`. Whatever cannot be done raises
`WiregaugeError`, whose text is the sentence the command line would print. Nothing is computed here that the command
line does not compute: the figures are those of `wiregauge show --json`, the tables those of `wiregauge export`.
"""

from wiregauge.notebook.errors import WiregaugeError
from wiregauge.notebook.measure import Measure
from wiregauge.notebook.opening import Checked, check, open, simulate  # noqa: A004
from wiregauge.notebook.run import Run

__all__ = ["Checked", "Measure", "Run", "WiregaugeError", "check", "open", "simulate"]
