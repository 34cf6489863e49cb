"""The error between a testmaster and the hosts of its lab, before any test."""

from __future__ import annotations

from wiregauge.runner.bench import BenchError

__all__ = ["LabError"]


class LabError(BenchError):
    """An error of a host, the lab's folder or its inventory; the text says which, and the cure."""
