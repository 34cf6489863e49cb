"""Pairing of points with points and flows with flows. Those without a partner are listed, never dropped."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from msgspec import Struct

from wiregauge.measures.metrics.flow_plan import FlowPlan
from wiregauge.measures.metrics.judgement import FlowResult, Judgement, PointResult
from wiregauge.plan.quantity import canonical

Point = Mapping[str, str]


class MatchError(ValueError):
    """The two sides cannot be paired as requested; the text is a sentence with the cure."""


class PointPair(Struct, frozen=True):
    """Two points that belong together; `axes` are the values they have in common, as the base writes them."""

    base: PointResult
    new: PointResult
    axes: Point


class Matched(Struct, frozen=True):
    """Pairs of points, the points without a partner on either side, and the reasons for those left out."""

    pairs: tuple[PointPair, ...]
    only_base: tuple[PointResult, ...]
    only_new: tuple[PointResult, ...]
    notes: tuple[str, ...]


def match_points(
    base: Judgement, new: Judgement, base_at: Mapping[str, str], new_at: Mapping[str, str]
) -> Matched:
    """Matches points by the axes both sides sweep, after choosing those with the values of `base_at` and `new_at`.

    An axis that was chosen on both sides, or that one side has with a single value and the other not at all, takes no
    part. Raises MatchError where a choice names no axis or no value there is, or where one has to be made.
    """
    sides = (_selected(base, base_at, "base"), _selected(new, new_at, "new"))
    axes = [_axes(points) for points in sides]
    chosen = base_at.keys() & new_at.keys()
    common = [name for name in axes[0] if name in axes[1] and name not in chosen]
    notes = []
    for which, own in zip(("base", "new"), axes, strict=True):
        for name, values in own.items():
            if name in common or name in chosen:
                continue
            if len(values) > 1:
                raise MatchError(
                    f"only the {which} side sweeps {name} ({', '.join(values)}); "
                    f"choose one value with --{which}-at {name}=VALUE"
                )
            notes.append(
                f"{name} {values[0]} is an axis of the {which} side only and took no part in matching"
            )

    def key(point: PointResult) -> tuple[str, ...]:
        return tuple(canonical(point.point.get(name, "")) for name in common)

    partners = {key(point): point for point in sides[1]}
    pairs = tuple(
        PointPair(point, partners[key(point)], {name: point.point[name] for name in common})
        for point in sides[0]
        if key(point) in partners
    )
    met = {key(pair.base) for pair in pairs}
    return Matched(
        pairs,
        tuple(point for point in sides[0] if key(point) not in met),
        tuple(point for point in sides[1] if key(point) not in met),
        tuple(notes),
    )


def _axes(points: Sequence[PointResult]) -> dict[str, list[str]]:
    found: dict[str, dict[str, str]] = {}
    for point in points:
        for name, value in point.point.items():
            found.setdefault(name, {}).setdefault(canonical(value), value)
    return {name: list(values.values()) for name, values in found.items()}


def _selected(judgement: Judgement, at: Mapping[str, str], which: str) -> list[PointResult]:
    points = list(judgement.points)
    for name, value in at.items():
        values = _axes(judgement.points).get(name)
        if values is None:
            known = ", ".join(_axes(judgement.points)) or "none"
            raise MatchError(f"{judgement.directory}: the {which} side has no axis {name}; its axes: {known}")
        points = [p for p in points if canonical(p.point.get(name, "")) == canonical(value)]
        if not points:
            raise MatchError(
                f"{judgement.directory}: no point with {name} {value}; there is {', '.join(values)}"
            )
    return points


class FlowPair(Struct, frozen=True):
    """Two flows that belong together; `matched_by` is `number` or `role`."""

    base: FlowResult
    new: FlowResult
    by: str


def match_flows(
    base: Sequence[FlowResult], new: Sequence[FlowResult]
) -> tuple[list[FlowPair], list[FlowResult], list[FlowResult]]:
    """Pairs of flows, then those without a partner on either side.

    By number (and receiver, for a multicast flow) first; the rest by role: source, destination and whether it is
    relayed, where that is unambiguous, with the protocol deciding between several. The only relayed flow of either side
    is one pair where there is no other, as of a measurement of another program, which has other names.
    """
    waiting = {(flow.plan.id, flow.plan.destination if flow.plan.multicast else ""): flow for flow in new}
    pairs, left = [], []
    for flow in base:
        partner = waiting.pop((flow.plan.id, flow.plan.destination if flow.plan.multicast else ""), None)
        if partner is None:
            left.append(flow)
        else:
            pairs.append(FlowPair(flow, partner, "number"))
    rest = list(waiting.values())
    for role in (_role_with_protocol, _role, _relayed):
        if role is _relayed and pairs:
            break
        known = [_by_role(flows, role) for flows in (left, rest)]
        alone = [
            (rivals[0], known[1][key][0])
            for key, rivals in known[0].items()
            if len(rivals) == 1 == len(known[1].get(key, ()))
        ]
        pairs += [FlowPair(flow, other, "role") for flow, other in alone]
        met = {id(flow) for both in alone for flow in both}
        left, rest = ([flow for flow in flows if id(flow) not in met] for flows in (left, rest))
    order = {id(flow): place for place, flow in enumerate(base)}
    return sorted(pairs, key=lambda pair: order[id(pair.base)]), left, rest


def _by_role(
    flows: Sequence[FlowResult], role: Callable[[FlowPlan], tuple[object, ...]]
) -> dict[tuple[object, ...], list[FlowResult]]:
    found: dict[tuple[object, ...], list[FlowResult]] = {}
    for flow in flows:
        found.setdefault(role(flow.plan), []).append(flow)
    return found


def _role(plan: FlowPlan) -> tuple[str, str, bool]:
    return plan.source, plan.destination, plan.relayed


def _relayed(plan: FlowPlan) -> tuple[object, ...]:
    return () if plan.relayed else (plan.id,)


def _role_with_protocol(plan: FlowPlan) -> tuple[str, str, bool, str]:
    return (*_role(plan), plan.protocol)
