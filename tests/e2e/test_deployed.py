"""Each way of installing the agent on a clean host: installed, enrolled, measured, removed.

Slow, and it wants what `make deb wheel` leaves in `dist`, and the archive of the distribution: `make check-deploy`. The
host of the package is a minimal Debian without Python, that of the static agent an empty folder, that of the wheel an
empty environment. No service manager runs in them: `as_unit.py` gives the packaged agent what its unit file says, and
no more.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import COMMAND, SECONDS, Done, assert_measured
from wiregauge.benches import agent_program

pytestmark = pytest.mark.deploy

HERE = Path(__file__).parent
DIST = HERE.parents[1] / "dist"
UNIT = "usr/lib/systemd/system/wiregauge-agent.service"
HOST = "10.77.0.2"
STREAM = """<?xml version="1.0"?>
<test xmlns="urn:wiregauge:test:2" name="stream" seed="1" bench="lab">
  <network>
    <end-system name="here"/> <end-system name="there"/> <switch name="sw"/>
    <link between="here sw" rate="1Gbit/s"/> <link between="there sw" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="here" to="there"/>
  </flows>
  <tasks warm-up="100ms" drain="200ms">
    <send flow="10" period="2ms" payload="64B" count="300"/> <receive flow="10"/>
    <inject on="there" to="here" load="1%" backend="xdp"/>
  </tasks>
