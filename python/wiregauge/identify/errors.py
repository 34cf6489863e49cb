"""What cannot be identified at all."""

from __future__ import annotations


class IdentifyError(Exception):
    """The records do not hold what the model needs; one sentence with the cure."""
