"""What can go wrong in a calibration, by whose fault it is."""

from __future__ import annotations


class CalibrationError(Exception):
    """The input cannot be used; the text says what is wrong, where, and the cure."""


class BenchMissingError(CalibrationError):
    """This machine cannot measure what was asked; the text says why and the cure."""


class StoppedError(CalibrationError):
    """Asked to stop before anything was measured."""