</test>
"""


def newest(pattern: str) -> Path:
    found = sorted(DIST.glob(pattern), key=lambda path: path.stat().st_mtime)
    assert found, f"{DIST} has no {pattern}; `make check-deploy` builds it"
    return found[-1]


class Place:
    """A testmaster and a bare host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._agents: list[subprocess.Popen[str]] = []
        self._process = subprocess.Popen(
            [str(agent_program()), "enclose", "--", sys.executable, str(HERE / "bare_host.py")],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        assert self._process.stdout is not None
        assert "pid" in json.loads(self._process.stdout.readline())
        self._pid = self._process.pid
        while children := Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split():
            self._pid = int(children[0])

    def _inside(self) -> list[str]:
        return ["nsenter", "-t", str(self._pid), "--net", "--mount", f"--wd={self.folder}", "--"]

    def run(self, *arguments: object) -> Done:
        """A command of the testmaster."""
        answer = subprocess.run(
            [*self._inside(), "env", f"WIREGAUGE_LAB={self.folder}/lab", str(COMMAND), *map(str, arguments)],
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        done = Done(answer.returncode, answer.stdout, answer.stderr)
        assert "Traceback" not in done.out + done.err, done.err
        return done

    def start(self, *command: object) -> subprocess.Popen[str]:
        """A program of the host, until it says that it waits to be joined."""
        prefix = [*self._inside(), "ip", "netns", "exec", "host", "unshare", "--uts", "--mount"]
        process = subprocess.Popen(
            [*prefix, "sh", "-c", 'hostname host; exec "$@"', "sh", *map(str, command)],
            stdout=subprocess.PIPE,
            text=True,
        )
        self._agents.append(process)
        assert process.stdout is not None
        assert "its join code" in process.stdout.readline()
        return process

    def measure(self, code: str, name: str = "") -> None:
        """The host joins by its code, and both ways of sending messages are measured."""
        if not (self.folder / "lab").exists():
            assert self.run("lab", "init").code == 0
        enrolled = self.run(
            "lab", "enrol", HOST, code, "--interface", "eth1", *(["--name", name] if name else [])
        )
        assert (enrolled.code, enrolled.out) == (0, f"{name or 'host'} has joined the lab\n"), enrolled.err
        for protocol in ("udp", "raw"):
            out = self.folder / f"{name}{protocol}"
            sent = ("--count", "300", "--protocol", protocol, "--limit", "lost <= 0", "--out", out)
            assert_measured(self.run("probe", name or "host", *sent), out)
            flow = json.loads((out / "measures.json").read_text())["runs"][0]["flows"][0]
            assert flow["sent"] == 300
            assert flow["latency_ns"]["n"] > 0

    def close(self) -> None:
        for process in self._agents:
            process.kill()
            process.communicate(timeout=10)
        self._process.communicate(timeout=10)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    made = Place(tmp_path)
    try:
        yield made
    finally:
        made.close()


def refused_grants(run: Path, end_system: str) -> dict[str, str]:
    """What the host did not give the agent of an end system."""
    manifest = json.loads((run / "manifest.json").read_text())
    grants = manifest["runs"][0]["agents"][end_system]["grants"]
    assert {grant["name"] for grant in grants} >= {"mlockall", "sched-fifo"}
    return {grant["name"]: grant["detail"] for grant in grants if not grant["granted"]}


def test_the_static_agent_needs_nothing_of_its_host(place: Place, tmp_path: Path) -> None:
    root = tmp_path / "root"
    for folder in ("proc", "sys", "dev", "usr/bin", "var/lib"):
        (root / folder).mkdir(parents=True)
    agent = root / "usr/bin/wiregauge-agent"
    shutil.copy2(newest("wiregauge-agent-*-linux-*"), agent)
    # What a static program with the name service of glibc in it would read, and then load libraries for.
    assert b"nsswitch.conf" not in agent.read_bytes()
    mounts = "mount -t proc proc proc && mount --rbind /sys sys && mount --rbind /dev dev"
    begun = place.start(
        "sh", "-c", f"cd {root} && {mounts} && exec chroot . /usr/bin/wiregauge-agent serve --announce"
    )
    shown = subprocess.run(
        ["chroot", str(root), "/usr/bin/wiregauge-agent", "join-code"],
        capture_output=True,
        text=True,
        check=True,
    )
    place.measure(shown.stdout.strip())
    assert refused_grants(tmp_path / "udp", "host") == {}
    begun.terminate()
    assert begun.wait(10) == 0
    agent.unlink()
    left = sorted(str(path.relative_to(root)) for path in root.rglob("*") if path.is_file())
    assert left == [f"var/lib/wiregauge/host/{name}" for name in ("audit.log", "key.pem", "membership.pem")]


def test_the_wheel_brings_the_agent(place: Place, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin/pip"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", str(newest("wiregauge-*.whl"))], check=True)
    state = ("--state", tmp_path / "state")
    begun = place.start(environment / "bin/wiregauge", "agent", "serve", *state)
    shown = subprocess.run(
        [str(environment / "bin/wiregauge"), "agent", "join-code", *map(str, state)],
        capture_output=True,
        text=True,
        check=True,
        env={"PATH": os.environ["PATH"]},
    )
    place.measure(shown.stdout.strip())
    begun.terminate()
    assert begun.wait(10) == 0
    subprocess.run([*pip, "uninstall", "--quiet", "--yes", "wiregauge"], check=True)
    assert list(environment.rglob("*wiregauge*")) == []


SYSTEMCTL = """#!/bin/sh
echo "$*" >> /run/calls
wanted=/etc/systemd/system/multi-user.target.wants
case "$*" in
*preset*) mkdir -p $wanted && ln -s /usr/lib/systemd/system/wiregauge-agent.service $wanted/ ;;
*is-enabled*) [ ! -L $wanted/wiregauge-agent.service ] || echo enabled ;;
*is-active*) kill -0 "$(cat /run/agent.pid)" || exit 3 ;;
*stop*wiregauge-agent.service*) kill "$(cat /run/agent.pid)" ;;
esac 2>/dev/null
"""
"""Stands for the service manager: what dpkg's helpers ask of it, without a program being started."""


@pytest.fixture
def debian(tmp_path: Path) -> Path:
    """The root folder of a minimal Debian. WIREGAUGE_BARE_DEBIAN names an archive of one made before."""
    root, kept = tmp_path / "debian", os.environ.get("WIREGAUGE_BARE_DEBIAN")
    if kept:
        root.mkdir()
        subprocess.run(["tar", "-xf", kept, "-C", str(root), "--exclude=./dev/*"], check=True)
    else:
        asked = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=adduser", "stable", str(root)]
        subprocess.run(asked, check=True)
    assert not (root / "usr/bin/python3").exists()
    (root / "run/systemd/system").mkdir(parents=True)
    (root / "usr/bin/systemctl").write_text(SYSTEMCTL)
    (root / "usr/bin/systemctl").chmod(0o755)
    return root


def in_root(root: Path, *command: str) -> str:
    done = subprocess.run(["chroot", str(root), *command], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def files_of(root: Path) -> set[str]:
    """Files of a host, without those that dpkg and adduser keep of what they did."""
    found = {
        str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir() or path.is_symlink()
    }
    kept = (
        "var/lib/dpkg/",
        "var/log/",
        "run/",
        "var/cache/",
        "etc/passwd",
        "etc/group",
        "etc/shadow",
        "etc/gshadow",
    )
    return {
        name for name in found if not name.startswith((*kept, "etc/.pwd.lock", "etc/subuid", "etc/subgid"))
    }


def test_the_package_installs_a_service_that_measures_with_the_rights_of_its_unit(
    place: Place, debian: Path, tmp_path: Path
) -> None:
    before = files_of(debian)
    shutil.copy2(newest("wiregauge-agent_*.deb"), debian / "run/agent.deb")
    in_root(debian, "dpkg", "--install", "/run/agent.deb")
    calls = (debian / "run/calls").read_text()
    assert "start wiregauge-agent.service" in calls
    assert (debian / "etc/systemd/system/multi-user.target.wants/wiregauge-agent.service").is_symlink()

    begun = place.start(sys.executable, HERE / "as_unit.py", debian / UNIT, debian)
    (debian / "run/agent.pid").write_text(str(begun.pid))
    status = Path(f"/proc/{begun.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert "CapEff:\t0000008000807400" in status
    place.measure(in_root(debian, "wiregauge-agent", "join-code").strip())
    assert refused_grants(tmp_path / "udp", "host") == {}

    (tmp_path / "stream.xml").write_text(STREAM)
    inventory = tmp_path / "lab/lab.toml"
    inventory.write_text(inventory.read_text() + 'end-systems = ["there"]\n')
    assert_measured(place.run("run", "stream.xml", "--out", "stream"), tmp_path / "stream")
    manifest = json.loads((tmp_path / "stream/manifest.json").read_text())
    streams = manifest["runs"][0]["agents"]["there"]["streams"]
    assert [one["backend"] for one in streams if one["kind"] == "inject"] == ["xdp"]

    # An upgrade, or the same again: what the user wrote and what the host is stay.
    (debian / "etc/wiregauge/agent.toml").write_text('interfaces = ["eth1"]\n')
    in_root(debian, "dpkg", "--install", "/run/agent.deb")
    assert (debian / "etc/wiregauge/agent.toml").read_text() == 'interfaces = ["eth1"]\n'
    state = debian / "var/lib/wiregauge/host"
    assert (state / "membership.pem").exists()

    in_root(debian, "dpkg", "--remove", "wiregauge-agent")
    assert begun.wait(10) == 0
    assert (state / "membership.pem").exists()
    in_root(debian, "dpkg", "--purge", "wiregauge-agent")
    assert not state.parent.exists()
    assert files_of(debian) == before


@pytest.mark.parametrize(
    ("right", "why"),
    [
        pytest.param("CAP_NET_RAW ", "packet sockets need root or CAP_NET_RAW", id="net-raw"),
        pytest.param(" AF_PACKET", "cannot open", id="af-packet"),
    ],
)
def test_less_than_the_unit_gives_does_not_suffice(
    place: Place, debian: Path, tmp_path: Path, right: str, why: str
) -> None:
    """The rights that the test above leaves the agent are really those of the file."""
    shutil.copy2(newest("wiregauge-agent_*.deb"), debian / "run/agent.deb")
    in_root(debian, "dpkg", "--install", "/run/agent.deb")
    unit = debian / UNIT
    unit.write_text(unit.read_text().replace(right, ""))
    place.start(sys.executable, HERE / "as_unit.py", unit, debian)
    code = in_root(debian, "wiregauge-agent", "join-code").strip()
    assert place.run("lab", "init").code == 0
    assert place.run("lab", "enrol", HOST, code, "--interface", "eth1").code == 0
    done = place.run("probe", "host", "--count", "10", "--protocol", "raw")
    assert done.code != 0
    assert why in done.err + done.out
