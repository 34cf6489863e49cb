"""Tables for papers: the figures of the run, names that nobody can break a document with, one name for a column."""

from __future__ import annotations

import csv
import io
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace
from typer.testing import CliRunner

from synthetic import Recipe, make
from wiregauge import results
from wiregauge.cli import app
from wiregauge.export import Choice, ExportError, measures
from wiregauge.export.columns import PLACE_COLUMNS, figure_names
from wiregauge.export.paper import escaped, paper_table
from wiregauge.measures import Judgement
from wiregauge.measures.quantities import quantity

RECIPE = Recipe(protocols=("udp",), payloads=(64, 512), messages=400, warm_up=10, loss=0.01, repeats=2)
HOSTILE = (
    "\\end{document} $x_1^2$ %no &# ~{ [0pt] ---`` '' \"a <<M>> |"
    "\N{MICRO SIGN}\N{PLUS-MINUS SIGN}\N{EN DASH}\u00f1\u00c5\u4e2d\x1b[31m\n\\input{/etc/passwd}"
)
TOKENS = re.compile(
    r"(?:\\(?:textbackslash|textasciicircum|textasciitilde|textless|textgreater|textbar|ldots|ss|ae|AE|oe|OE|o|O|l|L|i)"
    r"\{\}|\\[{}$&#_%]|\{[\[\]*\"'`-]\}|\$\\(?:mu|cdot|pm|geq|leq|to)\$|---?|~"
    r"|\\(?:[`'^~=.\"]|[uHvcr] )\{(?:[A-Za-z]|\\[ij])\}|\\texttt\{U\+[0-9A-F]{4,6}\}|[A-Za-z0-9 !()+,./:;=?@])*"
)
"""What an escaped text may be made of."""


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(tmp_path_factory.mktemp("runs") / "r", RECIPE)


@pytest.fixture(scope="module")
def judged(place: Path) -> Judgement:
    return results.judge(place)


def command(*words: str | Path) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["table", *map(str, words), "-q"])
    assert "Traceback" not in result.output
    return result.exit_code, result.output


def test_cells_are_the_figures_of_the_run(judged: Judgement) -> None:
    names = ["point_payload", "flow", "lost", "loss", "latency.p50", "latency.n", "rtt.max"]
    made = paper_table([("", judged)], names)
    rows = list(csv.DictReader(io.StringIO(made.csv())))
    flows = [(point, flow) for point in judged.points for flow in point.flows]
    assert len(rows) == len(flows) == 4
    for row, (point, flow) in zip(rows, flows, strict=True):
        assert (row["point_payload"], int(row["flow"])) == (point.point["payload"], flow.plan.id)
        assert int(row["latency.n"]) == flow.summaries["latency"].n
        for name in ("lost", "loss", "latency.p50", "rtt.max"):
            figure = quantity(flow, name)
            assert row[name] == ("" if figure.value is None else str(figure.value))
            assert row[f"{name} unit"] == figure.unit
            assert row[f"{name} low"] == ("" if figure.low is None else str(figure.low))
    assert "Repeats are pooled." in made.caption
    assert "not determined (no message has a value)" in made.caption


def test_a_head_has_the_unit_and_a_cell_its_interval(judged: Judgement) -> None:
    made = paper_table([("", judged)], ["flow", "latency.p99"])
    assert made.heads == ["flow", "latency p99 (µs)"]
    figure = quantity(judged.points[0].flows[0], "latency.p99")
    shown = made.rows[0][1]
    assert figure.value is not None
    assert float(shown.value) == pytest.approx(figure.value / 1e3, rel=1e-3)
    assert re.fullmatch(r"\[[\d.]+, [\d.]*\]", shown.interval)


def test_the_columns_of_an_export_are_those_of_a_table(judged: Judgement) -> None:
    exported = measures(judged, Choice()).collect()
    assert set(PLACE_COLUMNS) <= set(exported.columns)
    known = set(figure_names())
    for measure, statistic in exported.select("measure", "statistic").unique().iter_rows():
        if not measure.startswith("pair_"):
            assert (f"{measure}.{statistic}" if statistic else measure) in known
    flow = judged.points[0].flows[0]
    for name in known:
        if not name.endswith(".n"):
            quantity(flow, name)


@given(st.text(max_size=40) | st.just(HOSTILE))
def test_any_name_is_text_in_latex(text: str) -> None:
    made = escaped(text)
    assert made.isascii()
    assert "\n" not in made
    assert TOKENS.fullmatch(made), made


@pytest.mark.skipif(shutil.which("pdflatex") is None, reason="pdflatex is not installed")
@pytest.mark.parametrize(
    "package", ["", r"\def\toprule{\hline\hline}\let\midrule\hline\let\bottomrule\hline"]
)
def test_plain_latex_compiles_a_table_with_hostile_names(
    judged: Judgement, tmp_path: Path, package: str
) -> None:
    made = paper_table([(HOSTILE, judged), ("other", judged)])
    (tmp_path / "t.tex").write_text(made.latex(), encoding="utf-8")
    (tmp_path / "p.tex").write_text(
        rf"\documentclass{{article}}{package}\begin{{document}}\begin{{table}}\input{{t.tex}}\end{{table}}"
        r"\typeout{END OF ALL}\end{document}",
        encoding="utf-8",
    )
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-no-shell-escape", "p.tex"],
        cwd=tmp_path,
        capture_output=True,
        check=False,
        timeout=120,
    )
    log = done.stdout.decode("utf-8", "replace")
    assert done.returncode == 0, log[-2000:]
    assert "END OF ALL" in log
    assert "Missing character" not in log


def test_a_table_goes_where_it_is_asked_and_no_further(place: Path, tmp_path: Path) -> None:
    heads = {"t.tex": "% Table by wiregauge.", "t.md": "<!-- Table by wiregauge.", "t.csv": "point_payload"}
    for name, begins in heads.items():
        out = tmp_path / name
        code, said = command(place, "--out", out)
        assert code == 0, said
        assert "caption: n = " in said
        assert out.read_text(encoding="utf-8").startswith(begins)
        assert command(place, "--out", out)[0] == (2 if name == "t.csv" else 0), "a CSV bears no mark"
        out.write_text("mine")
        assert command(place, "--out", out)[0] == 2
        assert out.read_text() == "mine"
    code, said = command(place, "--columns", "flow,latency.p50")
    assert code == 0
    assert "| flow | latency p50 (µs) |" in said


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--columns", "flow,latncy.p50"), 'did you mean "latency.p50"?'),
        (("--columns", "flow,,latency.p50"), "with a comma between them"),
        (("--columns", "point_load"), "no column"),
        (("--format", "latx"), 'did you mean "latex"?'),
        (("--flow", "99"), "there is no flow 99"),
        (("--run", "77"), "run 77 is not in the plan"),
    ],
)
def test_what_cannot_be_is_refused(place: Path, words: tuple[str, ...], why: str) -> None:
    code, said = command(place, *words)
    assert code == 2, said
    assert why in " ".join(said.split())


def test_a_run_without_flows_has_no_table(judged: Judgement) -> None:
    with pytest.raises(ExportError, match="no flow"):
        paper_table([("", replace(judged, runs=(), points=()))])


def test_without_a_run_every_column_is_listed() -> None:
    code, said = command()
    assert code == 0
    assert [name for name in (*PLACE_COLUMNS, "latency", "loss", "goodput") if f"  {name} " not in said] == []
