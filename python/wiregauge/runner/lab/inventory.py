"""The inventory of a lab, `lab.toml`: its hosts, their addresses, and their interfaces for tests.

[[host]]
name = "alpha"
address = "192.0.2.11"            # on the control network; port 47170 by default
interface = "eth1"                # under test; default: the one the address belongs to
end-systems = ["sensor"]          # end systems of tests for this host; default: any

A host with several interfaces under test lists them, with an end system on each:

[[host]]
name = "beta"
address = "192.0.2.12"
[[host.interfaces]]
name = "eth1"
end-systems = ["camera"]
[[host.interfaces]]
name = "eth2"

A host that is the network between the end systems names for each interface the one its cable leads to:

[[host]]
name = "gamma"
address = "192.0.2.13"
[[host.interfaces]]
name = "eth1"
leads-to = "sensor"
[[host.interfaces]]
name = "eth2"
leads-to = "camera"
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import msgspec

from wiregauge.files import SMALL, read_regular, read_text, write_whole
from wiregauge.runner.lab.errors import LabError

__all__ = [
    "PORT",
    "Host",
    "HostInterface",
    "add_host",
    "inventory_file",
    "read_inventory",
    "target_of",
    "usual_lab",
]

PORT: Final = 47170
"""The default port of agents."""
_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,62}")


class HostInterface(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """An interface under test. `name` None: the one that the host's address belongs to."""

    name: str | None
    end_systems: tuple[str, ...] = ()
    leads_to: str | None = None
    """The end system at the other end of its cable: the host is the network between it and others."""


class Host(msgspec.Struct, frozen=True, forbid_unknown_fields=True, rename="kebab"):
    """A host of the lab."""

    name: str
    address: str
    interface: str | None = None
    end_systems: tuple[str, ...] = ()
    interfaces: tuple[HostInterface, ...] = ()

    @property
    def under_test(self) -> Sequence[HostInterface]:
        """Its interfaces under test, at least one."""
        return self.interfaces or (HostInterface(self.interface, self.end_systems),)


class _Inventory(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    host: tuple[Host, ...] = ()


def usual_lab() -> Path:
    """The default folder of the lab: `WIREGAUGE_LAB`, or `lab` in the user's configuration."""
    named = os.environ.get("WIREGAUGE_LAB")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config") / "wiregauge" / "lab"


def inventory_file(lab: Path | None = None) -> Path:
    """The inventory of a lab: the file or folder given, by default that of `usual_lab`."""
    if lab is None:
        return usual_lab() / "lab.toml"
    return lab / "lab.toml" if lab.is_dir() else lab


def target_of(address: str) -> str:
    """ADDRESS:PORT of an address that may lack the port."""
    if address.startswith("["):
        return address if "]:" in address else f"{address}:{PORT}"
    return address if address.count(":") == 1 else f"{address}:{PORT}"


def read_inventory(file: Path) -> Sequence[Host]:
    """Reads the hosts of a lab. Raises LabError, with the file, where it is invalid."""
    try:
        hosts = msgspec.toml.decode(read_regular(file, SMALL), type=_Inventory).host
    except OSError as error:
        raise LabError(f"{file}: {error.strerror}; `wiregauge lab init` makes a lab") from error
    except (msgspec.ValidationError, msgspec.DecodeError, UnicodeDecodeError) as error:
        raise LabError(
            f"{file}: {error}; a host has name, address, interface and end-systems, or interfaces with name, "
            "end-systems or leads-to"
        ) from error
    for host in hosts:
        if host.interfaces and (host.interface is not None or host.end_systems):
            raise LabError(
                f"{file}: {host.name} has interfaces as well as interface or end-systems; say it with interfaces alone"
            )
        if any(one.leads_to for one in host.interfaces) and any(one.end_systems for one in host.interfaces):
            raise LabError(
                f"{file}: {host.name} has end systems, and interfaces that lead to some: it is one of both; leave "
                "end-systems or leads-to out"
            )
    ends = [name for host in hosts for one in host.under_test for name in one.end_systems]
    led = [one.leads_to for host in hosts for one in host.under_test if one.leads_to is not None]
    _check_once(file, "host", [host.name for host in hosts])
    _check_once(file, "end system", ends)
    _check_once(file, "leads-to", led)
    for host in hosts:
        _check_once(file, f"{host.name}: interface", [one.name or "" for one in host.interfaces])
    for host in hosts:
        check_name(host.name)
    return hosts


def _check_once(file: Path, what: str, values: Sequence[str]) -> None:
    twice = sorted({value for value in values if values.count(value) > 1})
    if twice:
        raise LabError(f"{file}: {what} {twice[0]} is listed twice; list it once")


def check_name(name: str) -> None:
    """Raises LabError for an invalid host name: it becomes part of a certificate."""
    if _NAME.fullmatch(name) is None:
        raise LabError(f'"{name}" is no name for a host: use letters, digits and "-"')


def add_host(file: Path, host: Host) -> None:
    """Appends a host to an inventory, which otherwise stays as written."""
    hosts = read_inventory(file)
    if any(known.name == host.name for known in hosts):
        raise LabError(
            f"{file} has a host {host.name} already; choose another name with --name, or remove it there"
        )
    lines = ["[[host]]", f"name = {json.dumps(host.name)}", f"address = {json.dumps(host.address)}"]
    if host.interface is not None:
        lines.append(f"interface = {json.dumps(host.interface)}")
    before = read_text(file, SMALL).rstrip("\n")
    write_whole(file, f"{before}\n\n" + "\n".join(lines) + "\n")
