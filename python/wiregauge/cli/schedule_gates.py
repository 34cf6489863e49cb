"""What `schedule` does with gates: the test written with them, and those of a test judged."""

from __future__ import annotations

import json
from collections.abc import Collection, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace
from msgspec.structs import replace as changed

from wiregauge.terminal import BAD_INPUT, fail, put, put_errors

if TYPE_CHECKING:
    from wiregauge.plan import Campaign, Run
    from wiregauge.scheduling import GatesJudged, Shown

__all__ = ["gates_checked", "refuse_of_windows", "tell_gates", "with_gated_test"]


def gates_checked(
    test: Path, settings: Sequence[str], precision_ps: int | None
) -> tuple[Campaign, GatesJudged] | None:
    """What is wrong with the gates of a test without time-triggered flows; None: it has such flows, or no gates."""
    from wiregauge.cli.schedule_planted import planted_precision
    from wiregauge.config import TestError, load, reading
    from wiregauge.scheduling import ProblemError, has_gates, judge_gates

    try:
        campaign = load(test, settings).campaign
    except TestError:
        # Windows that clash, perhaps; whoever judges those says so.
        return None
    if any(flow.schedule is not None for flow in campaign.runs[0].flows) or not has_gates(campaign):
        return None
    precision_ps = planted_precision(test, reading.read(test), campaign, precision_ps, gates=True)
    try:
        judged = judge_gates(campaign, precision_ps or 0, partial(_waits_beside, test, campaign))
    except ProblemError as error:
        fail(f"{test}: {error}", BAD_INPUT)
    if not judged.periods and not judged.faults:
        fail(
            f"{test}: no flow with a priority above 0 passes a gate that closes; give scheduled flows a priority",
            BAD_INPUT,
        )
    return campaign, judged


def _waits_beside(
    test: Path, campaign: Campaign, run: Run, scheduled: Collection[int]
) -> dict[str, float | None]:
    """By port: bits of all but the scheduled flows that wait there at most; no port where nothing bounds them."""
    from wiregauge.bounds import NoAnswerError, bound
    from wiregauge.bounds.networks import of_campaign
    from wiregauge.config import TestError

    others = tuple(flow for flow in run.flows if flow.id not in scheduled)
    sends = tuple(send for send in run.sends if send.flow not in scheduled)
    alone = changed(run, flows=others, sends=sends)
    try:
        answer = bound(of_campaign(changed(campaign, runs=(alone,)), 0, str(test)), arithmetic="rounded")
    except (TestError, NoAnswerError):
        return {}
    return {server.server: server.backlog_bits for server in answer.servers}


def refuse_of_windows(
    out: Path | None, interface: Sequence[str] | None, grid: str | None, guard: str | None
) -> None:
    given = {"--out": out, "--interface": interface, "--grid": grid, "--guard": guard}
    for option, value in given.items():
        if value:
            fail(f"{option} has no effect where gates of a test are checked; leave it out", BAD_INPUT)


def tell_gates(test: Path, judged: tuple[Campaign, GatesJudged], *, as_json: bool) -> None:
    from wiregauge.scheduling import gates_json, gates_text

    campaign, found = judged
    if as_json:
        print(json.dumps(gates_json(str(test), campaign.name, found), indent=1))
    else:
        for line in gates_text(str(test), found):
            put(line)


def with_gated_test(
    shown: Shown, text: bytes, test: Path, campaign: Campaign, priority: int, settings: Sequence[str]
) -> Shown:
    from wiregauge.scheduling import NotKeptError, ProblemError, gated

    assert shown.opens is not None
    try:
        made = gated(text, test, campaign, shown.problem, shown.opens, settings, first=priority)
    except ProblemError as error:
        fail(f"{test}: {error}", BAD_INPUT)
    except NotKeptError as error:
        put_errors(error)
        fail(f"{test}: the plan refuses the test with gates for what is said above", BAD_INPUT)
    return replace(shown, gated=made)
