"""The installed command on anyone's captures, on the model of a switch, and on runs beside their bounds."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from support import COMMAND, Done

TEST = """<test xmlns="urn:wiregauge:test:2" name="loop" seed="7" bench="sim">
  <network><end-system name="a"/><end-system name="c"/><switch name="sw" delay="3us" buffer="16KiB"/>
    <link between="a sw" rate="1Gbit/s"/><link between="sw c" rate="100Mbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="a" to="c"/><flow id="20" protocol="udp" from="a" to="c"/></flows>
  <tasks warm-up="0s" drain="200ms">
    <send flow="10" period="4ms" payload="1300B" count="600" burst="20" spacing="12us"/>
    <send flow="20" period="773us" payload="200B" count="600"/>
    <receive flow="10"/><receive flow="20"/><capture on="a"/><capture on="c"/></tasks>
</test>"""


def command(place: Path, *words: str) -> Done:
    done = subprocess.run(
        [str(COMMAND), *words], cwd=place, capture_output=True, text=True, check=False, timeout=120
    )
    assert "Traceback" not in done.stdout + done.stderr
    return Done(done.returncode, done.stdout, done.stderr)


def test_from_two_captures_to_a_bound(tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(TEST, encoding="utf-8")
    assert command(tmp_path, "run", "t.xml", "--out", "r").code == 0
    captures = [f"r/captures/run-0000/{name}.pcapng" for name in "ac"]
    seen = command(tmp_path, "import", *captures, "--passive", "--max-clock-offset", "0ns", "--out", "seen")
    assert seen.code == 0, seen.err
    assert "198.18.0.1:61188 > 198.18.0.2:61188 UDP, a to c: 1200 frames" in seen.out
    assert "Frames before and after the device" in (tmp_path / "seen" / "report.html").read_text()
    again = command(tmp_path, "import", *captures, "--passive", "--max-clock-offset", "0ns", "--out", "seen")
    assert (again.code, again.out) == (2, "")
    assert command(tmp_path, "show", "seen").code == 0
    assert command(tmp_path, "compare", "seen", "seen").code == 0
    # The switch itself, and the device between the captures, are the same.
    fits = []
    for run, out in (("r", "sw.xml"), ("seen", "device.xml")):
        told = command(tmp_path, "identify", run, "--out", out, "--json")
        assert told.code == 0, told.err
        fits.append(json.loads(told.out))
    assert fits[0]["attributes"] | {"name": ""} == fits[1]["attributes"] | {"name": ""}
    assert 16 * 1024 - 1346 < fits[0]["buffer"]["least"] <= 16 * 1024
    assert command(tmp_path, "identify", "r", "--out", "sw.xml").code == 2
    assert command(tmp_path, "identify", "t.xml").code == 2
    # A test takes the model; its bound holds for what was measured.
    modelled = TEST.replace('delay="3us" buffer="16KiB"', 'file="sw.xml"')
    (tmp_path / "model.xml").write_text(modelled, encoding="utf-8")
    held = command(tmp_path, "bounds", "model.xml", "--against", "r")
    assert held.code == 0, held.err
    assert "hop by hop" in held.out
    assert "ALARM" not in held.out
    (tmp_path / "other.xml").write_text(modelled.replace("sw.xml", "t.xml"), encoding="utf-8")
    wrong = command(tmp_path, "check", "other.xml")
    assert wrong.code == 2
    assert '"t.xml" holds no switch, but <test>' in wrong.err
