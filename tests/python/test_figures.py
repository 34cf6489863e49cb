"""Figures are data: what is drawn is what was measured, in both renderings."""

from __future__ import annotations

import hashlib
import json
import math
import sys
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import structs
from msgspec.structs import replace

from synthetic import Columns, Recipe, make
from wiregauge import measures, results
from wiregauge.figures import Figure, build, interactive, printed
from wiregauge.figures.model import Bars, Box, Line, Scatter
from wiregauge.figures.palette import ordered, variety
from wiregauge.figures.ticks import log_ticks

SMALL = Recipe(payloads=(64, 1472), messages=400, warm_up=20, loss=0.01)
EVERY = {
    "network",
    "latency-density",
    "latency-by-payload",
    "latency-percentiles",
    "rtt-percentiles",
    "split",
    "latency-time",
    "period-density",
    "period-box",
    "send_error-density",
    "outcomes",
}


def figures_of(path: Path, recipe: Recipe) -> tuple[measures.Judgement, dict[str, Figure]]:
    judgement = results.judge(make(path, recipe))
    made = build(judgement, results.shapes(judgement))
    return judgement, {figure.id: figure for figure in made}


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> tuple[measures.Judgement, dict[str, Figure]]:
    return figures_of(tmp_path_factory.mktemp("run"), SMALL)


def test_every_figure_has_axes_with_units_and_a_caption(
    demo: tuple[measures.Judgement, dict[str, Figure]],
) -> None:
    _, figures = demo
    assert set(figures) == EVERY
    for figure in figures.values():
        assert figure.title
        assert figure.caption
        for panel in figure.panels:
            assert panel.traces, figure.id
            for axis in (panel.x, panel.y):
                if axis.shown:
                    assert "(" in axis.title or axis.title in ("percentile", "messages"), axis.title


def test_texts_have_room_beside_and_under_an_axis(
    demo: tuple[measures.Judgement, dict[str, Figure]],
) -> None:
    """Labels of ticks push the title of a first column outwards; a page scrolls before names of runs run together."""
    _, figures = demo
    for figure in figures.values():
        layout: Any = interactive.draw(figure)["layout"]
        for k, panel in enumerate(figure.panels):
            axis = layout[f"yaxis{k + 1 if k else ''}"]
            beside = panel.y.shown and k % figure.columns == 0
            assert (axis.get("automargin") == "left") == beside, figure.id
    plain = figures["latency-time"]
    names = [(float(k), f"a run with the name {k}") for k in range(4)]
    panels = [replace(panel, x=replace(panel.x, ticks=names)) for panel in plain.panels[:1]]
    narrow, wide = (
        interactive.least_width(replace(plain, panels=some, columns=1))
        for some in ([replace(plain.panels[0], x=replace(plain.panels[0].x, ticks=()))], panels)
    )
    assert narrow == 260
    assert wide > 4 * 6 * len(names[0][1])


def test_lines_carry_the_measured_figures(demo: tuple[measures.Judgement, dict[str, Figure]]) -> None:
    judgement, figures = demo
    one_way = next(panel for panel in figures["latency-by-payload"].panels if "one-way" in panel.title)
    line = next(trace for trace in one_way.traces if isinstance(trace, Line) and trace.name == "udp")
    medians = [
        flow.summaries["latency"].value("p50")
        for point in judgement.points
        for flow in point.flows
        if flow.plan.id == 10 and flow.plan.protocol == "udp"
    ]
    np.testing.assert_allclose(line.y * 1e3, np.array(medians, dtype=float))


def test_stacked_parts_reach_the_mean(demo: tuple[measures.Judgement, dict[str, Figure]]) -> None:
    judgement, figures = demo
    panel = next(p for p in figures["split"].panels if p.title.startswith("udp · flow 20"))
    bars = [trace for trace in panel.traces if isinstance(trace, Bars)]
    top = bars[-1].base + bars[-1].height
    wanted = [
        flow.summaries["rtt"].mean
        for point in judgement.points
        for flow in point.flows
        if flow.plan.id == 20 and flow.plan.protocol == "udp"
    ]
    np.testing.assert_allclose(top * 1e3, np.array(wanted, dtype=float), rtol=1e-9)


