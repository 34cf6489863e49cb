"""Cargo compiles a dependency once for each set of features: of one crate no other than of all, so that
`make t CRATE=…`, the module and the agent use what is compiled already."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from test_structure import CRATES

ROOT = Path(__file__).resolve().parents[2]


def features(*chosen: str) -> dict[str, set[str]]:
    """The sets of features in which each package is compiled, for the machine that compiles among them."""
    command = ["cargo", "tree", "--locked", *chosen, "--prefix=none", "--format={p}|{f}"]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120, check=True).stdout
    found: dict[str, set[str]] = {}
    for line in told.splitlines():
        package, _, names = line.removesuffix(" (*)").partition("|")
        found.setdefault(package.split(" (")[0], set()).add(names.strip())
    return found


@pytest.fixture(scope="module")
def of_all() -> dict[str, set[str]]:
    return features("--workspace", "--edges=normal,build,dev")


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_a_crate_alone_has_the_features_of_all(crate: str, of_all: dict[str, set[str]]) -> None:
    alone = features(f"--package=wg-{crate}", "--all-features", "--edges=normal,build,dev")
    assert len(alone) > 1
    others = {package: sets - of_all[package] for package, sets in alone.items() if sets - of_all[package]}
    assert not others, "name these features in crates/features/Cargo.toml"


def test_module_and_agent_share_what_they_are_made_of() -> None:
    both = features("--package=wg-agent", "--package=wg-py", "--edges=normal,build")
    for one in ("wg-agent", "wg-py"):
        alone = features(f"--package={one}", "--edges=normal,build")
        assert {name: sets - both[name] for name, sets in alone.items() if sets - both[name]} == {}


def test_the_judge_sees_a_difference(of_all: dict[str, set[str]]) -> None:
    bare = features("--package=wg-core", "--edges=normal,build,dev", "--no-default-features")
    without = features("--package=wg-frame", "--edges=normal", "--no-default-features")
    assert any(sets - of_all[package] for package, sets in {**bare, **without}.items())
