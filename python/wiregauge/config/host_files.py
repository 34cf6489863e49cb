"""Host models and switches that a test takes from other files.

`<host-model name="t1700" file="t1700.host.xml"/>` stands for the `<host-model>` of that file under the name given here,
`<switch name="sw1" file="measured.switch.xml"/>` has the attributes of the `<switch>` there. Attributes given in the
test replace those of the file, so that one test can try another value.
"""

from __future__ import annotations

from pathlib import Path

from lxml import etree

from wiregauge.config import reading, structure
from wiregauge.config.diagnostics import Diagnostic, TestError
from wiregauge.config.schema import NAMESPACE, refusals

__all__ = ["HOST_MODEL", "SWITCH", "take_over"]

HOST_MODEL = f"{{{NAMESPACE}}}host-model"
SWITCH = f"{{{NAMESPACE}}}switch"
_CALLED = {HOST_MODEL: "host model", SWITCH: "switch"}
_PARTS = {f"{{{NAMESPACE}}}receive-buffer": "class", f"{{{NAMESPACE}}}stack": "protocol"}
"""Child elements of a host model, with the attribute that tells two of a kind apart."""


def take_over(root: etree._Element, file: str, below: Path) -> None:
    """Copies the values of host models and switches from files into the elements of `root` that name them.

    Relative paths begin at `below`. Raises `TestError` for files that cannot be read, or hold something else.
    """
    for here in root.iter(HOST_MODEL, SWITCH):
        named = " ".join((here.get("file") or "").split())
        if not named:
            continue
        model = _model_of(below / named, here, file)
        for name, value in model.attrib.items():
            if name != "name" and name not in here.attrib:
                here.set(name, value)
        for tag, key in _PARTS.items():
            own = {part.get(key) for part in here.iter(tag)}
            here.extend(part for part in model.findall(tag) if part.get(key) not in own)


def _model_of(path: Path, here: etree._Element, file: str) -> etree._Element:
    """The model of a file: an element of the same kind, which the schema accepts and which names no other file."""
    model = reading.parse(reading.read(path), str(path))
    called = _CALLED[here.tag]
    found = structure.explain_part(model, str(path)) if model.tag == here.tag else []
    if found:
        raise TestError(found)
    message = ""
    if model.tag != here.tag:
        message = f'"{path.name}" holds no {called}, but <{structure.local(model)}>'
    elif model.get("file") is not None:
        message = f'"{path.name}" names another file'
    elif here.tag == SWITCH and len(model):
        message = f'"{path.name}" holds a switch with elements in it, of which only attributes are taken over'
    if message:
        element = structure.local(here)
        cure = f'write <{element} xmlns="{NAMESPACE}" name="…" …/> into it, with the values themselves'
        place = Diagnostic(file, structure.line_of(here), structure.described(here), message, "", cure)
        raise TestError([place])
    if refused := refusals(model):
        described = structure.leftover(refused, [], str(path))
        raise TestError(described, max(0, len(refused) - len(described)))
    return model
