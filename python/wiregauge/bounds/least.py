"""Bounds of one network by every method that fits it; the least is the one to approach."""

from __future__ import annotations

from typing import Final

from wiregauge.bounds.analysing import Answer, NoAnswerError, bound
from wiregauge.bounds.networks import Source
from wiregauge.config import TestError

__all__ = ["least"]

_WAYS: Final = (
    ("tfa", "fifo", True),
    ("tfa", "fifo", False),
    ("sfa", "fifo", True),
    ("sfa", "fifo", False),
    ("pmoo", "arbitrary", True),
)
_MOST_STEPS: Final = 2_000
"""The most servers, summed over all paths, for which linear programmes are solved; more takes too long."""


def least(source: Source, asked: Answer) -> list[Answer]:
    """The given answer, and those of the other methods that fit this network and its order of service."""
    answers = [asked]
    steps = sum(len(target.path) for flow in asked.flows for target in flow.targets)
    ways = (*_WAYS, ("plp", "fifo", True)) if steps <= _MOST_STEPS else _WAYS
    for method, order, grouping in ways:
        # Bounds for any order of service also hold for first in, first out; not the other way round.
        if asked.multiplexing == "arbitrary" and order == "fifo":
            continue
        try:
            answers.append(bound(source, method, multiplexing=order, grouping=grouping, phases=asked.phases))
        except (TestError, NoAnswerError):
            continue
    return answers
