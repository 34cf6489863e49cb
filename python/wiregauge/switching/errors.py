"""What ends a characterisation early, each as a sentence for the user."""

from __future__ import annotations

__all__ = ["BeyondError", "DeviceError", "SheetError", "StopError"]


class DeviceError(Exception):
    """The device under test, or what is asked of it, is none that can be measured; the text says why and the cure."""


class SheetError(Exception):
    """A directory that is none of a characterisation, or of another one."""


class BeyondError(Exception):
    """A trial asks for what the bench cannot do; the text says what and why."""


class StopError(Exception):
    """Somebody stopped it, or the time that was given is over; what was measured is kept."""
