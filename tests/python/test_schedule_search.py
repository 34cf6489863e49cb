"""What the scheduler claims of small problems, against every schedule there is; and what its judge is for, planted."""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Iterator
from types import SimpleNamespace

import pytest
from msgspec.structs import replace

from wiregauge.figures.model import Spans
from wiregauge.plan import Attachment
from wiregauge.scheduling import (
    Answer,
    Demand,
    Problem,
    Shown,
    faults_of,
    figure_of,
    gate_lists,
    has_solver,
    proving,
    searching,
    solve,
)
from wiregauge.scheduling.checking import Fault
from wiregauge.scheduling.problem import Release, Tail, Window
from wiregauge.scheduling.searching import Opens, openings, total_wait

A, B, C, D = (Attachment(node, 1) for node in range(4))
NAMES = {A: "a:1", B: "b:1", C: "s:1", D: "s:2"}


def problem(*demands: Demand) -> Problem:
    return Problem(demands, NAMES, dict.fromkeys(NAMES, 10**9), 1000, 0, dict.fromkeys(NAMES, 2))


def demand(
    flow: int,
    period: int,
    way: tuple[Attachment, ...],
    length: int = 2,
    *,
    release: int | None = None,
    deadline: int | None = None,
    fixed: tuple[int, ...] | None = None,
) -> Demand:
    windows = tuple(
        Window(port, at - 1, 0 if at == 0 else length, length, length, 0) for at, port in enumerate(way)
    )
    return Demand(
        flow,
        period,
        windows,
        (Tail(9, len(way) - 1, length),),
        None if release is None else Release(release, period, 0),
        deadline,
        fixed=fixed,
    )


def drawn(seed: int) -> Problem:
    """A few flows on few ports, so short that all of their schedules can be listed."""
    chance = random.Random(seed)
    periods = chance.choice(((6, 6, 6), (4, 8, 8), (6, 9, 9), (4, 6, 6), (5, 10, 10), (8, 8, 8)))
    made = []
    for flow in range(1, chance.randint(2, 3) + 1):
        way = chance.choice(((A, C), (B, C), (A, D), (B, D), (A,), (B,)))
        period = chance.choice(periods)
        length = chance.randint(1, 3)
        release = deadline = None
        if chance.random() < 0.4:
            release = chance.randrange(period)
            deadline = chance.randint(1, period + 4)
        made.append(demand(flow, period, way, length, release=release, deadline=deadline))
    return problem(*made)


