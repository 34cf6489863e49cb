"""The page of bounds: what stands in it is what `--json` says, names are text, and nothing is asked of a network."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from typer.testing import CliRunner

from simulation import trial
from test_bounds_search import placed, tandem
from test_report import CHROMIUM, EVIL, Page, drawn_figures
from wiregauge.bounds import bound, read
from wiregauge.cli import app
from wiregauge.figures.model import Line, Scatter
from wiregauge.figures.network import loads_figure
from wiregauge.records import RunDirectoryError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
LIMITED = tandem(2, limits='<limits><limit measure="latency.max" at-most="300us"/></limits>')


def asked(*arguments: str | Path, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["bounds", *map(str, arguments)])
    assert done.exit_code == code, (done.stdout, done.stderr)
    return done


def page_of(tmp_path: Path, *arguments: str | Path, code: int = 0) -> Page:
    asked(*arguments, "--out", tmp_path / "page.html", code=code)
    return Page((tmp_path / "page.html").read_text(encoding="utf-8"))


def figures(page: Page) -> set[str]:
    return {
        value.removeprefix("fig-") for tag, name, value in page.attributes if (tag, name) == ("figure", "id")
    }


def test_the_page_says_what_the_json_says(tmp_path: Path) -> None:
    path = placed(tmp_path, LIMITED)
    answer = json.loads(asked(path, "--json", code=1).stdout)
    page = page_of(tmp_path, path, code=1)
    assert figures(page) == {"bounds", "loads", "bound-hops"}
    assert "NOT KEPT" in page.text
    for flow in answer["flows"]:
        for target in flow["targets"]:
            assert f"{target['delay'] * 1e6:.3f}" in page.text
            for stay in target["hops"]:
                assert f"{stay * 1e6:.3f}" in page.text
    for server in answer["servers"]:
        assert server["server"] in page.text
        assert f"{server['backlog_bits']:.0f}" in page.text
    for assumption in answer["assumptions"]:
        assert assumption in page.text
    # The worst comes first.
    worst = max(answer["limits"], key=lambda one: one["delay"])
    rows = page.text[page.text.index("Bounds of the flows") :]
    first = re.search(r"(\d+\.\d{3})", rows)
    assert first is not None
    assert first[1] == f"{worst['delay'] * 1e6:.3f}"


def test_a_run_lies_beside_the_bounds_and_one_above_them_is_an_alarm(tmp_path: Path) -> None:
    path = placed(tmp_path, tandem(1))
    trial(path, tmp_path / "run")
    page = page_of(tmp_path, path, "--against", tmp_path / "run")
    (laid,) = json.loads(asked(path, "--json", "--against", tmp_path / "run").stdout)["against"]
    for flow in laid["flows"]:
        assert f"{flow['measured'] * 1e6:.3f}" in page.text
        for hop in flow["hops"]:
            assert hop["measured"] is None or f"{hop['measured'] * 1e6:.3f}" in page.text
    assert "Above its bound" not in page.text
    fast = tmp_path / "fast.xml"
    fast.write_text(tandem(1).replace("100Mbit/s", "1Gbit/s"))
    assert "Above its bound" in page_of(tmp_path, fast, "--against", tmp_path / "run", code=1).text


def test_names_of_a_file_are_text_and_the_page_asks_nothing_of_the_network(tmp_path: Path) -> None:
    flow = {"name": EVIL, "path": [EVIL], "arrival_curve": {"bursts": [80], "rates": [1]}}
    server = {"name": EVIL, "service_curve": {"latencies": [1], "rates": [10]}}
    network = {"name": EVIL, "multiplexing": "FIFO"}
    path = tmp_path / "ports.json"
    path.write_text(json.dumps({"network": network, "flows": [flow], "servers": [server]}))
    page = page_of(tmp_path, path)
    assert EVIL in page.text
    assert not [script for script in page.scripts if script.startswith("alert")]
    assert not [name for _, name, _ in page.attributes if name.startswith("on")]
    for tag, name, value in page.attributes:
        if name in ("src", "href"):
            assert value.startswith(("#", "data:")), (tag, name, value)
    assert any("default-src 'none'" in value for _, _, value in page.attributes)
    assert "unit of the file" in page.text


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host: the page is not drawn")
def test_a_browser_draws_every_figure_of_the_page(tmp_path: Path) -> None:
    page_of(tmp_path, placed(tmp_path, LIMITED), code=1)
    assert drawn_figures(tmp_path / "page.html", tmp_path / "profile") == 3


def test_what_has_no_bound_is_said_and_not_drawn(tmp_path: Path) -> None:
    """In `gates.xml` one port is overloaded, and two flows are bounded up to it."""
    page = page_of(tmp_path, EXAMPLES / "gates.xml", code=4)
    assert "INCOMPLETE" in page.text
    assert "not bounded from sw1:3 on" in page.text
    assert "162 %" in page.text


@pytest.mark.parametrize("method", ["sfa", "pmoo", "plp"])
def test_hops_of_other_methods_are_those_of_total_flow_analysis(method: str, tmp_path: Path) -> None:
    page = page_of(tmp_path, placed(tmp_path, tandem(2)), "--method", method)
    assert "bound-hops" in figures(page)
    assert "By total flow analysis" in page.text


def test_every_network_of_a_sweep_has_a_line_and_the_worst_is_shown(tmp_path: Path) -> None:
    sweep = '<sweep><axis of="rate" values="100Mbit/s 1Gbit/s"/></sweep></test>'
    page = page_of(tmp_path, placed(tmp_path, tandem(1).replace("</test>", sweep)))
    assert "targets bounded" in page.text
    assert "Below: run 0 (rate 100Mbit/s)" in page.text


def test_a_place_that_cannot_take_the_page_is_refused_before_any_work(tmp_path: Path) -> None:
    (tmp_path / "own.html").write_text("mine")
    for place in (tmp_path, tmp_path / "own.html", tmp_path / "none" / "page.html"):
        path = placed(tmp_path, tandem(1))
        done = CliRunner().invoke(app, ["bounds", str(path), "--out", str(place)])
        assert done.stdout == ""
        assert isinstance(done.exception, RunDirectoryError)
        assert str(place) in str(done.exception)
    assert (tmp_path / "own.html").read_text() == "mine"


def test_the_page_has_the_advice_that_was_asked_for(tmp_path: Path) -> None:
    path = placed(tmp_path, LIMITED)
    asked(path, "--advise", "--time-limit", "10s", "--out", tmp_path / "page.html", code=1)
    page = Page((tmp_path / "page.html").read_text(encoding="utf-8"))
    found = json.loads(asked(path, "--advise", "--time-limit", "10s", "--json", code=1).stdout)["advice"]
    for limit in found["exceeded"]:
        for change in limit["changes"] or [limit["nearest"]]:
            assert change["to"] in page.text
            assert f"{change['delay'] * 1e6:.3f}" in page.text
    kept = page_of(tmp_path, placed(tmp_path, tandem(1)), "--advise")
    assert "Every limit is kept; nothing needs to be changed." in kept.text


def test_a_search_writes_its_page_beside_its_tests(tmp_path: Path) -> None:
    path = placed(tmp_path, tandem(1))
    done = asked(path, "--search", "--time-limit", "2s", "--json", "--out", tmp_path / "worst")
    page = Page((tmp_path / "worst" / "bounds.html").read_text(encoding="utf-8"))
    for flow in json.loads(done.stdout)["search"]["flows"]:
        assert f"{flow['simulated'] * 1e6:.3f}" in page.text


def test_each_half_of_a_link_is_a_port_with_its_load(tmp_path: Path) -> None:
    source = read(placed(tmp_path, tandem(1)))
    assert source.planned is not None
    network = source.planned[0]
    loads = {server.server: server.load for server in bound(source).servers}
    figure = loads_figure(network, loads | {"s0:1": 1.2})
    assert figure is not None
    traces = figure.panels[0].traces
    halves = {trace.name: int(np.isnan(trace.x).sum()) for trace in traces if isinstance(trace, Line)}
    assert sum(halves.values()) == 2 * len(network.links)
    assert halves["above 100 %"] == 1
    assert halves["no bounded traffic"] == 2 * len(network.links) - len(set(loads) | {"s0:1"})
    (ports,) = (trace for trace in traces if isinstance(trace, Scatter) and trace.name == "port")
    assert "s0:1: load 120.0 %" in ports.hints
