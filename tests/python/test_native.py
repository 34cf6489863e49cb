"""The border to Rust: the stub says what the module has, and what goes wrong comes back as a sentence."""

from __future__ import annotations

import ast
import inspect
import json
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import polars as pl
import pytest

import wiregauge
from wiregauge import _native
from wiregauge.measures.metrics.flow_plan import LATE_DIVISOR

ROOT = Path(__file__).resolve().parents[2]
NETWORK: dict[str, object] = {
    "nodes": [
        {"name": name, "kind": {"type": "end-system"}, "mac": [2, 0, 0, 0, 0, i], "ipv4": [198, 18, 0, i]}
        for i, name in enumerate(["mac", "sensor"])
    ],
    "links": [],
}
TABLES = ("messages", "passages", "sketches")
RUN: dict[str, object] = {
    "index": 3,
    "point": {},
    "repeat": 0,
    "seed": 1,
    "warm_up": 0,
    "duration": 10**12,
    "drain": 0,
    "flows": [
        {
            "id": 10,
            "protocol": "udp",
            "from": 0,
            "to": 1,
            "deadline": None,
            "vlan": None,
            "routes": [{"hops": [[0, 0, 1, 1, 1]]}],
        }
    ],
    "sends": [],
    "receives": [],
    "relays": [],
    "injects": [],
}


def _stub() -> ast.Module:
    path = Path(wiregauge.__file__).with_name("_native.pyi")
    return ast.parse(path.read_text(encoding="utf-8"))


def test_the_stub_declares_exactly_what_the_module_has() -> None:
    declared: set[str] = set()
    for node in _stub().body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            declared.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            declared.add(node.target.id)
    present = {name for name in dir(_native) if not name.startswith("_")}
    assert declared == present


@pytest.mark.parametrize(
    "function",
    [node for node in _stub().body if isinstance(node, ast.FunctionDef)],
    ids=lambda node: node.name,
)
def test_functions_take_the_parameters_of_the_stub(function: ast.FunctionDef) -> None:
    signature = inspect.signature(getattr(_native, function.name))
    assert list(signature.parameters) == [argument.arg for argument in function.args.args]
    assert getattr(_native, function.name).__doc__, "every function says what it does"


def test_constants_and_exception_are_of_the_declared_kind() -> None:
    assert type(_native.SEGMENT_SCHEMA) is int
    assert type(_native.PLAN_SCHEMA) is int
    assert _native.LATE_DIVISOR == LATE_DIVISOR, "benches and measures count the same messages as late"
    assert issubclass(_native.NativeError, Exception)
    assert (
        f"{_native.NativeError.__module__}.{_native.NativeError.__name__}" == "wiregauge._native.NativeError"
    )
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    assert _native.version() == manifest["workspace"]["package"]["version"]


@pytest.mark.parametrize("tree", ["", "{", "null", "[]", '{"name": 1}', "\0", "[" * 100_000])
def test_nonsense_is_diagnosed_not_raised(tree: str) -> None:
    assert json.loads(_native.compile_plan(tree, "."))["diagnostics"]


def _track(tmp_path: Path, segments: list[str], run: dict[str, object] = RUN) -> dict[str, Any]:
    summary: dict[str, Any] = json.loads(
        _native.process_run(
            json.dumps(NETWORK),
            json.dumps(run),
            segments,
            str(tmp_path / "records" / "run-0003.parquet"),
            *(str(tmp_path / table / "run-0003.parquet") for table in TABLES),
        )
    )
    return summary


def test_a_run_without_records_has_whole_files_and_zero_counts(tmp_path: Path) -> None:
    summary = _track(tmp_path, [])
    assert summary["index"] == 3
    assert summary["records"] == 0
    schemas = {"records": "1", "messages": "3", "passages": "1", "sketches": "1"}
    for kind, schema in schemas.items():
        path = tmp_path / kind / "run-0003.parquet"
        assert pl.read_parquet(path).is_empty()
        metadata = pl.read_parquet_metadata(path)
        assert (metadata["wiregauge.kind"], metadata["wiregauge.schema"], metadata["wiregauge.run"]) == (
            kind,
            schema,
            "3",
        )
    again = _native.retrack(
        json.dumps(NETWORK),
        json.dumps(RUN),
        [tmp_path / "records/run-0003.parquet"],
        "[]",
        *(tmp_path / f"again-{table}.parquet" for table in TABLES),
    )
    assert json.loads(again) == summary


def test_a_damaged_segment_is_named(tmp_path: Path) -> None:
    segment = tmp_path / "000000.arrows"
    segment.write_bytes(b"\xff" * 40)
    (damage,) = _track(tmp_path, [str(segment)])["damaged_segments"]
    assert damage["file"] == str(segment)
    assert damage["records_read"] == 0


def test_errors_are_sentences_that_name_the_file(tmp_path: Path) -> None:
    with pytest.raises(_native.NativeError, match=r"cannot read .*missing\.arrows.*No such file"):
        _track(tmp_path, [str(tmp_path / "missing.arrows")])
    with pytest.raises(_native.NativeError, match=r"the run in the plan cannot be read: missing field"):
        _track(tmp_path, [], {"index": 3})
    (tmp_path / "records").write_bytes(b"")
    with pytest.raises(_native.NativeError, match=r"cannot write .*records"):
        _track(tmp_path, [])
    with pytest.raises(_native.NativeError, match="not a Parquet file"):
        _native.retrack(
            json.dumps(NETWORK),
            json.dumps(RUN),
            [tmp_path / "records"],
            "[]",
            *(tmp_path / f"{table}.parquet" for table in TABLES),
        )


_LETS_GO = """
import json, sys, threading
from wiregauge import _native
network, run, out = sys.argv[1:]
# A thread that waits is let in where another lets go of the interpreter, and at no other time.
sys.setswitchinterval(1e6)

def first() -> str:
    order, begun = [], threading.Event()
    def call():
        begun.set()
        _native.process_run(network, run, [], *(out + "/" + name for name in "rmps"))
        order.append("call")
    thread = threading.Thread(target=call)
    thread.start()
    begun.wait()
    order.append("other")
    thread.join()
    return order[0]

sys.exit(not any(first() == "other" for _ in range(200)))
"""


def test_long_calls_let_other_threads_run(tmp_path: Path) -> None:
    """Tried again where the call ended before the other thread woke; one that holds the interpreter is always first."""
    command = [sys.executable, "-c", _LETS_GO, json.dumps(NETWORK), json.dumps(RUN), str(tmp_path)]
    subprocess.run(command, check=True, timeout=120)
