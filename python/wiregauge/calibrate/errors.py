"""The errors of a calibration, by whose fault they are."""

from __future__ import annotations


class CalibrationError(Exception):
    """The input cannot be used; the text says what is wrong, where, and the cure."""


class BenchMissingError(CalibrationError):
    """This machine cannot make the measurement; the text says why and the cure."""


class StoppedError(CalibrationError):
    """The user stopped the calibration before anything was measured."""
