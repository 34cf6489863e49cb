"""The report: one self-contained HTML file per run directory, for two compared, for a history; figures as files."""

from wiregauge.report.bounded import Bounded, bounded
from wiregauge.report.compare import write_compare
from wiregauge.report.trend import write_trend
from wiregauge.report.write import check_page, export_figures, write

__all__ = ["Bounded", "bounded", "check_page", "export_figures", "write", "write_compare", "write_trend"]
