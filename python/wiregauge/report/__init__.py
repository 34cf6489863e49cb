"""The report: one self-contained HTML file per run directory, one for several beside each other, figures as files."""

from wiregauge.report.beside import write_beside
from wiregauge.report.write import export_figures, write

__all__ = ["export_figures", "write", "write_beside"]
