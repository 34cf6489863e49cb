"""Run directories from captures: what a tap on the bus saw of our messages, judged like any run."""

from wiregauge.captures.importing import Captured, CaptureError, opened

__all__ = ["CaptureError", "Captured", "opened"]
