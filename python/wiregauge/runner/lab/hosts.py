"""Descriptions of a lab's hosts by their agents."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Final

from msgspec import Struct

from wiregauge.runner.agents.client import Agent, AgentLostError
from wiregauge.runner.agents.network import Access, AgentPlace
from wiregauge.runner.agents.process import AgentProcess
from wiregauge.runner.agents.versions import disagreement
from wiregauge.runner.lab.access import SecureAccess
from wiregauge.runner.lab.authority import Member
from wiregauge.runner.lab.errors import LabError
from wiregauge.runner.lab.inventory import Host, target_of
from wiregauge.runner.lab.placement import Described, LabInterface, Neighbour
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["agent_of", "describe", "describe_all", "own_agent"]

_AT_ONCE: Final = 16


def describe_all(hosts: Sequence[Host], member: Member) -> list[Described]:
    """Describes all interfaces under test of an inventory's hosts, in parallel; silent hosts have the reason."""
    with ThreadPoolExecutor(min(_AT_ONCE, len(hosts)) or 1) as pool:
        return [one for host in pool.map(lambda host: _ask(host, member), hosts) for one in host]


def _ask(host: Host, member: Member) -> list[Described]:
    told = _described(host.name, target_of(host.address), SecureAccess(member, host.name))
    return [
        told.at(
            one.name,
            end_systems=one.end_systems,
            several=len(host.under_test) > 1,
            leads_to=one.leads_to or "",
        )
        for one in host.under_test
    ]


def describe(
    name: str,
    address: str,
    access: Access | None,
    *,
    interface: str | None = None,
    reached_at: str = "",
) -> Described:
    """Describes a host with the interface named, or the one with the address it was reached at."""
    return _described(name, address, access).at(interface, reached_at=reached_at)


class _Told(Struct, frozen=True):
    """An agent's description of its host, or the reason why there is none."""

    name: str
    address: str
    access: Access | None
    reply: pb.DescribeReply | None
    trouble: str

    def at(
        self,
        interface: str | None,
        *,
        reached_at: str = "",
        end_systems: Sequence[str] = (),
        several: bool = False,
        leads_to: str = "",
    ) -> Described:
        """The host with one of its interfaces: the one named, or the one with the address it was reached at."""
        place = f"{self.name}/{interface}" if several else self.name
        made = partial(
            Described,
            self.name,
            self.address,
            self.access,
            end_systems=tuple(end_systems),
            place=place,
            leads_to=leads_to,
        )
        told = self.reply
        if told is None:
            return made(None, {}, "", "", trouble=self.trouble)
        reached = told.reached_at or reached_at
        chosen = next(
            (
                one
                for one in told.interfaces
                if one.name == interface or (interface is None and reached in one.ipv4)
            ),
            None,
        )
        facts = dict(told.host)
        missing = interface is not None and chosen is None
        troubles = (
            disagreement(told.agent_version, told.plan_schema, told.record_schema),
            f"it has no interface {interface}" if missing else "",
            f"it is {told.drained}" if told.drained else "",
        )
        return made(
            _interface(chosen) if chosen is not None else None,
            facts,
            told.agent_version,
            f"{chosen.name} is {chosen.in_use}" if chosen is not None and chosen.in_use else "",
            same_host=_is_this_machine(facts),
            other_macs=tuple(tuple(one.mac) for one in told.interfaces if one is not chosen),
            control_shares=chosen is not None and told.reached_at in chosen.ipv4,
            trouble=next((trouble for trouble in troubles if trouble), ""),
        )


def agent_of(host: Host, member: Member) -> Agent:
    """A connection to a host's agent, for calls without a session."""
    access = SecureAccess(member, host.name)
    return Agent(
        AgentPlace(
            host.name, 0, target_of(host.address), "", -1, 0, shares_run_directory=False, access=access
        )
    )


def _described(name: str, address: str, access: Access | None) -> _Told:
    agent = Agent(AgentPlace(name, 0, address, "", -1, 0, shares_run_directory=False, access=access))
    try:
        return _Told(name, address, access, agent.describe(), "")
    except AgentLostError as error:
        return _Told(name, address, access, None, f"no answer ({error})")
    finally:
        agent.close()


def _interface(told: pb.InterfaceDescription) -> LabInterface:
    return LabInterface(
        told.name,
        tuple(told.mac),
        tuple(told.ipv4),
        told.rate_bps or None,
        told.mtu,
        told.up,
        told.allowed,
        told.timestamps,
        tuple(
            Neighbour(
                one.chassis,
                one.name,
                one.port,
                one.port_description,
                one.port_vlan or None,
                one.source,
            )
            for one in told.neighbours
        ),
    )


def _is_this_machine(facts: Mapping[str, str]) -> bool:
    """Whether the host is this machine: a kernel has one real-time clock, in all namespaces."""
    try:
        own = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return False
    return facts.get("boot-id") == own


@contextlib.contextmanager
def own_agent() -> Iterator[AgentProcess]:
    """A temporary agent of this host, in a folder that is removed with it.

    Raises LabError where it cannot be started, BenchError where it does not start.
    """
    with contextlib.ExitStack() as ending:
        try:
            folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="wiregauge-")))
            spool = folder / "spool"
            spool.mkdir(mode=0o700)
            agent = AgentProcess("the agent of this host", folder / "agent", spool)
        except OSError as error:
            raise LabError(f"the agent of this host did not start: {error}") from error
        ending.callback(agent.close)
        agent.await_listening()
        yield agent
