"""A small simulated run directory for the tests about files: two runs, a switch, a relay and captures."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

from wiregauge.notebook import simulate

TEXT = """<test xmlns="urn:wiregauge:test:2" name="stored" seed="{seed}">
<network>
  <end-system name="a"/><end-system name="b"/><switch name="s"/>
  <link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/>
</network>
<flows><flow id="10" protocol="udp" from="a" to="b"/></flows>
<tasks>
  <send flow="10" period="100us" payload="64B" count="{count}"/><relay flow="10" on="b"/>
  <capture on="b"/>
</tasks>
<sweep><repeat times="2"/></sweep>
<limits><limit flow="10" measure="latency.max" at-most="5ms"/></limits>
</test>
"""


def make(place: Path, *, seed: int = 1, count: int = 200) -> Path:
    """Simulates the test into `place`, judged, with its report left out; returns it."""
    place.parent.mkdir(parents=True, exist_ok=True)
    test = place.with_suffix(".xml")
    test.write_text(TEXT.format(seed=seed, count=count), encoding="utf-8")
    simulate(test, place, jobs=1)
    return place


def unsealed(place: Path, into: Path) -> Path:
    """A copy as a version without hashes would have left it."""
    shutil.copytree(place, into)
    manifest = json.loads((into / "manifest.json").read_text(encoding="utf-8"))
    for key in ("digest", "files"):
        manifest.pop(key)
    (into / "manifest.json").write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    tracking = (into / "tracking.json").read_text(encoding="utf-8")
    (into / "tracking.json").write_text(re.sub(r'^\{\s*"digest": "\w+",', "{", tracking), encoding="utf-8")
    return into


def flip(file: Path, at: int, bit: int = 0) -> None:
    """Inverts one bit of a file; `at` is taken modulo its length."""
    data = bytearray(file.read_bytes())
    data[at % len(data)] ^= 1 << bit
    file.write_bytes(data)
