"""The bill of materials names what a wheel is made of, and nothing that only developers need."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

TOOL = Path(__file__).resolve().parents[2] / "tools" / "sbom.py"


def test_what_is_linked_and_installed_is_named_and_no_more() -> None:
    told = json.loads(runpy.run_path(str(TOOL))["document"]())
    assert (told["bomFormat"], told["metadata"]["component"]["name"]) == ("CycloneDX", "wiregauge")
    purls = {part["purl"].split("@")[0] for part in told["components"]}
    assert {"pkg:cargo/parquet", "pkg:cargo/tonic", "pkg:pypi/polars", "pkg:pypi/numpy"} <= purls
    assert not {"pkg:cargo/proptest", "pkg:pypi/pytest", "pkg:pypi/ray", "pkg:pypi/pyarrow"} & purls
    crates = [part for part in told["components"] if part["purl"].startswith("pkg:cargo")]
    assert all(len(part["hashes"][0]["content"]) == 64 for part in crates)
