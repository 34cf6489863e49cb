"""A test whose end systems have other host models: the same test otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lxml import etree

__all__ = ["with_host_models"]

_SPACE = "{urn:wiregauge:test:2}"


def with_host_models(test: bytes, models: Mapping[str, Path], *, name: str, rate: str | None = None) -> bytes:
    """The text of `test`, which was read before, where each end system in `models` is the host of that file.

    `rate` replaces that of every link. End systems of groups keep the models they have.
    """
    root = etree.fromstring(test, etree.XMLParser(resolve_entities=False, no_network=True))
    root.set("name", name)
    root.set("bench", "sim")
    network = root.find(f"{_SPACE}network")
    if network is None:
        raise ValueError("a test that was read has a network")
    for number, (system, file) in enumerate(models.items()):
        model = f"identified{number}"
        for element in network.iterfind(f"{_SPACE}end-system"):
            if element.get("name") == system:
                for own in element.findall(f"{_SPACE}host"):
                    element.remove(own)
                element.set("host", model)
        element = etree.Element(f"{_SPACE}host-model", {"name": model, "file": str(file.resolve())})
        network.insert(0, element)
    if rate is not None:
        for link in network.iterfind(f"{_SPACE}link"):
            link.set("rate", rate)
    return bytes(etree.tostring(root, xml_declaration=True, encoding="UTF-8"))
