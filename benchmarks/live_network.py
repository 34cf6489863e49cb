"""The network played by the model between namespaces, compared with a kernel bridge and an XDP redirect, in turns.

All three carry raw frames of 64 B from one end system to another, over a switch with two ports:

- rate: the most frames a second of which none is lost, sent from one core. The model's process has the other core,
  with its records on. Sent by a packet socket, as a host's stack sends, and by XDP live frames, which cost the sender
  so little that they fill what is behind it. Bar: 300 000 a second of either.
- latency at 5000 frames a second, from before the send call to the receiver's kernel, the wire time of the model's
  lines left out: with a plan of those frames, for which the process is awake, and with none, when each frame wakes it.
  Bars: median at most 1.5 and 3 times the bridge's, p99 at most 3 times.
- cost: what the model's core spends on each of the frames that are sent fastest, by part, waiting left out.
- gates that open every 1 ms: by how much later than the model says frames leave, beside a plain timer loop
  (`wiregauge-agent ticks`, which does what cyclictest does) at the same priority on the same core, while the bridge
  carries the same frames. Bar: p99 at most a third.

The redirect is a program of four instructions between the switch's ports: no table, no queue, no record. It is what
forwarding frames costs this kernel at least. Rounds are short and in turns, figures are medians of rounds.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import re
import statistics
import struct
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import msgspec
from msgspec.structs import asdict, replace
from pyroute2 import netns

from benchmarks import table
from wiregauge import __version__
from wiregauge.config import load
from wiregauge.plan import Run
from wiregauge.records.counters import known
from wiregauge.records.reported import AgentReport, Intake
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.agents.client import Agent
from wiregauge.runner.agents.network import AgentPlace
from wiregauge.runner.benches.netns.bench import NetnsBench
from wiregauge.runner.benches.netns.enclosure import ENCLOSED

SMOKE = "--smoke" in sys.argv
ROUNDS = 1 if SMOKE else 5
SECONDS = 0.2 if SMOKE else 0.5
"""Seconds that frames are sent at each rate."""
STEPS = 2 if SMOKE else 6
SLOWEST, FASTEST = (21_000.0, 40_000.0) if SMOKE else (100_000.0, 1_600_000.0)
"""Limits of the search for the highest rate, frames per second."""
WANTED = 300_000
LATENCY_RATE = 5_000
LATENCY_FRAMES = 300 if SMOKE else 10_000
CYCLES = 200 if SMOKE else 2_000
CYCLE_NS = 1_000_000
PAYLOAD_AT = 12
PORT = 61_189
FIFO = "50"
LINE_BPS: Final = 10e9
LINE_BYTES: Final = 72
"""Bytes of a frame of 64 B until its last bit has arrived: preamble and delimiter included."""
PROGRAM = str(agent_program())

SCENARIO = """<test xmlns="urn:wiregauge:test:2" name="live-network" seed="1">
  <network>
    <end-system name="{a}"/> <end-system name="{b}"/>
    <switch name="{switch}" delay="0ns">{gates}</switch>
    <link between="{a} {switch}" rate="{rate}"/> <link between="{switch} {b}" rate="{rate}"/>
  </network>
  <flows> <flow id="1" protocol="raw" from="{a}" to="{b}"/> </flows>
  <tasks warm-up="0s"> <send flow="1" period="{period}" payload="46B" count="{count}"/> <receive flow="1"/> </tasks>
</test>
"""
GATES = """<switch-tsn>
  <traffic-class number="0" priorities="0 1 2 3 4 5 6"/> <traffic-class number="1" priorities="7"/>
  <gate-schedule cycle-time="1ms"><gate-entry open="1" for="900us"/><gate-entry open="0" for="100us"/></gate-schedule>
