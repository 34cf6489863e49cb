"""The JSON Schemas that ship are made from the types of what is printed."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator, meta

from synthetic import Recipe, make
from wiregauge import results
from wiregauge.results.show_types import show_schema

ROOT = Path(__file__).resolve().parents[2]


def tool() -> Any:
    spec = importlib.util.spec_from_file_location("json_schemas", ROOT / "tools" / "json_schemas.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


MADE: dict[Path, str] = tool().schemas()


@pytest.mark.parametrize("path", MADE, ids=lambda path: path.name)
def test_the_files_are_made_from_the_types(path: Path) -> None:
    assert path.read_text(encoding="utf-8") == MADE[path], "run `make json-schemas`"
    meta.validate(json.loads(MADE[path]))


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    recipe = Recipe(protocols=("udp",), payloads=(64,), messages=300)
    return {**results.show_json(results.judge(make(tmp_path_factory.mktemp("show") / "r", recipe)))}


def test_what_is_printed_keeps_it(shown: dict[str, Any]) -> None:
    Draft202012Validator(show_schema()).validate(shown)


@pytest.mark.parametrize("key", ["latency_ns", "sent", "loss", "pdv_ns", "outcomes"])
def test_a_flow_without_a_figure_does_not(shown: dict[str, Any], key: str) -> None:
    """Also those that are named after measures, which no type lists."""
    (run,) = shown["runs"]
    flow = {name: value for name, value in run["flows"][0].items() if name != key}
    altered = {**shown, "runs": [{**run, "flows": [flow]}]}
    assert not Draft202012Validator(show_schema()).is_valid(altered)


def test_a_key_that_is_not_typed_does_not(shown: dict[str, Any]) -> None:
    (run,) = shown["runs"]
    altered = {**shown, "runs": [{**run, "flows": [{**run["flows"][0], "nonsense": 1}]}]}
    assert not Draft202012Validator(show_schema()).is_valid(altered)
