"""Makes run directories from what other programs measured: round trips of irtt, data files of flent."""

from wiregauge.foreign.bench import ForeignBench, opened
from wiregauge.foreign.exchanges import ForeignError
from wiregauge.foreign.reading import measured

__all__ = ["ForeignBench", "ForeignError", "measured", "opened"]
