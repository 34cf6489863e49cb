"""What a host is given to install: the unit file, the Debian package and its scripts, the container file.

`make check-deploy` tries the real ones (tests/e2e/test_deployed.py); here the program in the package is a small one.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
from pathlib import Path

import pytest

from wiregauge.runner.agent_program import agent_program

ROOT = Path(__file__).resolve().parents[2]
PACKAGING = ROOT / "packaging"
UNIT = PACKAGING / "wiregauge-agent.service"
EXPOSURE = 30
"""Limit of systemd-analyze's exposure, in tenths: 0 is a program without any rights, 100 one with all."""


def need(program: str) -> str:
    found = shutil.which(program, path=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    if found is None:
        pytest.skip(f"{program} is not installed")
    return found


def analysed(unit: str, place: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """What systemd-analyze says of a unit file whose program and manual page are here."""
    file = place / UNIT.name
    file.write_text(unit)
    return subprocess.run(
        [need("systemd-analyze"), *arguments, str(file)], capture_output=True, text=True, check=False
    )


def verified(unit: str, place: Path) -> str:
    here = unit.replace("/usr/bin/wiregauge-agent", str(agent_program()))
    done = analysed(here, place, "verify", "--man=no", "--recursive-errors=no")
    return (done.stdout + done.stderr).strip() or f"code {done.returncode}"


def test_systemd_understands_the_unit_file(tmp_path: Path) -> None:
    text = UNIT.read_text()
    assert verified(text, tmp_path) == "code 0"
    assert "ProtectSytem" in verified(text.replace("ProtectSystem", "ProtectSytem"), tmp_path)
    assert "no_such_call" in verified(text.replace("@system-service", "no_such_call"), tmp_path)


def test_the_service_is_exposed_no_further_than_its_work_needs(tmp_path: Path) -> None:
    def judged(unit: str) -> int:
        asked = ("security", "--offline=yes", f"--threshold={EXPOSURE}")
        return analysed(unit, tmp_path, *asked).returncode

    text = UNIT.read_text()
    assert judged(text) == 0
    assert judged(text.replace("SystemCallFilter=", "#")) != 0


def test_the_service_runs_with_the_rights_that_the_manual_of_it_gives_reasons_for() -> None:
    text = UNIT.read_text()
    named = set(re.findall(r"CAP_\w+", text))
    network = {"CAP_NET_RAW", "CAP_NET_ADMIN", "CAP_NET_BIND_SERVICE"}
    assert named == network | {"CAP_SYS_NICE", "CAP_IPC_LOCK", "CAP_BPF"}
    comments = " ".join(line for line in text.splitlines() if line.startswith("#"))
    assert all(name.removeprefix("CAP_") in comments for name in named)
    for line in ("NoNewPrivileges=yes", "ProtectSystem=strict", "MemoryDenyWriteExecute=yes"):
        assert line in text.splitlines()
    assert "User=root" not in text


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A static program that does nothing."""
    place = tmp_path_factory.mktemp("program")
    (place / "nothing.c").write_text("int main(void) { return 0; }\n")
    made = place / "nothing"
    subprocess.run([need("cc"), "-static-pie", "-s", "-o", str(made), str(place / "nothing.c")], check=True)
    return made


def packaged(program: Path, out: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "make_deb.py"), str(program), "--out", str(out)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1700000000"},
    )


@pytest.fixture(scope="module")
def package(program: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    need("dpkg-deb")
    done = packaged(program, tmp_path_factory.mktemp("dist"))
    assert done.returncode == 0, done.stderr
    return Path(done.stdout.strip())


def test_the_package_holds_the_agent_and_what_a_service_needs(package: Path, tmp_path: Path) -> None:
    with (tmp_path / "content.tar").open("wb") as file:
        subprocess.run(["dpkg-deb", "--fsys-tarfile", str(package)], check=True, stdout=file)
    with tarfile.open(tmp_path / "content.tar") as archive:
        found = {one.name.removeprefix("./"): one for one in archive if not one.isdir()}
        assert set(found) == {
            "etc/wiregauge/agent.toml",
            "usr/bin/wiregauge-agent",
            "usr/lib/systemd/system/wiregauge-agent.service",
            "usr/lib/tmpfiles.d/wiregauge-agent.conf",
            "usr/lib/udev/rules.d/60-wiregauge-agent.rules",
            "usr/share/doc/wiregauge-agent/changelog.Debian.gz",
            "usr/share/doc/wiregauge-agent/changelog.gz",
            "usr/share/doc/wiregauge-agent/copyright",
            "usr/share/lintian/overrides/wiregauge-agent",
            "usr/share/man/man8/wiregauge-agent.8.gz",
        }
        assert {(one.uname, one.mode) for one in found.values()} == {("root", 0o644), ("root", 0o755)}
        assert [name for name, one in found.items() if one.mode == 0o755] == ["usr/bin/wiregauge-agent"]
        log = archive.extractfile("./usr/share/doc/wiregauge-agent/changelog.Debian.gz")
        assert log is not None
        version = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
        assert gzip.decompress(log.read()).decode().startswith(f"wiregauge ({version}-1) ")
    asked = ["dpkg-deb", "--field", str(package), "Version", "Conffiles", "Depends"]
    told = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
    assert f"Version: {version}-1" in told
    assert "Depends: adduser" in told
    subprocess.run(["dpkg-deb", "--control", str(package), str(tmp_path / "control")], check=True)
    assert (tmp_path / "control" / "conffiles").read_text() == "/etc/wiregauge/agent.toml\n"


def test_the_same_program_gives_the_same_package(program: Path, package: Path, tmp_path: Path) -> None:
    assert packaged(program, tmp_path).returncode == 0
    assert (tmp_path / package.name).read_bytes() == package.read_bytes()


def test_a_program_that_needs_libraries_is_not_packaged(tmp_path: Path) -> None:
    need("dpkg-deb")
    for file, why in (
        (Path(sys.executable).resolve(), "is linked dynamically"),
        (UNIT, "is no program"),
        (tmp_path / "none", "no such program"),
    ):
        done = packaged(file, tmp_path)
        assert done.returncode != 0
        assert done.stderr.count("\n") == 1
        assert why in done.stderr


def test_lintian_finds_nothing(package: Path) -> None:
    done = subprocess.run(
        [need("lintian"), "--allow-root", "--fail-on", "error,warning", str(package)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, ""), done.stdout + done.stderr


class Scripts:
    """The package's scripts with folders of a test, and programs that write down how they were called."""

    def __init__(self, place: Path) -> None:
        self._place, self._log = place, place / "log"
        for folder in ("bin", "run/systemd/system", "run/udev", "var/lib/wiregauge"):
            (place / folder).mkdir(parents=True)
        (place / "etc/wiregauge").mkdir(parents=True)
        for name in ("adduser", "udevadm", "deb-systemd-helper", "deb-systemd-invoke", "systemctl"):
            stub = place / "bin" / name
            stub.write_text(f'#!/bin/sh\necho "{name} $*" >> {self._log}\n')
            stub.chmod(0o755)

    def path(self, name: str) -> Path:
        return self._place / name

    def run(self, script: str, *arguments: str) -> list[str]:
        """The calls it makes."""
        self._log.write_text("")
        text = (PACKAGING / "debian" / script).read_text()
        text = re.sub(r"/(run|var/lib|etc)/", rf"{self._place}/\1/", text)
        environment = os.environ | {"PATH": f"{self._place}/bin:{os.environ['PATH']}"}
        subprocess.run(["sh", "-c", text, script, *arguments], check=True, env=environment)
        return self._log.read_text().splitlines()


@pytest.fixture
def scripts(tmp_path: Path) -> Scripts:
    return Scripts(tmp_path)


def test_installing_starts_the_service_and_upgrading_starts_it_again(scripts: Scripts) -> None:
    first = scripts.run("postinst", "configure", "")
    assert first[0].startswith("adduser --system --group ")
    assert first[-1] == "deb-systemd-invoke start wiregauge-agent.service"
    assert scripts.run("postinst", "configure", "") == first
    assert scripts.run("prerm", "upgrade", "0.2.0-1") == []
    assert scripts.run("postrm", "upgrade", "0.2.0-1") == []
    again = scripts.run("postinst", "configure", "0.1.0-1")
    assert again[-1] == "deb-systemd-invoke restart wiregauge-agent.service"
    # No service manager, as in a chroot: nothing is started, nothing fails.
    scripts.path("run/systemd/system").rmdir()
    assert [call for call in scripts.run("postinst", "configure", "") if "invoke" in call] == []
    assert scripts.run("prerm", "remove") == []


def test_removing_stops_the_service_and_purging_removes_its_own_folders_only(scripts: Scripts) -> None:
    state = scripts.path("var/lib/wiregauge")
    for name in ("host", "agent", "somebody-elses"):
        (state / name).mkdir()
        (state / name / "file").write_text("x")
    assert scripts.run("prerm", "remove") == ["deb-systemd-invoke stop wiregauge-agent.service"]
    assert scripts.run("postrm", "remove") == ["systemctl --system daemon-reload"]
    assert (state / "host" / "file").exists()
    for _ in range(2):
        assert scripts.run("postrm", "purge") == ["deb-systemd-helper purge wiregauge-agent.service"]
        assert [path.name for path in state.iterdir()] == ["somebody-elses"]
    shutil.rmtree(state / "somebody-elses")
    scripts.run("postrm", "purge")
    assert not state.exists()


def test_the_configuration_that_is_installed_shows_the_defaults(tmp_path: Path) -> None:
    """An agent takes it as it is, and with every line in force it says the same."""
    text = (PACKAGING / "agent.toml").read_text()
    assert tomllib.loads(text) == {}
    shown = tomllib.loads(re.sub(r"^#(?=[\w-]+ = )", "", text, flags=re.M))
    source = (ROOT / "crates/agent/src/remote/allowance.rs").read_text()
    struct = re.search(r"struct File \{(.*?)\}", source, re.S)
    assert struct is not None
    assert list(shown) == [name.replace("_", "-") for name in re.findall(r"(\w+): Option", struct[1])]
    for key, name in (("rate", "RATE"), ("duration", "DURATION")):
        assert f'const {name}: &str = "{shown[key]}";' in source
    private = re.search(r"const PRIVATE.*?\[(\".*?)\];", source, re.S)
    assert private is not None
    assert shown["addresses"] == re.findall(r'"([^"]+)"', private[1])


def test_the_container_file_is_sound(tmp_path: Path) -> None:
    def findings(text: str) -> str:
        (tmp_path / "Containerfile").write_text(text)
        return subprocess.run(
            [need("hadolint"), str(tmp_path / "Containerfile")], capture_output=True, text=True, check=False
        ).stdout

    text = (PACKAGING / "Containerfile").read_text()
    assert findings(text) == ""
    assert "DL3006" in findings(text.replace(":1.88-bookworm", ""))
    stages = [line.split()[1] for line in text.splitlines() if line.startswith("FROM ")]
    workspace = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]
    assert stages == [f"docker.io/library/rust:{workspace['rust-version']}-bookworm", "scratch"]
    # What it copies is there, and nothing but the agent is in the image.
    sources = [line.split()[1:-1] for line in text.splitlines() if line.startswith("COPY ")]
    assert sources.pop() == ["--from=build", "/agent"]
    assert all((ROOT / source).exists() for line in sources for source in line)
