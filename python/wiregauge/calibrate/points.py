"""Points of a cable calibration from run directories: the mean of a measure over each cable."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct

from wiregauge.calibrate import identity
from wiregauge.calibrate.cable import Point
from wiregauge.calibrate.errors import CalibrationError
from wiregauge.measures import FlowResult, Grade, Judgement
from wiregauge.measures.validity.calibration import run_load
from wiregauge.records import RunDirectoryError
from wiregauge.results import judge
from wiregauge.terminal import say

_LENGTH = re.compile(r"(\d+(?:\.\d+)?)m")
MEASURES = ("latency", "driver_latency")


class RunPoints(Struct, frozen=True):
    """The points, and the settings that their runs share."""

    points: list[Point]
    settings: dict[str, Any]
    driver: str
    link: str


def points_of_runs(arguments: Sequence[str], flow: int | None, measure: str) -> RunPoints:
    """A point for each `LENGTH=DIR`. Raises CalibrationError for invalid arguments, for runs that are INVALID, and for
    runs that differ in protocol, payload, load, link or bench: a line through them would not be a cable's.
    """
    if measure not in MEASURES:
        raise CalibrationError(f'--measure "{measure}": write {" or ".join(MEASURES)}')
    found: list[Point] = []
    common: dict[str, tuple[Any, str]] = {}
    for text in arguments:
        length, _, place = text.partition("=")
        written = _LENGTH.fullmatch(length)
        if written is None or not place:
            raise CalibrationError(f'"{text}": write LENGTH=DIR, as in 8.5m=run-a, or a single CSV file')
        point, facts = _point(float(written[1]), Path(place), flow, measure)
        found.append(point)
        for key, value in facts.items():
            before, where = common.setdefault(key, (value, place))
            if before != value:
                raise CalibrationError(
                    f"{place}: its {key} is {value}, that of {where} is {before}; make them alike"
                )
    facts = {key: value for key, (value, _) in common.items()}
    driver, link = facts.pop("driver"), facts.pop("link")
    return RunPoints(found, {"measure": measure, **facts}, driver, link)


def _point(length: float, place: Path, flow: int | None, measure: str) -> tuple[Point, dict[str, Any]]:
    try:
        judgement = judge(place, unkept=say)
    except RunDirectoryError as error:
        raise CalibrationError(str(error)) from None
    if judgement.validity is Grade.INVALID:
        raise CalibrationError(f"{place}: is INVALID: {judgement.reasons[0]}; run it again")
    one = _flow(judgement, place, flow)
    summary = one.summaries.get(measure)
    if summary is None or summary.mean is None or summary.uncertainty is None:
        raise CalibrationError(
            f"{place}: flow {one.plan.name} has no {measure.replace('_', ' ')}; choose another --measure"
        )
    run = judgement.runs[0].plan
    point = Point(
        length, summary.mean, summary.uncertainty.total, summary.minimum, summary.maximum, summary.n
    )
    return point, {
        "driver": judgement.traits.driver,
        "link": identity.link_of(judgement.plan.network, run.link_rate_bps),
        "protocol": one.plan.protocol,
        "payload_bytes": one.plan.payload,
        "load_percent": run_load(run),
    }


def _flow(judgement: Judgement, place: Path, number: int | None) -> FlowResult:
    if len(judgement.points) != 1:
        raise CalibrationError(
            f"{place}: has {len(judgement.points)} points of a sweep; a cable needs runs of one"
        )
    flows = judgement.points[0].flows
    named = [flow for flow in flows if number is None or flow.plan.id == number]
    if len(named) != 1:
        there = ", ".join(flow.plan.name for flow in flows)
        raise CalibrationError(f"{place}: has the flows {there}; choose one with --flow")
    return named[0]
