"""The benchmark of judging runs, small: it reports each part and the memory."""

from __future__ import annotations

import re

import pytest
from benchmarks import judging


def test_the_benchmark_of_judging_runs(capsys: pytest.CaptureFixture[str]) -> None:
    judging.main(["300"])
    told = capsys.readouterr().out
    assert re.search(r"300 messages, .*: [\d.]+ s \(judged [\d.]+, searched [\d.]+, drawn [\d.]+\), ", told)
    assert "of the bar of 1 GiB" in told


def test_the_benchmark_of_many_flows(capfd: pytest.CaptureFixture[str]) -> None:
    judging.main(["--flows", "40"])
    told = capfd.readouterr().out
    assert re.search(
        r"40 flows, \d+ messages: [\d.]+ ms of processor time a flow, [\d.]+ of the bar of 2 ms; ", told
    )
    assert "kB of measures.json a flow" in told
