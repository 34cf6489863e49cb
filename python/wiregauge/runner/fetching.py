"""Fetches records that hosts of a lab hold because the testmaster disappeared before it had them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiregauge.records import RunDirectory, RunDirectoryError, add_spooled, recover
from wiregauge.records.entry import note_collected
from wiregauge.records.reported import RunEntry

if TYPE_CHECKING:
    from wiregauge.runner.agents.client import Agent
    from wiregauge.runner.lab.authority import Member
    from wiregauge.runner.lab.inventory import Host

__all__ = ["fetch"]


def fetch(
    place: Path, lab: Path | None, told: Callable[[str], object], *, strict: bool = False
) -> Sequence[int]:
    """Adds records held by hosts to the runs of a campaign and tracks these again; returns their indexes.

    `lab` is its file or folder. An unreachable host is reported by `told`; with `strict` one of this campaign is an
    error. Raises LabError, RunDirectoryError.
    """
    # gRPC, imported with it, is needed only by commands that talk to agents
    from wiregauge.runner.lab.authority import Lab
    from wiregauge.runner.lab.inventory import inventory_file, read_inventory

    directory = RunDirectory.open(place)
    name = directory.manifest.get("campaign")
    if not isinstance(name, str) or directory.manifest["bench"] != "lab":
        raise RunDirectoryError(
            f"{place}: its runs were not made on hosts of a lab, so nothing of it is kept there"
        )
    recover(directory)
    directory = RunDirectory.open(place)
    file = inventory_file(lab)
    hosts, member = read_inventory(file), Lab(file.parent).member()
    directory.hold()
    try:
        # Another process may have changed it between the check and the lock.
        directory.manifest = RunDirectory.open(place).manifest
        needed = _hosts_of(directory) if strict else frozenset()
        return _fetched(directory, name, hosts, member, told, needed)
    except OSError as error:
        raise RunDirectoryError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        directory.close()


def _hosts_of(directory: RunDirectory) -> frozenset[str]:
    """The hosts that the runs of a directory were made on."""
    names = directory.plan.network.names
    facts = directory.manifest.get("bench_facts", ())
    return frozenset(fact["value"].partition(",")[0] for fact in facts if fact["name"] in names)


def _fetched(
    directory: RunDirectory,
    name: str,
    hosts: Iterable[Host],
    member: Member,
    told: Callable[[str], object],
    needed: frozenset[str],
) -> Sequence[int]:
    from wiregauge.runner.agents.client import AgentLostError
    from wiregauge.runner.lab.errors import LabError
    from wiregauge.runner.lab.hosts import agent_of

    entries = directory.entries()
    (directory.root / "spool").mkdir(mode=0o700, exist_ok=True)
    for entry in entries.values():
        # Files that an interrupted attempt had fetched but not added.
        _add(directory, entry)
    runs: set[int] = set()
    for host in hosts:
        agent = agent_of(host, member)
        try:
            runs |= _from_host(directory, name, host.name, agent, entries)
        except AgentLostError as error:
            if host.name in needed:
                raise LabError(
                    f"{host.name}: what it may keep of this campaign cannot be fetched: {error}"
                ) from error
            told(f"{host.name}: what it may keep was not fetched: {error}")
        finally:
            agent.close()
    return sorted(runs)


def _from_host(
    directory: RunDirectory, name: str, host: str, agent: Agent, entries: Mapping[int, RunEntry]
) -> set[int]:
    """Adds the records that one host holds, and removes them there; returns the runs' indexes."""
    from wiregauge.runner.agents.collecting import Collected
    from wiregauge.runner.lab.errors import LabError

    runs = set()
    for one in agent.kept(name):
        entry = entries.get(one.run)
        if one.active:
            raise LabError(
                f"{host} still records run {one.run}: its testmaster is there, or its lease lasts "
                "some seconds more; try again when it has ended"
            )
        if entry is None:
            continue
        # What is completely stored must only be removed there.
        if one.node not in entry.collected:
            directory.take_up(one.run, one.node)
            try:
                agent.collect(Collected(directory.spool(one.run, one.node)), one)
            except BaseException:
                directory.put_by(one.run, one.node)
                raise
            _add(directory, entry)
            runs.add(one.run)
        agent.discard(name, one.run, one.node)
    return runs


def _add(directory: RunDirectory, entry: RunEntry) -> None:
    """Stores completely fetched files into the spool of a run."""
    whole = directory.collected(entry.index)
    if whole:
        note_collected(directory, entry, whole)
        add_spooled(directory, entry.index)
        directory.save()
