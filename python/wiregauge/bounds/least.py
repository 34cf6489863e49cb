"""Bounds of one network by every method that fits it: the least of them is the bound to come near to."""

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
"""Servers on the ways of all flows up to which linear programmes are asked too: of more they take too long."""


def least(source: Source, asked: Answer) -> list[Answer]:
    """The bound that was asked for, and those of the methods that fit this network and its order of service."""
    answers = [asked]
    steps = sum(len(target.path) for flow in asked.flows for target in flow.targets)
    ways = (*_WAYS, ("plp", "fifo", True)) if steps <= _MOST_STEPS else _WAYS
    for method, order, grouping in ways:
        # What holds for any order of service holds in order of arrival too; not the other way round.
        if asked.multiplexing == "arbitrary" and order == "fifo":
            continue
        try:
            answers.append(bound(source, method, multiplexing=order, grouping=grouping))
        except (TestError, NoAnswerError):
            continue
    return answers
