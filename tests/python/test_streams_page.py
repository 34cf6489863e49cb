"""The page of streams: what the text says stands there, promises beside what was seen, hostile names are text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace
from typer.testing import CliRunner

from test_contract import seen, steady
from test_one_tap import classic
from test_report import EVIL, Page
from wiregauge.cli import app
from wiregauge.contracts import judge, read_contract
from wiregauge.report import rendered_streams
from wiregauge.streams import Observed, stream_tables

LATE = "id,bag,lmax\n16,1ms,60B\n"


@pytest.fixture
def observed(tmp_path: Path) -> Observed:
    """Sixty frames of a virtual link, and a contract whose Lmax they break."""
    contract = tmp_path / "c.csv"
    contract.write_text(LATE)
    return judge(seen(tmp_path, steady()), read_contract(contract), 0.0)


def test_the_page_has_verdict_promises_and_every_row_of_the_text(observed: Observed) -> None:
    page = Page(rendered_streams(observed, "hour"))
    for text in ("FAIL", observed.validity, "frame_length", "at most 60 B", "Promises broken", "VL 16 from"):
        assert text in page.text
    for table in stream_tables(observed):
        assert table.title in page.text
        for row in table.rows:
            assert row[0] in page.text
    assert "stream-periods" in " ".join(value for _, _, value in page.attributes)


def test_without_a_contract_there_is_no_verdict(tmp_path: Path) -> None:
    page = Page(rendered_streams(seen(tmp_path, steady()), "hour"))
    assert "verdict" not in page.text
    assert "Promises" not in page.text


def test_a_hostile_name_is_text(observed: Observed) -> None:
    streams = [replace(stream, name=EVIL) for stream in observed.streams]
    promises = [replace(one, stream=EVIL, reason=EVIL) for one in observed.promises]
    taps = [replace(tap, name=EVIL) for tap in observed.taps]
    hostile = replace(observed, streams=streams, promises=promises, taps=taps, others=[EVIL], notes=[EVIL])
    page = Page(rendered_streams(hostile, EVIL))
    plain = Page(rendered_streams(observed, "hour"))
    assert len(page.scripts) == len(plain.scripts)
    assert not any(name.startswith("on") for _, name, _ in page.attributes)
    assert EVIL in page.text


def test_an_import_writes_its_page_and_report_writes_it_again(tmp_path: Path) -> None:
    capture = tmp_path / "a.pcap"
    capture.write_bytes(classic(steady()))
    out = tmp_path / "o"
    run = CliRunner().invoke
    done = run(app, ["import", str(capture), "--out", str(out)])
    assert (done.exit_code, f"report: {out / 'report.html'}" in done.stdout) == (0, True)
    (out / "report.html").unlink()
    assert run(app, ["report", str(out)]).exit_code == 0
    assert (out / "report.html").exists()
    assert run(app, ["report", str(out), "--bounds"]).exit_code == 2
    assert json.loads((out / "streams.json").read_bytes())["frames"] == 60
