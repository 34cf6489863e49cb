"""Every format read back by a reader that is not ours, and held to the figures of `show --json`."""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hdrh.histogram import HdrHistogram
from hdrh.log import HistogramLogReader
from hypothesis import given, settings
from hypothesis import strategies as st
from lxml import etree
from prometheus_client.openmetrics.parser import text_string_to_metric_families

import synthetic
from wiregauge.export import Choice, ExportError, histograms, junit, openmetrics, tables, write
from wiregauge.measures import SERIES, RunDirectoryError
from wiregauge.measures.definitions import COUNTS, QUANTILES
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.results import judge, show_json

pytestmark = pytest.mark.usefixtures("unreported")

ROOT = Path(__file__).resolve().parents[2]
LIMITS = (
    {"flow": 10, "measure": "latency.p99", "bound": "at-most", "value": 1e9, "written": "1s", "line": 7},
    {"flow": 10, "measure": "latency.max", "bound": "at-most", "value": 1.0, "written": "1ns", "line": 8},
    {"flow": None, "measure": "rtt.p99.99", "bound": "at-most", "value": 1e9, "written": "1s", "line": 9},
)
RECIPE = synthetic.Recipe(
    protocols=("udp",), payloads=(64, 1472), messages=600, repeats=2, loss=0.01, limits=LIMITS
)
SMALL = synthetic.Recipe(protocols=("udp", "raw"), payloads=(64, 128), messages=30)
WHOLE: dict[str, Any] = {}
WHATS = ("measures", "messages", "series")


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return synthetic.make(tmp_path_factory.mktemp("export") / "r", RECIPE)


@pytest.fixture(scope="module")
def shown(place: Path) -> dict[str, Any]:
    return {**show_json(judge(place))}


def flows(shown: dict[str, Any]) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    return ((run, flow) for run in shown["runs"] for flow in run["flows"])


# -- tables -------------------------------------------------------------------------------------------------


def as_table(file: Path, to: str) -> pl.DataFrame:
    """A file read by pyarrow or the csv module; of CSV all columns are text."""
    if to == "csv":
        with file.open(newline="", encoding="utf-8") as text:
            rows = list(csv.DictReader(text, strict=True))
        return pl.DataFrame([{key: value or None for key, value in row.items()} for row in rows])
    if to == "parquet":
        table = pq.read_table(file)
    else:
        with pa.OSFile(str(file)) as source:
            table = pa.ipc.open_file(source).read_all()
    found = pl.from_arrow(table)
    assert isinstance(found, pl.DataFrame)
    return found


def metadata(file: Path, to: str) -> dict[bytes, bytes]:
    if to == "parquet":
        return dict(pq.read_metadata(file).metadata)
    with pa.OSFile(str(file)) as source:
        return dict(pa.ipc.open_file(source).schema.metadata)