</switch-tsn>"""

BPF_SYSCALL: Final = {"x86_64": 321, "aarch64": 280}
PROG_LOAD, LINK_CREATE, PROG_TYPE_XDP, ATTACH_XDP, DRIVER_MODE = 5, 28, 6, 37, 1 << 2


def inside(space: str, *command: str) -> list[str]:
    return ["nsenter", f"--net=/run/netns/{space}", *command]


def said_by(space: str, *command: str) -> str:
    return subprocess.run(
        inside(space, *command), capture_output=True, text=True, timeout=120, check=True
    ).stdout


def cores() -> tuple[str, str]:
    """The sender's core, and the network's core."""
    usable = sorted(os.sched_getaffinity(0))
    return str(usable[0]), str(usable[-1])


class Way:
    """Two end systems and the network between them."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.folder = folder
        self.cost_at = 0.0
        self.cost: dict[str, float] = {}
        """Time of the model's core at the highest rate without loss, by part, ns per frame."""
        self.a, self.b, self.switch = f"{name[0]}mac", f"{name[0]}sensor", f"{name[0]}sw"

    def scenario(self, *, period: str = "1s", count: int = 1, gates: str = "", rate: str) -> Any:
        text = SCENARIO.format(
            a=self.a, b=self.b, switch=self.switch, period=period, count=count, gates=gates, rate=rate
        )
        file = self.folder / f"{self.name}.xml"
        file.write_text(text)
        return load(file).campaign

    def close(self) -> None:
        """Ends what was started."""

    @contextlib.contextmanager
    def carrying(self, **_plan: Any) -> Iterator[list[AgentReport]]:
        """Runs the network during the block; its report is available afterwards."""
        yield [AgentReport()]

    def received(self) -> int:
        """Frames that have arrived at the receiver's interface."""
        return int(said_by(f"es-{self.b}", "cat", "/proc/net/dev").partition("eth0:")[2].split()[1])

    def generate(
        self, count: int, gap_ns: float, mode: str, *more: str, backend: str = "packet"
    ) -> dict[str, Any]:
        """Sends one stream; returns the sender's report."""
        said = said_by(
            f"es-{self.a}", PROGRAM, "generate", "--interface", "eth0", "--to-mac", self.mac(), "--raw",
            "--to", f"198.18.0.2:{PORT}", "--from", f"198.18.0.1:{PORT}", "--count", str(count), "--frame", "64",
            "--gap-ns", str(gap_ns), "--mode", mode, "--core", cores()[0], "--fifo", FIFO, "--backend", backend,
            *more,
        )  # fmt: skip
        sent: dict[str, Any] = json.loads(said)["sent"]
        return sent

    def mac(self) -> str:
        shown = json.loads(said_by(f"es-{self.b}", "ip", "-json", "link", "show", "eth0"))
        return str(shown[0]["address"])

    def carries(self, rate: float, backend: str) -> float | None:
        """The rate of arrivals if none was lost at an offered rate, frames per second; else None."""
        count = int(rate * SECONDS)
        with self.carrying() as ended:
            before = self.received()
            sent = self.generate(count, 1e9 / rate, "rate", backend=backend)
            time.sleep(0.05)
            came = self.received() - before
        (report,) = ended
        intake = report.intake or Intake()
        if came != count or known(report.records_dropped) + intake.lost:
            return None
        if report.cost is not None and sent["rate"] > self.cost_at:
            # The frames of the test and those of the host.
            self.cost_at, self.cost = (
                sent["rate"],
                {part: ns / intake.frames for part, ns in asdict(report.cost).items()},
            )
        return float(sent["rate"])

    def most(self, backend: str) -> float:
        """The highest rate without loss, frames per second."""
        low, high, best = SLOWEST, FASTEST, 0.0
        for _ in range(STEPS):
            rate = (low * high) ** 0.5
            found = self.carries(rate, backend)
            if found is not None:
                best = max(best, found)
            if found is not None and found > 0.98 * rate:
                low = rate
            else:
                high = rate
        return best

    def latency(self, **plan: Any) -> dict[str, float]:
        """Latencies at the receiver's kernel, ns."""
        epoch = time.time_ns()
        with self.carrying(**plan):
            receiver = subprocess.Popen(
                inside(
                    f"es-{self.b}", PROGRAM, "sink", "--interface", "eth0", "--port", str(PORT), "--raw",
                    "--count", str(LATENCY_FRAMES), "--transmit-time", str(PAYLOAD_AT), "--epoch-ns", str(epoch),
                    "--core", cores()[1], "--fifo", FIFO, "--patience", "1", "--receiver", "packet-ring",
                ),
                stdout=subprocess.PIPE,
                text=True,
            )  # fmt: skip
            assert receiver.stdout is not None
            try:
                receiver.stdout.readline()
                gap = 1e9 / LATENCY_RATE
                stamped = ("--transmit-time", str(PAYLOAD_AT), "--epoch-ns", str(epoch))
                self.generate(LATENCY_FRAMES, gap, "rate", *stamped)
                got = json.loads(receiver.communicate(timeout=60)[0])["received"]
            finally:
                receiver.kill()
                receiver.wait()
        found: dict[str, float] = got["latency_ns"]
        return found


class Bridge(Way):
    """A kernel bridge with unshaped ports."""

    def __init__(self, folder: Path, name: str = "bridge") -> None:
        super().__init__(name, folder)
        self.bench = NetnsBench(switches="kernel")
        self.bench.build(self.scenario(rate="40Gbit/s"))
        for port in ("p1", "p2"):
            # A veth accepts frames of programs only if its other end polls.
            said_by(f"sw-{self.switch}", "ethtool", "-K", port, "gro", "on")

    def close(self) -> None:
        self.bench.leave()


