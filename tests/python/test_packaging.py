"""What a plain install brings, and what the source archive holds: enough to build module and agent from it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from types import ModuleType

import pytest
from packaging import metadata
from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def backend() -> ModuleType:
    found = importlib.util.spec_from_file_location("build_backend", ROOT / "tools" / "build_backend.py")
    assert found is not None
    assert found.loader is not None
    module = importlib.util.module_from_spec(found)
    sys.path.insert(0, str(ROOT / "tools"))
    found.loader.exec_module(module)
    sys.path.pop(0)
    return module


def test_a_plain_install_does_not_bring_what_single_functions_need() -> None:
    """An environment of the demo holds 600 MB at most; Ray takes 200 of them, Plotly 42, Z3 59."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    optional = ("ray", "fsspec", "s3fs", "plotly", "z3-solver", "pyarrow")
    assert not [name for name in project["dependencies"] if name.startswith(optional)]
    extras = project["optional-dependencies"]
    for extra, package in (("ray", "ray"), ("notebook", "plotly"), ("schedule", "z3-solver")):
        assert [name for name in extras[extra] if name.startswith(package)], extra


def test_the_source_archive_holds_all_that_a_build_needs(backend: ModuleType) -> None:
    held = set(backend.sources())
    assert {"Cargo.toml", "Cargo.lock", "pyproject.toml", "tools/build_backend.py"} <= held
    members = {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")}
    assert {f"crates/{member}/Cargo.toml" for member in members} <= held
    assert "python/wiregauge/config/wiregauge-test-2.xsd" in held
    assert {
        "python/wiregauge/config/templates/tsn.xml",
        "examples/robot.xml",
        "docs/how-to/bounds.md",
        "packaging/wiregauge-agent.8",
    } <= held
    assert not [path for path in held if path.endswith((".so", ".pyc")) or path.startswith("target")]


def test_a_wheel_has_the_pages_and_examples_in_its_package(backend: ModuleType, tmp_path: Path) -> None:
    """As a wheel is unpacked: the package away from the sources, and what the build puts into it."""
    package = tmp_path / "wiregauge"
    (package / "shipped" / "docs").mkdir(parents=True)
    (package / "shipped" / "docs" / "old.md").write_text("# of another version")
    for path in (ROOT / "python" / "wiregauge").iterdir():
        if path.name != "shipped":
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, package / path.name)
    backend.ship(package)

    def said(*words: str) -> str:
        command = [sys.executable, "-m", "wiregauge", *words]
        environment = os.environ | {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(
            command, env=environment, cwd=tmp_path, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    assert said("docs").count("\n") > 50
    assert "old" not in {line.split()[0] for line in said("docs").splitlines() if line.strip()}
    assert "First steps" in said("docs", "first-steps")
    assert "gates.xml: written" in said("new", "gates")
    assert said("check", "gates.xml")


@pytest.mark.parametrize(("goal", "tests"), [("t PY=tests/python/test_quantity.py", False), ("built", True)])
def test_python_tests_compile_no_tests_of_crates(goal: str, tests: bool) -> None:
    """After a change in `crates`, as make would do it."""
    changed = ["make", "--dry-run", "--what-if=crates/core/src/lib.rs", *goal.split()]
    done = subprocess.run(changed, cwd=ROOT, capture_output=True, text=True, check=True)
    (build,) = [line for line in done.stdout.splitlines() if line.startswith("cargo build")]
    assert "--lib --bins" in build
    assert ("--tests" in build) == tests


def test_the_wheel_of_this_machine_says_what_the_project_needs(tmp_path: Path) -> None:
    """`make setup` and the tests install it in place of maturin's."""
    packed = [sys.executable, str(ROOT / "tools" / "local_wheel.py"), str(tmp_path)]
    subprocess.run(packed, check=True, env=os.environ | {"PYTHONPATH": str(ROOT / "tools")})
    (wheel,) = tmp_path.iterdir()
    with zipfile.ZipFile(wheel) as archive:
        (about,) = (name for name in archive.namelist() if name.endswith("/METADATA"))
        told = metadata.Metadata.from_email(archive.read(about))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert told.name == project["name"]
    assert told.requires_dist is not None
    plain = {one.name for one in told.requires_dist if "extra" not in str(one.marker)}
    assert plain == {Requirement(text).name for text in project["dependencies"]}
    for extra in project["optional-dependencies"]:
        wanted = [Requirement(text) for text in project["optional-dependencies"][extra]]
        given = {
            one.name
            for one in told.requires_dist
            if one.marker and one.marker.evaluate({"extra": extra}) and "extra" in str(one.marker)
        }
        assert given == {one.name for one in wanted if not one.marker or one.marker.evaluate()}, extra
