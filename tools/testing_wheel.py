"""Packs a wheel for tests that points to the sources: `testing_wheel.py FOLDER`.

`pip install .` links module and agent for speed, which takes minutes and shares nothing with `cargo test`. Tests run
binaries of the same artefacts as `cargo test`, with assertions and overflow checks, and the Python files in place:
after a change of one nothing must be installed. maturin would build the module separately, with other features of its
dependencies and so most of them again; here it only writes the metadata.
"""

from __future__ import annotations

import sys
import zipfile
from pathlib import Path

import build_backend


def pack(folder: Path) -> Path:
    """The wheel, in `folder`, which must be empty."""
    told = build_backend.prepare_metadata_for_build_wheel(str(folder))
    metadata = folder / told
    name = told.removesuffix(".dist-info")
    tag = (metadata / "WHEEL").read_text(encoding="utf-8").partition("Tag: ")[2].split()[0]
    wheel = folder / f"{name}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for path in sorted(metadata.iterdir()):
            archive.write(path, f"{told}/{path.name}")
        archive.writestr("wiregauge-sources.pth", f"{build_backend.ROOT / 'python'}\n")
        archive.writestr(f"{told}/RECORD", "".join(f"{entry},,\n" for entry in archive.namelist()))
    return wheel


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
