"""What ends a characterisation early, each as a sentence for the user."""

from __future__ import annotations

__all__ = ["DeviceError", "SheetError", "StopError"]


class DeviceError(Exception):
    """The device under test, or what is asked of it, is none that can be measured; the text says why and the cure."""


class SheetError(Exception):
    """A directory that is none of a characterisation, or of another one."""


class StopError(Exception):
    """Somebody stopped it, or the time that was given is over; what was measured is kept."""
