"""Findings as sentences. Each gives the finding, its size and certainty; figures have no more digits than are
certain."""

from __future__ import annotations

from collections.abc import Sequence

from wiregauge.measures.definitions.units import count_of, duration, share
from wiregauge.measures.explaining.explanation import Clock, Event, Holder, Step
from wiregauge.measures.metrics.flow_plan import CampaignPlan, FlowPlan
from wiregauge.stats import Course, Mode, Peaks, Recurrence
from wiregauge.stats.recurrence import SAME_PERIOD

TITLES = {"latency": "latency", "rtt": "the round trip", "send_error": "the send error"}
HALF = 0.5
LEAST_NS = 1.0
"""Less than the resolution of timestamps is nothing that could be explained."""
MOST_NAMED = 3
FOREIGN = 65_535
"""Flow number of frames without a header of ours."""


def chance(p: float) -> str:
    """A p-value as it is printed."""
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def seconds(value: float) -> str:
    """A time given in s, in the unit that fits."""
    return duration(value * 1e9, 3)


def mode_sentence(mode: Mode, measure: str) -> str:
    """One recurring mode."""
    return (
        f"Every {seconds(mode.period.value)} for {seconds(mode.duration.value)} {TITLES[measure]} rises by "
        f"{duration(mode.height.value, 3)} (n = {count_of(mode.bands, 'band')} in {count_of(mode.cycles, 'cycle')}, "
        f"{chance(mode.p_value)})."
    )


def _bands_sentence(modes: Sequence[Mode], measure: str) -> str:
    """Bands of one period, which is one cause."""
    if len(modes) == 1:
        return mode_sentence(modes[0], measure)
    rises = ", ".join(f"by {duration(m.height.value, 3)} for {seconds(m.duration.value)}" for m in modes)
    seen = ", ".join(str(m.bands) for m in modes)
    cycles = count_of(max(m.cycles for m in modes), "cycle")
    return (
        f"Every {seconds(modes[0].period.value)} {TITLES[measure]} rises in {len(modes)} bands: {rises} "
        f"(n = {seen} bands in {cycles}, {chance(max(m.p_value for m in modes))})."
    )


def mode_sentences(recurrence: Recurrence, measure: str) -> tuple[str, ...]:
    """A sentence on recurring modes, or on their absence and the range searched."""
    if recurrence.modes:
        together: list[list[Mode]] = []
        for mode in recurrence.modes:
            period = mode.period.value
            alike = (one for one in together if abs(one[0].period.value / period - 1) < SAME_PERIOD)
            found = next(alike, None)
            if found is None:
                together.append([mode])
            else:
                found.append(mode)
        return tuple(_bands_sentence(modes, measure) for modes in together)
    if recurrence.longest <= recurrence.shortest:
        constant = recurrence.n >= 64
        return (
            f"Nothing recurs in {TITLES[measure]}: it never changes (n = {recurrence.n})."
            if constant
            else f"Whether anything recurs in {TITLES[measure]} cannot be told from {count_of(recurrence.n, 'value')}.",
        )
    return (
        f"Nothing recurs in {TITLES[measure]} with a period between {seconds(recurrence.shortest)} and "
        f"{seconds(recurrence.longest)} (n = {recurrence.n}, false alarms at most {share(recurrence.false_alarm)}).",
    )


def course_sentences(course: Course, measure: str) -> tuple[str, ...]:
    """Drift, changes, or that there is neither."""
    if not course.tested:
        return (f"Whether {TITLES[measure]} changes cannot be told from {count_of(course.n, 'value')}.",)
    said = []
    if course.slope is not None:
        way = "rises" if course.slope > 0 else "falls"
        said.append(
            f"{TITLES[measure]} {way} steadily by {duration(abs(course.slope), 3)} per second.".capitalize()
        )
    for change in course.changes:
        what = f"The {'median' if change.kind == 'level' else 'spread'} of {TITLES[measure]}"
        said.append(
            f"{what} changes at {change.at:.4g} s ({change.low:.4g} s to {change.high:.4g} s) from "
            f"{duration(change.before, 3)} to {duration(change.after, 3)} ({chance(change.p_value)})."
        )
    return tuple(said) or (
        f"Neither level nor spread of {TITLES[measure]} changes (n = {course.n}, false alarms at most "
        f"{share(course.false_alarm)}).",
    )


def peak_sentence(found: Peaks, measure: str) -> str:
    """A sentence on the number of modes of the distribution."""
    what = TITLES[measure]
    if not found.peaks:
        return f"The distribution of {what} cannot be named from {count_of(found.n, 'value')}."
    if len(found.peaks) == 1:
        return (
            f"The distribution of {what} has one mode for certain, at {duration(found.peaks[0].position, 3)} (a "
            f"further one is told where about {share(min(2 * found.band, 1.0), 2)} of the values or more stand above "
            "the valley between the two)."
        )
    listed = ", ".join(f"{duration(p.position, 3)} ({share(p.weight)})" for p in found.peaks)
    return (
        f"The distribution of {what} has {len(found.peaks)} modes: {listed}; the chance of naming one too many is at "
        f"most {share(found.false_alarm)}."
    )


