"""Relations of the agents' clocks: the time scale of an announced start, and the uncertainty left after a run.

Every agent's own clock is compared over the control connection. Where PTP compares the system clocks of all of them,
each also has an offset from the reference, mostly far more precise. The start uses the more precise relation; where the
two contradict each other, one of them is wrong, and it is not known which.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Mapping, Sequence

from wiregauge.plan import Campaign
from wiregauge.records.reported import ClockOffset, RunEntry
from wiregauge.runner.agents.client import Agent, AgentLostError, ClockRelation
from wiregauge.runner.clocks.keeper import ClockKeeper
from wiregauge.runner.clocks.relation import PtpRelation

__all__ = ["ClockRelations"]


class ClockRelations:
    """Clock relations of the agents of a campaign; their method is chosen anew before each run."""

    def __init__(self, agents: Sequence[Agent], keeper: ClockKeeper | None, plan: Campaign) -> None:
        self._agents = agents
        self._keeper = keeper
        synchronise = plan.synchronise
        self._reference = plan.network.names[synchronise.reference] if synchronise is not None else ""
        self._ptp: Mapping[str, PtpRelation] = {}
        self._connected: dict[str, ClockRelation] = {}

    def choose(self) -> str | None:
        """Sets every agent's clock relation by the best method now; returns a contradiction of PTP and connections,
        or None."""
        self._ptp = {}
        told = self._keeper.relations() if self._keeper is not None else {}
        # A network that a host plays is none of those whose clocks programs compare.
        ends = [agent for agent in self._agents if not agent.place.is_network]
        by_name = {agent.place.end_system: agent for agent in ends}
        own = [agent for agent in ends if agent.place.own_clock]
        if self._keeper is not None:
            # Programs may have set clocks since they were compared.
            for agent in own:
                agent.clock = agent.relate_clock()
        if not told or not own:
            return None
        connected = {
            name: agent.clock if agent.place.own_clock else ClockRelation(0, 0)
            for name, agent in by_name.items()
        }
        server = connected[self._reference]
        for name, one in told.items():
            seen = connected[name].offset_ns - server.offset_ns
            may_be = connected[name].uncertainty_ns + server.uncertainty_ns + one.uncertainty_ns
            if name != self._reference and abs(seen - one.offset_ns) > may_be:
                return (
                    f"PTP sees the clock of {name} {one.offset_ns / 1e3:.3g} µs ahead of {self._reference}, the "
                    f"control connection {seen / 1e3:.3g} ± {may_be / 1e3:.3g} µs: one of them does not compare these "
                    "clocks"
                )
        # A start that some take by this host's clock, and the reference by its own, PTP knows nothing of.
        if len(own) < len(ends) and by_name[self._reference].place.own_clock:
            return None
        ptp = max(one.uncertainty_ns for one in told.values())
        if ptp >= max(one.uncertainty_ns for one in connected.values()):
            return None
        self._ptp = told
        for agent in own:
            one = told[agent.place.end_system]
            agent.clock = ClockRelation(
                server.offset_ns + round(one.offset_ns), round(one.uncertainty_ns) + server.uncertainty_ns
            )
        return None

    def after(self, entry: RunEntry) -> dict[str, ClockOffset]:
        """The offset of each clock in the finished run, with its uncertainty, by end system.

        The offset before the run was taken out of its start; how far it has moved since is part of the uncertainty.
        """
        by_ptp = self._by_ptp(entry)
        if by_ptp:
            return by_ptp
        found = {}
        apart = any(agent.place.own_clock for agent in self._agents)
        for agent in self._agents:
            name, before = agent.place.end_system, agent.clock
            there = entry.network is not None if agent.place.is_network else name in entry.agents
            if agent.place.is_network and there and apart and not agent.place.own_clock:
                # The network's times are on the clock that announces starts.
                found[name] = ClockOffset(0, 0, "same-clock")
            if not agent.place.own_clock or not there:
                continue
            with contextlib.suppress(AgentLostError):
                after = agent.relate_clock()
                moved = abs(after.offset_ns - before.offset_ns)
                bound = before.uncertainty_ns + after.uncertainty_ns + moved
                found[name] = ClockOffset(0, bound, "control-connection")
                # The next run of the campaign starts with the relations known now.
                agent.clock = after
        return found

    def _by_ptp(self, entry: RunEntry) -> dict[str, ClockOffset]:
        epoch = entry.epoch_realtime_ns
        if not self._ptp or not epoch or self._keeper is None:
            return {}
        bounds = self._keeper.bounds(self._ptp, epoch, time.time_ns())
        return {name: ClockOffset(0, bound, "ptp") for name, bound in bounds.items() if name in entry.agents}
