"""The bench of namespaces where the model plays what is between them."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import Runner, assert_measured, interfaces_and_spaces, scenario, until
from test_faults import Campaign, shows_what_was_recorded
from wiregauge.benches import agent_program

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"


@pytest.mark.skipif(shutil.which("ethtool") is None, reason="there is no ethtool")
def test_every_end_system_has_one_whole_link_to_the_network_and_nobody_speaks_there() -> None:
    command = [str(agent_program()), "enclose", "--", sys.executable, str(HERE / "around_model.py")]
    done = subprocess.run(
        [*command, str(EXAMPLES / "demo.xml")], capture_output=True, text=True, check=False, timeout=60
    )
    assert done.returncode == 0, done.stderr
    told: dict[str, Any] = json.loads(done.stdout)
    ports = told.pop("ports")
    assert ports == {
        "mac": {"port": "network:h0", "received": 0},
        "sensor": {"port": "network:h1", "received": 0},
    }
    # No namespace of a switch.
    assert sorted(told) == ["es-mac", "es-sensor", "network"]
    assert sorted(told["network"]) == ["h0", "h1"]
    for port in told["network"].values():
        assert {"NOARP", "UP", "LOWER_UP"} <= set(port["flags"])
        assert port["addresses"] == []
    for name, other in (("mac", "sensor"), ("sensor", "mac")):
        (own,), (there,) = (told[f"es-{one}"].items() for one in (name, other))
        assert own[0] == "eth0"
        assert own[1]["neighbours"] == [[there[1]["addresses"][0], there[1]["mac"]]]
    for space in told.values():
        for link in space.values():
            assert (link["queue"], link["mtu"]) == ("noqueue", 1600)
            # A checksum, a tag or a segment that is left to an interface is wrong behind a packet socket.
            assert set(link["offloads"]) <= {"highdma", "generic-receive-offload"}
    # They poll, so that XDP frames come to them, and put no frames together.
    for port in told["network"].values():
        assert "generic-receive-offload" in port["offloads"]
        assert port["longest_made"] == 1


CAPTURED = """<tasks><send flow="10" period="2ms" payload="64B" count="200"/><receive flow="10"/>
  <capture on="sw1"/></tasks>"""


def test_a_test_runs_through_the_model_and_leaves_what_a_simulation_leaves(
    tmp_path: Path, wiregauge: Runner
) -> None:
    (tmp_path / "t.xml").write_text(scenario(CAPTURED))
    done = wiregauge("run", "t.xml", "--switches", "model", "--out", "r")
    place = tmp_path / "r"
    assert_measured(done, place)
    manifest = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    (run,) = manifest["runs"]
    assert manifest["traits"]["switches"] == "model"
    assert sorted(run["agents"]) == ["mac", "sensor"]
    assert run["network"]["complete"]
    assert {one["end_system"]: one["frames"] for one in run["network"]["releases"]} == {
        "mac": 0,
        "sensor": 200,
    }
    assert run["network"]["intake"]["frames"] == 200
    assert run["first_ports"]["mac"] == {"port": "network:h0", "received": 200}
    assert "sw1" in run["simulation"]["switches"]
    for kind, file in (("truth", "run-0000.parquet"), ("captures", "run-0000/sw1.pcapng")):
        assert (place / kind / file).stat().st_size > 0
    shown = wiregauge("show", "r", "--json").json()["runs"][0]
    assert shown["flows"][0]["delivered"] == 200
    # A hop of the switch, as the simulator records it.
    assert len(shown["flows"][0]["hops"]) == 1
    checks = {check["name"]: check for check in shown["checks"]}
    assert "n = 200" in checks["network-error"]["observed"]
    assert checks["captures"]["grade"] == "ok"


@pytest.mark.skipif(os.geteuid() != 0, reason="XDP frames need root")
def test_load_by_xdp_frames_passes_through_the_model(tmp_path: Path, wiregauge: Runner) -> None:
    inject = '<inject on="mac" to="sensor" load="2%" frame="66B" burst="1" backend="xdp-live"/>'
    flow = '<send flow="10" period="5ms" payload="64B"/><receive flow="10"/>'
    (tmp_path / "t.xml").write_text(scenario(f'<tasks duration="300ms">{flow}{inject}</tasks>'))
    done = wiregauge("run", "t.xml", "--switches", "model", "--out", "r")
    place = tmp_path / "r"
    assert_measured(done, place)
    (run,) = json.loads((place / "manifest.json").read_text(encoding="utf-8"))["runs"]
    ((sent,), (got,)) = (run["agents"][name]["streams"] for name in ("mac", "sensor"))
    assert (sent["kind"], sent["backend"], got["kind"]) == ("inject", "xdp-live", "absorb")
    account = got["figures"]["account"]
    assert 5_000 < account["distinct"] <= sent["figures"]["offered"]
    assert account["corrupted"] == account["duplicates"] == 0
    (release,) = (one for one in run["network"]["releases"] if one["end_system"] == "sensor")
    assert release["frames"] >= account["distinct"]
    assert release["access"] == "af_xdp"
    assert "given to them by af_xdp" in (place / "report.html").read_text(encoding="utf-8")


@pytest.fixture
def played(tmp_path: Path) -> Iterator[Campaign]:
    before = interfaces_and_spaces()
    campaign = Campaign(tmp_path, "--switches", "model")
    campaign.wait_for_records()
    yield campaign
    if campaign.process.poll() is None:
        os.killpg(campaign.process.pid, signal.SIGKILL)
        campaign.process.wait()
    campaign.process.communicate()  # closes its pipes
    until(lambda: interfaces_and_spaces() == before, "the end of all that it made", 10)


@pytest.mark.parametrize(
    ("strike", "words"),
    [
        (signal.SIGKILL, ["the network is gone: killed by signal 9"]),
        (signal.SIGSTOP, ["the network gave no sign of life", "was stopped (SIGSTOP)", "was given up"]),
    ],
)
def test_a_run_whose_network_is_struck_ends_is_graded_and_calls_nothing_lost(
    played: Campaign, wiregauge: Runner, strike: signal.Signals, words: list[str]
) -> None:
    os.kill(played.one("serve", "/run/netns/network"), strike)
    code, err = played.end()
    assert code == 4
    assert all(word in err for word in words), err
    manifest = json.loads((played.folder / "r" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["state"] == "failed"
    assert "network" not in manifest["runs"][0]
    flow = shows_what_was_recorded(wiregauge)
    assert flow["lost"] == 0, "what the network had in hand when it ended nobody knows"
