"""The simulator as a user meets it: the default, without privilege, and in good order when something fails."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from support import COMMAND, Runner, scenario

ROOT = Path(__file__).resolve().parents[2]
LONG = '<tasks><send flow="10" period="1ms" payload="64B" count="60000"/><receive flow="10"/></tasks>'


def test_a_first_report_needs_no_privilege(wiregauge: Runner, tmp_path: Path) -> None:
    plain = ("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    done = wiregauge("run", ROOT / "examples" / "first.xml", "--out", "r", prefix=plain)
    assert done.code == 0, done.err
    assert json.loads((tmp_path / "r" / "manifest.json").read_text())["bench"] == "sim"
    assert (tmp_path / "r" / "report.html").exists()


def test_what_namespaces_cannot_carry_is_refused(wiregauge: Runner, tmp_path: Path) -> None:
    done = wiregauge("run", ROOT / "examples" / "afdx.xml", "--bench", "netns", "--out", "r")
    assert done.code == 3
    assert "--bench sim" in done.err
    assert "network B" in done.err
    assert not (tmp_path / "r").exists()


def test_a_full_disk_keeps_what_fitted(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(scenario(LONG))
    script = (
        f'mkdir small && mount -t tmpfs -o size=900k none small && "{COMMAND}" run t.xml --bench sim --out small/r; '
        "code=$?; cp -r small kept; exit $code"
    )
    answer = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "Traceback" not in answer.stderr
    assert answer.returncode == 4, answer.stderr
    assert wiregauge("show", "kept/r", "--json").code == 4


def test_doctor_says_which_benches_work(wiregauge: Runner) -> None:
    benches = {bench["name"]: bench for bench in wiregauge("doctor", "--json").json()["benches"]}
    assert benches["sim"]["works"]
    assert benches["netns"]["works"] or benches["netns"]["cure"]
