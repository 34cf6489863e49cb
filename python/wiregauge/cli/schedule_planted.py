"""What a test plants against its schedule: refused, told, or reckoned with as clocks that are so far apart."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from wiregauge.terminal import BAD_INPUT, fail, say

if TYPE_CHECKING:
    from lxml import etree

    from wiregauge.plan import Campaign, Run

__all__ = ["every_node", "planted_precision", "with_planted"]


def with_planted(test: Path, data: bytes, campaign: Campaign, times: Mapping[str, Any]) -> Mapping[str, Any]:
    """`times` with a precision that the planted clocks do not contradict; says what is planted.

    Raises `TestError` where the test plants what no schedule stands beside.
    """
    precision = planted_precision(test, data, campaign, times["precision_ps"])
    return {**times, "precision_ps": precision}


def every_node(run: Run) -> Collection[int]:
    """Those that frames pass."""
    return {node for flow in run.flows for route in flow.routes for node in route.nodes}


def planted_precision(
    test: Path, data: bytes, campaign: Campaign, given_ps: int | None, *, gates: bool = False
) -> int | None:
    """How far apart clocks are: as it is said, or as far as the test has them part."""
    from wiregauge.config import reading
    from wiregauge.config.contradicted import placed, refuse, told
    from wiregauge.config.groups import expanded
    from wiregauge.plan.planted import Contradiction, contradictions, parting_of

    @cache
    def text() -> etree._Element:
        return expanded(reading.parse(data, str(test)), str(test)).root

    # Clocks that part are reckoned with below.
    every = [
        one
        for run in campaign.runs
        for one in contradictions(campaign.network, run, "schedule")
        if one.tag not in ("clock", "step-clock")
    ]
    # Once what several runs plant at one place.
    found = list({(one.tag, one.number): one for one in reversed(every)}.values())[::-1]
    refuse(found, str(test), text, "a schedule")
    for sentence in told(found, text):
        say(f"{test}: {sentence}")
    apart = parting_of(campaign, every_node) if gates else parting_of(campaign)
    if apart is None:
        return given_ps
    sentence = apart.sentence(campaign.network)
    line = placed(text(), Contradiction("", "clock", apart.nodes[0], sentence, refused=False))
    where = f"{test}:{line}: <clock>: {sentence}"
    if given_ps is not None and given_ps < apart.apart and not apart.kept:
        fail(
            f"{where}, and --precision says that they are at most {given_ps / 1e6:.6g} us apart; "
            "leave --precision out, or have the clocks kept together",
            BAD_INPUT,
        )
    if given_ps is None:
        say(f"{where}; windows are taken to need as much (--precision {-(-apart.apart // 1000)}ns)")
        return apart.apart
    return given_ps
