"""Envelopes of cross traffic, and their text form."""

from __future__ import annotations

from typing import Final

from msgspec import Struct

from wiregauge.plan.quantity import QuantityError, share
from wiregauge.switching.errors import DeviceError

__all__ = ["ENVELOPES", "Envelope", "envelopes_of"]

_MOST_LOAD: Final = 950_000
"""The greatest load of cross traffic that fits into one output with the probe, ppm."""


class Envelope(Struct, frozen=True):
    """Cross traffic: at most burst + rate t frames in any time t (a token bucket); a burst of 1 is a leaky bucket."""

    load_ppm: int
    burst: int


ENVELOPES: Final = (Envelope(500_000, 1), Envelope(500_000, 8), Envelope(500_000, 32), Envelope(800_000, 8))


def envelopes_of(text: str) -> tuple[Envelope, ...]:
    """Parses envelopes, `50%:8,80%:32`. Raises DeviceError."""
    found = []
    for one in text.split(","):
        load, _, burst = one.strip().partition(":")
        try:
            ppm = round(share(load) * 1e6)
        except QuantityError as error:
            raise DeviceError(f"--cross-traffic {text}: {error}") from None
        frames = int(burst or "1") if (burst or "1").isdecimal() else 0
        if not 0 < ppm <= _MOST_LOAD or not 1 <= frames <= 1000:
            raise DeviceError(
                f"--cross-traffic {text}: write a load up to {_MOST_LOAD / 1e4:g}% and a burst of 1 to 1000 frames, "
                "such as 50%:8"
            )
        found.append(Envelope(ppm, frames))
    return tuple(found)
