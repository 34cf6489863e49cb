"""Records that hosts of a lab keep because the testmaster went away before it had them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiregauge.records import RunDirectory, RunDirectoryError, add_spooled, recover

if TYPE_CHECKING:
    from wiregauge.lab import Host, Member

__all__ = ["fetch"]


def fetch(place: Path, lab: Path | None, told: Callable[[str], object]) -> Sequence[int]:
    """Adds what hosts keep of a campaign to its runs and tracks these again; which they were.

    `lab` is its file or folder; a host that cannot be asked is `told`. Raises LabError, RunDirectoryError.
    """
    # With it comes gRPC, which only commands that talk to agents wait for.
    from wiregauge.lab import Lab, read_inventory, usual_lab

    directory = RunDirectory.open(place)
    name = directory.manifest.get("campaign")
    if not isinstance(name, str) or directory.manifest["bench"] != "lab":
        raise RunDirectoryError(
            f"{place}: its runs were not made on hosts of a lab, so nothing of it is kept there"
        )
    recover(directory)
    directory = RunDirectory.open(place)
    file = lab / "lab.toml" if lab is not None and lab.is_dir() else lab or usual_lab() / "lab.toml"
    hosts, member = read_inventory(file), Lab(file.parent).member()
    directory.hold()
    try:
        return _fetched(directory, name, hosts, member, told)
    except OSError as error:
        raise RunDirectoryError(f"{place}: cannot be written: {error.strerror}") from error
    finally:
        directory.close()


def _fetched(
    directory: RunDirectory,
    name: str,
    hosts: Iterable[Host],
    member: Member,
    told: Callable[[str], object],
) -> Sequence[int]:
    from wiregauge.lab import LabError
    from wiregauge.lab.hosts import agent_of
    from wiregauge.master.client import AgentLostError, KeptRecords
    from wiregauge.master.collecting import Collected

    known = {entry["index"] for entry in directory.runs}
    come: list[tuple[Host, KeptRecords]] = []
    (directory.root / "spool").mkdir(mode=0o700, exist_ok=True)
    for host in hosts:
        agent = agent_of(host, member)
        try:
            for one in agent.kept(name):
                if one.active:
                    raise LabError(
                        f"{host.name} still records run {one.run + 1}: its testmaster is there, or its lease lasts "
                        "some seconds more; try again when it has ended"
                    )
                if one.run in known:
                    agent.collect(Collected(directory.spool(one.run, one.node)), one)
                    come.append((host, one))
        except AgentLostError as error:
            told(f"{host.name}: what it may keep was not fetched: {error}")
        finally:
            agent.close()
    runs = sorted({one.run for _, one in come})
    for index in runs:
        add_spooled(directory, index)
    for host, one in come:
        agent = agent_of(host, member)
        try:
            agent.discard(name, one.run, one.node)
        except AgentLostError as error:
            told(f"{host.name}: it keeps what was fetched: {error}")
        finally:
            agent.close()
    return runs
