"""Whose orders an agent takes, and where it writes: no caller can name a place, and no link leads it astray."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from wiregauge.config import load
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.agents.client import Agent, AgentLostError
from wiregauge.runner.agents.network import AgentPlace

TEST = """<test xmlns="urn:wiregauge:test:2" name="orders" seed="1">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="1" period="2ms" payload="64B" count="10"/><receive flow="1"/></tasks>
</test>
"""

# What every HTTP/2 client says first (RFC 9113, 3.4), with empty settings; a server that listens answers with its own.
CALL = """
import socket, sys
with socket.socket(socket.AF_UNIX) as caller:
    caller.settimeout(20)
    caller.connect(sys.argv[1])
    try:
        caller.sendall(b"PRI * HTTP/2.0\\r\\n\\r\\nSM\\r\\n\\r\\n" + bytes([0, 0, 0, 4, 0, 0, 0, 0, 0]))
        print("heard" if caller.recv(9) else "refused")
    except (BrokenPipeError, ConnectionResetError):
        print("refused")
"""

Serve = Callable[..., Agent]


def serving(folder: Path, *options: str) -> subprocess.CompletedProcess[str]:
    """An agent that is expected to end by itself."""
    return subprocess.run(
        [str(agent_program()), "serve", *options],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def spool_of(folder: Path, mode: int = 0o700) -> Path:
    spool = folder / "spool"
    spool.mkdir()
    spool.chmod(mode)
    return spool


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    processes = []

    def start(spool: Path) -> Agent:
        socket = tmp_path / "socket"
        process = subprocess.Popen(
            [
                str(agent_program()),
                "serve",
                "--listen",
                f"unix:{socket}",
                "--spool",
                str(spool),
                "--announce",
            ],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == f"listening unix:{socket}\n"
        return Agent(AgentPlace("a", 0, f"unix:{socket}", "no-such-interface", -1, 0, True))

    yield start
    for process in processes:
        process.kill()
        process.communicate()


def prepare(agent: Agent, folder: Path) -> str:
    """Why the agent cannot prepare a run, which it never can here: there is no such interface."""
    (folder / "t.xml").write_text(TEST)
    campaign = load(folder / "t.xml").campaign
    with pytest.raises(AgentLostError) as refused:
        agent.prepare(campaign.network, campaign.runs[0], 1, {})
    return str(refused.value)


@pytest.mark.parametrize("address", ["127.0.0.1:0", "[::1]:0", "0.0.0.0:0", "localhost:4711"])
def test_tcp_is_refused_with_a_sentence(tmp_path: Path, address: str) -> None:
    ended = serving(tmp_path, "--listen", address)
    assert ended.returncode == 2
    assert "give tls:ADDRESS:PORT, or unix:PATH; without TLS anybody could give orders" in ended.stderr
    assert "on loopback too" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be another user")
def test_another_user_is_not_heard(tmp_path: Path, serve: Serve) -> None:
    """Not even one who may write to the socket."""
    serve(spool_of(tmp_path))
    socket = tmp_path / "socket"
    socket.chmod(0o777)
    with tempfile.TemporaryDirectory() as open_to_all:
        Path(open_to_all).chmod(0o755)
        door = Path(open_to_all) / "door"
        door.hardlink_to(socket)
        call = [sys.executable, "-c", CALL, str(door)]
        answers = [
            subprocess.run([*who, *call], capture_output=True, text=True, timeout=60, check=False).stdout
            for who in ([], ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"])
        ]
    assert answers == ["heard\n", "refused\n"]


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755, 0o1777])
def test_a_spool_that_others_may_look_into_is_refused(tmp_path: Path, mode: int) -> None:
    spool_of(tmp_path, mode)
    ended = serving(tmp_path, "--listen", "unix:s", "--spool", "spool")
    assert ended.returncode == 3
    assert "mode 700" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1


def test_a_spool_behind_a_link_is_refused(tmp_path: Path) -> None:
    spool_of(tmp_path).rename(tmp_path / "elsewhere")
    (tmp_path / "spool").symlink_to("elsewhere")
    ended = serving(tmp_path, "--listen", "unix:s", "--spool", "spool")
    assert ended.returncode == 3
    assert "link" in ended.stderr


def test_a_planted_link_is_not_followed(tmp_path: Path, serve: Serve) -> None:
    """Links planted as a run's folder, and as the agent's own: nothing is written, deleted or made behind them."""
    spool, treasure = spool_of(tmp_path), tmp_path / "treasure"
    treasure.mkdir(mode=0o700)
    (treasure / "000000.arrows").write_text("precious")
    agent = serve(spool)
    (spool / "run-0000").symlink_to(treasure)
    assert "link" in prepare(agent, tmp_path)
    (spool / "run-0000").unlink()
    (spool / "run-0000").mkdir(mode=0o700)
    (spool / "run-0000" / "node-0000").symlink_to(treasure)
    assert "was not made by this agent" in prepare(agent, tmp_path)
    assert (treasure / "000000.arrows").read_text() == "precious"
    assert [path.name for path in treasure.iterdir()] == ["000000.arrows"]


def test_records_of_others_are_not_touched(tmp_path: Path, serve: Serve) -> None:
    spool = spool_of(tmp_path)
    place = spool / "run-0000" / "node-0000"
    place.mkdir(parents=True, mode=0o700)
    place.parent.chmod(0o700)
    (place / "000000.arrows").write_text("precious")
    assert "was not made by this agent" in prepare(serve(spool), tmp_path)
    assert (place / "000000.arrows").read_text() == "precious"


def test_a_refused_run_leaves_nothing_and_spoils_nothing(tmp_path: Path, serve: Serve) -> None:
    spool = spool_of(tmp_path)
    agent = serve(spool)
    for _ in range(2):
        assert "no-such-interface" in prepare(agent, tmp_path)
    assert [path for path in spool.rglob("*") if not path.is_dir()] == []
    assert not (spool / "run-0000" / "node-0000").exists()


def test_an_agent_says_what_reading_its_clock_costs(tmp_path: Path, serve: Serve) -> None:
    """As a number of ns: the testmaster puts it into the manifest, and the error of timestamps rests on it."""
    said = serve(spool_of(tmp_path)).hello("test", 60_000).host["clock-read-ns"]
    assert said.isdecimal()


def test_a_caller_names_no_path() -> None:
    """What the control plane takes of places: the name of an interface, and nothing of the file system."""
    from wiregauge.runner.rpc import agent_pb2 as pb

    fields = {field.name for field in pb.PrepareRequest.DESCRIPTOR.fields}
    assert "spool" not in fields
    # What the caller has of each file is only compared with what is there; a campaign's name is digits.
    asked = {field.name for field in pb.CollectRequest.DESCRIPTOR.fields}
    assert asked == {"campaign", "run", "node", "have"}
    assert json.dumps(sorted(fields)).count("path") == 0


def test_a_file_that_is_no_socket_stays(tmp_path: Path) -> None:
    spool_of(tmp_path)
    (tmp_path / "s").write_text("mine")
    ended = serving(tmp_path, "--listen", "unix:s", "--spool", "spool")
    assert ended.returncode == 3
    assert (tmp_path / "s").read_text() == "mine"