def test_time_views_show_every_message_or_say_that_they_do_not(tmp_path: Path) -> None:
    judgement, figures = figures_of(
        tmp_path, replace(SMALL, protocols=("udp",), payloads=(64,), messages=500)
    )
    view = figures["latency-time"]
    shown = sum(len(t.x) for panel in view.panels for t in panel.traces if isinstance(t, Scatter))
    n = sum(flow.summaries["rtt" if flow.plan.relayed else "latency"].n for flow in judgement.runs[0].flows)
    assert shown == n
    assert view.notes[0].startswith(f"All {n} messages are in the picture: each is a mark.")
    _, many = figures_of(
        tmp_path, replace(SMALL, protocols=("udp",), payloads=(64,), messages=30_000, relay=False, warm_up=0)
    )
    assert any(
        note.startswith("All ") and "the least and the greatest are drawn" in note
        for note in many["latency-time"].notes
    )


def silence(columns: Columns, flow: int) -> None:
    columns["lost"][:] = True
    columns["copies"] = columns["copies"] * 0
    columns["reordered"][:] = False
    for name in ("rx_drv", "rx_app", "back_tx_app", "back_tx_drv", "back_rx_drv", "back_rx_app"):
        columns["present"][name][:] = False


def test_figures_without_data_are_left_out(tmp_path: Path) -> None:
    _, lost = figures_of(tmp_path / "lost", replace(SMALL, alter=silence))
    assert set(lost) == {"network", "period-density", "period-box", "send_error-density", "outcomes"}
    _, none = figures_of(tmp_path / "none", replace(SMALL, stop_after=0, state="failed"))
    assert set(none) == {"network"}
    _, single = figures_of(
        tmp_path / "one", replace(SMALL, payloads=(64,), protocols=("raw",), relay=False, loss=0)
    )
    assert {"rtt-percentiles", "latency-by-payload"}.isdisjoint(single)
    assert single["latency-time"].range_slider


def test_the_interactive_form_is_plain_finite_json(
    demo: tuple[measures.Judgement, dict[str, Figure]],
) -> None:
    for figure in demo[1].values():
        drawn = json.loads(json.dumps(interactive.draw(figure), allow_nan=False))
        axes = [key for key in drawn["layout"] if key.startswith("xaxis")]
        assert len(axes) == len(figure.panels)
        assert all(trace["xaxis"].replace("x", "xaxis") in axes for trace in drawn["data"])
        names = [trace["name"] for trace in drawn["data"] if trace.get("showlegend")]
        assert len(names) == len(set(names)), "one legend entry per name"
        panels = [panel for panel in figure.panels if panel.x.shown]
        for key in axes if panels else []:
            low, high = drawn["layout"][key]["domain"]
            assert -1e-9 <= low < high <= 1 + 1e-9


def test_names_from_files_are_no_markup_in_plotly(tmp_path: Path) -> None:
    judgement = results.judge(make(tmp_path, SMALL))
    network = judgement.plan.network
    nodes = (structs.replace(network.nodes[0], name="<b>x</b>"), *network.nodes[1:])
    evil = replace(judgement.plan, network=structs.replace(network, nodes=nodes))
    (drawing,) = (
        f for f in build(replace(judgement, plan=evil), results.shapes(judgement)) if f.id == "network"
    )
    assert "<b>x" not in json.dumps(interactive.draw(drawing))


def test_export_writes_whole_pictures(
    demo: tuple[measures.Judgement, dict[str, Figure]], tmp_path: Path
) -> None:
    for name in ("network", "split", "period-box", "latency-percentiles", "latency-by-payload"):
        paths = printed.save(demo[1][name], tmp_path, {"png", "svg"})
        assert [path.suffix for path in paths] == [".png", ".svg"]
        assert paths[0].read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
        svg = ElementTree.fromstring(paths[1].read_text())
        texts = " ".join(svg.itertext())
        assert demo[1][name].title in texts
        first = paths[1].read_bytes()
        printed.save(demo[1][name], tmp_path, {"svg"})
        assert paths[1].read_bytes() == first, "the same figure gives the same file"
    with pytest.raises(ValueError, match="png or svg, not as gif"):
        printed.save(demo[1]["network"], tmp_path, {"gif"})


