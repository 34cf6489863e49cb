"""Bounds as the results file of WoPANets: delays of flows in us, loads of links in both directions.

The format has no published description. The file holds what the tools that read or write it agree on:
`<results>` with `<delays>` (`<flow name>` of `<target name value>`, us) and `<load>` (`<edge name>` of two `<usage type
percent value>`, `direct` as the link is written and `reverse`; bit/s).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

from lxml import etree

from wiregauge.bounds.analysing import Answer
from wiregauge.bounds.networks import Source
from wiregauge.config import Diagnostic, TestError
from wiregauge.files import write_whole

__all__ = ["write_results"]


def write_results(answer: Answer, source: Source, place: Path) -> None:
    """Writes a results file; raises `TestError` where the network has no links or times no unit, `OSError`."""
    if answer.time_unit != "s" or source.format == "output-ports":
        message = "a file of output ports has no links, and the results of WoPANets are of links"
        raise TestError([Diagnostic(source.file, 0, "--results", message, "", "take --json")])
    root = etree.Element("results")
    delays = etree.SubElement(root, "delays")
    for flow in answer.flows:
        own = etree.SubElement(delays, "flow", name=flow.flow)
        for target in flow.targets:
            # A target without a bound has no value, since 0 would be a delay.
            end = etree.SubElement(own, "target", name=target.target)
            if target.delay is not None:
                end.set("value", f"{target.delay * 1e6:.6f}")
    load = etree.SubElement(root, "load")
    servers = {server.server: server for server in answer.servers}
    for name, directions in _edges(source):
        edge = etree.SubElement(load, "edge", name=name)
        for kind, server in zip(("direct", "reverse"), directions, strict=True):
            # A direction without flows is not a server.
            share, rate = (one.load, one.rate) if (one := servers.get(server)) is not None else (0.0, 0.0)
            value = f"{share * rate:.3f}"
            etree.SubElement(edge, "usage", percent=f"{100 * share:.4f}%", type=kind, value=value)
    etree.indent(root, space="\t")
    text: bytes = etree.tostring(root, xml_declaration=True, encoding="UTF-8")
    write_whole(place, text + b"\n")


def _edges(source: Source) -> Iterator[tuple[str, tuple[str, str]]]:
    """Links and the servers of both directions."""
    if source.planned is not None:
        network, _ = source.planned
        for link in network.links:
            first, second = ((network.names[end.node], end.port) for end in link.ends)
            yield f"{first[0]} => {second[0]}", (f"{first[0]}:{first[1]}", f"{second[0]}:{second[1]}")
        return
    for one in json.loads(source.as_json)["tree"]["children"]:
        if one["tag"] == "link":
            own = one["attributes"]
            ends = f"{own['from']}-{own.get('fromPort', 'o0')}", f"{own['to']}-{own.get('toPort', 'i0')}"
            yield own.get("name") or f"{own['from']} => {own['to']}", ends
