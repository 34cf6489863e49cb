"""A campaign that seems to be under way: its directory, its lock, and the live file of planted figures."""

from __future__ import annotations

from pathlib import Path

import synthetic
from wiregauge.records import RunDirectory
from wiregauge.records.live import ClockNow, FlowNow, PortNow, RunNow
from wiregauge.records.lock import Lock
from wiregauge.runner.live.state import LiveState


class Going:
    """Holds the lock of a directory and writes its live file; flow 10 is one way, flow 20 a round trip."""

    def __init__(self, place: Path, name: str = "watched") -> None:
        limit = {"flow": None, "measure": "latency.max", "bound": "at-most", "value": 1e6, "written": "1ms"}
        recipe = synthetic.Recipe(
            ("udp",), (64,), messages=40, state="running", name=name, limits=[{**limit, "line": 1}]
        )
        synthetic.make(place, recipe)
        self.lock = Lock.make(place)
        self.seconds = 0
        self._clock = 0.0
        self.directory = RunDirectory.open(place)
        self.state = LiveState(self.directory, lambda: self._clock)
        self._begun = False
        self._is_held = True

    def second(
        self,
        greatest_ns: float | None = 5e5,
        lost: int = 0,
        share: float = 0.25,
        ports: tuple[PortNow, ...] | None = None,
        clocks: tuple[ClockNow, ...] = (),
    ) -> None:
        """One second of the run passes."""
        if not self._begun:
            self._begun = True
            self.directory.manifest["runs"] = []
            self.state.trial_began(self.directory.plan.runs, virtual_time=False)
            self.state.run_began(0)
        self.seconds += 1
        self._clock += 1.5
        flow = FlowNow(
            10, "mac", "sensor", "latency", 1000 * self.seconds, 999 * self.seconds, lost, 0, 999.0, 999, 1e5, 2e5,
            1.1e5, greatest_ns, 1200,
        )  # fmt: skip
        self.state.run_measured(RunNow(0, 0, float(self.seconds), (flow,), 0, 0, ports, clocks))
        self.state.run_progressed(0, share)

    def release(self) -> None:
        """Lets the lock go, as a program does that ends in whatever way."""
        if self._is_held:
            self.lock.release()
        self._is_held = False

    def end(self, state: str = "complete") -> None:
        """It ends, and its directory says so."""
        self.state.trial_ended()
        self.directory.manifest["state"] = state
        self.directory.save()
        self.release()