class Redirect(Bridge):
    """The ports of a bridge, removed from it: a program passes frames from one to the other."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder, "redirect")
        self._links: list[int] = []
        space = f"sw-{self.switch}"
        ports = json.loads(said_by(space, "ip", "-json", "link", "show", "type", "veth"))
        indices = [port["ifindex"] for port in ports]
        for port in ports:
            said_by(space, "ip", "link", "set", port["ifname"], "nomaster")
        for name in (self.a, self.b):
            said_by(f"es-{name}", "ethtool", "-K", "eth0", "gro", "on")
        with Path("/proc/self/ns/net").open() as here:
            netns.setns(space)
            try:
                for index, other in zip(indices, reversed(indices), strict=True):
                    self._links.append(_attach(index, _redirecting(other)))
            finally:
                netns.setns(here.fileno())

    def close(self) -> None:
        for link in self._links:
            os.close(link)
        super().close()


def _bpf(command: int, attributes: bytes) -> int:
    """Returns a descriptor from the kernel. Raises OSError."""
    buffer = ctypes.create_string_buffer(attributes, 120)
    libc = ctypes.CDLL(None, use_errno=True)
    found = int(libc.syscall(BPF_SYSCALL[platform.machine()], command, buffer, len(buffer)))
    if found < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return found


def _redirecting(interface: int) -> int:
    """An XDP program that sends every frame out of an interface (RFC 9669)."""
    # r1 = interface; r2 = 0; call bpf_redirect; exit
    code = b"".join(
        struct.pack("<BBhi", *one)
        for one in ((0xB7, 1, 0, interface), (0xB7, 2, 0, 0), (0x85, 0, 0, 23), (0x95, 0, 0, 0))
    )
    kept, licence = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    places = (ctypes.addressof(kept), ctypes.addressof(licence))
    return _bpf(PROG_LOAD, struct.pack("=IIQQ", PROG_TYPE_XDP, len(code) // 8, *places))


def _attach(interface: int, program: int) -> int:
    return _bpf(LINK_CREATE, struct.pack("=IIII", program, interface, ATTACH_XDP, DRIVER_MODE))


class Model(Way):
    """The network's agent, prepared and started as a run does."""

    def __init__(self, folder: Path) -> None:
        super().__init__("model", folder)
        campaign = self.scenario(rate="10Gbit/s")
        self.bench = NetnsBench(switches="model")
        spool = folder / "spool"
        spool.mkdir(mode=0o700)
        (place,) = (one for one in self.bench.open(campaign, spool) if one.is_network)
        self.place: AgentPlace = replace(
            place, servicing_core=int(cores()[1]), own_core=cores()[0] != cores()[1]
        )
        self.runs = 0
        self.costs: list[tuple[int, dict[str, float]]] = []
        """Frames and ns of the core for each of them, of the runs that lost none."""

    @contextlib.contextmanager
    def carrying(self, **plan: Any) -> Iterator[list[AgentReport]]:
        campaign = self.scenario(rate="10Gbit/s", **plan)
        run: Run = msgspec.structs.replace(campaign.runs[0], index=self.runs)
        self.runs += 1
        agent = Agent(self.place)
        ended: list[AgentReport] = []
        try:
            agent.hello(__version__, 60_000)
            agent.prepare(campaign.network, run, 1, {})
            epoch = time.time_ns() + 100_000_000
            agent.announce(epoch)
            agent.start(epoch)
            time.sleep(0.15)
            yield ended
            ended.append(agent.finish(abort=True, seconds=60.0).report)
        finally:
            agent.release()
            agent.close()

    def gates(self) -> float:
        """p99 of the lateness of frames against the model's times, ns."""
        with self.carrying(gates=GATES) as ended:
            self.generate(CYCLES, CYCLE_NS, "rate")
            time.sleep(0.05)
        (release,) = (one for one in ended[0].releases if one.end_system == self.b)
        return float(release.p99_ns)

    def close(self) -> None:
        self.bench.leave()


