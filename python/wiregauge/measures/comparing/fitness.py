"""Checks whether two sides are fit to be compared, or are one measurement; and the result where they are not fit."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from wiregauge.measures.comparing.comparison import MeasureShift, PointComparison, Shift
from wiregauge.measures.metrics.judgement import Grade, Judgement, PointResult

__all__ = ["one_measurement", "undecided", "unfit", "unfit_for"]


def unfit_for(judgement: Judgement, points: Sequence[PointResult]) -> str:
    """The reason why a run cannot be relied on where these points of it are compared; empty where it can.

    Its campaign is incomplete, or it or one of the points is INVALID.
    """
    if not judgement.complete:
        return f"is incomplete: {judgement.reason or 'not every planned run ran to its end'}"
    broken = next(
        (check.reason or check.title for check in judgement.checks if check.grade == Grade.INVALID), None
    )
    if broken is not None:
        return f"is INVALID: {broken}"
    bad = [point for point in points if point.validity == Grade.INVALID]
    if not bad:
        return ""
    reasons = (reason for run in judgement.runs if run.plan.index in bad[0].runs for reason in run.reasons)
    why = next(reasons, "")
    return f"is not fit: {len(bad)} of {len(points)} compared points are INVALID" + (
        f": {why}" if why else ""
    )


def unfit(base: Judgement, new: Judgement, points: Sequence[PointComparison]) -> tuple[str, ...]:
    """The reasons why sides cannot be relied on."""
    sides = (("base", base, [point.base for point in points]), ("new", new, [point.new for point in points]))
    return tuple(
        f"{which} ({judgement.directory}) {why}"
        for which, judgement, own in sides
        if (why := unfit_for(judgement, own))
    )


def one_measurement(base: Judgement, new: Judgement) -> bool:
    """Whether both are one measurement: one directory, or the same test simulated with the same seed and settings."""

    def played(side: Judgement) -> tuple[object, ...]:
        test = side.manifest.get("test")
        sha256 = test.get("sha256") if isinstance(test, dict) else None
        return side.traits.virtual_time, sha256, side.seed, side.settings

    if base.directory.resolve() == new.directory.resolve():
        return True
    return played(base) == played(new) and base.traits.virtual_time and None not in played(base)


def undecided(point: PointComparison) -> PointComparison:
    """A comparison of a point between unfit sides: its figures are shown, and none of them is decided."""

    def figure(shift: Shift) -> Shift:
        if shift.verdict is None:
            return shift
        return replace(shift, verdict="undecided", basis="unfit", detectable=None)

    def measure(of: MeasureShift) -> MeasureShift:
        return replace(
            of,
            mean=figure(of.mean),
            sd=figure(of.sd),
            greatest=figure(of.greatest),
            quantiles=tuple(map(figure, of.quantiles)),
        )

    flows = [
        replace(
            flow,
            measures={name: measure(of) for name, of in flow.measures.items()},
            shares={name: replace(of, shift=figure(of.shift)) for name, of in flow.shares.items()},
            verdict="undecided",
            reason=flow.reason or "a side is not fit to compare",
        )
        for flow in point.flows
    ]
    return replace(point, flows=tuple(flows))
