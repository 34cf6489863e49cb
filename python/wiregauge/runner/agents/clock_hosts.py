"""An end system's host for clock keeping: its agent starts the programs, reads their output and queries them."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator
from typing import Final

from wiregauge.plan import Ptp
from wiregauge.runner.agents.client import Agent, AgentLostError
from wiregauge.runner.clocks.host import Answers, ClockError, Line
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["AgentClockHost"]

_PICOS: Final = 10**12
_TRANSPORTS: Final = {"l2": pb.L2, "udp": pb.UDP}
_DELAYS: Final = {"e2e": pb.E2E, "p2p": pb.P2P}


class AgentClockHost:
    """See `ClockHost`."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def start(self, ptp: Ptp, *, server: bool) -> None:
        """Has the agent write a configuration for its interface and start its clock programs."""
        request = pb.StartClockProgramsRequest(
            interface=self._agent.place.interface,
            domain=ptp.domain,
            transport=_TRANSPORTS[ptp.transport],
            delay=_DELAYS[ptp.delay],
            hardware=ptp.timestamps == "hardware",
            server=server,
            steer=ptp.steer,
            # The exponent that PTP transmits; the plan ensures an integer.
            log_sync_interval=round(math.log2(ptp.interval / _PICOS)),
            kp_thousandths=ptp.kp_thousandths,
            ki_thousandths=ptp.ki_thousandths,
        )
        try:
            self._agent.start_clock_programs(request)
        except AgentLostError as error:
            raise ClockError(str(error)) from error

    def lines(self) -> Iterator[Line]:
        """Output lines with times of the testmaster's clock, by the agent's clock relation as each line comes."""
        try:
            for line in self._agent.watch_clock_programs():
                ahead = self._agent.clock.offset_ns if self._agent.place.own_clock else 0
                yield Line(line.text, line.realtime_less_monotonic_ns - ahead, line.gone)
        except AgentLostError as error:
            raise ClockError(str(error)) from error

    def ask(self, *, ptp: bool, chrony: bool) -> Answers:
        """The answers of the agent's clock programs and kernel. Raises ClockError."""
        try:
            reply = self._agent.ask_clock_programs(ptp=ptp, chrony=chrony)
        except AgentLostError as error:
            raise ClockError(str(error)) from error
        return Answers(reply.pmc, reply.chrony, reply.kernel.tai_s, reply.kernel.leap)

    def stop(self) -> None:
        """An agent that is gone has taken its programs with it."""
        with contextlib.suppress(AgentLostError):
            self._agent.stop_clock_programs()
