"""The bench of namespaces where the model plays what is between them."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import Runner, assert_measured, frame_times, interfaces_and_spaces, scenario, until
from test_faults import Campaign, shows_what_was_recorded
from wiregauge.runner.agent_program import agent_program

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


CLOCKS = """<test xmlns="urn:wiregauge:test:2" name="watched" seed="1">
  <network><end-system name="mac"><clock drift="30ppm"/></end-system>
    <end-system name="sensor"><clock drift="-30ppm"/></end-system><switch name="sw1" kind="mixed-criticality"/>
    <link between="mac sw1" rate="100Mbit/s"/><link between="sensor sw1" rate="100Mbit/s"/></network>
  <flows><flow id="10" protocol="raw" from="mac" to="sensor"/></flows>
  <synchronise>
    <as6802 masters="mac" compression-masters="sw1" clients="sensor" cycle="2ms" cycles="8"/>
  </synchronise>
  <tasks duration="4s"><send flow="10" period="2ms" payload="64B"/><receive flow="10"/></tasks></test>"""


def test_queues_and_clocks_of_the_model_are_known_while_frames_travel(
    tmp_path: Path, wiregauge: Runner
) -> None:
    going = Campaign(tmp_path, "--bench", "netns", test=CLOCKS)
    seen: list[dict[str, Any]] = []
    live = tmp_path / "r" / "live.json"
    while going.process.poll() is None:
        # It is gone as soon as the run has ended.
        with contextlib.suppress(FileNotFoundError):
            now = json.loads(live.read_bytes())["now"]
            if now is not None and now["seconds"] > 1 and now not in seen:
                seen.append(now)
        time.sleep(0.05)
    going.process.communicate()
    (hop,) = wiregauge("show", "r", "--json").json()["runs"][0]["flows"][0]["hops"]
    assert seen
    for now in seen:
        (port,) = now["ports"]
        assert (port["node"], port["port"]) == ("sw1", 2)
        assert port["frames"] > 0
        assert port["queued"] >= 1
        assert 0 < port["longest_ns"] <= hop["max"] + 1
        states = {clock["node"]: clock for clock in now["clocks"]}
        assert sorted(states) == ["mac", "sensor", "sw1"]
        for clock in states.values():
            assert (clock["source"], clock["synchronised"]) == ("AS6802", True), clock
            assert clock["at_s"] <= now["seconds"] + 1


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


@pytest.mark.skipif(os.geteuid() != 0, reason="another's namespace is entered by root")
@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["set", "h1", "down"], "is down, or has lost its carrier, since the network was played"),
        (["delete", "h1"], "was taken away while the network was played"),
    ],
)
def test_a_port_that_goes_is_told_while_the_run_goes_on_and_the_run_is_graded(
    played: Campaign, words: list[str], told: str
) -> None:
    network = played.one("serve", "/run/netns/network")
    subprocess.run(["nsenter", f"--net=/proc/{network}/ns/net", "ip", "link", *words], check=True, timeout=30)
    struck = time.monotonic()
    said = f"interface 'h1', which leads to sensor, {told}"
    assert played.process.stderr is not None
    line = next(line for line in played.process.stderr if said in line)
    assert time.monotonic() - struck < 5, line
    assert played.process.poll() is None
    manifest = played.folder / "r" / "manifest.json"
    assert json.loads(manifest.read_text(encoding="utf-8"))["state"] == "running"
    code, _ = played.end()
    assert code == 4
    left = json.loads(manifest.read_text(encoding="utf-8"))
    assert said in left["runs"][0]["reason"]
    assert not left["runs"][0]["network"]["complete"]


STRAY = """
import socket, sys, time
line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
line.bind(("eth0", 0))
own = bytes.fromhex("020000000077")
for _ in range(20):
    line.send(bytes.fromhex("333300000001") + own + bytes.fromhex("86dd") + bytes(60))
    line.send(bytes.fromhex("0180c200000e") + own + bytes.fromhex("88cc") + bytes(50))
    line.send(bytes.fromhex("020000000055") + own + bytes.fromhex("1234") + bytes(1000))
    time.sleep(0.02)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a stray sender needs root")
def test_frames_of_somebody_else_are_counted_by_where_they_came_from_and_what_they_are(
    tmp_path: Path, wiregauge: Runner
) -> None:
    tasks = '<tasks><send flow="10" period="2ms" payload="64B" count="1500"/><receive flow="10"/></tasks>'
    systems = ("mac", "sensor", "other")
    campaign = Campaign(tmp_path, "--switches", "model", test=scenario(tasks, systems=systems))
    campaign.wait_for_records()
    agent = campaign.one("serve", "/run/netns/es-other")
    subprocess.run(
        ["nsenter", "--target", str(agent), "--net", sys.executable, "-c", STRAY], check=True, timeout=30
    )
    code, err = campaign.end()
    assert code == 0, err
    shown = wiregauge("show", "r", "--json").json()["runs"][0]
    # Overhead of a line: preamble, FCS and gap.
    took = {kind: 8 * (14 + size + 24) for kind, size in ((0x86DD, 60), (0x88CC, 50), (0x1234, 1000))}
    foreign = {(one["end_system"], one["ether_type"]): one for one in shown["network"]["foreign"]}
    assert set(foreign) == {("other", kind) for kind in took}
    for (_, kind), one in foreign.items():
        assert one["frames"] == 20
        # Over the line to the switch and from there to both others, at 1 Gbit/s; LLDP ends at the switch.
        ends = kind == 0x88CC
        assert one["line_ns"] == pytest.approx(20 * (1 if ends else 3) * took[kind], rel=0.01)
        assert one["dropped"] == ({"not-forwarded": 20} if ends else {})
        # Cards take what is for a group, and none the frame to an address that nobody has.
        assert one["delivered"] == (40 if kind == 0x86DD else 0)
    checks = {check["name"]: check for check in shown["checks"]}
    assert checks["network-foreign"]["grade"] == "note"
    assert "20 IPv6 (0x86DD) from other" in checks["network-foreign"]["observed"]
    assert shown["flows"][0]["delivered"] == 1500
    text = wiregauge("show", "r").out
    assert "frames on the network that are not of the test: 20" in " ".join(text.split())
    assert "Frames on the network that are not of the test" in (tmp_path / "r" / "report.html").read_text(
        encoding="utf-8"
    )
    assert wiregauge("replay", "r").code == 0


