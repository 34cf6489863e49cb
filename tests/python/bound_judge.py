"""Judges bounds by the simulator, which shares only the plan and the frame lengths with them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from msgspec import Struct, field

from simulation import Simulated, simulate
from wiregauge import bounds
from wiregauge.config import TestError

Method = tuple[str, str, bool]
METHODS: tuple[Method, ...] = (
    ("tfa", "fifo", True),
    ("tfa", "fifo", False),
    ("tfa", "arbitrary", False),
    ("sfa", "fifo", True),
    ("sfa", "fifo", False),
    ("sfa", "arbitrary", True),
    ("pmoo", "arbitrary", True),
)
FIFO = tuple(method for method in METHODS if method[1] == "fifo")
OVERLOADED = (
    "its load is",
    "of output jitter",
    "a shaped class has an idle slope",
    "would never leave",
    "together take",
    "to its cyclic queues in a cycle",
)


def worst(run: Simulated) -> dict[tuple[str, str], int]:
    """The longest time from application to application of each flow and receiver, ps."""
    return {key: most for key, (_, most) in extremes(run).items()}


def extremes(run: Simulated) -> dict[tuple[str, str], tuple[int, int]]:
    """The shortest and longest time from application to application of each flow and receiver, ps."""
    found: dict[tuple[str, str], tuple[int, int]] = {}
    for flow in run.plan.runs[0].flows:
        sent = run.times("application-send", flow.id)
        for receiver in (flow.to, *flow.also_to):
            name = run.plan.network.names[receiver]
            came = run.times("application-receive", flow.id, name)
            late = [came[sequence] - sent[sequence] for sequence in came]
            if late:
                found[str(flow.id), name] = min(late), max(late)
    return found


class Judged(Struct, frozen=True):
    """The comparison of a network's bounds with a simulation."""

    compared: int = 0
    """The number of bounds compared with a simulated maximum."""
    tightest: float = 0.0
    """The greatest ratio of a simulated delay to its bound."""
    overflowed: int = 0
    """The number of frames that found a buffer full."""
    notes: tuple[str, ...] = ()
    """The notes of the first answer."""
    shares: Mapping[str, float] = field(default_factory=dict)
    """The greatest ratio of a simulated delay to its bound, by flow."""


def judge(text: str, place: Path, methods: Sequence[Method] = METHODS) -> Judged:
    """Bounds and simulates a test in `place`; fails where a simulated delay exceeds its bound."""
    place.mkdir(parents=True, exist_ok=True)
    file = place / "n.xml"
    file.write_text(text, encoding="utf-8")
    try:
        source = bounds.read(file)
        answers = [
            bounds.bound(source, method, multiplexing=order, grouping=grouping)
            for method, order, grouping in methods
        ]
    except TestError as error:
        # Skip networks that are drawn overloaded.
        if not any(reason in str(error) for reason in OVERLOADED):
            raise
        return Judged()
    answers.append(bounds.bound(source, "plp", grouping=True))
    never_above(answers[-1], answers[0])
    run = simulate(text, place / "run")
    seen = extremes(run)
    compared, shares = 0, dict[str, float]()
    for answer in answers:
        for flow in answer.flows:
            for target in flow.targets:
                early, late = seen.get((flow.flow, target.target), (None, None))
                if early is None or late is None or target.delay is None:
                    continue
                compared += 1
                assert early >= (target.least or 0.0) * 1e12 - 1, f"{file}: flow {flow.flow}: {early} ps"
                share = late / 1e12 / target.delay
                shares[flow.flow] = max(shares.get(flow.flow, 0.0), share)
                assert late <= target.delay * 1e12, (
                    f"{file}: flow {flow.flow} to {target.target} took {late} ps, and {answer.method} "
                    f"{answer.multiplexing} grouping {answer.grouping} bounds it by {target.delay * 1e12:.0f} ps"
                )
    tightest = max(shares.values(), default=0.0)
    return Judged(compared, tightest, run.dropped("buffer-full"), tuple(answers[0].notes), shares)


def never_above(tight: bounds.Answer, loose: bounds.Answer) -> None:
    """Asserts that linear programmes are exactly never above total flow analysis, for any flow."""
    for one, other in zip(tight.flows, loose.flows, strict=True):
        for less, more in zip(one.targets, other.targets, strict=True):
            if more.delay_exact is not None:
                assert less.delay_exact is not None, one.flow
                assert Fraction(less.delay_exact) <= Fraction(more.delay_exact), one.flow