def every(one: Demand) -> Iterator[tuple[int, ...]]:
    """All openings of a flow that keep to what it needs by itself."""

    def onwards(opens: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
        if len(opens) == len(one.windows):
            yield opens
            return
        window = one.windows[len(opens)]
        if not opens:
            times = range(one.period)
        else:
            ready = opens[-1] + window.distance
            longest = min(one.period - window.length, one.period - 1 - window.distance)
            times = range(ready, ready + max(longest, 0) + 1)
        for at in times:
            if at % one.period + window.length <= one.period:
                yield from onwards((*opens, at))

    for opens in onwards(()):
        end = opens[-1] + one.tails[0].distance
        if one.deadline is not None:
            assert one.release is not None
            made = opens[0] - (opens[0] - one.release.phase) % one.period
            if end - made > one.deadline:
                continue
        yield opens


def taken(one: Demand, opens: tuple[int, ...], cycle: int) -> set[tuple[Attachment, int]]:
    """Port and unit of time of all that its windows take."""
    return {
        (window.port, (at + turn * one.period + unit) % cycle)
        for window, at in zip(one.windows, opens, strict=True)
        for turn in range(cycle // one.period)
        for unit in range(window.length)
    }


def schedules(given: Problem) -> Iterator[Opens]:
    cycle = math.lcm(*(one.period for one in given.demands))
    choices = [[(opens, taken(one, opens, cycle)) for opens in every(one)] for one in given.demands]
    for picked in itertools.product(*choices):
        units: set[tuple[Attachment, int]] = set()
        for _, own in picked:
            if units & own:
                break
            units |= own
        else:
            yield {one.flow: opens for one, (opens, _) in zip(given.demands, picked, strict=True)}


def opened(given: Problem, opens: Opens) -> int:
    """How often a gate opens in the cycle of its port, drawn unit by unit."""
    total = 0
    for port, entries in given.at_port().items():
        cycle = math.lcm(*(one.period for one, _ in entries))
        units = {unit for one, _ in entries for at, unit in taken(one, opens[one.flow], cycle) if at == port}
        total += sum((unit - 1) % cycle not in units for unit in units)
    return total


@pytest.mark.parametrize("seed", range(120))
def test_small_problems_against_every_schedule(seed: int) -> None:
    """What it finds holds, what it calls infeasible is, and what it calls the least is the least."""
    given = drawn(seed)
    all_of_them = list(itertools.islice(schedules(given), 200_000))
    answer = solve(given, seconds=20)
    if not all_of_them:
        assert answer.clash is not None
        assert answer.clash.minimal
        assert not list(schedules(given.only(set(answer.clash.flows))))
        for flow in answer.clash.flows:
            rest = given.only(set(answer.clash.flows) - {flow})
            assert not rest.demands or next(schedules(rest), None) is not None
        return
    assert answer.opens is not None
    assert answer.proof == "proven"
    assert not faults_of(given, answer.opens)
    if len(all_of_them) < 200_000:
        assert total_wait(given, answer.opens) == min(total_wait(given, opens) for opens in all_of_them)
        fewest = solve(given, objective="windows", seconds=20)
        assert fewest.opens is not None
        assert fewest.proof == "proven"
        assert not faults_of(given, fewest.opens)
        assert openings(given, fewest.opens) == opened(given, fewest.opens)
        assert opened(given, fewest.opens) == min(opened(given, opens) for opens in all_of_them)


def test_small_problems_are_of_both_kinds() -> None:
    """The test above would prove little otherwise."""
    kinds = [next(schedules(drawn(seed)), None) is not None for seed in range(120)]
    assert 20 < kinds.count(False) < 100


def found(given: Problem) -> Opens:
    answer = solve(given)
    assert answer.opens is not None
    return dict(answer.opens)


@pytest.fixture
def sound() -> tuple[Problem, Opens]:
    given = problem(
        demand(1, 20, (A, C), 3, release=0, deadline=20),
        demand(2, 20, (B, C), 3),
        demand(3, 10, (B, D), 2),
    )
    return given, found(given)


def kinds(faults: object) -> set[str]:
    assert isinstance(faults, list)
    assert all(isinstance(fault, Fault) for fault in faults)
    return {fault.kind for fault in faults}


def test_the_judge_sees_every_kind_of_fault(sound: tuple[Problem, Opens]) -> None:
    given, opens = sound
    assert kinds(faults_of(given, opens)) == set()
    one, other = opens[1], opens[2]
    assert kinds(faults_of(given, {**opens, 2: (other[0], one[1])})) >= {"overlap"}
    assert kinds(faults_of(given, {**opens, 1: (one[0], one[0] + 2)})) >= {"order"}
    assert kinds(faults_of(given, {**opens, 1: (one[0], one[0] + 3 + 18)})) >= {"buffer", "deadline"}
    assert kinds(faults_of(given, {**opens, 1: (18, 21)})) >= {"period"}
    assert kinds(faults_of(given, {**opens, 1: (20, 23)})) >= {"period"}
    del opens[3]
    assert kinds(faults_of(given, opens)) == {"missing"}


def test_the_judge_allows_for_clocks(sound: tuple[Problem, Opens]) -> None:
    """Windows and receivers hold what clocks may be apart, and the deadline does."""
    given, opens = sound
    assert kinds(faults_of(replace(given, precision=1), opens)) >= {"length"}
    assert kinds(faults_of(given, opens, acceptance={1: (0, 0)})) == set()
    apart = replace(given, precision=2)
    assert kinds(faults_of(apart, opens, acceptance={1: (1, 2), 2: (2, 1)})) == {"length", "acceptance"}
    age = opens[1][1] + 3
    tight = replace(given, demands=(replace(given.demands[0], deadline=age), *given.demands[1:]))
    assert kinds(faults_of(tight, opens)) == set()
    assert kinds(faults_of(replace(tight, precision=1), opens)) >= {"deadline"}


def test_the_judge_counts_pairs_as_it_counts_openings() -> None:
    """Periods whose common one is too long to be listed: 65537 and 65539 ns meet in every nanosecond."""
    given = problem(demand(1, 65_537, (A,), 1), demand(2, 65_539, (A,), 1))
    assert kinds(faults_of(given, {1: (0,), 2: (5,)})) == {"overlap"}
    even = problem(demand(1, 2 * 65_537, (A,), 1), demand(2, 2 * 65_539, (A,), 1))
    assert kinds(faults_of(even, {1: (0,), 2: (5,)})) == set()
    assert kinds(faults_of(even, {1: (0,), 2: (4,)})) == {"overlap"}


def test_a_search_that_forgets_periods_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: clashes are looked for in the longer period, not in the common divisor."""
    given = problem(*(demand(flow, period, (A,), 1) for flow, period in ((1, 4), (2, 4), (3, 6))))
    assert kinds(faults_of(given, found(given))) == set()
    monkeypatch.setattr(searching, "math", SimpleNamespace(gcd=max, lcm=math.lcm))
    wrong = searching.search(given, seed=1, seconds=5)
    assert wrong is not None
    assert "overlap" in kinds(faults_of(given, wrong))


def test_a_solver_without_a_rule_is_found_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Planted: windows may overlap, a flow may be late; and a count that takes windows for twice as long."""
    given = problem(
        demand(1, 8, (A, C), 3, release=0, deadline=7),
        demand(2, 8, (A, C), 2, release=0, deadline=9),
        demand(3, 8, (B, C), 2),
    )
    assert next(schedules(given), None) is not None
    right = proving.proved(given, 10)
    assert right.opens is not None
    assert kinds(faults_of(given, right.opens)) == set()
    with monkeypatch.context() as planted:
        planted.setattr(proving._Model, "_apart", lambda *_: None)
        wrong = proving.proved(given, 10).opens
        assert wrong is not None
        assert "overlap" in kinds(faults_of(given, wrong))
    with monkeypatch.context() as planted:
        planted.setattr(proving._Model, "_deadline", lambda *_: None)
        tight = replace(given, demands=(*given.demands[:1], replace(given.demands[1], deadline=1)))
        wrong = proving.proved(tight, 10).opens
        assert wrong is not None
        assert "deadline" in kinds(faults_of(tight, wrong))
    assert proving.counted(given) is None
    share = proving._share
    monkeypatch.setattr(proving, "_share", lambda length, *rest: 2 * share(length, *rest))
    assert proving.counted(given) is not None, "which the list of schedules above disproves"


def test_a_picture_of_a_long_cycle_ends_before_it() -> None:
    """Periods of 9973 and 9967 ns begin together again after 0.1 s: 2e4 openings of each."""
    given = problem(demand(1, 9_973, (A, C), 1), demand(2, 9_967, (B, D), 1))
    opens: Opens = {1: (0, 1), 2: (0, 1)}
    (panel,) = figure_of(Shown("f", "long", given, None, None, opens)).panels
    drawn = [trace for trace in panel.traces if isinstance(trace, Spans)]
    assert sum(len(trace.start) for trace in drawn) <= 20_004
    assert panel.x.span is not None
    assert panel.x.span[1] < 9_973 * 9_967 / 1000


def test_writing_constraints_down_ends_with_the_time() -> None:
    """45 pairs take longer than none of the time, and what was found before stays."""
    given = problem(*(demand(flow, 400, (A, C), 2) for flow in range(1, 11)))
    opens = found(given)
    assert proving.proved(given, 0) == proving.Outcome()
    assert proving.improved(given, opens, "windows", 0) == (opens, False)


def test_what_is_fixed_stays_and_is_kept_clear_of() -> None:
    given = problem(
        demand(1, 10, (A, C), 3, fixed=(4, 7)), demand(2, 10, (B, C), 3), demand(3, 10, (B, C), 3)
    )
    opens = found(given)
    assert opens[1] == (4, 7)
    assert not faults_of(given, opens)


def test_waiting_in_a_switch_where_nothing_else_helps() -> None:
    """Both are fixed in time by their deadlines at the sender; one waits 1 unit for the other, and no less is
    possible."""
    one = demand(1, 20, (A, C), 4, release=0, deadline=12)
    other = demand(2, 20, (B, C), 4, release=3, deadline=12)
    given = problem(one, other)
    answer = solve(given)
    assert answer.opens is not None
    assert answer.proof == "proven"
    assert total_wait(given, answer.opens) == 0
    blocked = problem(
        one,
        replace(other, deadline=10),
        demand(3, 20, (B,), 4, fixed=(7,)),
        demand(4, 20, (B,), 3, fixed=(0,)),
    )
    answer = solve(blocked)
    assert answer.opens is not None
    assert answer.proof == "proven"
    assert answer.opens[2][0] == 3
    assert total_wait(blocked, answer.opens) == 1


def test_without_the_solver_it_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """It finds what the search finds, proves what can be counted, and names what is missing for the rest."""
    from wiregauge.scheduling import proving, solving

    assert has_solver()
    monkeypatch.setattr(solving, "has_solver", lambda: False)
    monkeypatch.setattr(proving, "has_solver", lambda: False)
    easy: Answer = solve(problem(demand(1, 10, (A,), 3), demand(2, 10, (A,), 3)))
    assert easy.opens is not None
    assert not easy.solver_missing
    full = solve(problem(*(demand(flow, 10, (A,), 4) for flow in (1, 2, 3))))
    assert full.clash is not None
    assert not full.solver_missing
    # Gaps of 6, each for one window of 4: three of them do not go, and no counting tells.
    gaps = problem(demand(1, 10, (A,), 4), *(demand(flow, 20, (A,), 4) for flow in (2, 3, 4)))
    hard = solve(gaps, seconds=1)
    assert hard.opens is None
    assert hard.clash is None
    assert hard.solver_missing
    monkeypatch.undo()
    proven = solve(gaps, seconds=10)
    assert proven.clash is not None
    assert proven.clash.flows == (1, 2, 3, 4)
    assert proven.clash.minimal


def test_gates_open_in_windows_and_not_before_others_have_ended() -> None:
    given = problem(demand(1, 10, (A,), 2), demand(2, 20, (A,), 3))
    opens: Opens = {1: (1,), 2: (3,)}
    (one,) = gate_lists(given, opens, {1: 7, 2: 7})
    assert one.name == "a:1"
    assert one.cycle == 20
    assert one.guard == 2
    drawing = [entry.mask for entry in one.entries for _ in range(entry.interval)]
    assert len(drawing) == one.cycle
    windows = {unit for at, length in ((1, 2), (11, 2), (3, 3)) for unit in range(at, at + length)}
    for unit, mask in enumerate(drawing):
        guarded = any((unit + ahead) % 20 in windows for ahead in range(1, 3))
        assert mask == (0x80 if unit in windows else 0 if guarded else 0x7F), unit
    assert one.openings == 2 == openings(given, opens)
    (bare,) = gate_lists(given, opens, {1: 5, 2: 5}, guard_ns=0)
    assert {entry.mask for entry in bare.entries} == {0x20, 0xDF}
    assert sum(entry.interval for entry in bare.entries) == 20
