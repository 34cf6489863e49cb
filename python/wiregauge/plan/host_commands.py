"""Commands by which agents apply a test's TSN settings to their hosts."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

from msgspec import Struct

from wiregauge import _native
from wiregauge.plan.campaign import Campaign, PlanError, as_json

__all__ = ["HostCommands", "host_commands"]


class HostCommands(Struct, frozen=True):
    """Commands for one host: run before the named runs (`apply`) and after them (`undo`)."""

    end_system: str
    interface: str
    runs: tuple[int, ...]
    apply: tuple[str, ...]
    undo: tuple[str, ...]
    restored: tuple[str, ...]
    """Further settings that get their former values back."""


def host_commands(campaign: Campaign, interfaces: Mapping[str, str]) -> Sequence[HostCommands]:
    """The commands of every host with TSN settings; runs with the same ones together.

    `interfaces` names the interface of each end system in the network under test. Raises PlanError for no such name.
    """
    network = as_json(campaign.network)
    found: list[HostCommands] = []
    for number, node in campaign.network.end_systems.items():
        if node.tsn is None:
            continue
        interface = interfaces[node.name]
        by_lines: dict[str, list[int]] = {}
        for run in campaign.runs:
            try:
                told = _native.tsn_commands(network, as_json(run), number, interface)
            except _native.NativeError as error:
                raise PlanError(f"{node.name}: {error}") from None
            by_lines.setdefault(told, []).append(run.index)
        for told, runs in by_lines.items():
            lines = {name: tuple(part) for name, part in json.loads(told).items()}
            found.append(HostCommands(node.name, interface, tuple(runs), **lines))
    return found
