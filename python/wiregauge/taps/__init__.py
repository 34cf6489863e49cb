"""Run directories from captures: what a tap on the bus saw of our messages, judged like any run."""

from wiregauge.taps.importing import Captured, CaptureError, import_captures

__all__ = ["CaptureError", "Captured", "import_captures"]
