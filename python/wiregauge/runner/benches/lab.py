"""Real frames between the hosts of a lab."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from wiregauge.plan import Campaign
from wiregauge.runner.bench import BenchError, Findings
from wiregauge.runner.benches.hosts import HostsBench
from wiregauge.runner.lab.errors import LabError
from wiregauge.runner.lab.inventory import inventory_file, read_inventory
from wiregauge.runner.lab.placement import Described, between, fitting
from wiregauge.runner.live.alarms import AlarmLimit
from wiregauge.runner.live.monitor import AlarmMonitor

__all__ = ["LabBench"]

_LOOK_S: Final = 1.0
"""Seconds between two checks of hosts that are used by another test."""


class LabBench(HostsBench):
    """The hosts of a lab's inventory; `lab` is its file or folder, by default that of `usual_lab`.

    Hosts that are used by other tests are awaited for up to `wait` seconds. With `fix` hosts are tuned for measuring
    during a test, and restored when it ends.
    """

    def __init__(
        self,
        *,
        realtime: bool = True,
        lab: Path | None = None,
        wait: float = 0.0,
        fix: bool = False,
        alarm: Sequence[AlarmLimit] = (),
        on_alarm: Sequence[str] = (),
        metrics: tuple[str, int] | None = None,
        capture_around: float | None = None,
    ) -> None:
        self._wait = wait
        self._file = inventory_file(lab)
        monitor = AlarmMonitor(alarm, on_alarm, metrics, around_s=capture_around)
        super().__init__(self._fitting, realtime=realtime, fix=fix, monitor=monitor)

    @classmethod
    def availability(cls, found: Findings) -> tuple[bool, str, str]:
        """Available where there is a lab with hosts."""
        del found
        file = inventory_file()
        try:
            hosts = read_inventory(file)
        except LabError:
            hosts = ()
        if hosts:
            return True, f"{len(hosts)} hosts in {file}", ""
        return False, f"no hosts in {file}", "`wiregauge lab init`, then `wiregauge lab enrol HOST CODE`"

    def _plays(self, campaign: Campaign) -> bool:
        led = {one.leads_to for host in read_inventory(self._file) for one in host.under_test}
        return any(node.name in led for node in campaign.network.end_systems.values())

    def _fitting(self, campaign: Campaign) -> Mapping[str, Described]:
        # gRPC, imported with them, is needed only by commands that talk to agents
        from wiregauge.runner.lab.authority import Lab
        from wiregauge.runner.lab.hosts import describe_all

        hosts = read_inventory(self._file)
        if not hosts:
            raise BenchError(f"{self._file} lists no hosts; `wiregauge lab enrol HOST CODE` adds one")
        member, end = Lab(self._file.parent).member(), time.monotonic() + self._wait
        while True:
            described = describe_all(hosts, member)
            try:
                self._led = between(campaign, described)
                return fitting(campaign, described)
            except BenchError:
                if not any(host.in_use for host in described) or time.monotonic() > end:
                    raise
            time.sleep(_LOOK_S)
