"""The table at the end of `make bench`, and that every benchmark is in it and in a smoke run."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks import table  # noqa: E402  (of the repository, not of the package)


def test_rows_become_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = tmp_path / "rows"
    monkeypatch.setenv(table.ROWS, str(rows))
    table.add("round trip", "10 us", peer="sockperf", theirs="20 us", ratio=0.5, bar="<= 1", reached=True)
    table.add("hops", "4.00 M/s", bar=">= 5 M/s", reached=False)
    head, first, second = table.rendered(rows.read_text().splitlines()).splitlines()
    assert head.split() == ["what", "figure", "peer", "its", "figure", "ratio", "bar"]
    assert first.split() == [
        "round",
        "trip",
        "10",
        "us",
        "sockperf",
        "20",
        "us",
        "0.50",
        "<=",
        "1",
        "reached",
    ]
    assert second.split() == ["hops", "4.00", "M/s", ">=", "5", "M/s", "MISSED"]


def test_without_a_table_a_benchmark_only_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(table.ROWS, raising=False)
    table.add("hops", "4.00 M/s")
    assert table.rendered([]) == "no benchmark gave a figure"


def test_make_bench_runs_every_benchmark() -> None:
    parts = re.search(r"for part in (.*); do", (ROOT / "Makefile").read_text())
    assert parts is not None
    found = {
        path.relative_to(ROOT / "benchmarks").with_suffix("").as_posix().replace("/", ".")
        for path in (ROOT / "benchmarks").rglob("*.py")
        if "def main(" in path.read_text()
    }
    # `coverage` makes the tables of a page, and has no bar.
    assert set(parts[1].split()) == found - {"table", "coverage"}


def test_benchmarks_of_crates_run_in_the_tests() -> None:
    """`test = true`: `cargo test` builds and runs them, short."""
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        for target in re.findall(r"\[\[bench\]\]\n(.*?)(?:\n\n|\Z)", manifest.read_text(), re.DOTALL):
            assert "test = true" in target, manifest
