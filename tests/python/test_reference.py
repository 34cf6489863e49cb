"""Nothing that an example gives changes by accident: records, truth, tracking, captures and figures."""

from __future__ import annotations

import json
from pathlib import Path

import polars as pl
import pytest

import reference

STORED = json.loads(reference.REFERENCE.read_text(encoding="utf-8"))


def test_every_example_is_in_the_reference() -> None:
    assert set(STORED) == {path.stem for path in reference.EXAMPLES.glob("*.xml")}


@pytest.mark.parametrize("name", sorted(STORED))
def test_an_example_gives_what_it_gave(name: str, tmp_path: Path) -> None:
    reference.simulate(reference.EXAMPLES / f"{name}.xml", tmp_path / name)
    differ = reference.differences(STORED[name], reference.digests(tmp_path / name))
    assert not differ, (
        f"{len(differ)} differ; if that is meant: the changelog, then `python reference.py write DIR`"
    )


def test_another_value_anywhere_is_told(tmp_path: Path) -> None:
    """The judge fails where it should: one value of one column, one figure, one byte of a capture."""
    run = tmp_path / "taps"
    reference.simulate(reference.EXAMPLES / "taps.xml", run)
    before = reference.digests(run)
    messages = run / "messages" / "run-0000.parquet"
    table = pl.read_parquet(messages)
    last = pl.int_range(pl.len()) == pl.len() - 1
    table.with_columns(
        pl.when(last).then(pl.col("flow") + 1).otherwise(pl.col("flow")).alias("flow")
    ).write_parquet(messages)
    figures = run / "measures.json"
    stored = json.loads(figures.read_text(encoding="utf-8"))
    stored["digest"] = "another"
    stored["runs"][0]["flows"][0]["sent"] = -1
    figures.write_text(json.dumps(stored), encoding="utf-8")
    capture = next((run / "captures").rglob("*.pcapng"))
    capture.write_bytes(capture.read_bytes()[:-1] + b"?")
    assert reference.differences(before, reference.digests(run)) == sorted(
        ["messages/run-0000.parquet: flow", "measures.json", capture.relative_to(run).as_posix()]
    )
