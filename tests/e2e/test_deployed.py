"""Each way of installing the agent on a clean host: installed, enrolled, measured, removed.

Slow, and it wants what `make deb wheel` leaves in `dist`, and the archive of the distribution: `make check-deploy`. The
host of the package is a minimal Debian without Python, that of the static agent an empty folder, that of the wheel an
empty environment. No service manager runs in them: `as_unit.py` gives the packaged agent what its unit file says, and
no more.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import COMMAND, SECONDS, Done, assert_measured
from wiregauge.runner.agent_program import agent_program

pytestmark = pytest.mark.deploy

HERE = Path(__file__).parent
DIST = HERE.parents[1] / "dist"
UNIT = "usr/lib/systemd/system/wiregauge-agent.service"
HOST = "10.77.0.2"
SEND = (
    "generate --interface eth1 --to-mac 02:00:00:00:00:01 --to 10.88.0.1:9000 --from 10.88.0.2:9000 "
    "--count 500 --gap-ns 20000 --fifo 10 --backend"
)
SINK = "sink --interface eth1 --port 9000 --count 1 --patience 0.1 --receiver"


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

    def on_host(self, *command: object) -> list[str]:
        """The words that run a command on the host."""
        prefix = [*self._inside(), "ip", "netns", "exec", "host", "unshare", "--uts", "--mount"]
        return [*prefix, "sh", "-c", 'hostname host; exec "$@"', "sh", *map(str, command)]

    def start(self, *command: object, says: str = "its join code") -> subprocess.Popen[str]:
        """A program of the host, until it says that it waits to be joined, or something else."""
        process = subprocess.Popen(self.on_host(*command), stdout=subprocess.PIPE, text=True)
        self._agents.append(process)
        assert process.stdout is not None
        assert says in process.stdout.readline()
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
    state = root / "var/lib/wiregauge"
    kept = {"audit.log", "key.pem", "membership.pem", "records"}
    assert {path.name for path in (state / "host").iterdir()} == kept
    # What was recorded was fetched.
    assert [path.name for path in (state / "host" / "records").iterdir()] == ["lock"]
    shutil.rmtree(state)
    left = [path for folder in ("usr", "var") for path in (root / folder).rglob("*") if not path.is_dir()]
    assert left == []


def test_the_wheel_brings_the_agent(place: Place, tmp_path: Path) -> None:
    environment = tmp_path / "environment"
    subprocess.run([sys.executable, "-m", "venv", str(environment)], check=True)
    pip = [str(environment / "bin/pip"), "--disable-pip-version-check"]
    subprocess.run([*pip, "install", "--quiet", str(newest("wiregauge-*.whl"))], check=True)
    state = ("--state", tmp_path / "state")
    begun = place.start("env", "-u", "PYTHONPATH", environment / "bin/wiregauge", "agent", "serve", *state)
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
        # The keys of its own release are those that a machine surely has.
        own = platform.freedesktop_os_release()
        release = own["VERSION_CODENAME"] if own["ID"] == "debian" else "stable"
        asked = ["mmdebstrap", "--quiet", "--variant=minbase", "--include=adduser", release, str(root)]
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
        "dev/",
        "var/cache/",
        "etc/passwd",
        "etc/group",
        "etc/shadow",
        "etc/gshadow",
    )
    return {
        name for name in found if not name.startswith((*kept, "etc/.pwd.lock", "etc/subuid", "etc/subgid"))
    }


def tool(place: Place, root: Path, unit: str, command: str) -> subprocess.CompletedProcess[str]:
    """A command of the agent with the rights of this unit."""
    given = root / "run/tool.service"
    given.write_text(unit.replace("wiregauge-agent serve", f"wiregauge-agent {command}"))
    words = place.on_host(sys.executable, HERE / "as_unit.py", given, root)
    return subprocess.run(words, capture_output=True, text=True, timeout=SECONDS, check=False)


def test_the_package_installs_a_service_that_measures_with_the_rights_of_its_unit(
    place: Place, debian: Path, tmp_path: Path
) -> None:
    before = files_of(debian)
    shutil.copy2(newest("wiregauge-agent_*.deb"), debian / "run/agent.deb")
    in_root(debian, "dpkg", "--install", "/run/agent.deb")
    calls = (debian / "run/calls").read_text()
    assert "start wiregauge-agent.service" in calls
    assert (debian / "etc/systemd/system/multi-user.target.wants/wiregauge-agent.service").is_symlink()

    as_unit = (sys.executable, HERE / "as_unit.py", debian / UNIT, debian)
    begun = place.start(*as_unit)
    status = Path(f"/proc/{begun.pid}/status").read_text()
    assert "NoNewPrivs:\t1" in status
    assert "Seccomp:\t2" in status
    assert "CapEff:\t0000008000807400" in status
    place.measure(in_root(debian, "wiregauge-agent", "join-code").strip())
    assert refused_grants(tmp_path / "udp", "host") == {}

    unit = (debian / UNIT).read_text()
    for backend in ("packet", "xdp"):
        sent = tool(place, debian, unit, f"{SEND} {backend}")
        assert sent.returncode == 0, sent.stderr
        assert json.loads(sent.stdout)["sent"]["offered"] == 500
    received = tool(place, debian, unit, f"{SINK} xdp")
    assert received.stdout.startswith("ready"), received.stderr

    # An upgrade, or the same again: what the user wrote and what the host is stay.
    (debian / "etc/wiregauge/agent.toml").write_text('interfaces = ["eth1"]\n')
    in_root(debian, "dpkg", "--install", "/run/agent.deb")
    assert (debian / "etc/wiregauge/agent.toml").read_text() == 'interfaces = ["eth1"]\n'
    state = debian / "var/lib/wiregauge/host"
    assert (state / "membership.pem").exists()
    begun.terminate()
    assert begun.wait(10) == 0
    begun = place.start(*as_unit, says="serving the lab")
    (debian / "run/agent.pid").write_text(str(begun.pid))
    again = place.run("probe", "host", "--count", "50", "--out", tmp_path / "again")
    assert_measured(again, tmp_path / "again")

    in_root(debian, "dpkg", "--remove", "wiregauge-agent")
    assert begun.wait(10) == 0
    assert (state / "membership.pem").exists()
    in_root(debian, "dpkg", "--purge", "wiregauge-agent")
    assert not state.parent.exists()
    assert files_of(debian) == before


def test_less_than_the_unit_gives_does_not_suffice(place: Place, debian: Path) -> None:
    """The rights that the test above leaves the agent are really those of the file."""
    shutil.copy2(newest("wiregauge-agent_*.deb"), debian / "run/agent.deb")
    in_root(debian, "dpkg", "--install", "/run/agent.deb")
    unit = (debian / UNIT).read_text()
    for right, command, why in (
        ("CAP_NET_RAW ", f"{SEND} packet", "packet sockets need root or CAP_NET_RAW"),
        (" AF_PACKET", f"{SEND} packet", "packet sockets need root or CAP_NET_RAW"),
        (" AF_XDP", f"{SEND} xdp", "AF_XDP"),
        (" CAP_SYS_NICE", f"{SEND} packet", "SCHED_FIFO 10 is not granted"),
        (" CAP_BPF", f"{SINK} xdp", "cannot attach an XDP program"),
        (" bpf", f"{SINK} xdp", "cannot attach an XDP program"),
        (" CAP_NET_ADMIN", f"{SINK} xdp", "cannot attach an XDP program"),
    ):
        assert right in unit
        refused = tool(place, debian, unit.replace(right, ""), command)
        assert refused.returncode != 0, right
        assert why in refused.stderr, (right, refused.stderr)
