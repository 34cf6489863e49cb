"""Run directories from captures: what a tap on the bus saw of our messages, or two taps of anyone's frames."""

from wiregauge.captures.importing import Captured, CaptureError, Comparison, opened

__all__ = ["CaptureError", "Captured", "Comparison", "opened"]
