"""What an error is held against may be 0, less or missing: no error is small then, and no check is content."""

from __future__ import annotations

import ast
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from synthetic import Columns
from test_evidence_of_captures import captured, seen
from test_measures_validity import BASE, entry, grade, judged
from test_passive import MS, Seen, frame, written
from wiregauge import measures
from wiregauge.measures import Grade
from wiregauge.measures.validity import checks, evidence, timestamping
from wiregauge.measures.validity.evidence import share_of

ROOMS = Path(measures.__file__).parent / "validity"
TYPICAL_PS = {"zero": 0, "below": -5_000_000, "a hair": 1, "a tenth of the error": 10_000_000}
OFF_NS = 100_000


def taking(ps: int, n: int | None = None) -> Callable[[Columns, int], None]:
    """Every message takes so long, or only the first `n` arrive at all."""

    def alter(columns: Columns, flow: int) -> None:
        columns["rx_app"] = columns["tx_app"] + ps
        if n is not None:
            gone = [k >= 10 + n for k in range(len(columns["tx_app"]))]
            columns["lost"][:] = gone
            columns["reordered"][:] = False
            columns["copies"] = columns["copies"] * 0 + [0 if lost else 1 for lost in gone]
            columns["present"]["rx_app"] = ~columns["lost"]
            columns["present"]["rx_drv"] = ~columns["lost"]

    return alter


def uncertain(manifest: dict[str, Any], tracking: dict[str, Any]) -> None:
    """Clocks off by 100 us, and taps whose steps are as long."""
    entry(
        clock_offsets={
            n: {"offset_ns": 0, "uncertainty_ns": OFF_NS // 2, "method": "x"} for n in ("mac", "sensor")
        },
        timestamps={
            n: {"kind": "hardware", "step_ns": OFF_NS // 2, "reference": "first"} for n in ("mac", "sensor")
        },
    )(manifest, tracking)


@pytest.mark.parametrize("n", [None, 1, 2])
@pytest.mark.parametrize("typical", TYPICAL_PS)
@pytest.mark.parametrize(
    ("check", "worst"), [("clock-offset", Grade.INVALID), ("timestamp-kind", Grade.DEGRADED)]
)
def test_an_error_above_the_typical_value_has_the_worst_grade_whatever_that_is(
    check: str, worst: Grade, typical: str, n: int | None, tmp_path: Path
) -> None:
    recipe = replace(BASE, alter=taking(TYPICAL_PS[typical], n))
    assert grade(judged(tmp_path, recipe, uncertain), check) == worst


def test_a_share_of_nothing_known_is_not_zero() -> None:
    for whole in (0, 0.0, -1.0, None):
        assert share_of(1e-9, whole) == math.inf
        assert share_of(0.0, whole) == 0.0
    assert share_of(1, 4) == 0.25


@pytest.mark.parametrize("name", sorted(path.name for path in ROOMS.glob("*.py")))
def test_checks_divide_in_one_place(name: str) -> None:
    """`part / whole if whole else 0` is a check that a whole of 0 turns off."""
    guarded = [
        node.lineno
        for node in ast.walk(ast.parse((ROOMS / name).read_text(encoding="utf-8")))
        if isinstance(node, ast.IfExp)
        and isinstance(node.orelse, ast.Constant)
        and node.orelse.value in (0, 1)
        and any(
            isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.Div) for inner in ast.walk(node.body)
        )
    ]
    assert not guarded, f"{name}: {guarded}"
    for room in (checks, timestamping):
        assert vars(room)["share_of"] is evidence.share_of


# -- between a capture and itself ----------------------------------------------------------------------------


def test_the_same_capture_twice_is_refused_by_name(tmp_path: Path) -> None:
    from typer.testing import CliRunner

    from wiregauge.cli import app

    before, _ = captured(tmp_path, lambda t: t)
    copy = tmp_path / "copy.pcap"
    copy.write_bytes(before.read_bytes())
    link = tmp_path / "link.pcap"
    link.symlink_to(before)
    for other, why in (
        (before, "is named twice"),
        (copy, "has the same content as"),
        (link, "has the same content as"),
    ):
        for options in ([], ["--max-clock-offset", "1us"], ["--passive"]):
            done = CliRunner().invoke(
                app, ["import", str(before), str(other), *options, "--out", str(tmp_path / "out")]
            )
            assert done.exit_code == 2, done.output
            assert why in " ".join(done.output.split())
            assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("options", [["--max-clock-offset", "1us"], ["--max-clock-offset", "0ns"], []])
def test_a_device_of_no_time_does_not_exist(options: list[str], tmp_path: Path) -> None:
    """Two captures of one place that differ in a frame, so that their content does."""
    frames = [Seen(10**12 + 50 * MS * n, frame(n), (1, n)) for n in range(400)]
    files = [written(tmp_path / "a.pcap", frames), written(tmp_path / "b.pcap", frames[:-1])]
    judgement, said, _ = seen(tmp_path / "out", *files, *options, code=4)
    assert grade(judgement, "transit-time") == Grade.INVALID
    assert "no device takes no time at all" in said


def test_one_frame_that_took_time_is_enough(tmp_path: Path) -> None:
    files = captured(tmp_path, lambda t: t)
    judgement, _, _ = seen(tmp_path / "out", *files, "--max-clock-offset", "0ns", code=0)
    assert grade(judgement, "transit-time") == Grade.OK
