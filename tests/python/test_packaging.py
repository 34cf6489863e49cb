"""What a plain install brings, and what the source archive holds: enough to build module and agent from it."""

from __future__ import annotations

import importlib.util
import tomllib
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def backend() -> ModuleType:
    found = importlib.util.spec_from_file_location("build_backend", ROOT / "tools" / "build_backend.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module


def test_a_plain_install_does_not_bring_ray() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not [name for name in project["dependencies"] if name.startswith(("ray", "fsspec", "s3fs"))]
    assert [name for name in project["optional-dependencies"]["ray"] if name.startswith("ray")]


def test_the_source_archive_holds_all_that_a_build_needs(backend: ModuleType) -> None:
    held = set(backend.sources())
    assert {"Cargo.toml", "Cargo.lock", "pyproject.toml", "tools/build_backend.py"} <= held
    members = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    assert {f"crates/{member}/Cargo.toml" for member in members} <= held
    assert "python/wiregauge/config/wiregauge-test-2.xsd" in held
    assert "python/wiregauge/config/templates/robot.xml" in held
    assert not [path for path in held if path.endswith((".so", ".pyc")) or path.startswith("target")]
