"""The report: one self-contained HTML file per run directory, and its figures as files."""

from wiregauge.report.write import export_figures, write

__all__ = ["export_figures", "write"]
