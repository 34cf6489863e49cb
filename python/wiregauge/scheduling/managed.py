"""Gate control lists as data of YANG modules, for switches and end systems that are configured by NETCONF (RFC 6241).

The parameters of scheduled traffic are those of `ieee802-dot1q-sched` (IEEE Std 802.1Qcw-2023). A bridge has them at
its bridge port (`ieee802-dot1q-sched-bridge`), an end system at the interface itself (`ieee802-dot1dc-sched-if`, IEEE
Std 802.1DC-2024).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any

from lxml import etree

from wiregauge.plan import Campaign
from wiregauge.scheduling.gates import ALL, Entry, GateList
from wiregauge.scheduling.problem import ProblemError

__all__ = ["managed"]

_INTERFACES = "urn:ietf:params:xml:ns:yang:ietf-interfaces"
_BRIDGE = "urn:ieee:std:802.1Q:yang:ieee802-dot1q-bridge"
_AT_BRIDGE_PORT = "urn:ieee:std:802.1Q:yang:ieee802-dot1q-sched-bridge"
_AT_INTERFACE = "urn:ieee:std:802.1Q:yang:ieee802-dot1dc-sched-if"
_SCHEDULED = "urn:ieee:std:802.1Q:yang:ieee802-dot1q-sched"

_CLASSES = (1, 0, 2, 3, 4, 5, 6, 7)
"""The traffic class of each priority in a port with eight queues (IEEE Std 802.1Q-2022, Table 8-5)."""
_UINT32 = 2**32 - 1
_SECOND_NS = 10**9


def managed(
    campaign: Campaign, lists: Sequence[GateList], interfaces: Mapping[str, str]
) -> Mapping[str, bytes]:
    """XML of `ietf-interfaces` by node, as `edit-config` takes it within `<config>`: ports with a gate control list.

    `interfaces` has the interface of each port by the port's name. Cycles begin with the PTP time 0. Raises
    ProblemError where the modules have no number for a cycle.
    """
    roots: dict[str, etree._Element] = {}
    for one in lists:
        node = campaign.network.nodes[one.port.node]
        root = roots.get(node.name)
        if root is None:
            root = roots[node.name] = etree.Element(
                f"{{{_INTERFACES}}}interfaces", nsmap=_default(_INTERFACES)
            )
        interface = etree.SubElement(root, f"{{{_INTERFACES}}}interface")
        etree.SubElement(interface, f"{{{_INTERFACES}}}name").text = interfaces[one.name]
        if node.is_end_system:
            _table(interface, _AT_INTERFACE, one)
        else:
            _table(
                etree.SubElement(interface, f"{{{_BRIDGE}}}bridge-port", nsmap=_default(_BRIDGE)),
                _AT_BRIDGE_PORT,
                one,
            )
    return {
        name: etree.tostring(root, xml_declaration=True, encoding="UTF-8", pretty_print=True)
        for name, root in roots.items()
    }


def _default(namespace: str) -> Any:
    """A map of prefixes in which the namespace has none; stubs of lxml know only text as a prefix."""
    return {None: namespace}


def _table(parent: etree._Element, module: str, one: GateList) -> None:
    def leaf(within: etree._Element, name: str, value: object = None) -> etree._Element:
        made = etree.SubElement(within, f"{{{module}}}{name}")
        made.text = None if value is None else str(value)
        return made

    table = etree.SubElement(parent, f"{{{module}}}gate-parameter-table", nsmap=_default(module))
    leaf(table, "gate-enabled", "true")
    entries = leaf(table, "admin-control-list")
    for index, entry in enumerate(_within_limits(one.entries)):
        made = leaf(entries, "gate-control-entry")
        leaf(made, "index", index)
        # The operation is an identity of the module that defines the parameters.
        operation = etree.SubElement(made, f"{{{module}}}operation-name", nsmap={"sched": _SCHEDULED})
        operation.text = "sched:set-gate-states"
        leaf(made, "time-interval-value", entry.interval)
        leaf(made, "gate-states-value", _by_class(entry.mask))
    cycle = leaf(table, "admin-cycle-time")
    seconds = _cycle(one)
    leaf(cycle, "numerator", seconds.numerator)
    leaf(cycle, "denominator", seconds.denominator)
    base = leaf(table, "admin-base-time")
    leaf(base, "seconds", 0)
    leaf(base, "nanoseconds", 0)
    leaf(table, "config-change", "true")


def _within_limits(entries: Sequence[Entry]) -> Iterator[Entry]:
    """The entries with intervals that 32 bits can hold."""
    for entry in entries:
        left = entry.interval
        while left > 0:
            yield Entry(entry.mask, min(left, _UINT32))
            left -= _UINT32


def _by_class(mask: int) -> int:
    """The gates that are open, by traffic class, of a mask by priority."""
    if mask == ALL:
        return ALL
    return sum(1 << kind for priority, kind in enumerate(_CLASSES) if mask >> priority & 1)


def _cycle(one: GateList) -> Fraction:
    seconds = Fraction(one.cycle, _SECOND_NS)
    if seconds.numerator > _UINT32:
        raise ProblemError(
            f"the gates of {one.name} repeat every {one.cycle} ns, a fraction of a second that two numbers of 32 bits "
            "cannot hold, as YANG modules of gates have it; choose periods that divide one another, or shorter ones"
        )
    return seconds
