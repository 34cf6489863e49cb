"""Sentences on a comparison, for its page and the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence

from wiregauge.measures.comparing.comparison import (
    Comparison,
    FlowComparison,
    Shift,
    SweepShift,
)
from wiregauge.measures.comparing.judging import grouped
from wiregauge.measures.definitions.units import count_of, duration, p_text, share

COLOURS = {"better": "green", "same": "dim", "worse": "red", "undecided": "yellow"}
BASES = {
    "identical": "identical values",
    "equivalent": "shown to lie within the threshold",
    "no-difference": "no difference found",
    "significant": "beyond chance and instrument",
    "beyond-threshold": "beyond the threshold",
    "open": "too few messages to tell",
    "few-events": "too few events to tell a change from chance",
    "out-of-reach": "only a change greater than the figure itself would be found",
    "sweep": "changed over the sweep, not shown at this point alone",
    "unfit": "a side is not fit to compare",
}
_IDENTICAL = BASES["identical"]


def signed(ns: float | None) -> str:
    """A shift in ns with its sign and a unit that fits."""
    if ns is None:
        return "open"
    return ("+" if ns > 0 else "") + duration(ns, 3).replace("-", "\N{MINUS SIGN}", 1)


def points_of(value: float | None) -> str:
    """A difference of shares, in percentage points, with its sign."""
    if value is None:
        return "open"
    if value == 0:
        return "0"
    return ("+" if value > 0 else "\N{MINUS SIGN}") + share(abs(value), 2)


def basis_text(shift: Shift) -> str:
    """The basis of a shift's verdict, in words."""
    if shift.basis == "open" and shift.tolerance is not None:
        return "the interval reaches beyond the threshold"
    return BASES.get(shift.basis or "", "")


def beyond_text(shift: Shift) -> str:
    """The basis of a quantile's verdict: messages beyond one value on either side, and the chance of that."""
    found = shift.beyond
    if found is None or shift.chance is None:
        return ""
    what = "at or above" if found.within else "above"
    return (
        f"{what} {duration(found.value, 4)}: {found.base_count} of {found.base_n} → "
        f"{found.new_count} of {found.new_n}, {p_text(shift.chance)}"
    )


def shift_text(name: str, shift: Shift) -> str:
    """`latency.p99 41.2 µs → 53.3 µs, +12.1 µs [+11.8 µs, +12.4 µs]` with the interval that goes with the verdict."""
    ends, parts = shift.shown, shift.statistic == "share"
    text: Callable[[float | None], str] = points_of if parts else signed
    base, new = (share(end.value) if parts else duration(end.value) for end in (shift.base, shift.new))
    return f"{name} {base} → {new}, {text(ends.value)} [{text(ends.low)}, {text(ends.high)}]"


def decided_text(name: str, shift: Shift) -> str:
    """`shift_text`, and for a percentile without a threshold the count that decided."""
    beyond = beyond_text(shift) if shift.verdict in ("worse", "better") else ""
    return shift_text(name, shift) + (f"; {beyond}" if beyond else "")


def detectable_text(flow: FlowComparison) -> str:
    """`no difference found, detectable from 1.3 µs on (latency.p99)`: how strong a "same" without a threshold is."""
    found = flow.detectable
    if found is not None:
        name, reach = found
        least = f"from {duration(reach, 2)} on" if reach > 0 else "however small"
        return f"no difference found, detectable {least} ({name}){_tail_text(flow.unseen_tail)}"
    shares = [
        (name, shift.detectable)
        for name, shift in flow.judged
        if shift.basis == "no-difference" and shift.detectable is not None
    ]
    if shares:
        name, part = max(shares, key=lambda entry: entry[1])
        return f"no difference found, detectable from {share(part, 2)} of the messages on ({name})"
    return ""


def _tail_text(part: float | None) -> str:
    return "" if part is None else f", and a tail from {share(part, 2)} of the messages on"


