"""The build backend: maturin, with the agent program built first and shipped in the same wheel.

maturin packs either an extension module or programs, not both. The agent has to be a program of its own (it runs
on hosts without Python), and `pip install .` has to install it beside the `wiregauge` command. So it is built
here and put where maturin takes ready-made scripts from.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import maturin
from maturin import (
    build_sdist,
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
    prepare_metadata_for_build_editable,
    prepare_metadata_for_build_wheel,
)

__all__ = [
    "build_editable",
    "build_sdist",
    "build_wheel",
    "get_requires_for_build_editable",
    "get_requires_for_build_sdist",
    "get_requires_for_build_wheel",
    "prepare_metadata_for_build_editable",
    "prepare_metadata_for_build_wheel",
]

ROOT = Path(__file__).resolve().parent.parent
AGENT = "wiregauge-agent"


def _build_agent() -> None:
    if shutil.which("cargo") is None:
        sys.exit("wiregauge: cargo was not found; install Rust 1.88 or newer, then try again")
    subprocess.run(
        ["cargo", "build", "--release", "--locked", "--package", "wg-agent", "--bin", AGENT],
        cwd=ROOT,
        check=True,
    )
    target = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
    scripts = ROOT / "target" / "wiregauge.data" / "scripts"
    scripts.mkdir(parents=True, exist_ok=True)
    shutil.copy2(target / "release" / AGENT, scripts / AGENT)


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None
) -> str:
    _build_agent()
    return maturin.build_wheel(wheel_directory, config_settings, metadata_directory)


def build_editable(
    wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None
) -> str:
    _build_agent()
    return maturin.build_editable(wheel_directory, config_settings, metadata_directory)
