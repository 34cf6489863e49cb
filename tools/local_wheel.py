"""Packs a wheel for this machine out of what cargo built: `local_wheel.py FOLDER` and `local_wheel.py FOLDER PROFILE`.

With a profile of `Cargo.toml` the wheel holds what that profile built, as the published one does. Without one it
points to the sources: tests run the artefacts of `cargo test`, with assertions and overflow checks, and the Python
files in place, so that after a change of one nothing must be installed.

Wheels that are published are maturin's (`build_backend.py`). It would build the module separately from everything
else, with other features of its dependencies and so most of them again.
"""

from __future__ import annotations

import base64
import hashlib
import sys
import sysconfig
import tempfile
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import man_pages
from compiling import artefact
from requirements import PROJECT
from sources import ROOT, shipped, sources

MODULE = "wiregauge/_native.abi3.so"
"""The compiled module in a wheel."""


def _version() -> str:
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]
    return str(workspace["package"]["version"])


def _about(tag: str) -> Iterator[tuple[str, str]]:
    """Name and text of the files that say what the wheel is (core metadata, entry points)."""
    lines = ["Metadata-Version: 2.1", f"Name: {PROJECT['name']}", f"Version: {_version()}"]
    lines += [f"Requires-Python: {PROJECT['requires-python']}"]
    lines += [f"Requires-Dist: {package}" for package in PROJECT["dependencies"]]
    for extra, packages in PROJECT["optional-dependencies"].items():
        lines += [f"Provides-Extra: {extra}"]
        for package in packages:
            wanted, _, only_on = package.partition(";")
            condition = f"({only_on.strip()}) and " if only_on else ""
            lines += [f'Requires-Dist: {wanted}; {condition}extra == "{extra}"']
    yield "METADATA", "\n".join([*lines, ""])
    yield "WHEEL", f"Wheel-Version: 1.0\nGenerator: local_wheel\nRoot-Is-Purelib: false\nTag: {tag}\n"
    scripts = [f"{name}={target}" for name, target in PROJECT["scripts"].items()]
    yield "entry_points.txt", "\n".join(["[console_scripts]", *scripts, ""])


def _content(profile: str, release: str) -> Iterator[tuple[str, bytes]]:
    """Name in the wheel and content of each file of the package, and of the manual pages."""
    for name in sources():
        if name.startswith("python/"):
            yield name.removeprefix("python/"), (ROOT / name).read_bytes()
    for name in shipped():
        yield f"wiregauge/shipped/{name}", (ROOT / name).read_bytes()
    yield MODULE, artefact(ROOT, profile, "lib_native.so").read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        man_pages.write(Path(folder))
        for path in sorted(Path(folder).rglob("*")):
            if path.is_file():
                yield f"{release}.data/data/share/man/{path.relative_to(folder)}", path.read_bytes()


def pack(folder: Path, profile: str | None) -> Path:
    """The wheel, in `folder`."""
    tag = f"cp311-abi3-{sysconfig.get_platform().replace('-', '_').replace('.', '_')}"
    release = f"{PROJECT['name']}-{_version()}"
    wheel = folder / f"{release}-{tag}.whl"
    records = []
    with zipfile.ZipFile(wheel, "w") as archive:

        def add(name: str, data: bytes, mode: int = 0o644) -> None:
            entry = zipfile.ZipInfo(name)
            entry.external_attr = (0o100000 | mode) << 16
            archive.writestr(entry, data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            records.append(f"{name},sha256={digest},{len(data)}\n")

        if profile is None:
            add("wiregauge-sources.pth", f"{ROOT / 'python'}\n".encode())
        else:
            for name, data in _content(profile, release):
                add(name, data)
            agent = artefact(ROOT, profile, "wiregauge-agent")
            add(f"{release}.data/scripts/{agent.name}", agent.read_bytes(), mode=0o755)
        for name, text in _about(tag):
            add(f"{release}.dist-info/{name}", text.encode())
        listing = f"{release}.dist-info/RECORD"
        archive.writestr(listing, "".join([*records, f"{listing},,\n"]))
    return wheel


if __name__ == "__main__":
    pack(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
