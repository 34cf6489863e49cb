"""What is said of a picture is true of it: every word for something that is drawn is held against what is drawn."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from msgspec.structs import replace

import wiregauge
from simulation import trial
from synthetic import Columns, Recipe, make
from wiregauge import results
from wiregauge.figures import Figure, build
from wiregauge.figures.bounds import (
    Arrived,
    FlowMark,
    HopMark,
    Served,
    arrivals_figure,
    hops_figure,
    marks_figure,
    ports_figure,
    service_figure,
)
from wiregauge.figures.compare import compare_figures
from wiregauge.figures.explained import explained_figures
from wiregauge.figures.model import Band, Bars, Line, Scatter, Spans, Trace
from wiregauge.figures.trend import trend_figures
from wiregauge.measures.comparing import compare, read_threshold, trend
from wiregauge.measures.explaining import explain
from wiregauge.results.comparing.shapes import pair_shapes
from wiregauge.results.explaining.shapes import explained_shapes

PACKAGE = Path(wiregauge.__file__).parent
EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
FEW = Recipe(protocols=("udp",), payloads=(64,), messages=300, warm_up=0, loss=0, relay=False)


def dashes(*kinds: str) -> Callable[[Sequence[Trace]], bool]:
    return lambda traces: any(trace.style.dash in kinds for trace in traces)


def marked(*markers: str) -> Callable[[Sequence[Trace]], bool]:
    return lambda traces: any(
        isinstance(trace, Scatter) and trace.style.marker in markers and len(trace.x) for trace in traces
    )


def kinds(*of: type) -> Callable[[Sequence[Trace]], bool]:
    return lambda traces: any(isinstance(trace, of) for trace in traces)


CLAIMS: dict[str, Callable[[Sequence[Trace]], bool]] = {
    r"\bdotted\b|\bdots\b": dashes("dot", "dashdot"),
    r"\bdashed\b": dashes("dash"),
    r"\bbands?\b": kinds(Band, Spans),
    r"\bcross(es)?\b": marked("cross", "x"),
    r"\bcircles\b": marked("circle"),
    r"\bdiamonds\b": marked("diamond"),
    r"\boutlined\b": lambda traces: any(isinstance(one, Spans) and one.hollow for one in traces),
    r"\bbars?\b": lambda traces: any(
        isinstance(one, Bars | Spans) or (isinstance(one, Line) and len(one.x) == 2) for one in traces
    ),
}
"""Traces that must be drawn if a caption has a word, by word."""


def traces_of(figure: Figure) -> list[Trace]:
    return [trace for panel in figure.panels for trace in panel.traces]


def untrue(figure: Figure) -> list[str]:
    """Words of a figure that nothing drawn is."""
    said = " ".join([figure.caption, *figure.notes]).lower()
    return [word for word, holds in CLAIMS.items() if re.search(word, said) and not holds(traces_of(figure))]


# -- every maker ----------------------------------------------------------------------------------------------


def strings(node: ast.expr) -> Iterator[str]:
    """Texts that an expression has whatever holds."""
    match node:
        case ast.Constant(value=str(text)):
            yield text
        case ast.BinOp(op=ast.Add(), left=left, right=right):
            yield from (*strings(left), *strings(right))
        case ast.JoinedStr(values=values):
            yield from (text for value in values for text in strings(value))
        case ast.Call(func=ast.Name(id="told"), args=parts):
            for part in parts:
                match part:
                    case ast.Tuple(elts=[ast.Constant(value=True), said]):
                        yield from strings(said)


def captions() -> Iterator[tuple[str, int, str, ast.expr]]:
    """File, line, id and caption expression of every figure that the package makes."""
    for path in sorted(PACKAGE.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") in (
                "Figure",
                "_multiples",
                "_curves",
            ):
                own = {word.arg: word.value for word in node.keywords}
                if len(node.args) < 3 and "caption" not in own:
                    continue
                caption = own.get("caption") or node.args[2]
                yield (
                    str(path.relative_to(PACKAGE)),
                    node.lineno,
                    next(strings(node.args[0]), "") if node.args else "",
                    caption,
                )


ALWAYS = {
    "stream-periods": "every stream that is drawn has a mean, which is a circle",
    "clock-exchanges": "every clock has a panel with its band",
    "frames": "a window is around a message, and frames are bars",
    "hops": "every hop is a bar",
    "bounds": "every flow that is drawn has a bound, which is a bar",
    "arrival-curves": "every flow has its least bucket, which is dashed",
    "service-curves": "every port has its curve, which is dashed",
    "linearity": "the line of a straight instrument is drawn whatever was measured",
    "gantt": "a schedule has windows, which are bars",
    "loop-repeats-": "every repeat is a mark with a bar",
    "compare-density": "base and new are drawn, whatever they are",
}
"""Figures that draw what they always say, and why."""


def test_no_caption_claims_without_looking() -> None:
    """A text that is always said may name nothing that is not always drawn."""
    found = list(captions())
    assert len(found) >= 25
    wrong = [
        f"{path}:{line} {name}: says {word} of any figure"
        for path, line, name, caption in found
        for word in CLAIMS
        if re.search(word, " ".join(strings(caption)).lower()) and name not in ALWAYS
    ]
    assert not wrong, "\n".join(wrong)


def test_a_claim_that_is_not_drawn_is_found() -> None:
    (figure,) = [marks_figure([FlowMark("f", 10.0, 4.0, None)])]
    assert figure is not None
    assert untrue(figure) == []
    assert untrue(replace(figure, caption=figure.caption + " Dashed: a limit.")) == [r"\bdashed\b"]
    assert untrue(replace(figure, notes=["Crosses are losses."])) == [r"\bcross(es)?\b"]
    tree = ast.parse('told((True, "Dotted: steps."), (steps, "Dashed: limits."))', mode="eval").body
    assert list(strings(tree)) == ["Dotted: steps."]


# -- the opposite, planted ------------------------------------------------------------------------------------


def test_of_a_comparison(tmp_path: Path) -> None:
    def figures(messages: int, threshold: str | None) -> dict[str, Figure]:
        sides = [
            results.judge(
                make(tmp_path / f"{messages}-{threshold}-{seed}", replace(FEW, messages=messages, seed=seed))
            )
            for seed in (1, 2)
        ]
        wanted = [] if threshold is None else [read_threshold(threshold)]
        found = compare(*sides, thresholds=wanted)
        made = {figure.id: figure for figure in compare_figures(found, pair_shapes(found))}
        for figure in made.values():
            assert untrue(figure) == [], figure.caption
        return made

    many, held, few = figures(3000, None), figures(3000, "latency=1ms"), figures(8, "latency=1us")
    overview = [made["compare-overview"].caption for made in (many, held, few)]
    assert "95 % by itself" in overview[0]
    assert "threshold" not in overview[0]
    assert "threshold" in overview[1]
    assert "open and not drawn" in overview[2]
    assert "open and not drawn" not in overview[0]
    shift = [made["compare-shift"].caption for made in (many, few)]
    assert "Bars are" in shift[0]
    assert "Bars are" not in shift[1]
    assert "n does not close" in shift[1]


def test_of_a_trend(tmp_path: Path) -> None:
    def figures(name: str, delays_us: Sequence[float], limit: float | None) -> Figure:
        def late(by_us: float) -> Callable[[Columns, int], None]:
            def alter(columns: Columns, _: int) -> None:
                for column in ("rx_drv", "rx_app"):
                    columns[column] = columns[column] + int(by_us * 1e6)

            return alter

        limits = (
            []
            if limit is None
            else [
                {
                    "flow": None,
                    "measure": "latency.p50",
                    "bound": "at-most",
                    "value": limit,
                    "written": "x",
                    "line": 1,
                }
            ]
        )
        runs = [
            results.judge(
                make(
                    tmp_path / name / f"day{day}",
                    replace(FEW, messages=2000, seed=day, alter=late(delay), limits=limits),
                )
            )
            for day, delay in enumerate(delays_us)
        ]
        for figure in (made := trend_figures(trend(runs))):
            assert untrue(figure) == [], figure.caption
        return next(figure for figure in made if figure.id == "trend-latency-p50")

    steady, stepped = (
        figures("steady", [0, 0, 0], None),
        figures("stepped", [0, 0, 0, 0, 0, 40, 40, 40], None),
    )
    assert "step" not in steady.caption
    assert "Dotted lines: 1 step of the level." in stepped.caption
    assert "limits" not in steady.caption
    middle = next(trace for trace in traces_of(steady) if isinstance(trace, Scatter)).y[0] * 1e3
    near, far = figures("near", [0, 0, 0], middle * 1.1), figures("far", [0, 0, 0], middle * 100)
    assert "Dashed: limits" in near.caption
    assert "Dashed" not in far.caption
    assert "Beyond the axis" in " ".join(far.notes)


def test_of_bounds() -> None:
    def said(figure: Figure | None) -> str:
        assert figure is not None
        assert untrue(figure) == [], figure.caption
        return " ".join([figure.caption, *figure.notes])

    measured, simulated = FlowMark("f", 10.0, 4.0, None), FlowMark("g", 10.0, None, 5.0)
    assert "Circles" in said(marks_figure([measured]))
    assert "Diamonds" not in said(marks_figure([measured]))
    assert "Circles" not in said(marks_figure([simulated]))
    exceeded = FlowMark("h", 10.0, None, 11.0, exceeded=True)
    assert "1 flow took longer" in said(marks_figure([exceeded]))
    assert "took longer" not in said(marks_figure([measured, simulated]))
    near, far = FlowMark("i", 10.0, None, None, limit=20.0), FlowMark("j", 10.0, None, None, limit=100.0)
    assert "Triangles" in said(marks_figure([near]))
    assert "Triangles" not in said(marks_figure([far]))
    assert "1 limit so far to the right" in said(marks_figure([near, far]))
    assert "2 more flows are not drawn" in said(marks_figure([near] * 62))
    assert "1 port with lower loads" in said(ports_figure({f"p{k}": 0.1 for k in range(61)}))
    gap = HopMark("f", ["a", "b"], [1.0, 1.0], waits=[0.0, 2.0])
    assert "Gaps" in said(hops_figure([gap]))
    simulated_hop = HopMark("f", ["a"], [1.0], simulated=[0.5])
    assert "Orange" in said(hops_figure([simulated_hop]))
    assert "Blue" not in said(hops_figure([simulated_hop]))
    seen, unseen = HopMark("f", ["a"], [1.0], [0.5]), HopMark("f", ["a"], [1.0], [None])
    assert "residence" in said(hops_figure([seen]))
    assert "residence" not in said(hops_figure([unseen]))
    assert "no record tells" in said(hops_figure([seen, unseen]))
    assert "2 more are not" in said(hops_figure([seen] * 14))
    x = np.array([0.0, 1.0])
    for promised in ((64.0, 1.0), None):
        text = said(arrivals_figure([Arrived("f", x, x, (64.0, 1.0), promised)]))
        assert ("no bound holds" in text) == (promised is not None)
    said(service_figure([Served("p", x, x, 1.0, 0.0)]))


@pytest.mark.parametrize("name", ["afdx", "gates", "synchronised", "buffers", "shapers", "ptp"])
def test_of_a_report(tmp_path: Path, name: str) -> None:
    judgement = trial(EXAMPLES / f"{name}.xml", tmp_path / "r")
    made = build(judgement, results.shapes(judgement), results.views(judgement))
    made += explained_figures(explained_shapes(judgement, explain(judgement, most=3)))
    for figure in made:
        assert untrue(figure) == [], f"{figure.id}: {figure.caption} {figure.notes}"


@pytest.mark.parametrize(("messages", "relay"), [(40, False), (2000, True)])
def test_of_a_report_of_few_and_of_many(tmp_path: Path, messages: int, *, relay: bool) -> None:
    recipe = replace(FEW, messages=messages, relay=relay, payloads=(64, 512), loss=0.01)
    judgement = results.judge(make(tmp_path / "r", recipe))
    made = {figure.id: figure for figure in build(judgement, results.shapes(judgement))}
    for figure in made.values():
        assert untrue(figure) == [], f"{figure.id}: {figure.caption} {figure.notes}"
    assert ("relay" in made["split"].caption) == relay
    assert ("band reaches" in made["latency-by-payload"].caption) == (messages > 299)
    assert ("missing" in made["latency-by-payload"].caption) == (messages <= 299)
