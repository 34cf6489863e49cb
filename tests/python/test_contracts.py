"""Conformity to the BAG is of the frames on the wire, and says what the policers of the first switches do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

from simulation import trial
from wiregauge.results import show_json

FAULTS = Path(__file__).resolve().parents[1] / "faults"


def judged(text: str, place: Path) -> tuple[dict[int, Any], pl.DataFrame, list[str]]:
    """The flows of the only run as `show --json` has them, its records, and the names of its nodes."""
    test = place / "t.xml"
    test.write_text(text)
    judgement = trial(test, place / "r")
    shown: Any = show_json(judgement)
    flows = {flow["flow"]: flow for flow in shown["runs"][0]["flows"]}
    names = judgement.plan.network.names
    return flows, pl.read_parquet(place / "r" / "records" / "run-0000.parquet"), list(names)


def policed(records: pl.DataFrame, flow: int, node: int) -> int:
    of = (pl.col("flow") == flow) & (pl.col("node") == node) & ~pl.col("warm_up")
    return records.filter(of & (pl.col("reason").cast(pl.String) == "policed")).height


@pytest.mark.parametrize("policing", ["bytes", "frames"])
def test_conformity_counts_what_the_policers_of_either_network_refuse(tmp_path: Path, policing: str) -> None:
    text = (FAULTS / "babbled-virtual-link.xml").read_text()
    text = text.replace('kind="arinc664"', f'kind="arinc664" policing="{policing}"')
    flows, records, names = judged(text, tmp_path)
    on_a, on_b = (policed(records, 13, names.index(switch)) for switch in ("a1", "b1"))
    conformity = flows[13]["conformity"]["bag"]
    assert on_a == on_b == 167
    assert conformity["outside"]["count"] == 167
    # The messages and the babbled frames.
    assert conformity["outside"]["n"] == 20_000 + 167
    assert all(
        flows[number]["conformity"]["bag"]["outside"]["count"] == 0 for number in flows if number != 13
    )