@pytest.mark.parametrize("size", [1, 7, 1 << 20])
@pytest.mark.parametrize("flow", [None, "10"])
def test_pieces_are_the_whole(
    place: Path, size: int, flow: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    directory, choice = open_recorded(place), Choice(flow=flow)
    whole = tables.messages(directory, choice).collect()
    assert whole.height > 7
    step = max(size, whole.height // 40)
    monkeypatch.setitem(tables._PIECES, "messages", (tables.messages, step))
    pieces = [piece.collect() for piece in tables.pieces("messages", directory, choice)]
    assert all(piece.height <= step for piece in pieces)
    assert pl.concat(pieces).equals(whole)


@pytest.mark.parametrize("to", ["parquet", "arrow", "csv"])
def test_measures_are_those_of_show(place: Path, shown: dict[str, Any], tmp_path: Path, to: str) -> None:
    write(place, to, tmp_path / "t")
    table = as_table(tmp_path / "t", to)
    rows = {
        (row["run"], row["point_payload"], row["flow"], row["measure"], row["statistic"]): row
        for row in table.with_columns(pl.col("run", "flow").cast(pl.Int64)).iter_rows(named=True)
    }
    seen = 0
    for run, flow in flows(shown):
        at = (run["index"], run["point"]["payload"], flow["flow"])
        for name in COUNTS:
            assert float(rows[*at, name, None]["value"]) == flow[name]
        assert float(rows[*at, "loss", None]["high"]) == flow["loss"]["high"]
        for name in SERIES:
            summary = flow[f"{name}_ns"]
            if summary is None:
                continue
            for statistic in ("min", "mean", "sd", "mad", "max", *QUANTILES):
                row = rows[*at, name, statistic]
                seen += 1
                assert int(row["n"]) == summary["n"]
                value = row["value"]
                assert (None if value is None else float(value)) == summary[statistic]
                if value is not None and statistic in QUANTILES:
                    low, high = summary["intervals"][statistic]
                    assert [None if e is None else float(e) for e in (row["low"], row["high"])] == [low, high]
            mean = rows[*at, name, "mean"]
            half = (float(mean["high"]) - float(mean["low"])) / 2
            assert math.isclose(half, summary["uncertainty"], rel_tol=1e-6, abs_tol=1e-6)
    assert seen > 500
    pooled = table.filter(pl.col("run").is_null() & (pl.col("measure") == "sent"))
    assert sorted(int(float(v)) for v in pooled["value"]) == sorted(
        flow["sent"] for point in shown["points"] for flow in point["flows"]
    )
    if to != "csv":
        assert metadata(tmp_path / "t", to)[b"wiregauge.export"] == b"2"
        assert metadata(tmp_path / "t", to)[b"wiregauge.kind"] == b"measures"


@pytest.mark.parametrize("what", WHATS)
def test_the_three_tables_say_the_same(place: Path, tmp_path: Path, what: str) -> None:
    tables = {}
    for to in ("parquet", "arrow", "csv"):
        write(place, to, tmp_path / to, what, Choice(run=1, flow="10"))
        tables[to] = as_table(tmp_path / to, to)
    assert tables["parquet"].equals(tables["arrow"])
    assert tables["csv"].columns == tables["parquet"].columns
    for name, kind in tables["parquet"].schema.items():
        read = tables["csv"][name]
        read = read == "true" if kind == pl.Boolean else read.cast(kind)
        assert read.equals(tables["parquet"][name], null_equal=True), name


def test_csv_keeps_to_its_standard(place: Path, tmp_path: Path) -> None:
    write(place, "csv", tmp_path / "t.csv", "messages")
    text = (tmp_path / "t.csv").read_bytes()
    lines = text.split(b"\r\n")
    assert lines[-1] == b""
    assert not any(b"\n" in line or b"\r" in line for line in lines)
    assert len({line.count(b",") for line in lines[:-1]}) == 1
    header = lines[0].decode().split(",")
    assert {"length_B", "tx_app_ps", "rx_app_ps"} <= set(header)


def test_messages_are_whole_and_named(place: Path, shown: dict[str, Any], tmp_path: Path) -> None:
    write(place, "parquet", tmp_path / "t", "messages")
    table = as_table(tmp_path / "t", "parquet")
    for run, flow in flows(shown):
        mine = table.filter(
            (pl.col("run") == run["index"]) & (pl.col("flow") == flow["flow"]) & ~pl.col("warm_up")
        )
        assert mine.height == flow["sent"]
        assert mine["point_payload"].unique().to_list() == [run["point"]["payload"]]
        assert mine["from"].unique().to_list() == [flow["from"]]
        assert dict(mine["outcome"].value_counts().iter_rows()) == {
            k: v for k, v in flow["outcomes"].items() if v
        }
        assert mine.filter(outcome="delivered")["last_node"].null_count() == flow["outcomes"]["delivered"]
        gone = mine.filter(outcome="lost")
        assert set(gone["last_node"].drop_nulls()) <= set(synthetic.NODES)
        delays = ((mine["rx_app_ps"] - mine["tx_app_ps"]) / 1000).drop_nulls()
        assert delays.max() == pytest.approx(flow["latency_ns"]["max"])


# -- histograms ---------------------------------------------------------------------------------------------


def test_a_log_reads_back(place: Path, shown: dict[str, Any], tmp_path: Path) -> None:
    write(place, "hlog", tmp_path / "t.hlog")
    reader = HistogramLogReader(str(tmp_path / "t.hlog"), HdrHistogram(1, 10**10, histograms.DIGITS))
    whole: dict[str, HdrHistogram] = {}
    starts = []
    while (part := reader.get_next_interval_histogram()) is not None:
        starts.append(part.get_start_time_stamp())
        whole.setdefault(part.get_tag(), HdrHistogram(1, 10**10, histograms.DIGITS)).add(part)
    reader.close()
    assert len(starts) > len(whole), "more than one interval of each"
    assert starts == sorted(starts)
    exact: dict[str, float] = {}
    for line in (tmp_path / "t.hlog").read_text().splitlines():
        if line.startswith("Tag="):
            tag, _, _, top, _ = line.split(",")
            exact[tag[4:]] = max(exact.get(tag[4:], 0.0), float(top) * 1e6)
    assert len(whole) == sum(1 for _ in flows(shown))
    for run, flow in flows(shown):
        name = "rtt" if flow["relayed"] else "latency"
        tag = f"run-{run['index']}.flow-{flow['flow']}.{name}"
        summary = flow[f"{name}_ns"]
        assert whole[tag].get_total_count() == summary["n"]
        assert exact[tag] == pytest.approx(summary["max"], abs=1e-3)
        for q in ("p50", "p90", "p99"):
            if summary[q] is not None:
                # The reader rounds the rank; ours is the next whole one (nearest rank), so it is named.
                nearest = math.ceil(Fraction(str(QUANTILES[q])) * summary["n"])
                read = whole[tag].get_value_at_percentile(100 * nearest / summary["n"])
                assert read == pytest.approx(summary[q], rel=1e-3, abs=1)


def test_percentiles_of_one_distribution(place: Path, shown: dict[str, Any], tmp_path: Path) -> None:
    write(place, "hgrm", tmp_path / "t", None, Choice(0, "20", "rtt"))
    text = (tmp_path / "t").read_text()
    rows = [line.split() for line in text.splitlines() if line and not line.startswith(("#", " " * 7 + "V"))]
    summary = next(flow for run, flow in flows(shown) if run["index"] == 0 and flow["flow"] == 20)["rtt_ns"]
    assert int(rows[-1][2]) == summary["n"]
    write(place, "parquet", tmp_path / "s", "series", Choice(0, "20", "rtt"))
    values = pl.read_parquet(tmp_path / "s")["value_ns"].to_numpy().round()
    for value, _, count, *_ in rows:
        assert np.count_nonzero(values <= float(value)) == int(count)
    assert f"#[Exact minimum = {summary['min']:.3f}, maximum = {summary['max']:.3f}]" in text


@settings(max_examples=60)
@given(st.lists(st.floats(0, 1e11, allow_nan=False), min_size=1, max_size=60))
def test_a_histogram_keeps_three_digits(values: list[float]) -> None:
    whole = np.rint(values).astype(np.int64)
    made = histograms.histogram(np.array(values), max(2, int(whole.max())))
    assert made.get_total_count() == len(values)
    back = HdrHistogram.decode(made.encode())
    assert back.get_total_count() == len(values)
    read = [
        cell.value_iterated_to
        for cell in back.get_recorded_iterator()
        for _ in range(cell.count_at_value_iterated_to)
    ]
    for value, kept in zip(np.sort(whole), read, strict=True):
        assert abs(kept - value) <= value / 1000


# -- verdict ------------------------------------------------------------------------------------------------


JENKINS: dict[str, tuple[set[str], set[str], set[str]]] = {
    # element: attributes it must have, attributes it may have, children
    "testsuites": (set(), {"name", "time", "tests", "failures", "errors"}, {"testsuite"}),
    "testsuite": (
        {"name", "tests", "failures", "errors"},
        {"group", "time", "skipped", "timestamp", "hostname", "id", "package", "file", "log", "url"},
        {"testsuite", "properties", "testcase", "system-out", "system-err"},
    ),
    "properties": (set(), set(), {"property"}),
    "property": ({"name", "value"}, set(), set()),
    "testcase": (
        {"name"},
        {"time", "classname", "group"},
        {"skipped", "error", "failure", "system-out", "system-err"},
    ),
    "failure": (set(), {"type", "message"}, set()),
    "error": (set(), {"type", "message"}, set()),
    "skipped": (set(), {"type", "message"}, set()),
    "system-out": (set(), set(), set()),
}
"""What the xUnit plugin of Jenkins accepts (its schema junit-10), of what a document without re-runs can hold."""
SUREFIRE_CASE = ("failure", "skipped", "error", "system-out", "system-err")
"""Order of the children of a case in Maven Surefire's schema of test reports, without re-runs."""


def keeps_to_their_schemas(root: etree._Element) -> None:
    """Against the two schemas as read by us, and not against our own."""
    assert root.tag == "testsuites"
    for node in root.iter(etree.Element):
        must, may, children = JENKINS[node.tag]
        assert must <= set(node.attrib) <= must | may, node.tag
        assert {child.tag for child in node} <= children, node.tag
        mixed = node.tag in ("failure", "error", "system-out")
        assert mixed or not ((node.text or "") + "".join(child.tail or "" for child in node)).strip()
        assert re.fullmatch(r"\d+\.\d{3}", node.get("time", "0.000")), "seconds, as both write them"
    for case in root.iter("testcase"):
        assert {"name", "time"} <= set(case.attrib), "both are required by Surefire"
        order = [SUREFIRE_CASE.index(child.tag) for child in case]
        assert order == sorted(order)
        assert all(child.get("type") for child in case if child.tag in ("failure", "error"))
        assert sum(child.tag in ("error", "skipped") for child in case) <= 1


def read_junit(file: Path) -> etree._Element:
    root = etree.parse(str(file)).getroot()
    etree.XMLSchema(etree.parse(str(junit.schema_path()))).assertValid(root)
    keeps_to_their_schemas(root)
    return root


def test_a_verdict_keeps_to_the_schema(place: Path, shown: dict[str, Any], tmp_path: Path) -> None:
    write(place, "junit", tmp_path / "t.xml")
    root = read_junit(tmp_path / "t.xml")
    suites = root.findall("testsuite")
    assert len(suites) == 1 + len(shown["runs"])
    for run, suite in zip(shown["runs"], suites[1:], strict=True):
        assert len(suite.findall("testcase")) == len(run["limits"]) + len(run["checks"])
        failed = suite.findall("testcase/failure")
        assert len(failed) == sum(limit["result"] == "fail" for limit in run["limits"])
        undecided = suite.findall("testcase/error[@type='UNDECIDED']")
        assert len(undecided) == sum(limit["result"] == "undecided" for limit in run["limits"])
        facts = {p.get("name"): p.get("value") for p in suite.iter("property")}
        assert len(facts["test.sha256"] or "") == 64
        assert facts["seed"] == "7"
        assert facts["point.payload"] == run["point"]["payload"]
        observed = next(limit["observed"] for limit in run["limits"] if limit["measure"] == "latency.max")
        text = failed[0].get("message") or ""
        assert f"is {observed:.12g} ns" in text
        assert "limit at most 1ns" in text
    held = next(case for case in suites[1].findall("testcase") if "latency.p99" in (case.get("name") or ""))
    told = held.findtext("system-out") or ""
    assert "95 % interval" in told
    assert "n = " in told


def test_what_cannot_be_judged_is_an_error(tmp_path: Path) -> None:
    recipe = synthetic.Recipe(
        protocols=("udp",),
        payloads=(64, 128),
        messages=50,
        limits=LIMITS,
        state="interrupted",
        reason="stopped \x1b by a signal & <more>",
        stop_after=1,
        agent={"clock_steps": 3},
    )
    place = synthetic.make(tmp_path / "r", recipe)
    judgement = judge(place)
    write(place, "junit", tmp_path / "t.xml")
    root = read_junit(tmp_path / "t.xml")
    assert int(root.get("errors") or 0) > 0
    campaign = root.findall("testsuite")[0]
    assert campaign.find("testcase/error") is not None
    if judgement.runs[0].verdict == "UNDECIDED":
        assert not root.findall("testsuite")[1].findall("testcase/failure")


# -- metrics ------------------------------------------------------------------------------------------------


def test_metrics_are_read_by_their_reference_parser(
    place: Path, shown: dict[str, Any], tmp_path: Path
) -> None:
    write(place, "openmetrics", tmp_path / "t")
    text = (tmp_path / "t").read_text()
    assert text.endswith("# EOF\n")
    families = {family.name: family for family in text_string_to_metric_families(text)}  # type: ignore[no-untyped-call]  # its parser is untyped
    samples = {
        (s.name, s.labels["run"], s.labels.get("flow"), s.labels.get("quantile"), s.labels.get("le")): s.value
        for family in families.values()
        for s in family.samples
        if "run" in s.labels and family.name != "wiregauge_limit_holds"
    }
    assert families["wiregauge_latency_seconds"].unit == "seconds"
    for run, flow in flows(shown):
        at = (str(run["index"]), str(flow["flow"]))
        assert samples["wiregauge_lost_messages_total", *at, None, None] == flow["lost"]
        latency = flow["latency_ns"]
        assert samples["wiregauge_latency_seconds_count", *at, None, None] == latency["n"]
        assert samples["wiregauge_latency_seconds_bucket", *at, None, "+Inf"] == latency["n"]
        for name in ("min", "mean", "max"):
            assert samples[f"wiregauge_latency_{name}_seconds", *at, None, None] == latency[name] / 1e9
        assert samples["wiregauge_latency_quantile_seconds", *at, "0.99", None] == latency["p99"] / 1e9
    holds = [s.value for s in families["wiregauge_limit_holds"].samples]
    assert sorted(holds) == sorted(float(limit["holds"]) for run in shown["runs"] for limit in run["limits"])


@settings(max_examples=50)
@given(st.lists(st.one_of(st.floats(-1e3, 1e11), st.sampled_from([float(b) for b in openmetrics.BOUNDS_NS]))))
def test_a_bucket_holds_its_upper_bound(values: list[float]) -> None:
    expected = [sum(value <= bound for value in values) for bound in openmetrics.BOUNDS_NS]
    assert openmetrics.at_or_below(np.array(values)) == expected


def test_json_is_that_of_show(place: Path, shown: dict[str, Any], tmp_path: Path) -> None:
    write(place, "json", tmp_path / "t")
    assert json.loads((tmp_path / "t").read_text()) == json.loads(json.dumps(shown))
    write(place, "json", tmp_path / "s", "series", Choice(run=2, flow="10", measure="ipdv"))
    (series,) = json.loads((tmp_path / "s").read_text())["series"]
    summary = next(f for r, f in flows(shown) if r["index"] == 2 and f["flow"] == 10)["ipdv_ns"]
    assert len(series["value_ns"]) == len(series["time_s"]) == summary["n"]
    assert max(series["value_ns"]) == summary["max"]


# -- what is refused ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("to", "what", "choice", "named"),
    [
        ("xlsx", None, Choice(), "parquet, arrow, csv"),
        ("csv", "frames", Choice(), "measures"),
        ("hlog", "messages", Choice(), "series"),
        ("csv", None, Choice(run=99), "run 99 is not in the plan"),
        ("csv", None, Choice(flow="77"), "no flow 77; the test has 10, 20"),
        ("csv", "series", Choice(measure="lost"), "latency"),
        ("csv", "messages", Choice(measure="rtt"), "--measure has no effect"),
        ("junit", None, Choice(measure="rtt"), "--measure has no effect"),
        ("hgrm", None, Choice(), "--run, --flow and --measure"),
        ("hlog", None, Choice(measure="ipdv"), "negative"),
        ("hlog", None, Choice(measure="skew"), "nothing to export"),
        ("parquet", "series", Choice(flow="10", measure="rtt"), "nothing to export"),
        ("json", None, Choice(flow="10"), "csv takes"),
        ("csv", "records", Choice(), "no records of run 0"),
    ],
)
def test_nothing_is_left_of_what_is_refused(
    place: Path, tmp_path: Path, to: str, what: str | None, choice: Choice, named: str
) -> None:
    with pytest.raises((ExportError, RunDirectoryError), match=named.replace("(", r"\(")) as told:
        write(place, to, tmp_path / "t", what, choice)
    assert "\n" not in str(told.value)
    assert list(tmp_path.iterdir()) == []


def test_results_are_never_overwritten(place: Path, tmp_path: Path) -> None:
    (tmp_path / "t").write_text("mine")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name, why in (("t", "already exists"), ("link", "already exists"), ("no/where", "no directory")):
        with pytest.raises(ExportError, match=why):
            write(place, "csv", tmp_path / name)
    with pytest.raises(ExportError, match="is a directory"):
        write(place, "csv", tmp_path)
    assert (tmp_path / "t").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize("cut", [0, 100, 3000])
@pytest.mark.parametrize("to", ["csv", "parquet", "arrow"])
def test_a_damaged_table_is_named(tmp_path: Path, cut: int, to: str) -> None:
    place = synthetic.make(tmp_path / "r", synthetic.Recipe(protocols=("udp",), payloads=(64,), messages=200))
    file = place / "messages" / "run-0000.parquet"
    data = file.read_bytes()
    # Cut short, and with its middle overwritten: the head is fine and only reading on meets the damage.
    file.write_bytes(data[:cut] if cut < 3000 else data[:2000] + b"\xff" * 1500 + data[3500:])
    with pytest.raises(RunDirectoryError, match=r"messages.*no readable Parquet"):
        write(place, to, tmp_path / "t", "messages")
    assert [path.name for path in tmp_path.iterdir()] == ["r"]


# -- properties ---------------------------------------------------------------------------------------------

RUNS = st.one_of(st.none(), st.integers(0, 3))
FLOWS = st.one_of(st.none(), st.sampled_from(["10", "20"]))
MEASURES = st.one_of(st.none(), st.sampled_from(["latency", "rtt", "ipdv", "period"]))


@settings(max_examples=20)
@given(run=RUNS, flow=FLOWS, measure=MEASURES)
def test_a_choice_is_a_filter(
    tmp_path_factory: pytest.TempPathFactory, run: int | None, flow: str | None, measure: str | None
) -> None:
    place = WHOLE.setdefault("place", synthetic.make(tmp_path_factory.mktemp("p") / "r", SMALL))
    if "table" not in WHOLE:
        write(place, "parquet", place / "whole", "series")
        WHOLE["table"] = pl.read_parquet(place / "whole")
    expected = WHOLE["table"]
    for column, wanted in (
        ("run", run),
        ("flow", None if flow is None else int(flow)),
        ("measure", measure),
    ):
        if wanted is not None:
            expected = expected.filter(pl.col(column) == wanted)
    out = tmp_path_factory.mktemp("q") / "t"
    if expected.is_empty():
        with pytest.raises(ExportError, match="nothing to export"):
            write(place, "parquet", out, "series", Choice(run, flow, measure))
    else:
        write(place, "parquet", out, "series", Choice(run, flow, measure))
        assert pl.read_parquet(out).equals(expected)