def sameness_text(flow: FlowComparison) -> str:
    """The sense in which a flow is the same on both sides."""
    bases = {shift.basis for _, shift in flow.judged}
    if "no-difference" in bases:
        return detectable_text(flow)
    if bases == {"identical"} or not bases - {"identical", "no-difference"}:
        return _IDENTICAL
    return "shown to lie within the threshold"


def verdict_word(flow: FlowComparison) -> str:
    """The verdict of a row: that of the flow, except where some figures are better and others undecided.

    The latter might be worse, so the flow is not called better; its row shows the figure that is.
    """
    return "better in part" if flow.verdict == "undecided" and _better(flow) else flow.verdict


def _better(flow: FlowComparison) -> list[str]:
    return [name for name, shift in flow.judged if shift.verdict == "better"]


def verdict_text(flow: FlowComparison) -> str:
    """The verdict of a row and the figure it rests on."""
    if flow.verdict == "same":
        return f"same: {sameness_text(flow)}{_unshared(flow)}"
    deciding = flow.deciding
    if flow.verdict == "undecided" or deciding is None:
        better = _better(flow)
        found = f"better in part: {grouped(better)}; undecided: " if better else "undecided: "
        return f"{found}{flow.reason}{_unshared(flow)}"
    return f"{flow.verdict}: {deciding[0]}"


def _unshared(flow: FlowComparison) -> str:
    """A reason for figures that are not called changed although their interval excludes 0."""
    names = [
        name
        for name, shift in flow.judged
        if shift.verdict in ("same", "undecided")
        and shift.tolerance is None
        and ((shift.shown.low or 0.0) > 0 or (shift.shown.high or 0.0) < 0)
    ]
    if not names:
        return ""
    return (
        f"; 0 is outside the interval of {grouped(names)}, as of one figure in twenty by chance: not enough at the "
        "level that all figures share"
    )


def sweep_text(sweep: SweepShift) -> str:
    """`flow 1: latency.p99 over all 18 points together (p = 1e-40), at 15 of them by itself`."""
    return (
        f"flow {sweep.flow}: {sweep.figure} over all {sweep.points} points together ({p_text(sweep.chance)}), "
        f"at {sweep.decided} of them by itself"
    )


def error_rates(comparison: Comparison, *, short: bool = False) -> str:
    """The error rate at which the verdicts hold, in a sentence or two; `short` without what the terms mean."""
    tested = sum(shift.tolerance is None for flow in comparison.flows for _, shift in flow.judged)
    held = comparison.judged - tested
    parts = []
    if tested:
        meant = (
            " (of the changes reported at most this share is expected to be false; if nothing changed, it is "
            "the probability of any alarm); sweeps first, then their points (Benjamini and Bogomolov 2014); "
            "intervals shown are "
            "95 % each; detectable: found 8 times in 10 if it were the only change"
        )
        parts.append(
            f"{count_of(tested, 'figure')} tested for any change: false discovery rate {100 * comparison.rate:.3g} %"
            + ("" if short else meant)
        )
    if held:
        parts.append(
            f"{count_of(held, 'figure')} held against a threshold: intervals of {100 * comparison.joint_level:.4g} % "
            "each, so that all judged figures hold together with 95 % (Bonferroni)"
        )
    return "; ".join(parts) or "no figure was judged"


def compare_headline(comparison: Comparison) -> str:
    """One sentence on what got worse, got better or stayed, headed by benches that differ."""
    benches = f"{comparison.benches}: " if comparison.benches else ""
    return benches + _headline(comparison)


