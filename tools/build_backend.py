"""The build backend: maturin, with the agent program built first and shipped in the same wheel.

maturin packs either an extension module or programs, not both. The agent must be a separate program (it runs on hosts
without Python), and `pip install .` must install it next to the `wiregauge` command. So it is built here and put
where maturin finds prebuilt scripts.
"""

from __future__ import annotations

import shutil
import sys
import tarfile
import tempfile
from pathlib import Path

import man_pages
import maturin
from compiling import LIBRARIES, compiled
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
)
from sources import ROOT, ship, sources

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

DATA = ROOT / "target" / "wiregauge.data"
"""The folder whose content maturin adds unchanged, by the folders of PEP 427."""


def _scripts() -> Path:
    """The folder of prebuilt scripts; maturin requires it even for metadata alone."""
    place = DATA / "scripts"
    place.mkdir(parents=True, exist_ok=True)
    return place


def _build(settings: object) -> dict[str, object]:
    """Builds the agent together with the libraries of the module.

    Returns the settings with which maturin builds the module. The profile of `Cargo.toml` is `dist`, or what
    `pip --config-settings profile=…` says.
    """
    if shutil.which("cargo") is None:
        sys.exit("wiregauge: cargo was not found; install Rust 1.88 or newer, then try again")
    given = dict(settings) if isinstance(settings, dict) else {}
    profile = given.pop("profile", "dist")
    agent = compiled(ROOT, profile, *LIBRARIES)
    shutil.copy2(agent, _scripts() / agent.name)
    ship(DATA / "platlib" / "wiregauge")
    shutil.rmtree(DATA / "data", ignore_errors=True)
    man_pages.write(DATA / "data" / "share" / "man")
    return {"build-args": f"--profile {profile}", **given}


def prepare_metadata_for_build_wheel(metadata_directory: str, config_settings: object = None) -> str:
    """PEP 517."""
    _scripts()
    return str(maturin.prepare_metadata_for_build_wheel(metadata_directory, config_settings))


def prepare_metadata_for_build_editable(metadata_directory: str, config_settings: object = None) -> str:
    """PEP 660."""
    _scripts()
    return str(maturin.prepare_metadata_for_build_editable(metadata_directory, config_settings))


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """PEP 517: every tracked file needed for a build; maturin would pack the module's crates without the agent's."""
    with tempfile.TemporaryDirectory() as scratch:
        info = Path(scratch) / prepare_metadata_for_build_wheel(scratch, config_settings) / "METADATA"
        name = info.parent.name.removesuffix(".dist-info")
        with tarfile.open(Path(sdist_directory) / f"{name}.tar.gz", "w:gz") as archive:
            archive.add(info, f"{name}/PKG-INFO")
            for file in sources():
                archive.add(ROOT / file, f"{name}/{file}")
    return f"{name}.tar.gz"


def build_wheel(
    wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None
) -> str:
    """PEP 517, the agent included."""
    return str(maturin.build_wheel(wheel_directory, _build(config_settings), metadata_directory))


def build_editable(
    wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None
) -> str:
    """PEP 660, the agent included."""
    return str(maturin.build_editable(wheel_directory, _build(config_settings), metadata_directory))
