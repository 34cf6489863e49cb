"""Writes the bill of materials of a wiregauge wheel, as CycloneDX: `sbom.py FILE`.

Crates are those compiled into module and agent, by `Cargo.lock`; Python packages are those of an installation without
extras, in the versions of this environment.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from importlib.metadata import distribution
from pathlib import Path

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = ("wg-agent", "wg-py")


def crates() -> list[Component]:
    """The crates compiled into module and agent, without those for tests or building alone."""
    command = ["cargo", "tree", "--locked", "--edges=normal", "--prefix=none", "--format={p}"]
    command += [f"--package={name}" for name in PROGRAMS]
    told = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    used = {tuple(line.split()[:2]) for line in told.splitlines() if line and "(/" not in line}
    lock = tomllib.loads((ROOT / "Cargo.lock").read_text(encoding="utf-8"))["package"]
    found = []
    for package in lock:
        if (package["name"], f"v{package['version']}") in used:
            purl = PackageURL("cargo", None, package["name"], package["version"])
            hashes = [HashType(alg=HashAlgorithm.SHA_256, content=package["checksum"])]
            found.append(
                Component(
                    type=ComponentType.LIBRARY,
                    name=package["name"],
                    version=package["version"],
                    purl=purl,
                    hashes=hashes,
                    bom_ref=str(purl),
                )
            )
    return found


def packages() -> list[Component]:
    """The packages that `pip install wiregauge` installs."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    names, waiting = dict[str, str](), list(project["dependencies"])
    while waiting:
        requirement = Requirement(waiting.pop())
        if requirement.marker is not None and not requirement.marker.evaluate({"extra": ""}):
            continue
        found = distribution(requirement.name)
        if canonicalize_name(requirement.name) not in names:
            names[canonicalize_name(requirement.name)] = found.version
            waiting += found.requires or []
    components = []
    for name, version in sorted(names.items()):
        purl = PackageURL("pypi", None, name, version)
        components.append(
            Component(type=ComponentType.LIBRARY, name=name, version=version, purl=purl, bom_ref=str(purl))
        )
    return components


def document() -> str:
    """The bill of materials, JSON."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"]
    bom = Bom(components=[*crates(), *packages()])
    bom.metadata.component = Component(
        type=ComponentType.APPLICATION, name="wiregauge", version=version["version"], bom_ref="wiregauge"
    )
    bom.register_dependency(bom.metadata.component, list(bom.components))
    return json.dumps(json.loads(JsonV1Dot6(bom).output_as_string()), indent=1) + "\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(document(), encoding="utf-8")
