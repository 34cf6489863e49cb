"""`--method best`: never above any method, never below what was simulated, and it says which method it was."""

from __future__ import annotations

import json
from fractions import Fraction
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from typer.testing import CliRunner

from bound_networks import network
from chosen import also
from test_bounds_search import placed, tandem
from test_published_bounds import ports
from test_report import Page
from wiregauge import bounds
from wiregauge.bounds.analysing import bound_by
from wiregauge.cli import app
from wiregauge.cli.schemas import schema_of
from wiregauge.config import TestError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WAYS = (
    ("tfa", "fifo"),
    ("sfa", "fifo"),
    ("plp", "fifo"),
    ("tfa", "arbitrary"),
    ("sfa", "arbitrary"),
    ("pmoo", "arbitrary"),
)


def told(path: Path, *options: str, code: int = 0) -> dict[str, Any]:
    done = CliRunner().invoke(app, ["bounds", str(path), "--method", "best", "--json", *options])
    assert done.exit_code == code, done.output
    answer: dict[str, Any] = json.loads(done.stdout)
    jsonschema_rs.validate(json.loads(schema_of("bounds").read_text()), answer)
    return answer


def exact(answer: bounds.Answer) -> dict[tuple[str, str], Fraction]:
    return {
        (flow.flow, target.target): Fraction(target.delay_exact)
        for flow in answer.flows
        for target in flow.targets
        if target.delay_exact is not None
    }


@pytest.mark.parametrize("seed", [*range(6), *map(also, range(6, 60))])
def test_it_is_never_above_any_method_and_as_good_as_the_one_it_names(seed: int, tmp_path: Path) -> None:
    path = tmp_path / "t.xml"
    path.write_text(network(seed).to_xml(), encoding="utf-8")
    source = bounds.read(path)
    best = bounds.bound(source, "best")
    own = exact(best)
    alone = {}
    for method, order in WAYS:
        for grouping in (True, False):
            try:
                answer = bound_by(source, method, multiplexing=order, grouping=grouping)
            except (TestError, bounds.NoAnswerError):
                continue
            alone[answer.as_text] = exact(answer)
    assert len(alone) > 6
    for found in alone.values():
        assert all(own[key] <= delay for key, delay in found.items())
    for flow in best.flows:
        for target in flow.targets:
            if target.method is None:
                assert all((flow.flow, target.target) not in found for found in alone.values())
            else:
                assert alone[target.method][flow.flow, target.target] == own[flow.flow, target.target]


def test_no_search_goes_beyond_it(tmp_path: Path) -> None:
    for hops in (1, 3):
        answer = told(placed(tmp_path, tandem(hops)), "--search", "--time-limit", "3s")
        own = {flow["flow"]: flow["targets"][0] for flow in answer["flows"]}
        for flow in answer["search"]["flows"]:
            assert flow["alarms"] == []
            assert flow["simulated"] <= own[flow["flow"]]["delay"]
            assert (flow["bound"], flow["method"]) == (
                own[flow["flow"]]["delay"],
                own[flow["flow"]]["method"],
            )


def test_different_flows_may_have_different_methods(tmp_path: Path) -> None:
    path = placed(tmp_path, network(10).to_xml())
    answer = bounds.bound(bounds.read(path), "best")
    assert len({target.method for flow in answer.flows for target in flow.targets}) > 1


def test_a_limit_is_judged_by_the_least_bound(tmp_path: Path) -> None:
    """Between the bounds of tfa and plp only the linear programme keeps the limit."""
    source = bounds.read(placed(tmp_path, tandem(3)))
    tfa, best = (exact(bounds.bound(source, method))["1", "z"] for method in ("tfa", "best"))
    assert best < tfa
    middle = int((best + tfa) / 2 * 10**9)
    limit = f'<limits><limit flow="1" measure="latency.max" at-most="{middle}ns"/></limits>'
    path = placed(tmp_path, tandem(3, limits=limit))
    assert CliRunner().invoke(app, ["bounds", str(path)]).exit_code == 1
    (judged,) = told(path)["limits"]
    assert judged["kept"]
    assert judged["delay"] == pytest.approx(float(best))


def test_what_gives_no_answer_is_named_once_with_its_reason() -> None:
    """Shapers hold frames back, so no method for arbitrary order fits; plp knows no rounded arithmetic."""
    path = str(EXAMPLES / "shapers.xml")
    done = CliRunner().invoke(app, ["bounds", path, "--method", "best", "--arithmetic", "rounded"])
    lines = [line for line in done.stdout.splitlines() if line.startswith("Not by ")]
    assert [line.split(":")[0] for line in lines] == [
        "Not by sfa arbitrary, grouping on; pmoo arbitrary, grouping on; sfa arbitrary, grouping off; "
        "pmoo arbitrary, grouping off",
        "Not by plp fifo, grouping on",
    ]
    assert "holds frames back" in lines[0]


def test_a_ring_that_total_flow_analysis_cannot_bound_has_the_bounds_of_another(tmp_path: Path) -> None:
    """Four servers of rate 20, four flows of 3.5 over all of them: only separated flow analysis holds."""
    ring = [(10, 3.5, [(at + step) % 4 for step in range(4)]) for at in range(4)]
    path = ports(tmp_path, [(20, 0)] * 4, ring)
    answer = told(path)
    assert {target["method"] for flow in answer["flows"] for target in flow["targets"]} == {
        "sfa fifo, grouping off"
    }
    assert {flow["targets"][0]["delay_exact"] for flow in answer["flows"]} == {"11360809/163286"}
    assert [one["method"] for one in answer["left_out"]] == [
        "tfa fifo, grouping off",
        "plp fifo, grouping off",
    ]
    assert all("depend on one another" in one["reason"] for one in answer["left_out"])


def test_a_file_that_no_method_reads_is_refused_as_by_one(tmp_path: Path) -> None:
    path = tmp_path / "t.json"
    path.write_text('{"network": {}}')
    alone, best = (
        CliRunner().invoke(app, ["bounds", str(path), "--method", method]) for method in ("tfa", "best")
    )
    assert (best.exit_code, best.stderr) == (alone.exit_code, alone.stderr)
    assert alone.exit_code == 2


def test_output_ports_are_not_taken_to_serve_whenever_something_waits(tmp_path: Path) -> None:
    flow = {"name": "f", "path": ["s"], "arrival_curve": {"bursts": [80], "rates": [1]}}
    server = {"name": "s", "service_curve": {"latencies": [1], "rates": [10]}}
    path = tmp_path / "ports.json"
    for order, others in (("FIFO", {"fifo"}), ("ARBITRARY", {"arbitrary"})):
        parts = {"network": {"multiplexing": order}, "flows": [flow], "servers": [server]}
        path.write_text(json.dumps(parts))
        answer = told(path)
        used = {
            target["method"].split()[1].rstrip(",") for one in answer["flows"] for target in one["targets"]
        }
        assert used | {one["method"].split()[1].rstrip(",") for one in answer.get("left_out", ())} <= others


def test_text_and_page_name_the_method_of_each_bound(tmp_path: Path) -> None:
    path = placed(tmp_path, tandem(3))
    page = tmp_path / "page.html"
    done = CliRunner().invoke(app, ["bounds", str(path), "--method", "best", "--out", str(page)])
    assert done.exit_code == 0, done.output
    assert "By best (plp for " in done.stdout
    row = next(line for line in done.stdout.splitlines() if line.startswith("1 "))
    assert "plp" in row.split()
    assert "plp" in Page(page.read_text()).text
