"""Real frames between the hosts of a lab."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from wiregauge.benches import BenchError, Fact, Findings, beyond_hosts, beyond_played
from wiregauge.benches.hosts import Described, HostsBench, between, fitting
from wiregauge.master import AlarmLimit, Lookout, Observer
from wiregauge.plan import Campaign
from wiregauge.records import RunDirectory, Traits
from wiregauge.runner.bench import Bench, BeyondBenchError

__all__ = ["LabBench", "OnHosts"]

_LOOK_S: Final = 1.0
"""Seconds between two checks of hosts that are used by another test."""


class OnHosts(Bench):
    """End systems on the hosts that `place` finds for a test."""

    name = "lab"
    traits = Traits(driver="hosts")

    def __init__(
        self,
        place: Callable[[Campaign], Mapping[str, Described]],
        *,
        realtime: bool = True,
        fix: bool = False,
        failures: Mapping[str, Callable[[], str | None]] | None = None,
        lookout: Lookout | None = None,
    ) -> None:
        self._lookout = lookout
        self._place = place
        self._realtime = realtime
        self._fix = fix
        self._failures = failures
        self._placed: Mapping[str, Described] = {}
        self._led: Mapping[str, Described] = {}

    def carried(self, campaign: Campaign) -> Campaign:
        """The campaign with the addresses of the hosts' interfaces. Raises BenchError where there are too few hosts."""
        played = self._plays(campaign)
        by_agents = beyond_played(campaign) if played else beyond_hosts(campaign)
        beyond = [*by_agents, *_beyond_lab(campaign, played=played)]
        if beyond:
            raise BeyondBenchError(beyond)
        self._placed = self._place(campaign)
        shared = _steered_together(campaign, self._placed)
        if shared:
            raise BeyondBenchError([shared])
        together = all(host.same_host for host in self._placed.values())
        drivers = sorted(
            {host.interface.name for host in self._placed.values() if host.interface is not None}
        )
        who = "model" if self._led else ""
        together = together and all(host.same_host for host in self._led.values())
        self.traits = Traits(one_clock=together, driver=f"hosts: {', '.join(drivers)}", switches=who)
        return HostsBench.with_addresses(campaign, self._placed)

    def _plays(self, campaign: Campaign) -> bool:
        """Whether a host is the network between the others."""
        del campaign
        return False

    @property
    def interfaces(self) -> Mapping[str, str]:
        """The interface of each end system, of the campaign that was adapted last."""
        placed = {end: host.interface for end, host in self._placed.items()}
        return {end: interface.name for end, interface in placed.items() if interface is not None}

    def enter(self) -> None:
        """Binds the address that live figures are served at. Raises BenchError where it is unavailable."""
        if self._lookout is not None:
            self._lookout.enter()

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The facts: the host of each end system, and the visible network."""
        return self._made_for(campaign).facts()

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """See `Bench`."""
        # gRPC, imported with it, is needed only by commands that talk to agents
        from wiregauge.master.campaign import run_on_agents

        bench = self._made_for(directory.plan)
        one_clock = self.traits.one_clock
        run_on_agents(directory, bench, observer, one_clock=one_clock, lookout=self._lookout)

    def _made_for(self, campaign: Campaign) -> HostsBench:
        return HostsBench(
            campaign,
            self._placed,
            realtime=self._realtime,
            fix=self._fix,
            failures=self._failures,
            led=self._led,
        )


class LabBench(OnHosts):
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
        self._file = lab / "lab.toml" if lab is not None and lab.is_dir() else lab
        lookout = Lookout(alarm, on_alarm, metrics, around_s=capture_around)
        super().__init__(self._fitting, realtime=realtime, fix=fix, lookout=lookout)

    @classmethod
    def here(cls, found: Findings) -> tuple[bool, str, str]:
        """Available where there is a lab with hosts."""
        del found
        from wiregauge.lab import LabError, read_inventory, usual_lab

        file = usual_lab() / "lab.toml"
        try:
            hosts = read_inventory(file)
        except LabError:
            hosts = ()
        if hosts:
            return True, f"{len(hosts)} hosts in {file}", ""
        return False, f"no hosts in {file}", "`wiregauge lab init`, then `wiregauge lab enrol HOST CODE`"

    def _plays(self, campaign: Campaign) -> bool:
        from wiregauge.lab import read_inventory, usual_lab

        led = {
            one.leads_to
            for host in read_inventory(self._file or usual_lab() / "lab.toml")
            for one in host.under_test
        }
        return any(node.name in led for node in campaign.network.end_systems.values())

    def _fitting(self, campaign: Campaign) -> Mapping[str, Described]:
        from wiregauge.lab import Lab, read_inventory, usual_lab
        from wiregauge.lab.hosts import describe_all

        file = self._file or usual_lab() / "lab.toml"
        hosts = read_inventory(file)
        if not hosts:
            raise BenchError(f"{file} lists no hosts; `wiregauge lab enrol HOST CODE` adds one")
        member, end = Lab(file.parent).member(), time.monotonic() + self._wait
        while True:
            described = describe_all(hosts, member)
            try:
                self._led = between(campaign, described)
                return fitting(campaign, described)
            except BenchError:
                if not any(host.in_use for host in described) or time.monotonic() > end:
                    raise
            time.sleep(_LOOK_S)


def _steered_together(campaign: Campaign, placed: Mapping[str, Described]) -> str:
    """The reason why PTP cannot synchronise the clocks of these hosts; empty where it can."""
    plan = campaign.synchronise
    if plan is None or plan.ptp is None or not plan.ptp.steer:
        return ""
    seen: dict[str, str] = {}
    for name, host in placed.items():
        kernel = host.facts.get("boot-id", host.address)
        if kernel in seen:
            return f'PTP would steer the one clock that {seen[kernel]} and {name} share; write steer="off"'
        seen[kernel] = name
    return ""


def _beyond_lab(campaign: Campaign, *, played: bool) -> list[str]:
    """Features that the present hosts lack although agents elsewhere have them."""
    found = []
    if not played and any(run.link_rate_bps is not None for run in campaign.runs):
        found.append("the sweep sets the rate of links: cables of a lab have the rate they have")
    return found