def _headline(comparison: Comparison) -> str:
    if comparison.unfit:
        return "One side is not fit to compare, so nothing is decided."
    tally = Counter(map(verdict_word, comparison.flows))
    flows = count_of(len(comparison.flows), "flow")
    if any(point.title for point in comparison.points):
        flows += f" at {count_of(len(comparison.points), 'point')}"
    alone = f"; {count_of(len(comparison.alone), 'part')} of one side only" if comparison.alone else ""
    parts = [
        f"{tally[word]} {word}" for word in ("worse", "better", "better in part", "undecided") if tally[word]
    ]
    if not parts and not comparison.sweeps:
        said = sameness_of(comparison.flows)
        return f"All {flows} compared: {said}{alone}." if len(comparison.flows) > 1 else f"{said}{alone}."
    same = f", {tally['same']} without a difference found" if tally["same"] else ""
    worst = greatest(comparison, "worse") or greatest(comparison, "better")
    example = f"; the greatest change against its base is {worst}" if worst else ""
    if not worst and comparison.sweeps:
        example = f"; {comparison.sweeps[0].verdict} is {sweep_text(comparison.sweeps[0])}"
    return f"Of {flows} compared, {', '.join(parts) or 'none decided by itself'}{same}{example}{alone}."


def sameness_of(flows: Sequence[FlowComparison]) -> str:
    """The sense in which all of these flows are the same on both sides."""
    twins = sum(sameness_text(flow) == _IDENTICAL for flow in flows)
    if twins == len(flows):
        return _IDENTICAL
    reaches = [found for flow in flows if (found := flow.detectable) is not None]
    if reaches:
        name, reach = max(reaches, key=lambda entry: entry[1])
        least = f"from {duration(reach, 2)} on" if reach > 0 else "however small"
        tails = [tail for flow in flows if (tail := flow.unseen_tail) is not None]
        said = (
            f"no difference found, detectable {least} ({name} of the flow that tells least)"
            f"{_tail_text(max(tails, default=None))}"
        )
    else:
        said = next(filter(None, map(sameness_text, flows)), "no difference found")
    return f"{said} ({twins} of them with identical values)" if twins else said


def greatest(comparison: Comparison, verdict: str) -> str:
    """The change of a latency or share with this verdict that is greatest against its base, as text."""
    found = [
        (point.title, flow, name, shift)
        for point in comparison.points
        for flow in point.flows
        for name, shift in flow.judged
        if shift.verdict == verdict
    ]
    if not found:
        return ""
    times = [entry for entry in found if entry[3].statistic != "share"]
    title, flow, name, shift = max(times or found, key=lambda entry: entry[3].weight)
    where = f" at {title}" if title else ""
    return f"{shift_text(name, shift)} of flow {flow.label}{where}"


def in_full_text(comparison: Comparison) -> str:
    """A sentence on the flows that are shown in full; empty where all are."""
    told = comparison.in_full
    if told is comparison:
        return ""
    return (
        f"Told in full are {len(told.flows)} of {count_of(len(comparison.flows), 'flow')}: with each verdict those "
        "that moved most. Verdicts, error rate and shares are of all; --json has the judged figures of each."
    )


def unmatched(comparison: Comparison) -> tuple[list[str], list[str]]:
    """Points, flows and measures that found no partner, as text, for either side."""
    sides: tuple[list[str], list[str]] = ([], [])
    for texts, points in zip(sides, (comparison.only_base, comparison.only_new), strict=True):
        texts += [
            ", ".join(f"{k} {v}" for k, v in point.point.items()) or "its one point" for point in points
        ]
    for point in comparison.points:
        for texts, flows in zip(sides, (point.only_base, point.only_new), strict=True):
            where = f" at {point.title}" if point.title else ""
            texts += [
                f"flow {flow.plan.name} ({flow.plan.protocol}, {flow.plan.source} to {flow.plan.destination}){where}"
                for flow in flows
            ]
    for texts, own in zip(sides, ("only_base", "only_new"), strict=True):
        alone: Counter[str] = Counter(", ".join(getattr(flow, own)) for flow in comparison.flows)
        texts += [f"{names} (of {count_of(count, 'flow')})" for names, count in alone.items() if names]
    return sides
