"""The report: one self-contained HTML file per run directory, one for two compared, figures as files."""

from wiregauge.report.compare import write_compare
from wiregauge.report.write import export_figures, write

__all__ = ["export_figures", "write", "write_compare"]
