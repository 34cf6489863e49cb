"""Makes run directories from captures: our messages seen by a tap, or any frames seen by two taps."""

from wiregauge.captures.importing import Captured, CaptureError, Comparison, opened

__all__ = ["CaptureError", "Captured", "Comparison", "opened"]
