"""Errors that end a characterisation early, each with a sentence for the user."""

from __future__ import annotations

__all__ = ["BeyondError", "DeviceError", "SheetError", "StopError"]


class DeviceError(Exception):
    """The device under test, or the request, cannot be measured; the text says why and the cure."""


class SheetError(Exception):
    """The directory is not one of a characterisation, or of another one."""


class BeyondError(Exception):
    """A trial needs what the bench cannot do; the text says what and why."""


class StopError(Exception):
    """The user stopped the session, or its time is up; finished trials are stored."""