def cause_of(
    flow: FlowPlan,
    excess: float,
    steps: Sequence[Step],
    holders: Sequence[Holder],
    detour: float,
    clock: Clock | None,
    events: Sequence[Event],
    campaign: CampaignPlan,
) -> tuple[str, str]:
    """The cause in a word (none, clock, copy, queue, port, link, stack, network, relay, unknown) and as a
    sentence's second half.

    The clock, where its part is at least half of the excess; else the step that took most beyond its median.
    """
    if excess < LEAST_NS:
        return "none", "no longer than usual"
    if clock is not None and not flow.relayed and clock.offset - clock.usual >= HALF * excess:
        return "clock", (
            f"the clock of {flow.destination} less that of {flow.source} stood at {duration(clock.offset, 3)}, "
            f"usually at {duration(clock.usual, 3)}: {share(min((clock.offset - clock.usual) / excess, 1.0))} of the "
            "excess is no time on the way" + _known(events)
        )
    if detour >= HALF * excess:
        way = "network" if flow.both_networks else "path"
        return "copy", (
            f"it came by the {way} that usually takes {duration(detour, 3)} longer, as its copy on the other was "
            "lost, late or rejected" + _known(events)
        )
    top = max(steps, key=lambda step: step.excess, default=None)
    if top is None or top.excess <= 0:
        return "unknown", "no record tells where" + _known(events)
    much = f"{duration(top.excess, 3)} more than usual ({share(min(top.excess / excess, 1.0))} of the excess)"
    if top.kind == "port":
        here = [one for one in holders if (one.node, one.port) == (top.node, top.port)]
        return _waited(flow, top, here, much, campaign, events)
    told = {
        "link": f"{top.title} took {much}: it was held back between the two, not queued at a port",
        "stack": f"{top.title} took {much}: "
        + (
            "the regulator of the virtual link (BAG) or the host, not the network"
            if flow.bag_ns is not None and top.title.endswith("down")
            else "the host, not the network"
        ),
        "network": f"{top.title} took {much}; nothing between them keeps records",
        "relay": f"{top.title} took {much}: the relay's application",
    }
    return top.kind, told[top.kind] + _between_clocks(top) + _known(events)


def _waited(
    flow: FlowPlan,
    top: Step,
    here: Sequence[Holder],
    much: str,
    campaign: CampaignPlan,
    events: Sequence[Event],
) -> tuple[str, str]:
    blocked = sum(one.blocked for one in here)
    place = f"{campaign.network.nodes[top.node].name}, port {top.port}"
    if blocked < HALF * top.excess:
        rest = f"; {_behind(flow, here)} held it for {duration(blocked, 3)} of that" if here else ""
        return "port", (
            f"it was {much} in {place}, and no recorded frame explains it{rest}: background load leaves no records, a "
            "gate or regulator holds frames back without one" + _known(events)
        )
    return "queue", f"it waited {much} in {place} behind {_behind(flow, here)}" + _known(events)


def _behind(own: FlowPlan, holders: Sequence[Holder]) -> str:
    by_time = sorted(holders, key=lambda one: -one.blocked)
    named = [
        f"{count_of(one.frames, 'frame')} of "
        + (
            "its own flow"
            if one.flow == own.id
            else f"flow {one.flow}"
            if one.flow != FOREIGN
            else "no flow of the test"
        )
        + f" ({duration(one.blocked, 3)})"
        for one in by_time[:MOST_NAMED]
    ]
    rest = by_time[MOST_NAMED:]
    if not rest:
        return ", ".join(named)
    frames = count_of(sum(one.frames for one in rest), "frame")
    took = duration(sum(one.blocked for one in rest), 3)
    return f"{', '.join(named)} and {frames} of {count_of(len(rest), 'more flow')} ({took})"


def took_text(step: Step, digits: int = 4) -> str:
    """The duration of a step, with the uncertainty that the clocks of its ends leave."""
    took = duration(step.took, digits)
    if step.apart is None:
        return f"{took}, clocks not compared"
    return f"{took} ± {duration(step.apart, 3)}" if step.apart else took


def _between_clocks(step: Step) -> str:
    """A clause on the uncertainty that the clocks of a step's two ends leave; empty where they leave none."""
    if step.apart is None:
        return "; nobody compared the clocks of its two ends, so a drift of theirs may be in that"
    if step.apart >= HALF * step.excess:
        return f"; the clocks of its two ends may be {duration(step.apart, 3)} apart, which may be in that"
    return ""


def _known(events: Sequence[Event]) -> str:
    """A clause with the events of known time, from the truth of a simulation or from a host."""
    timed = [event for event in events if event.at is not None]
    if not timed:
        return ""
    who = "the simulator" if timed[0].source == "truth" else "the host"
    listed = "; ".join(f"{event.node}: {event.text}" for event in timed[:2])
    more = f"; and {len(timed) - 2} more" if len(timed) > 2 else ""
    return f" ({who} says: {listed}{more})"


def message_name(sequence: int) -> str:
    """What a message is called at the beginning of a sentence."""
    return f"Message {sequence}"


def message_sentence(sequence: int, value: float, excess: float, rest: str, mode: int | None) -> str:
    """One worst message."""
    within = f", in a band of recurring mode {mode + 1}" if mode is not None else ""
    return f"{message_name(sequence)} took {duration(value, 3)}" + (
        f", {duration(excess, 3)} more than the median{within}: {rest}."
        if excess >= LEAST_NS
        else f", {rest}."
    )
