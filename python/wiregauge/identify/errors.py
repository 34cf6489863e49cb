"""The error of records that identify nothing."""

from __future__ import annotations


class IdentifyError(Exception):
    """The records lack what the model needs; one sentence with the cure."""
