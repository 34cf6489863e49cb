"""The contract that a test states: its flows, recognised by what their frames carry."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from ipaddress import IPv4Address

from wiregauge.contracts.contract import Contract, ContractError, Expected
from wiregauge.contracts.reading import digest, virtual_link
from wiregauge.plan import Campaign, Flow, Network, Run
from wiregauge.streams import PS_PER_NS

__all__ = ["contract_of_test"]

_PERIOD_SLACK = 0.001
"""Share by which a mean period may differ from the planned one: two clocks, and the first and the last frame."""


def contract_of_test(campaign: Campaign, file: str, xml: bytes) -> Contract:
    """The flows of a test as a contract. Raises ContractError where none can be recognised."""
    if len(campaign.runs) > 1:
        raise ContractError(f"{file}: it is a sweep of {len(campaign.runs)} runs; a contract is one of them")
    run = campaign.runs[0]
    notes: list[str] = []
    found = list(_flows(campaign.network, run, notes))
    counted = Counter(expected.identity for expected in found)
    alike = [expected.name for expected in found if counted[expected.identity] > 1]
    if alike:
        notes.append(f"{', '.join(alike)}: not judged, as their frames have the same addresses and ports")
    streams = tuple(expected for expected in found if counted[expected.identity] == 1)
    if not streams:
        raise ContractError(f"{file}: no flow of it can be recognised in a capture; {'; '.join(notes)}")
    return Contract(
        file=file, sha256=digest(xml.decode(errors="replace")), streams=streams, notes=tuple(notes)
    )


def _flows(network: Network, run: Run, notes: list[str]) -> Iterator[Expected]:
    for flow in run.flows:
        if flow.exchange or flow.is_loopback:
            continue
        name = f"flow {flow.id}"
        if flow.virtual_link is not None:
            link = flow.virtual_link
            yield virtual_link(
                link.id,
                name=f"{name}, VL {link.id}",
                network=flow.network or "AB",
                bag_ps=link.bag,
                lmax=link.lmax,
                jitter_ps=link.jitter,
                skew_max_ps=link.skew_max if flow.network is None else None,
            )
        elif flow.schedule is not None:
            schedule = flow.schedule
            shortest = schedule.period - schedule.early - schedule.late
            yield Expected(
                name=f"{name}, CT {schedule.id}",
                kind="tt",
                fields={"ct": schedule.id},
                bounds={"lmax": float(schedule.longest_frame), "min-interval": shortest / PS_PER_NS},
            )
        elif flow.protocol in ("udp", "be"):
            yield _datagrams(network, run, flow, name)
        else:
            notes.append(f"{name}: not judged, as its frames carry no identity but that of Wiregauge")


def _datagrams(network: Network, run: Run, flow: Flow, name: str) -> Expected:
    given = flow.addresses
    fields: dict[str, int | float | str] = {
        "from": _address(given.ipv4.source or network.nodes[flow.from_].ipv4),
    }
    if not flow.also_to:
        fields["to"] = _address(given.ipv4.destination or network.nodes[flow.to].ipv4)
    ports = {"from_port": given.port.source, "to_port": given.port.destination}
    fields |= {key: port for key, port in ports.items() if port is not None}
    bounds: dict[str, float] = {}
    send = run.send_of.get(flow.id)
    if send is not None and send.replay is None:
        bounds["lmax"] = float(flow.frame_length(send.payload))
        if send.pattern is None and send.activity is None and send.pacing != "gap":
            bounds["min-period"] = send.period * (1 - _PERIOD_SLACK) / PS_PER_NS
            bounds["max-period"] = send.period * (1 + _PERIOD_SLACK) / PS_PER_NS
    return Expected(
        name=name,
        kind="udp",
        fields=fields,
        vlans=(flow.vlan.id,) if flow.vlan is not None else (),
        bounds=bounds,
    )


def _address(octets: tuple[int, ...]) -> str:
    return str(IPv4Address(bytes(octets)))