LOADED = """<test xmlns="urn:wiregauge:test:2" name="loaded" seed="1">
  <network>
    <end-system name="a"/><end-system name="b"/><switch name="sw1"/>
    <link between="a sw1" rate="100Mbit/s"/><link between="b sw1" rate="10Mbit/s"/>
  </network>
  <flows><flow id="10" protocol="udp" from="a" to="b"/></flows>
  <tasks duration="2s">
    <send flow="10" period="10ms" payload="64B"/><receive flow="10"/>
    <inject on="a" to="b" load="15%" frame="500B" burst="1"/>
  </tasks>
  <faults><loss link="a sw1" share="1%"/></faults>
</test>
"""


@pytest.mark.parametrize("bench", ["sim", "netns"])
def test_load_that_does_not_arrive_is_told_by_why_the_network_dropped_it(
    tmp_path: Path, wiregauge: Runner, bench: str
) -> None:
    (tmp_path / "t.xml").write_text(LOADED)
    done = wiregauge("run", "t.xml", "--bench", bench, "--out", "r")
    assert_measured(done, tmp_path / "r")
    run = wiregauge("show", "r", "--json").json()["runs"][0]
    (load,) = run["loads"]
    lost = load["sent_frames"] - load["arrived_frames"]
    dropped = load["dropped"]
    assert sum(dropped.values()) == lost > 0
    # Half of the load has no room on the second line, a hundredth is lost on the first.
    assert dropped["buffer-full"] > 0.2 * load["sent_frames"]
    assert 0.003 < dropped["own-link"] / load["sent_frames"] < 0.03
    # A load that full queues drop has loaded them; what its own link lost has loaded nothing.
    assert load["never_came"] == pytest.approx(dropped["own-link"], abs=0.005 * load["sent_frames"])
    checks = {check["name"]: check for check in run["checks"]}
    assert f"buffer full {dropped['buffer-full']}" in checks["background-load-account"]["observed"]


def test_a_capture_at_a_switch_of_the_model_has_the_time_of_the_host(
    tmp_path: Path, wiregauge: Runner
) -> None:
    (tmp_path / "t.xml").write_text(scenario(CAPTURED.replace("</tasks>", '<capture on="mac"/></tasks>')))
    done = wiregauge("run", "t.xml", "--out", "r")
    assert_measured(done, tmp_path / "r")
    manifest = json.loads((tmp_path / "r" / "manifest.json").read_text(encoding="utf-8"))
    assert manifest["traits"]["switches"] == "model", "a capture needs no bridge"
    (run,) = manifest["runs"]
    epoch = run["epoch_realtime_ns"]
    at_switch, at_host = (
        frame_times(tmp_path / "r" / "captures" / "run-0000" / f"{node}.pcapng", epoch)
        for node in ("sw1", "mac")
    )
    assert len(at_switch) == run["captures"]["sw1"]["done"] == 400
    assert len(at_host) == 200
    # Every frame twice at the switch, soon after its host had sent it.
    first = at_switch[::2]
    assert all(0 <= there - here < 0.05 for here, there in zip(at_host, first, strict=True))


OVERLONG = """
import socket
line = socket.socket(socket.AF_PACKET, socket.SOCK_RAW, 0)
line.bind(("eth0", 0))
for _ in range(3):
    line.send(bytes.fromhex("333300000001" + "020000000077" + "86dd") + bytes(5000))
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="a stray sender needs root")
def test_a_frame_that_no_line_has_is_counted_and_told_with_the_cure(
    tmp_path: Path, wiregauge: Runner
) -> None:
    tasks = '<tasks><send flow="10" period="2ms" payload="64B" count="1500"/><receive flow="10"/></tasks>'
    systems = ("mac", "sensor", "other")
    campaign = Campaign(tmp_path, "--switches", "model", test=scenario(tasks, systems=systems))
    campaign.wait_for_records()
    # As an offload of its host would hand it over, which needs no MTU.
    within = {
        place: ["nsenter", "--target", str(campaign.one("serve", f"/run/netns/{place}")), "--net"]
        for place in ("es-other", "network")
    }
    for place, interface in (("es-other", "eth0"), ("network", "h2")):
        subprocess.run(
            [*within[place], "ip", "link", "set", interface, "mtu", "9000"], check=True, timeout=30
        )
    subprocess.run([*within["es-other"], sys.executable, "-c", OVERLONG], check=True, timeout=30)
    campaign.end()
    shown = wiregauge("show", "r", "--json").json()["runs"][0]
    assert shown["network"]["overlong"] == [
        {"end_system": "other", "interface": "h2", "frames": 3, "longest": 5014}
    ]
    (check,) = (one for one in shown["checks"] if one["name"] == "network-lost")
    assert check["observed"].endswith("3 too long for a line")
    assert "ethtool -K h2 gro off lro off" in check["reason"]
    assert shown["flows"][0]["delivered"] == 1500
    assert shown["network"]["foreign"] == []
