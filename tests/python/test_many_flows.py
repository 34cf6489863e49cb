"""A run with more flows than are told in full: nothing of it is dropped unsaid, and what is written is small."""

from __future__ import annotations

import gzip
import importlib.util
import json
import re
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from rich.console import Console
from typer.testing import CliRunner

from simulation import trial
from wiregauge import report, results
from wiregauge.cli import app
from wiregauge.measures import Judgement, large
from wiregauge.records.verifying import State, verify
from wiregauge.results.show_text import show_text

ROOT = Path(__file__).resolve().parents[2]
FLOWS = 260
RUN = "flows/run-0000.jsonl.gz"


@pytest.fixture(scope="module", autouse=True)
def _few_are_many() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(large, "MANY", 250)
        yield


@pytest.fixture(scope="module")
def judged(tmp_path_factory: pytest.TempPathFactory, _few_are_many: None) -> Judgement:
    """A short run of the example, long enough for a message of every flow."""
    spec = importlib.util.spec_from_file_location("large_network", ROOT / "examples" / "large_network.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    place = tmp_path_factory.mktemp("many")
    module.large_network(30, 4, FLOWS, duration="130ms").write(place / "t.xml")
    return trial(place / "t.xml", place / "run")


def _written(judgement: Judgement) -> dict[str, Any]:
    told: dict[str, Any] = json.loads((judgement.directory / "measures.json").read_text())
    return told


def _lines(path: Path) -> list[dict[str, Any]]:
    with gzip.open(path) as file:
        return [json.loads(line) for line in file]


def test_every_flow_has_a_line_and_all_its_figures_in_the_file_beside(judged: Judgement) -> None:
    told = _written(judged)
    Draft202012Validator(json.loads(results.schema_path().read_text())).validate(told)
    (run,) = told["runs"]
    lines = _lines(judged.directory / run["details"])
    assert run["details"] == RUN
    assert len(run["flows"]) == len(lines) == FLOWS
    for flow, brief, full in zip(judged.runs[0].flows, run["flows"], lines, strict=True):
        assert brief["flow"] == full["flow"] == flow.plan.id
        for key, value in brief.items():
            if key not in ("latency_ns", "rtt_ns", "period_ns"):
                assert value == full[key]
            elif value is not None:
                assert value == {name: full[key][name] for name in value}
        assert full["latency_ns"]["max"] == flow.summaries["latency"].maximum
        assert full["conformity"]["bag"]["outside"]["count"] == 0
    assert not any(full["pairs"] for full in lines)


def test_the_lines_keep_the_schema_of_a_flow(judged: Judgement) -> None:
    schema = json.loads(results.schema_path().read_text())
    of_flow = Draft202012Validator({**schema["$defs"]["FlowShown"], "$defs": schema["$defs"]})
    for line in _lines(judged.directory / RUN):
        of_flow.validate(line)


def test_a_point_of_one_run_does_not_repeat_its_flows(judged: Judgement) -> None:
    (point,) = _written(judged)["points"]
    assert (point["flows"], point["flows_of_run"]) == ([], 0)


def test_the_terminal_shows_those_that_stand_out_and_says_how_many(judged: Judgement) -> None:
    console = Console(width=170, record=True, file=None, quiet=False)
    with console.capture() as told:
        show_text(judged, console)
    text = told.get()
    shown, among = map(int, re.search(r"Shown are (\d+) of (\d+) flows", text).groups())  # type: ignore[union-attr]
    assert among == FLOWS
    rows = re.findall(r"^ *0 +(\d+) rc", text, re.MULTILINE)
    assert len(rows) == shown < 50
    longest = max(judged.runs[0].flows, key=lambda flow: flow.summaries["latency"].maximum or 0.0)
    assert str(longest.plan.id) in rows
    assert "--flow N" in text


def test_one_flow_is_shown_in_full(judged: Judgement) -> None:
    place = str(judged.directory)
    done = CliRunner().invoke(app, ["show", place, "--flow", "17", "--json"])
    assert done.exit_code == judged.exit_code
    told = json.loads(done.stdout)
    (flow,) = told["runs"][0]["flows"]
    assert flow["flow"] == 17
    assert len(flow["pairs"]) == 21
    assert told["points"][0]["flows"] == [flow]
    wrong = CliRunner().invoke(app, ["show", place, "--flow", "999"])
    assert wrong.exit_code == 2
    assert "--flow 999: the test has no such flow" in wrong.stderr


def test_the_page_has_every_flow_and_few_in_full(judged: Judgement) -> None:
    text = report.write(judged.directory, judged).read_text(encoding="utf-8")
    packed = re.search(r'id="all-flows-rows">([^<]*)<', text)
    assert packed is not None
    rows = json.loads(zlib.decompress(b64decode(packed[1])))
    assert len(rows) == FLOWS
    for row, flow in zip(rows, judged.runs[0].flows, strict=True):
        assert row[0] == flow.plan.id
        assert row[4] == flow.counts["sent"]
        longest = flow.summaries["latency"].maximum
        assert row[-1] == (None if longest is None else pytest.approx(longest / 1000, abs=0.01))
    assert re.search(r"Told in full are \d+ of 260 flows", text)
    assert "All 260 flows" in text


def test_damage_of_the_lines_is_found(judged: Judgement) -> None:
    path = judged.directory / RUN
    assert verify(judged.directory).state is State.WHOLE
    good = path.read_bytes()
    path.write_bytes(good[: len(good) // 2] + b"?" + good[len(good) // 2 + 1 :])
    (found,) = (one for one in verify(judged.directory).findings if one.file == RUN)
    path.write_bytes(good)
    assert found.state is State.DAMAGED
    assert "makes it again" in found.detail
