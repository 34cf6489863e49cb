"""`watch` on a link of a network namespace: alarms as they come, the same judgement at the end, every way to end."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support import COMMAND, SECONDS

CONTRACT = "id,bag,lmax\n16,1ms,100B\n"
JITTER = "1s"
"""Far beyond what a busy machine adds: lengths and numbers decide."""
_SENDER = """
import socket, sys, time
out = socket.socket(socket.AF_PACKET, socket.SOCK_RAW)
out.bind(("far", 0))
for line in sys.stdin:
    out.send(bytes.fromhex(line))
    time.sleep(0.004)
"""


def virtual_link(sequence: int, more: int = 0) -> bytes:
    """A frame of virtual link 16, of 82 B with its FCS and `more`."""
    payload = b"v" * (35 + more) + bytes([sequence])
    length = len(payload)
    header = b"\x45\0" + (28 + length).to_bytes(2, "big") + bytes(4) + b"\x01\x11\0\0"
    datagram = b"\x07\xd0\x04\x15" + (8 + length).to_bytes(2, "big") + b"\0\0" + payload
    addresses = b"\x03\0\0\0\0\x10" + b"\x02\0\0\x01\x02\x20"
    return addresses + b"\x08\0" + header + b"\x0a\x01\x02\x03\xe0\xe0\0\x10" + datagram


class Link:
    """A veth pair in a namespace of its own, which ends with the process that holds it."""

    def __init__(self) -> None:
        self._holder = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", "echo ready; exec sleep 600"], stdout=subprocess.PIPE, text=True
        )
        assert self._holder.stdout is not None
        assert self._holder.stdout.readline() == "ready\n"
        self.enter = ["nsenter", f"--net=/proc/{self._holder.pid}/ns/net"]
        self.ip("link", "add", "tap", "type", "veth", "peer", "name", "far")
        for name in ("tap", "far"):
            self.ip("link", "set", name, "addrgenmode", "none", "up")

    def ip(self, *words: str) -> None:
        subprocess.run([*self.enter, "ip", *words], check=True)

    def close(self) -> None:
        self._holder.kill()
        self._holder.communicate()

    def send(self, frames: list[bytes]) -> None:
        """Sends frames into the far end, one every 4 ms."""
        text = "\n".join(frame.hex() for frame in frames)
        subprocess.run([*self.enter, sys.executable, "-c", _SENDER], input=text, text=True, check=True)

    @contextlib.contextmanager
    def watch(self, *words: str) -> Iterator[subprocess.Popen[str]]:
        command = [*self.enter, str(COMMAND), "watch", "tap", "--json", *words]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as watching:
            late = threading.Timer(SECONDS, watching.kill)
            late.start()
            try:
                yield watching
            finally:
                late.cancel()
                watching.kill()


@pytest.fixture
def link() -> Iterator[Link]:
    if os.geteuid() != 0:
        pytest.skip("network namespaces and packet sockets need root")
    made = Link()
    yield made
    made.close()


def lines(watching: subprocess.Popen[str], until: Any) -> list[dict[str, Any]]:
    """Lines of JSON up to the one that `until` holds for."""
    assert watching.stdout is not None
    found = []
    for line in watching.stdout:
        found.append(json.loads(line))
        if until(found[-1]):
            break
    return found


def test_an_alarm_is_told_once_and_again_when_the_promise_is_kept(link: Link, tmp_path: Path) -> None:
    contract = tmp_path / "c.csv"
    contract.write_text(CONTRACT)
    out = tmp_path / "seen"
    numbers = iter(range(1, 255))
    kept = tmp_path / "kept"
    more = (
        "--contract",
        str(contract),
        "--timestamp-error",
        JITTER,
        "--out",
        str(out),
        "--summaries",
        str(kept),
    )
    with link.watch(*more) as watching:
        lines(watching, lambda line: True)
        link.send([virtual_link(next(numbers)) for _ in range(20)])
        told = lines(watching, lambda line: line["frames"] >= 20)
        assert told[-1]["broken"] == 0
        link.send([virtual_link(next(numbers), more=60)])
        told = lines(watching, lambda line: line["alarms"])
        (alarm,) = told[-1]["alarms"]
        assert (alarm["what"], alarm["promise"]["measure"]) == ("broken", "frame_length")
        link.send([virtual_link(next(numbers)) for _ in range(5)])
        told = lines(watching, lambda line: line["alarms"])
        assert [alarm["what"] for alarm in told[-1]["alarms"]] == ["kept-again"]
        assert (told[-1]["broken"], told[-1]["verdict"]) == (0, "FAIL")
        (row,) = told[-1]["streams"]
        assert (row["frames"], row["missing"]) == (5, 0)
        watching.send_signal(signal.SIGINT)
        assert watching.wait(SECONDS) == 1
    stored = json.loads((out / "streams.json").read_text())
    failed = [promise["measure"] for promise in stored["promises"] if promise["result"] == "fail"]
    assert (stored["frames"], failed, stored["validity"]) == (26, ["frame_length"], "VALID")
    (tap,) = stored["taps"]
    assert (tap["name"], tap["dropped"], tap["step_ps"]) == ("tap", 0, 1000)
    told = [json.loads(line) for line in (kept / "summaries.jsonl").read_text().splitlines()]
    for what in ("hour", "day"):
        own = [line for line in told if line["what"] == what]
        assert sum(line["frames"] for line in own) == 26
        assert any(line["verdict"] == "FAIL" for line in own)
        assert all((kept / line["directory"] / "streams.json").exists() for line in own)


def test_alarms_start_commands_and_end_the_watch_and_figures_are_served(link: Link, tmp_path: Path) -> None:
    contract, told_of = tmp_path / "c.csv", tmp_path / "told.json"
    contract.write_text(CONTRACT)
    keep = f"{sys.executable} -c 'import sys; open(sys.argv[1], \"w\").write(sys.stdin.read())' {told_of}"
    link.ip("link", "set", "lo", "up")
    more = ["--contract", str(contract), "--timestamp-error", JITTER, "--metrics", "9464", "--for", "1h"]
    with link.watch(
        *more, "--on-alarm", keep, "--on-alarm", "exit", "--out", str(tmp_path / "seen")
    ) as watching:
        lines(watching, lambda line: True)
        link.send([virtual_link(1), virtual_link(2)])
        lines(watching, lambda line: line["frames"] >= 2)
        fetch = "import urllib.request as ask; print(ask.urlopen('http://127.0.0.1:9464/metrics').read().decode())"
        served = subprocess.run(
            [*link.enter, sys.executable, "-c", fetch], check=True, capture_output=True, text=True
        ).stdout
        samples = dict(line.rsplit(" ", 1) for line in served.splitlines() if line[:1] not in "#")
        assert samples["wiregauge_watch_frames_total"] == "2.0"
        of_stream = [name for name in samples if name.startswith("wiregauge_watch_stream_frames_total{")]
        assert len(of_stream) == 1
        assert 'interface="tap"' in of_stream[0]
        assert samples["wiregauge_watch_alarms_total"] == "0.0"
        link.send([virtual_link(3, more=60)])
        lines(watching, lambda line: False)
        assert watching.wait(SECONDS) == 4
    (told,) = json.loads(told_of.read_text())["alarms"]
    assert (told["what"], told["promise"]["measure"]) == ("broken", "frame_length")
    stored = json.loads((tmp_path / "seen" / "streams.json").read_text())
    assert stored["validity"] == "DEGRADED"
    assert stored["reasons"][-1] == "ended by an alarm before --for 1h was over"


def test_what_a_watch_is_to_do_is_checked_before_it_begins(link: Link) -> None:
    for words, says in (
        (["--on-alarm", "exit"], "--on-alarm has an effect with --contract only"),
        (["--metrics", "0.0.0.0:9464"], "would let every network of this host read the figures"),
    ):
        done = subprocess.run(
            [*link.enter, str(COMMAND), "watch", "tap", *words], check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (2, "")
        assert says in done.stderr


def test_a_watch_ends_when_its_time_or_its_interface_does(link: Link, tmp_path: Path) -> None:
    with link.watch("--for", "2s", "--out", str(tmp_path / "short")) as watching:
        assert len(lines(watching, lambda line: False)) == 2
        assert watching.wait(SECONDS) == 0
    with link.watch("--for", "1h", "--out", str(tmp_path / "gone")) as watching:
        lines(watching, lambda line: True)
        link.send([virtual_link(1)])
        link.ip("link", "del", "tap")
        lines(watching, lambda line: False)
        assert watching.wait(SECONDS) == 4
    stored = json.loads((tmp_path / "gone" / "streams.json").read_text())
    assert (stored["frames"], stored["complete"]) == (1, False)
    assert any("no frames any more" in reason for reason in stored["reasons"])


def test_an_interface_that_is_down_or_missing_or_forbidden_is_one_line(link: Link) -> None:
    link.ip("link", "set", "far", "down")
    without = ["setpriv", "--bounding-set", "-net_raw", "--inh-caps", "-net_raw"]
    for words, name, says in (
        ([], "tap", "is down or has no carrier; ip link set tap up"),
        ([], "eth77", "there is no interface 'eth77'"),
        (without, "tap", "packet sockets need root or CAP_NET_RAW"),
    ):
        done = subprocess.run(
            [*link.enter, *words, str(COMMAND), "watch", name], check=False, capture_output=True, text=True
        )
        assert (done.returncode, done.stdout) == (3, ""), done.stderr
        assert says in done.stderr
        assert done.stderr.count("\n") == 1
