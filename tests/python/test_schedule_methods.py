"""Instances of tsnkit: ours scheduled and written in its form, other methods replayed beside, faults found."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.scheduling import ProblemError, faults_of, solve
from wiregauge.scheduling.beside import plan_of_files, plan_of_opens, replay, tables_of
from wiregauge.scheduling.tsnkit import Instance, instance_of, problem_of_instance

HEADS = "stream,src,dst,size,period,deadline,jitter"


def line(switches: int, rate: str = "1") -> str:
    """Switches in a line, 0 and up, each with an end system of its number plus theirs."""
    pairs = [(a, a + 1) for a in range(switches - 1)] + [(a, a + switches) for a in range(switches)]
    rows = [f'"({a}, {b})",8,{rate},2000,0' for one in pairs for a, b in (one, one[::-1])]
    return "\n".join(["link,q_num,rate,t_proc,t_prop", *rows, ""])


def written(place: Path, streams: str, links: str = "") -> tuple[Path, Path]:
    tables = place / "1_task.csv", place / "1_topo.csv"
    tables[0].write_text(f"{HEADS}\n{streams}\n")
    tables[1].write_text(links or line(3))
    return tables


TWO = "0,3,[5],1000,2000000,2000000,2000000\n1,4,[5],500,1000000,1000000,1000000"


def run(*arguments: object) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["schedule", *map(str, arguments)])
    return result.exit_code, result.output


def test_ours_is_written_as_tsnkit_reads_it_and_stands_beside_itself(tmp_path: Path) -> None:
    streams, links = written(tmp_path, TWO)
    assert run(streams, "--topology", links, "--out", tmp_path / "o")[0] == 0
    code, shown = run(streams, "--topology", links, "--also", f"again={tmp_path / 'o' / '1'}", "--json")
    ours, again = json.loads(shown)["methods"]
    assert (code, ours["outcome"], ours["proof"], again["proof"]) == (0, "schedule", "proven", "none")
    same = ("worst_ns", "mean_ns", "jitter_ns", "waiting_ns", "openings", "late", "stuck")
    assert [ours[key] for key in same] == [again[key] for key in same]
    # Three switches: four hops of 8 us, and 2 us in each of the switches.
    assert ours["worst_ns"] == 4 * 8000 + 3 * 2000
    assert "every frame in time" in run(streams, "--topology", links)[1]


def test_streams_that_have_no_common_schedule_are_named(tmp_path: Path) -> None:
    wide = "\n".join(f"{n},3,[5],1500,20000,20000,0" for n in range(3))
    code, shown = run(*_named(tmp_path, wide), "--json")
    method = json.loads(shown)["methods"][0]
    assert (code, method["outcome"], method["proof"]) == (1, "none-exists", "proven")
    assert method["reason"].startswith("streams ")


def _named(place: Path, streams: str) -> tuple[object, ...]:
    tables = written(place, streams)
    return tables[0], "--topology", tables[1]


@pytest.fixture
def planned(tmp_path: Path) -> tuple[Instance, Path]:
    """An instance, and our schedule of it in files."""
    streams, links = written(tmp_path, TWO)
    instance = instance_of(streams, links)
    answer = solve(problem_of_instance(instance), seconds=5)
    assert answer.opens is not None
    for ending, text in tables_of(
        plan_of_opens(instance, problem_of_instance(instance), answer.opens)
    ).items():
        (tmp_path / f"m{ending}").write_text(text)
    return instance, tmp_path / "m"


def test_a_gate_that_closes_too_early_lets_its_stream_never_through(planned: tuple[Instance, Path]) -> None:
    instance, prefix = planned
    plan = plan_of_files(instance, str(prefix))
    ends = instance.streams[0].path[-1]
    short = [(begin, begin + 100, queue) for begin, _, queue in plan.gates[ends]]
    found = replay(instance, replace(plan, gates={**plan.gates, ends: short}))
    assert found.stuck == (0, 1)
    assert not found.holds


def test_a_gate_that_opens_before_its_frame_costs_a_cycle_and_the_deadline(
    planned: tuple[Instance, Path],
) -> None:
    instance, prefix = planned
    plan = plan_of_files(instance, str(prefix))
    releases = {key: at + (1 if key[0] == 0 else 0) for key, at in plan.releases.items()}
    own = instance.streams[0].path[0]
    found = replay(instance, replace(plan, releases=releases))
    assert 0 in found.late
    assert found.worst > 2_000_000
    # With all gates of its first link open, the nanosecond is only waited for at the next.
    open_ = {**plan.gates, own: [(0, plan.cycle, 0)]}
    assert replay(instance, replace(plan, releases=releases, gates=open_)).waiting > 0


@given(
    st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(60, 1500)), min_size=1, max_size=6),
    st.sampled_from(["1", "0.1"]),
)
@settings(max_examples=15, deadline=None)
def test_what_is_solved_holds_for_both_judges(
    tmp_path_factory: pytest.TempPathFactory, drawn: list[tuple[int, int, int]], rate: str
) -> None:
    """The judge of schedules and the replay through gates agree, and nothing beats the bare path."""
    rows = [
        f"{n},{4 + a},[{4 + (b if a != b else (a + 1) % 4)}],{size},2000000,1000000,0"
        for n, (a, b, size) in enumerate(drawn)
    ]
    instance = instance_of(*written(tmp_path_factory.mktemp("t"), "\n".join(rows), line(4, rate)))
    problem = problem_of_instance(instance)
    answer = solve(problem, seconds=2)
    assert answer.opens is not None
    assert not faults_of(problem, answer.opens)
    found = replay(instance, plan_of_opens(instance, problem_of_instance(instance), answer.opens))
    bare = [
        sum(instance.takes(s, ends) for ends in s.path) + 2000 * (len(s.path) - 1) for s in instance.streams
    ]
    assert found.holds
    assert found.frames == len(rows)
    assert found.worst >= max(bare)
    if found.waiting == 0:
        assert found.worst == max(bare)
        assert found.mean == pytest.approx(sum(bare) / len(bare))


@pytest.mark.parametrize(
    ("streams", "links", "says"),
    [
        ("", "", "has no stream"),
        ("0,3,[5],0,1,1,1", "", 'size "0" is no whole number of 1 or more'),
        ("0,3,[5 4],9,1,1,1", "", "no single node"),
        ("0,3,[99],9,1,1,1", "", "no links lead from node 3 to node 99"),
        ("0,3,[3],9,1,1,1", "", "no links lead"),
        ("0,3,[5],9,1,1,1\n0,3,[5],9,1,1,1", "", "line 3: stream 0 is there twice"),
        ("0,3,[5],9,1,1,1", "link,rate\n", "no column q_num, t_proc, t_prop"),
        (
            "0,3,[5],9,1,1,1",
            'link,q_num,rate,t_proc,t_prop\n"(__import__, 1)",8,1,0,0',
            "no link; write (from, to)",
        ),
        ("0,3,[5],9,1,1,1", 'link,q_num,rate,t_proc,t_prop\n"(3, 5)",8,0,0,0', "no number of Gbit/s above 0"),
        ("0,3,[5],9,1,1,1", "version https://git-lfs.github.com/spec/v1\n", "pointer of Git LFS"),
    ],
)
def test_a_bad_table_is_refused_in_one_line(tmp_path: Path, streams: str, links: str, says: str) -> None:
    tables = written(tmp_path, streams, links)
    code, shown = run(tables[0], "--topology", tables[1])
    assert code == 2
    assert says in shown
    assert len(shown.splitlines()) == 1


def test_a_schedule_of_another_instance_is_refused(planned: tuple[Instance, Path]) -> None:
    instance, prefix = planned
    prefix.with_name("m-ROUTE.csv").write_text('stream,link\n0,"(3, 0)"\n')
    with pytest.raises(ProblemError, match="no path from node 3 to node 5"):
        plan_of_files(instance, str(prefix))
    prefix.with_name("m-ROUTE.csv").write_text('stream,link\n7,"(3, 0)"\n')
    with pytest.raises(ProblemError, match="no stream 7"):
        plan_of_files(instance, str(prefix))


@pytest.mark.parametrize("options", [["--gates"], ["--check"], ["--grid", "8ns"], ["--set", "a.b.c=1"]])
def test_options_of_tests_have_no_effect_on_an_instance(tmp_path: Path, options: list[str]) -> None:
    out = ["--out", str(tmp_path / "o")] if "--gates" in options else []
    code, shown = run(*_named(tmp_path, TWO), *options, *out)
    assert (code, "leave the others out" in shown) == (2, True)
    assert run("x.xml", "--also", "ls")[0] == 2
