"""Strikes runs whose network the model plays, as `kills` those over bridges, with the same requirements.

`python -m campaigns.live_strikes` (from `tests`) runs a short test 40 times and strikes each once: the process that is
the network is killed, stopped for milliseconds or seconds or for good, or kept from its core by a program of higher
priority; so is an agent; an interface of the network goes down or is deleted; the testmaster or the command is killed
or stopped; the disk is full.
"""

from __future__ import annotations

import contextlib
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

from campaigns import kills
from campaigns.kills import Strike

COUNT: Final = 40
WITHIN_S: Final = 3.2
"""Seconds from the first record with traffic, and a little beyond; `kills` covers later strikes."""
TEST: Final = f"""<test xmlns="urn:wiregauge:test:2" name="live-strikes" seed="1" bench="netns">
  <network><end-system name="mac"/><end-system name="sensor"/><switch name="sw1"/><switch name="sw2"/>
    <link between="mac sw1" rate="1Gbit/s"/><link between="sw1 sw2" rate="1Gbit/s"/>
    <link between="sensor sw2" rate="1Gbit/s"/></network>
  <flows><flow id="10" protocol="udp" from="mac" to="sensor"/></flows>
  <tasks warm-up="0s"><send flow="10" period="{kills.PERIOD_NS // 1000}us" payload="64B" count="{kills.COUNT}"/>
    <receive flow="10"/></tasks>
</test>
"""
TARGETS: Final = (
    *(("network", how) for how in ("KILL", "TERM", "STOP", "STAY", "STARVE")),
    *(("agent", how) for how in ("KILL", "STOP", "STAY", "STARVE")),
    *(("port", how) for how in ("down", "delete")),
    *(("testmaster", how) for how in ("KILL", "TERM", "INT", "STOP")),
    ("command", "KILL"),
    ("disk", "full"),
)
_ABOVE: Final = 70
"""A SCHED_FIFO priority above those of the network and the agents."""
_HOG: Final = """
import os, sys, time
os.sched_setaffinity(0, {int(sys.argv[1])})
os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(int(sys.argv[2])))
end = time.monotonic() + float(sys.argv[3])
while time.monotonic() < end:
    pass
"""


def _process(target: str, folder: Path) -> int | None:
    """The process of the network, or the agent of the last end system; None where it does not exist."""
    agents = kills.mine(folder, "wiregauge-agent", "serve")
    network = kills.mine(folder, "serve", "/run/netns/network")
    chosen = network if target in ("network", "port") else [one for one in agents if one not in network]
    return chosen[-1] if chosen else None


def own_cores(process: int) -> set[int]:
    """The cores of a process's threads that have their own."""
    found = set()
    with contextlib.suppress(OSError):
        for thread in Path(f"/proc/{process}/task").iterdir():
            cores = os.sched_getaffinity(int(thread.name))
            found |= cores if len(cores) == 1 else set()
    return found


def cores(process: int) -> set[int]:
    """The cores of a process's threads that have their own; else the first of the process."""
    with contextlib.suppress(OSError):
        return own_cores(process) or {min(os.sched_getaffinity(process))}
    return set()


def hog(core: int, seconds: float) -> subprocess.Popen[bytes]:
    """A program of a priority above those of the network and the agents that keeps a core for that long, s."""
    return subprocess.Popen([sys.executable, "-c", _HOG, str(core), str(_ABOVE), f"{seconds:.3f}"])


def _pause_s(one: Strike) -> float:
    """Length of a pause, from ten milliseconds to three seconds, s, the same for the same strike."""
    return float(10 ** random.Random(f"{one.number}").uniform(-2.0, 0.5))


def hit(one: Strike, process: subprocess.Popen[str], folder: Path) -> None:
    """Strikes the target."""
    if one.target not in ("network", "agent", "port"):
        kills.strike(one, process, folder)
        return
    struck = _process(one.target, folder)
    one.met_nobody = struck is None
    if struck is None:
        return
    if one.target == "port":
        words = ["set", "h1", "down"] if one.how == "down" else ["delete", "h1"]
        command = ["nsenter", f"--net=/proc/{struck}/ns/net", "ip", "link", *words]
        subprocess.run(command, capture_output=True, check=False)
    elif one.how == "STARVE":
        for core in cores(struck):
            hog(core, _pause_s(one)).wait()
    else:
        number = signal.Signals[f"SIG{'STOP' if one.how == 'STAY' else one.how}"]
        with contextlib.suppress(ProcessLookupError):
            os.kill(struck, number)
            if one.how == "STOP":
                time.sleep(_pause_s(one))
                os.kill(struck, signal.SIGCONT)


if __name__ == "__main__":
    sys.exit(kills.main(COUNT, TARGETS, TEST, hit, WITHIN_S))