def test_the_script_is_the_bundle_that_was_published() -> None:
    assert (
        hashlib.sha256(interactive.script().encode()).hexdigest()
        == "7c593b9eda0e74a1d07335cf89cbf7a55ffc114909980c3729af835453bdb02a"
    )


def test_equal_values_are_a_line_and_not_a_bell(tmp_path: Path) -> None:
    def steady(columns: Columns, flow: int) -> None:
        columns["rx_app"] = columns["tx_app"] + 12_336_000

    _, figures = figures_of(tmp_path, Recipe(payloads=(64,), messages=100, relay=False, loss=0, alter=steady))
    figure = figures["latency-density"]
    for line in figure.panels[0].traces:
        assert isinstance(line, Line)
        assert line.x.tolist() == [12.336, 12.336]
    assert any("equal" in note for note in figure.notes)


def test_of_many_flows_the_slowest_are_drawn_and_the_others_named(
    demo: tuple[measures.Judgement, dict[str, Figure]], monkeypatch: pytest.MonkeyPatch
) -> None:
    judgement, _ = demo
    monkeypatch.setattr(sys.modules["wiregauge.results.shapes"], "MOST_FLOWS", 1)
    shapes = results.shapes(judgement)
    longest = max(shapes.results, key=lambda key: shapes.results[key].summaries["latency"].maximum or 0.0)
    assert {key.flow for key in shapes.values("latency")} == {longest.flow}
    assert shapes.left_out == 1
    figure = next(f for f in build(judgement, shapes) if f.id == "latency-density")
    assert "1 more" in figure.notes[0]


def test_varieties_differ_in_more_than_colour() -> None:
    styles = [variety(protocol, flow) for protocol in ("udp", "raw") for flow in range(2)]
    assert len({s.colour for s in styles}) == 4
    assert len({(s.dash, s.marker) for s in styles}) == 4
    ramp = [ordered(k, 6) for k in range(6)]
    lightness = [sum(int(s.colour[i : i + 2], 16) for i in (1, 3, 5)) for s in ramp]
    assert lightness == sorted(lightness, reverse=True)


@given(st.floats(1e-3, 1e6), st.floats(1.01, 1e6))
def test_log_ticks_lie_inside_and_are_few(low: float, ratio: float) -> None:
    ticks = log_ticks(low, low * ratio)
    assert len(ticks) <= 7
    assert all(low <= value <= low * ratio for value, _ in ticks)
    assert all(math.isclose(read(text), value, rel_tol=1e-8) for value, text in ticks)
    assert len({text for _, text in ticks}) == len(ticks)
    assert len(ticks) >= 2


def read(text: str) -> float:
    """The number that a tick shows."""
    factor, _, power = text.replace("\N{THIN SPACE}", "").rpartition("10")
    if power and set(power) <= set("⁻⁰¹²³⁴⁵⁶⁷⁸⁹"):
        exponent = int(power.translate(str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")))
        return float(factor.rstrip("·") or "1") * 10.0**exponent
    return float(text.replace("\N{THIN SPACE}", ""))


def test_a_log_axis_of_less_than_a_decade_has_equal_steps() -> None:
    assert [text for _, text in log_ticks(12.1, 12.6)] == ["12.1", "12.2", "12.3", "12.4", "12.5", "12.6"]
    assert [value for value, _ in log_ticks(20_000, 60_000)] == [2e4, 3e4, 4e4, 5e4, 6e4]
    assert [text for _, text in log_ticks(1e-3, 1e12)][-2:] == ["10⁹", "10¹²"]


def test_boxes_show_the_order_statistics(demo: tuple[measures.Judgement, dict[str, Figure]]) -> None:
    judgement, figures = demo
    box = next(t for t in figures["period-box"].panels[0].traces if isinstance(t, Box) and t.name == "udp")
    values = np.sort(judgement.points[0].flows[0].series["period"].value)
    n = len(values)
    assert box.median * 1e3 == pytest.approx(values[math.ceil(n / 2) - 1])
    assert box.high * 1e3 == pytest.approx(values[math.ceil(0.99 * n) - 1])
