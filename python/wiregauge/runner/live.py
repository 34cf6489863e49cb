"""Real frames between the namespaces of this machine, or between two of its interfaces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import get_args

from wiregauge.benches import (
    SWITCHES,
    BenchError,
    Fact,
    Findings,
    InterfacesBench,
    NetnsBench,
    Switches,
    beyond_namespaces,
    enclose,
    is_enclosed,
    lend,
    namespaces_here,
    needs_bridges,
)
from wiregauge.master import AlarmLimit, Lookout, Observer
from wiregauge.plan import Campaign
from wiregauge.records import RunDirectory, Traits
from wiregauge.runner.bench import Bench, BeyondBenchError

__all__ = ["Live"]


class Live(Bench):
    """The bench of this machine's namespaces, with real-time scheduling by default. Switches are bridges of the kernel,
    or the model plays the network between the end systems. With two `interfaces` of this host frames leave by one and
    arrive at the other over an external cable. Raises BenchError for unavailable interfaces.

    The network exists until a trial needs another one; with lent interfaces there is one for the whole process.
    """

    name = "netns"
    traits = Traits(one_clock=True, driver="veth")

    by_model = "veth to the model"
    """The driver name in calibrations, with the model at the other end: frames cross no bridge of the kernel."""

    def __init__(  # noqa: PLR0913 - each is an option of the command
        self,
        *,
        realtime: bool = True,
        rootless: bool = False,
        interfaces: Sequence[str] | None = None,
        switches: Switches | None = None,
        alarm: Sequence[AlarmLimit] = (),
        on_alarm: Sequence[str] = (),
        metrics: tuple[str, int] | None = None,
        disk: int | None = None,
        capture_around: float | None = None,
    ) -> None:
        self._lookout = Lookout(alarm, on_alarm, metrics, disk, capture_around)
        self._realtime = realtime
        self._rootless = rootless
        if switches is not None and switches not in get_args(Switches):
            known = " or ".join(sorted(get_args(Switches)))
            raise BenchError(f'"{switches}" plays no switches; say {known}')
        if switches is not None and interfaces is not None:
            raise BenchError(
                "there are no switches between two interfaces of this host; leave one of both out"
            )
        self._asked = switches
        # They are visible only before the enclosure.
        self.lent = lend(interfaces) if interfaces is not None else None
        if self.lent is not None:
            driver = ", ".join(f"{one.driver} {one.name}" for one in self.lent)
            self.traits = replace(self.traits, driver=driver)
        self._have_played("kernel" if interfaces is not None else switches or SWITCHES)
        self._network: NetnsBench | None = None

    def _have_played(self, switches: Switches) -> None:
        """Sets what plays the switches from now on."""
        self._switches: Switches = switches
        if self.lent is None:
            driver = self.by_model if switches == "model" else type(self).traits.driver
            self.traits = replace(self.traits, driver=driver, switches=switches)

    @classmethod
    def here(cls, found: Findings) -> tuple[bool, str, str]:
        """Available where the machine grants namespaces."""
        return namespaces_here(found)

    def carried(self, campaign: Campaign) -> Campaign:
        """The campaign with the addresses of lent interfaces.

        A test that needs bridges gets them, unless the user chose the model.
        """
        if self._asked is None and self.lent is None:
            self._have_played("kernel" if needs_bridges(campaign) else SWITCHES)
        beyond = beyond_namespaces(campaign, self._switches)
        if beyond:
            raise BeyondBenchError(beyond)
        return campaign if self.lent is None else InterfacesBench.with_addresses(campaign, self.lent)

    def enter(self) -> None:
        """Restarts this command inside an enclosure, unless it is there. Raises BenchError where that fails."""
        if not is_enclosed():
            self._lookout.before_enclosure()
            enclose(rootless=self._rootless)
        self._lookout.enter()

    def facts(self, campaign: Campaign) -> Sequence[Fact]:
        """The facts: the parts of the bench, and what it cannot emulate."""
        return self._made_for(campaign).facts()

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """See `Bench`."""
        # gRPC, imported with it, is needed only by commands that talk to agents
        from wiregauge.master.campaign import run_on_agents

        network = self._made_for(directory.plan)
        one_clock = self.traits.one_clock
        run_on_agents(directory, network, observer, one_clock=one_clock, lookout=self._lookout)

    def _made_for(self, campaign: Campaign) -> NetnsBench:
        if self._network is not None and not self._network.is_for(campaign, self._switches):
            if self.lent is not None:
                raise BenchError(
                    "the network that stands here is another one; begin a command for each network"
                )
            self._network.remove()
            self._network = None
        if self._network is None:
            if self.lent is None:
                self._network = NetnsBench(campaign, realtime=self._realtime, switches=self._switches)
            else:
                self._network = InterfacesBench(campaign, self.lent, realtime=self._realtime)
        return self._network
