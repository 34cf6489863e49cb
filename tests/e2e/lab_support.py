"""The lab of `lab_world.py` for tests: runs commands inside it, kills and starts hosts, cuts links."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from support import COMMAND, SECONDS, Done
from wiregauge.runner.agent_program import agent_program

HERE = Path(__file__).parent


class World:
    """The lab and its enclosure; commands run inside it, as on its own testmaster."""

    def __init__(
        self, folder: Path, clocks: Mapping[str, str], configs: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self.hosts = list(clocks)
        self.lab = folder / "lab"
        states = folder / "hosts"
        states.mkdir()
        for name, text in (configs or {}).items():
            (states / name).mkdir()
            (states / name / "agent.toml").write_text(text)
        hosts = [f"{name}={clock}" if clock else name for name, clock in clocks.items()]
        program = str(agent_program())
        self._process = subprocess.Popen(
            [
                program,
                "enclose",
                "--",
                sys.executable,
                str(HERE / "lab_world.py"),
                str(states),
                program,
                *hosts,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.codes: dict[str, str] = {}
        assert self._process.stdout is not None
        for line in self._process.stdout:
            said = json.loads(line)
            if "pid" in said:
                break
            assert said["said"][0] == "joining"
            self.codes[said["host"]] = said["said"][2]
        assert set(self.codes) == set(clocks)
        self.pid = _inner(self._process.pid)

    def run(self, *arguments: object, timeout: float = SECONDS, member: str | None = None) -> Done:
        """Runs a command inside the enclosure, in the test's folder."""
        answer = subprocess.run(
            self._inside(arguments, member),
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        done = Done(answer.returncode, answer.stdout, answer.stderr)
        assert "Traceback" not in done.out + done.err, done.err
        return done

    def begin(self, *arguments: object) -> subprocess.Popen[str]:
        """Starts a command inside the enclosure, in the test's folder, in its own process group."""
        return subprocess.Popen(
            self._inside(arguments, None),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def order(self, text: str) -> None:
        """Sends an order to `lab_world.py`; it is done when this returns."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(text + "\n")
        self._process.stdin.flush()
        assert json.loads(self._process.stdout.readline()) == {"done": text}

    def enrol_all(self) -> None:
        """Creates the lab and enrols every host."""
        assert self.run("lab", "init").code == 0
        for number, name in enumerate(self.hosts, 2):
            done = self.run("lab", "enrol", f"10.77.0.{number}", self.codes[name], "--interface", "eth1")
            assert done.code == 0, done.err
            assert done.out == f"{name} has joined the lab\n"

    def space(self, host: str, *command: str) -> str:
        """Runs a command in the network of a host; returns its output."""
        done = subprocess.run(
            [*self.into(host), *command], check=True, stdin=subprocess.DEVNULL, capture_output=True, text=True
        )
        return done.stdout

    def processes(self, host: str, program: str) -> list[int]:
        """The processes of a program in the network of a host of this lab, not of parallel labs."""
        space = f"net:[{self.space(host, 'stat', '-Lc', '%i', f'/run/netns/{host}').strip()}]"
        found = []
        for entry in Path("/proc").iterdir():
            if entry.name.isdecimal():
                try:
                    name, at = (entry / "exe").readlink().name, str((entry / "ns" / "net").readlink())
                except OSError:
                    continue
                if name == program and at == space:
                    found.append(int(entry.name))
        return found

    def into(self, host: str) -> list[str]:
        """The prefix of a command that runs in the network of a host."""
        return ["nsenter", "-t", str(self.pid), "--net", "--mount", "--", "ip", "netns", "exec", host]

    def _inside(self, arguments: tuple[object, ...], member: str | None) -> list[str]:
        environment = [f"WIREGAUGE_LAB={self.lab}", *([f"WIREGAUGE_MEMBER={member}"] if member else [])]
        enter = ["nsenter", "-t", str(self.pid), "--net", "--mount", f"--wd={self.folder}", "--"]
        return [*enter, "env", *environment, str(COMMAND), *map(str, arguments)]

    def audit(self, host: str) -> list[dict[str, str]]:
        """The audit log of a host's agent."""
        text = (self.folder / "hosts" / host / "keys" / "audit.log").read_text()
        return [json.loads(line) for line in text.splitlines()]

    def close(self) -> None:
        self._process.communicate(timeout=10)


def _inner(pid: int) -> int:
    """The process that the enclosure runs: the last in a chain of only children."""
    while True:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        name = Path(f"/proc/{pid}/comm").read_text().strip()
        if not children or name.startswith("python"):
            return pid
        pid = int(children[0])
