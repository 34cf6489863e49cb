"""The build backend: maturin, with the agent program built first and shipped in the same wheel.

maturin packs either an extension module or programs, not both. The agent must be a separate program (it runs on hosts
without Python), and `pip install .` must install it next to the `wiregauge` command. So it is built here and put
where maturin finds prebuilt scripts.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

import man_pages
import maturin
from compiling import compiled
from maturin import (
    get_requires_for_build_editable,
    get_requires_for_build_sdist,
    get_requires_for_build_wheel,
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
PACKED = (
    "Cargo.lock",
    "Cargo.toml",
    "LICENSE-APACHE",
    "LICENSE-MIT",
    "README.md",
    "crates",
    "docs",
    "examples",
    "packaging",
    "pyproject.toml",
    "python",
    "tools",
)
"""The content of a source archive."""
BUILT = {".pyc", ".so"}
SHIPPED = re.compile(r"docs/.*\.md|examples/.*")
"""Files that the wheel ships in its package besides the code; `wiregauge.files.shipped` finds them."""
DATA = ROOT / "target" / "wiregauge.data"
"""The folder whose content maturin adds unchanged, by the folders of PEP 427."""


def _scripts() -> Path:
    """The folder of prebuilt scripts; maturin requires it even for metadata alone."""
    place = DATA / "scripts"
    place.mkdir(parents=True, exist_ok=True)
    return place


def ship(package: Path) -> None:
    """Replaces the pages and examples in a folder of the package."""
    place = package / "shipped"
    shutil.rmtree(place, ignore_errors=True)
    for name in filter(SHIPPED.fullmatch, sources()):
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, place / name)


def _build(settings: object) -> dict[str, object]:
    """Builds the agent together with the libraries of the module.

    Returns the settings with which maturin builds the module. The profile of `Cargo.toml` is `dist`, or what
    `pip --config-settings profile=…` says.
    """
    if shutil.which("cargo") is None:
        sys.exit("wiregauge: cargo was not found; install Rust 1.88 or newer, then try again")
    given = dict(settings) if isinstance(settings, dict) else {}
    profile = given.pop("profile", "dist")
    agent = compiled(ROOT, profile)
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


def sources() -> list[str]:
    """Files of the source archive, from the root of the sources."""
    if not (ROOT / ".git").exists():  # built from an archive, which has no other files
        found = (path for place in PACKED for path in (ROOT / place, *(ROOT / place).rglob("*")))
        return sorted(
            str(path.relative_to(ROOT)) for path in found if path.is_file() and path.suffix not in BUILT
        )
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--", *PACKED], cwd=ROOT, check=True, capture_output=True
    )
    return sorted(name for name in listed.stdout.decode().split("\0") if name)


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
