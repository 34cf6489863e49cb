"""The files that are built and packed, by name."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

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


def shipped() -> Iterator[str]:
    """Pages and examples, from the root of the sources; in the package they are in the folder `shipped`."""
    return filter(SHIPPED.fullmatch, sources())


def ship(package: Path) -> None:
    """Replaces the pages and examples in a folder of the package."""
    place = package / "shipped"
    shutil.rmtree(place, ignore_errors=True)
    for name in shipped():
        (place / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, place / name)
