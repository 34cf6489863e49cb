"""Packs a wheel for tests from what `cargo build --workspace` left: `testing_wheel.py FOLDER` puts it there.

`pip install .` links module and agent for speed, which takes minutes and shares nothing with `cargo test`. Tests run
what the same artefacts as `cargo test` are linked to, with assertions and checks of overflow. maturin would build the
module by itself, with other features of its dependencies and so most of them again; it writes the metadata here, too.
"""

from __future__ import annotations

import os
import sys
import zipfile
from pathlib import Path

import build_backend

PROGRAM = 0o100755 << 16
"""Attributes of an entry that may be executed."""


def built() -> tuple[Path, Path]:
    """Module and agent."""
    place = Path(os.environ.get("CARGO_TARGET_DIR", build_backend.ROOT / "target")) / "debug"
    return place / "lib_native.so", place / build_backend.AGENT


def pack(folder: Path) -> Path:
    """The wheel, in `folder`, which has to be empty."""
    module, agent = built()
    told = build_backend.prepare_metadata_for_build_wheel(str(folder))
    metadata = folder / told
    name = told.removesuffix(".dist-info")
    tag = (metadata / "WHEEL").read_text(encoding="utf-8").partition("Tag: ")[2].split()[0]
    package = build_backend.ROOT / "python"
    files = {
        str(path.relative_to(package)): path
        for path in package.rglob("*")
        if path.is_file() and path.suffix not in build_backend.BUILT
    }
    files |= {f"{told}/{path.name}": path for path in metadata.iterdir() if path.is_file()}
    files["wiregauge/_native.abi3.so"] = module
    wheel = folder / f"{name}-{tag}.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        for inside, path in sorted(files.items()):
            archive.write(path, inside)
        script = zipfile.ZipInfo(f"{name}.data/scripts/{build_backend.AGENT}")
        script.external_attr = PROGRAM
        archive.writestr(script, agent.read_bytes())
        archive.writestr(f"{told}/RECORD", "".join(f"{entry},,\n" for entry in archive.namelist()))
    return wheel


if __name__ == "__main__":
    pack(Path(sys.argv[1]))
