"""The device under test: one switch and the end systems at its ports, from a test file or by default."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

from lxml import etree
from msgspec import Struct

from wiregauge.config import Loaded, Test, load, load_bytes
from wiregauge.config.groups import expanded
from wiregauge.config.schema import NAMESPACE
from wiregauge.plan import Switch
from wiregauge.plan.quantity import rate_bps
from wiregauge.switching.errors import DeviceError

__all__ = ["Device", "device_of", "plain_device"]

_FEWEST, _MOST = 2, 64


class Device(Struct, frozen=True):
    """A switch with an end system at each port; all links have one rate."""

    name: str
    ports: tuple[str, ...]
    """End systems, in the order of the file."""
    rate_bps: int
    below: Path
    """The folder that file names in the network are relative to."""
    network: bytes
    """The `<network>` element."""
    learns: bool = False
    """Whether its model learns addresses; unknown for a real device."""
    faults: tuple[bytes, ...] = ()
    """Elements of `<faults>` that apply to every trial."""
    told: tuple[str, ...] = ()
    """The parts of its file that apply to every trial, and those that trials replace, as sentences."""

    @property
    def digest(self) -> str:
        """SHA-256 of its network and faults, which identifies the device."""
        return hashlib.sha256(b"".join((self.network, *self.faults))).hexdigest()

    def test(self, made: Test, gaps: Mapping[str, int] | None = None) -> Loaded:
        """A test with this network in place of its own; `gaps`: inter-frame gaps of ports, B.

        Raises TestError.
        """
        root = etree.fromstring(made.to_xml().encode())
        own = root.find(f"{{{NAMESPACE}}}network")
        assert own is not None
        network = etree.fromstring(self.network)
        if gaps:
            network = _with_gaps(network, gaps)
        flows = {flow.get("id") for flow in root.iter(f"{{{NAMESPACE}}}flow")}
        for rule in list(network.iter(f"{{{NAMESPACE}}}ingress")):
            parent = rule.getparent()
            # Rules for flows that this trial does not have are dropped.
            if parent is not None and rule.get("flow") not in flows:
                parent.remove(rule)
                above = parent.getparent()
                if not len(parent) and above is not None:
                    above.remove(parent)
        root.replace(own, network)
        self._plant(root)
        return load_bytes(
            etree.tostring(root, xml_declaration=True, encoding="UTF-8"), self.below / "switch.xml"
        )

    def _plant(self, root: etree._Element) -> None:
        """Inserts the file's faults into a trial, before the trial's own."""
        if not self.faults:
            return
        planted = root.find(f"{{{NAMESPACE}}}faults")
        if planted is None:
            planted = etree.Element(f"{{{NAMESPACE}}}faults")
            tasks = root.find(f"{{{NAMESPACE}}}tasks")
            assert tasks is not None
            tasks.addnext(planted)
        for place, fault in enumerate(self.faults):
            planted.insert(place, etree.fromstring(fault))


def _with_gaps(network: etree._Element, gaps: Mapping[str, int]) -> etree._Element:
    """The network with these inter-frame gaps; a group of end systems is expanded."""
    whole = etree.Element(f"{{{NAMESPACE}}}test")
    whole.append(network)
    own = expanded(whole, "device").root.find(f"{{{NAMESPACE}}}network")
    assert own is not None
    for end in own.iter(f"{{{NAMESPACE}}}end-system"):
        if (gap := gaps.get(end.get("name", ""))) is not None:
            end.set("interframe-gap", f"{gap}B")
    return own


def device_of(path: Path) -> Device:
    """The device of a test file, of which only the network and lasting faults are used.

    Raises TestError for a file that is not a test, DeviceError for a network other than one switch and its end systems.
    """
    loaded = load(path)
    network = loaded.campaign.network
    models = [node.kind for node in network.nodes if isinstance(node.kind, Switch)]
    switches = [node.name for node in network.nodes if isinstance(node.kind, Switch)]
    ends = [network.names[index] for index in network.end_systems]
    if len(switches) != 1 or len(switches) + len(ends) != len(network.nodes):
        others = len(network.nodes) - len(ends)
        raise DeviceError(
            f"{path}: its network has {others} switches and hubs; leave one switch in it, the device under test"
        )
    if len(network.links) != len(ends):
        raise DeviceError(f"{path}: each end system needs one link, to the switch; remove the others")
    rates = sorted({link.rate_bps for link in network.links})
    if len(rates) != 1:
        raise DeviceError(
            f"{path}: its links have {len(rates)} rates; loads are shares of one rate: give all links the same"
        )
    _enough(len(ends), str(path))
    root = etree.fromstring(loaded.xml)
    faults = _faults_of(root, path)
    own = root.find(f"{{{NAMESPACE}}}network")
    assert own is not None
    own = copy.deepcopy(own)
    own.tail = None
    below = path.resolve().parent
    return Device(
        switches[0],
        tuple(ends),
        rates[0],
        below,
        etree.tostring(own),
        models[0].learning,
        tuple(etree.tostring(one) for one in faults),
        tuple(_told_of(root, path, [_local(one) for one in faults])),
    )


def _local(element: etree._Element) -> str:
    return etree.QName(element).localname


def _faults_of(root: etree._Element, path: Path) -> list[etree._Element]:
    """The faults that apply to every trial. Raises DeviceError, by name, for elements that trials cannot have."""
    for element in root.iterchildren(f"{{{NAMESPACE}}}*"):
        if (why := REFUSED.get(_local(element))) is not None:
            raise DeviceError(f"{path}, line {element.sourceline}: <{_local(element)}>: {why}; leave it out")
    found = []
    for one in root.iterfind(f"{{{NAMESPACE}}}faults/{{{NAMESPACE}}}*"):
        where = f"{path}, line {one.sourceline}: <{_local(one)}>"
        if _local(one) not in FAULTS:
            raise DeviceError(
                f"{where} happens at a time, or to a flow, of this test, and trials have their own; leave it out"
            )
        own = [key for key in FAULTS_OF_TEST if key in one.attrib and one.get(key) not in _ALWAYS]
        if own:
            raise DeviceError(
                f'{where} names {own[0]}="{one.get(own[0])}" of this test, and trials have flows and times of their '
                f"own; leave {own[0]} out, and it holds in every trial"
            )
        held = copy.deepcopy(one)
        held.tail = None
        found.append(held)
    return found


def _told_of(root: etree._Element, path: Path, faults: list[str]) -> Iterator[str]:
    """Sentences on the parts of a file that are used, and those that are not."""
    if faults:
        yield f"of {path.name} hold in every trial: its network and its faults ({', '.join(faults)})"
    replaced = [_local(one) for one in root.iterchildren(f"{{{NAMESPACE}}}*") if _local(one) in REPLACED]
    attributes = [f'{key}="{value}"' for key in ("seed", "bench") if (value := root.get(key)) is not None]
    yield (
        f"of {path.name} do not count: {', '.join([*replaced, *attributes])}: trials have their own, seed 1, and the "
        "bench is that of --bench"
    )


FAULTS: Final = ("bit-errors", "loss", "duplicate", "delay", "corrupt", "wrong-length")
"""Link faults without a time, which apply to every trial."""
FAULTS_OF_TEST: Final = ("flow", "sequence", "from", "until")
"""Attributes of a fault that refer to flows and times of its own test."""
_ALWAYS: Final = ("0s", "0ms", "0us", "0ns")
REPLACED: Final = ("flows", "tasks", "limits")
"""Elements of the file that trials replace."""
REFUSED: Final = {
    "synchronise": "trials run without synchronisation of clocks",
    "sweep": "a device has one value of everything",
}
"""Elements that trials cannot have, with the reason."""


def plain_device(ports: int, rate: str) -> Device:
    """The default store-and-forward switch of the test language, with `ports` ports of a rate, `1Gbit/s`."""
    _enough(ports, "--ports")
    try:
        bits = rate_bps(rate)
    except ValueError as error:
        raise DeviceError(f"--rate {rate}: {error}; write a rate such as 1Gbit/s") from None
    names = tuple(f"port{number + 1}" for number in range(ports))
    test = Test("switch", seed=1, host="ideal")
    for name in names:
        test.end_system(name)
    test.switch("dut")
    for name in names:
        test.link(name, "dut", rate=rate)
    root = etree.fromstring(test.to_xml().encode())
    own = root.find(f"{{{NAMESPACE}}}network")
    assert own is not None
    own.tail = None
    return Device("dut", names, bits, Path.cwd(), etree.tostring(own))


def _enough(ports: int, where: str) -> None:
    if not _FEWEST <= ports <= _MOST:
        raise DeviceError(f"{where}: {ports} ports; give {_FEWEST} to {_MOST}")
