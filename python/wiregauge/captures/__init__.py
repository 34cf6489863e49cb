"""Makes run directories from captures: our messages seen by a tap, or any frames seen by two taps."""

from wiregauge.captures.importing import Captured, CaptureError, Comparison, OnePlaceError, opened

__all__ = ["CaptureError", "Captured", "Comparison", "OnePlaceError", "opened"]