def timer_loop(bridge: Bridge, priority: int) -> float:
    """p99 of the wake-up lateness of a plain timer loop on the network's core, ns."""
    loop = subprocess.Popen(
        [
            PROGRAM, "ticks", "--period-ns", str(CYCLE_NS), "--count", str(CYCLES), "--core", cores()[1],
            "--priority", str(priority),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )  # fmt: skip
    bridge.generate(CYCLES, CYCLE_NS, "rate")
    said, _ = loop.communicate(timeout=60)
    late = sorted(int(ns) for line in re.findall(r"^\[(.*)\]$", said, re.MULTILINE) for ns in line.split(","))
    return float(late[int(0.99 * len(late))])


def tell(
    what: str,
    ours: list[float],
    theirs: list[float],
    unit: str,
    scale: float,
    *,
    peer: str,
    bar: float | None,
    more: bool = False,
) -> None:
    """Prints a row: both medians, their ratio and whether it meets its bar."""
    a, b = statistics.median(ours), statistics.median(theirs)
    ratio = a / b if b else float("inf")
    reached = None if bar is None else ratio >= bar if more else ratio <= bar
    said = "" if bar is None else f"{'>=' if more else '<='} {bar:.2f}"
    verdict = {None: "", True: "reached", False: "MISSED"}[reached]
    print(
        f"  {what}: {a / scale:.2f} {unit}   {peer} {b / scale:.2f} {unit}   ratio {ratio:.2f} {said} {verdict}"
    )
    table.add(
        f"live network: {what}", f"{a / scale:.2f} {unit}", peer=peer, theirs=f"{b / scale:.2f} {unit}",
        ratio=ratio, bar=said, reached=reached,
    )  # fmt: skip


def rates(ways: list[Way]) -> None:
    for backend, sent in (("packet", "sent by a stack"), ("xdp-live", "XDP frames")):
        found: dict[str, list[float]] = {way.name: [] for way in ways}
        for _ in range(ROUNDS):
            for way in ways:
                found[way.name].append(way.most(backend))
        print(f"  {sent}: {json.dumps({name: [round(one) for one in all_] for name, all_ in found.items()})}")
        for way in ways:
            if way.cost:
                parts = {name.removesuffix("_ns"): ns for name, ns in way.cost.items()}
                told = ", ".join(f"{name} {ns:.0f} ns" for name, ns in parts.items())
                at = f"at {way.cost_at / 1e3:.0f} k/s"
                print(f"  {sent}: a frame {at} costs the core {sum(parts.values()):.0f} ns: {told}")
                for name, ns in parts.items():
                    table.add(f"live network: cost of a frame, {sent}, {name}", f"{ns:.0f} ns")
            way.cost_at, way.cost = 0.0, {}
        model = statistics.median(found["model"])
        table.add(
            f"live network: no loss, {sent}", f"{model / 1e3:.0f} k/s", bar=f">= {WANTED / 1e3:.0f} k/s",
            reached=model >= WANTED,
        )  # fmt: skip
        for peer in ("bridge", "redirect"):
            if not any(found[peer]):
                # A ratio to zero means nothing.
                print(f"  no loss, {sent}: the {peer} lost frames at every rate that was tried", flush=True)
                continue
            tell(f"no loss, {sent}", found["model"], found[peer], "k/s", 1e3, peer=peer, bar=None)


def latencies(model: Model, bridge: Bridge, redirect: Redirect) -> None:
    wire = 2 * LINE_BYTES * 8e9 / LINE_BPS
    turns: dict[str, list[dict[str, float]]] = {}
    for _ in range(ROUNDS):
        planned = {"period": f"{10**9 // LATENCY_RATE}ns", "count": LATENCY_RATE * 60}
        for name, one in (
            ("awake", model.latency(**planned)),
            ("bridge", bridge.latency()),
            ("woken", model.latency()),
            ("redirect", redirect.latency()),
        ):
            turns.setdefault(name, []).append(one)
    for state, p50_bar in (("awake", 1.5), ("woken", 3.0)):
        for share, bar in (("p50", p50_bar), ("p99", 3.0)):
            ours = [one[share] - wire for one in turns[state] if share in one]
            theirs = [one[share] for one in turns["bridge"] if share in one]
            tell(f"latency {share}, {state}", ours, theirs, "us", 1e3, peer="bridge", bar=bar)
    for share in ("p50", "p99"):
        ours = [one[share] for one in turns["redirect"] if share in one]
        theirs = [one[share] for one in turns["bridge"] if share in one]
        tell(f"latency {share} of the redirect", ours, theirs, "us", 1e3, peer="bridge", bar=None)


def gates(model: Model, bridge: Bridge) -> None:
    ours, theirs = [], []
    for _ in range(ROUNDS):
        ours.append(model.gates())
        theirs.append(timer_loop(bridge, model.place.fifo_priority))
    tell("gates, p99 late", ours, theirs, "us", 1e3, peer="timer loop", bar=1 / 3)


def main() -> int:
    if ENCLOSED not in os.environ:
        os.environ[ENCLOSED] = "1"
        command = [sys.executable, "-m", "benchmarks.live_network", *sys.argv[1:]]
        os.execv(PROGRAM, [PROGRAM, "enclose", "--", *command])
    with tempfile.TemporaryDirectory() as name, contextlib.ExitStack() as open_:
        folder = Path(name)
        bridge = Bridge(folder)
        open_.callback(bridge.close)
        redirect = Redirect(folder)
        open_.callback(redirect.close)
        model = Model(folder)
        open_.callback(model.close)
        try:
            rates([bridge, redirect, model])
            latencies(model, bridge, redirect)
            gates(model, bridge)
        except subprocess.CalledProcessError as error:
            print(f"live network: {Path(error.cmd[-1]).name}: {(error.stderr or '').strip()[-300:]}")
            return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
