"""Quantities beside a test are read as in a test: exactly, with their unit, or refused in one sentence."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.plan.quantity import (
    QuantityError,
    canonical,
    rate_bps,
    rate_text,
    share,
    time_ns,
    time_ps,
    time_text,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [("1Gbit/s", 10**9), ("2.5Gbit/s", 2_500_000_000), ("100Mbit/s", 10**8), ("9600bit/s", 9_600)],
)
def test_rates_are_read_as_the_test_language_writes_them(text: str, value: int) -> None:
    assert rate_bps(text) == value


@pytest.mark.parametrize(
    ("text", "value"), [("50ns", 50.0), ("0.001ns", 0.001), ("1.5µs", 1500.0), ("2min", 120e9), ("0s", 0.0)]
)
def test_times_are_in_nanoseconds(text: str, value: float) -> None:
    assert time_ns(text) == value


@given(st.integers(0, 10**16))
def test_what_is_written_is_read_back_exactly(number: int) -> None:
    assert time_ps(time_text(number)) == number
    rate = max(number % 10**12, 1)
    assert rate_bps(rate_text(rate)) == rate


def test_shares_are_numbers() -> None:
    assert [share(text) for text in ("0.1%", "250%", "7ppm", "1ppb")] == [0.001, 2.5, 7e-6, 1e-9]


@pytest.mark.parametrize("text", ["5", "5 ns", "1e3ns", "-5ns", "0.0001ns", "5ns ", "5Gbit/s", "5parsec", ""])
def test_what_would_have_to_be_guessed_is_no_time(text: str) -> None:
    with pytest.raises(QuantityError, match=f'^"{re.escape(text)}" .*; write '):
        time_ns(text)


@pytest.mark.parametrize("text", ["0bit/s", "0.5bit/s", "1Gb/s"])
def test_a_line_has_a_rate(text: str) -> None:
    with pytest.raises(QuantityError, match="write "):
        rate_bps(text)


@given(st.text(max_size=12) | st.from_regex(r"[0-9.]+ ?(ns|us|bit/s|%|ppb)?", fullmatch=True))
def test_any_text_is_a_quantity_or_one_sentence(text: str) -> None:
    for read in (rate_bps, time_ns, share):
        try:
            assert read(text) >= 0
        except QuantityError as error:
            said = str(error)
            assert "write " in said
            assert said.isprintable() or not text.isprintable()


@given(st.integers(0, 10**12), st.sampled_from(["ns", "B", "bit/s", "%", "", "udp"]))
def test_values_of_axes_have_one_form(number: int, unit: str) -> None:
    assert canonical(canonical(f"{number}{unit}")) == canonical(f"{number}{unit}")
    if unit in ("ns", "B", "bit/s", "%"):
        assert (
            canonical(f"{number}.0{unit}") == canonical(f"{number}{unit}") != canonical(f"{number + 1}{unit}")
        )


@pytest.mark.parametrize(
    ("words", "named"),
    [
        (("import", "x", "--out", "y", "--rate", "1 Gbit/s"), '--rate "1 Gbit/s"'),
        (("import", "x", "--out", "y", "--rate", "0bit/s"), '--rate "0bit/s"'),
        (("import", "x", "--out", "y", "--max-clock-offset", "50"), '--max-clock-offset "50" has no unit'),
        (("calibrate", "generator", "--rate", "fast"), '--rate "fast"'),
        (("compare", "x", "y", "--threshold", "latency=5"), '"5" has no unit'),
        (("compare", "x", "y", "--threshold", "loss=0.001"), '"0.001" has no unit'),
    ],
)
def test_an_option_that_is_no_quantity_is_one_sentence_that_names_it(
    words: tuple[str, ...], named: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(app, words)
    assert (done.exit_code, done.stderr.count("\n"), done.stdout) == (2, 1, ""), done.output
    assert named in done.stderr
    assert list(tmp_path.iterdir()) == []
