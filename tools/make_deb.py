"""Makes the Debian package of the agent from a program that was built before: dpkg-deb and a staged tree.

    python3 tools/make_deb.py AGENT [--out dist]

The same program and commit give the same bytes. DEBFULLNAME and DEBEMAIL name the maintainer of the package.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import tomllib
from email.utils import formatdate
from pathlib import Path
from typing import Final

import man_pages

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGING: Final = ROOT / "packaging"
NAME: Final = "wiregauge-agent"
DOC: Final = f"usr/share/doc/{NAME}"
SCRIPTS: Final = ("postinst", "prerm", "postrm")
CONFIGURATION: Final = "etc/wiregauge/agent.toml"
FILES: Final = {
    CONFIGURATION: "agent.toml",
    f"usr/lib/systemd/system/{NAME}.service": f"{NAME}.service",
    f"usr/lib/udev/rules.d/60-{NAME}.rules": f"60-{NAME}.rules",
    f"usr/lib/tmpfiles.d/{NAME}.conf": f"{NAME}.tmpfiles",
    f"{DOC}/copyright": "debian/copyright",
    f"usr/share/lintian/overrides/{NAME}": "debian/lintian-overrides",
}
"""Installed path of each file, and its path below `packaging`."""
MACHINES: Final = {62: "amd64", 183: "arm64", 243: "riscv64"}
"""Debian architectures, by the machine number in an ELF header."""
INTERPRETER: Final = 3
"""Type of a program header (PT_INTERP): the program needs a dynamic linker."""
CURE: Final = "`make agent-static` builds one"


def main() -> None:
    """Makes the package and prints its path."""
    parser = argparse.ArgumentParser(description="Makes the Debian package of the agent.")
    parser.add_argument("agent", type=Path, help="the program, statically linked")
    parser.add_argument("--out", type=Path, default=ROOT / "dist", help="folder for the package")
    given = parser.parse_args()
    if shutil.which("dpkg-deb") is None:
        sys.exit("make_deb: dpkg-deb was not found; install the package dpkg")
    if not given.agent.is_file():
        sys.exit(f"make_deb: {given.agent}: no such program; {CURE}")
    sys.stdout.write(f"{make(given.agent, given.out, architecture_of(given.agent))}\n")


def architecture_of(agent: Path) -> str:
    """The Debian architecture of a static program; exits where there is none."""
    content = agent.read_bytes()
    if content[:5] != b"\x7fELF\x02" or content[5] != 1:
        sys.exit(f"make_deb: {agent} is no program for a 64-bit little-endian machine; {CURE}")
    (machine,) = struct.unpack_from("<H", content, 18)
    (table,) = struct.unpack_from("<Q", content, 32)
    size, count = struct.unpack_from("<HH", content, 54)
    kinds = {struct.unpack_from("<I", content, table + size * number)[0] for number in range(count)}
    if INTERPRETER in kinds:
        sys.exit(f"make_deb: {agent} is linked dynamically, and hosts may lack its libraries; {CURE}")
    if machine not in MACHINES:
        sys.exit(
            f"make_deb: {agent} is for a machine that is not known here (ELF {machine}); add it to MACHINES"
        )
    return MACHINES[machine]


def make(agent: Path, out: Path, architecture: str) -> Path:
    """Makes the package of a program in a folder; returns its path."""
    version = f"{_workspace_version()}-1"
    when = _last_change()
    out.mkdir(parents=True, exist_ok=True)
    package = out / f"{NAME}_{version}_{architecture}.deb"
    with tempfile.TemporaryDirectory() as scratch:
        tree = Path(scratch) / "tree"
        stage(tree, agent, version, when)
        describe(tree, version, architecture)
        subprocess.run(
            ["dpkg-deb", "--root-owner-group", "-Zxz", "--build", str(tree), str(package)],
            check=True,
            stdout=subprocess.DEVNULL,
            env=os.environ | {"SOURCE_DATE_EPOCH": str(when)},
        )
    return package


def stage(tree: Path, agent: Path, version: str, when: int) -> None:
    """Creates the tree of installed files."""
    _put(tree / "usr/bin" / NAME, agent.read_bytes(), 0o755)
    for place, source in FILES.items():
        _put(tree / place, (PACKAGING / source).read_bytes())
    _put(tree / f"usr/share/man/man8/{NAME}.8.gz", _packed(man_pages.pages()[f"{NAME}.8"].encode()))
    _put(tree / DOC / "changelog.gz", _packed((ROOT / "CHANGELOG.md").read_bytes()))
    entry = (
        f"wiregauge ({version}) unstable; urgency=medium\n\n"
        f"  * Version {version.removesuffix('-1')}; changelog.gz says what is new.\n\n"
        f" -- {_maintainer()}  {formatdate(when)}\n"
    )
    _put(tree / DOC / "changelog.Debian.gz", _packed(entry.encode()))


def describe(tree: Path, version: str, architecture: str) -> None:
    """Writes the control files for dpkg."""
    files = sorted(path for path in tree.rglob("*") if path.is_file())
    sums = "".join(
        f"{hashlib.md5(path.read_bytes(), usedforsecurity=False).hexdigest()}  {path.relative_to(tree)}\n"
        for path in files
    )
    kibibytes = sum(-(-path.stat().st_size // 1024) for path in files)
    control = (PACKAGING / "debian/control").read_text(encoding="utf-8")
    for key, value in (
        ("VERSION", version),
        ("ARCHITECTURE", architecture),
        ("MAINTAINER", _maintainer()),
        ("SIZE", str(kibibytes)),
    ):
        control = control.replace(f"@{key}@", value)
    _put(tree / "DEBIAN/control", control.encode())
    _put(tree / "DEBIAN/conffiles", f"/{CONFIGURATION}\n".encode())
    _put(tree / "DEBIAN/md5sums", sums.encode())
    for script in SCRIPTS:
        _put(tree / "DEBIAN" / script, (PACKAGING / "debian" / script).read_bytes(), 0o755)
    for folder in (tree, *(path for path in tree.rglob("*") if path.is_dir())):
        folder.chmod(0o755)


def _put(place: Path, content: bytes, mode: int = 0o644) -> None:
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_bytes(content)
    place.chmod(mode)


def _packed(content: bytes) -> bytes:
    return gzip.compress(content, 9, mtime=0)


def _maintainer() -> str:
    name = os.environ.get("DEBFULLNAME", "The Wiregauge authors")
    return f"{name} <{os.environ.get('DEBEMAIL', 'wiregauge@packages.invalid')}>"


def _workspace_version() -> str:
    manifest = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))
    return str(manifest["workspace"]["package"]["version"])


def _last_change() -> int:
    """Time of the sources' last change: SOURCE_DATE_EPOCH, the last commit, or now."""
    told = os.environ.get("SOURCE_DATE_EPOCH")
    if told is None:
        asked = subprocess.run(
            ["git", "log", "-1", "--format=%ct"], cwd=ROOT, capture_output=True, text=True, check=False
        )
        told = asked.stdout.strip()
    return int(told) if told else int(time.time())


if __name__ == "__main__":
    main()
