"""Examines, fixes and restores hosts of a lab through their agents, in parallel."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Final, TypeVar

from msgspec import Struct

from wiregauge.examining.changes import Change
from wiregauge.examining.facts import Fact
from wiregauge.runner.agents.client import Agent, AgentLostError
from wiregauge.runner.agents.network import AgentPlace
from wiregauge.runner.lab.access import SecureAccess
from wiregauge.runner.lab.authority import Member
from wiregauge.runner.lab.inventory import Host, target_of
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["Examined", "examine_all", "mend_all", "restore_all"]

_AT_ONCE: Final = 16
Answer = TypeVar("Answer")


class Examined(Struct, frozen=True):
    """A host and its facts; `trouble` has the reason where there are none."""

    name: str
    address: str
    facts: tuple[Fact, ...] = ()
    trouble: str = ""


def examine_all(hosts: Sequence[Host], member: Member, interface: str | None = None) -> list[Examined]:
    """Examines every host: the interface given, or that of the inventory, or all allowed ones."""

    def ask(host: Host) -> Examined:
        try:
            told = _asked(host, member, lambda agent: agent.examine(interface or host.interface or ""))
        except AgentLostError as error:
            return Examined(host.name, host.address, trouble=str(error))
        return Examined(host.name, host.address, tuple(_fact(one) for one in told.facts))

    return _side_by_side(ask, hosts)


def mend_all(
    hosts: Sequence[Host], member: Member, fixes: dict[str, dict[str, list[str]]]
) -> tuple[list[Change], list[str]]:
    """Applies fixes, by host and interface; returns the changes, and the failures."""

    def mend(host: Host, agent: Agent) -> list[Change]:
        return [
            _change(host.name, one)
            for interface, names in fixes[host.name].items()
            for one in agent.mend(interface, names)
        ]

    return _changed([host for host in hosts if fixes.get(host.name)], member, mend)


def restore_all(hosts: Sequence[Host], member: Member) -> tuple[list[Change], list[str]]:
    """Restores what fixes have changed; returns the changes, and the failures."""
    return _changed(hosts, member, lambda host, agent: [_change(host.name, one) for one in agent.restore()])


def _changed(
    hosts: Sequence[Host], member: Member, act: Callable[[Host, Agent], list[Change]]
) -> tuple[list[Change], list[str]]:
    def ask(host: Host) -> list[Change] | str:
        try:
            return _asked(host, member, partial(act, host))
        except AgentLostError as error:
            return f"{host.name}: {error}"

    answers = _side_by_side(ask, hosts)
    changes = [one for answer in answers if not isinstance(answer, str) for one in answer]
    return changes, [answer for answer in answers if isinstance(answer, str)]


def _side_by_side(ask: Callable[[Host], Answer], hosts: Sequence[Host]) -> list[Answer]:
    with ThreadPoolExecutor(min(_AT_ONCE, len(hosts)) or 1) as pool:
        return list(pool.map(ask, hosts))


def _asked(host: Host, member: Member, question: Callable[[Agent], Answer]) -> Answer:
    access = SecureAccess(member, host.name)
    place = AgentPlace(
        host.name, 0, target_of(host.address), "", -1, 0, shares_run_directory=False, access=access
    )
    agent = Agent(place)
    try:
        return question(agent)
    finally:
        agent.close()


def _fact(told: pb.HostFact) -> Fact:
    seen = told.WhichOneof("seen")
    if seen is None:
        return Fact(told.name, told.interface, unreadable="the agent says it in a way that is not known here")
    value = getattr(told, seen)
    if seen == "unreadable":
        return Fact(told.name, told.interface, unreadable=value, note=told.note)
    return Fact(told.name, told.interface, tuple(value.text) if seen == "texts" else value, note=told.note)


def _change(host: str, one: pb.Change) -> Change:
    return Change(host, one.fix, one.interface, one.setting, one.before, one.after, one.refused)
