"""Host models that a test takes from files beside it.

`<host-model name="t1700" file="t1700.host.xml"/>` stands for the `<host-model>` of that file under the name given here.
What is written here replaces what the file says, so that one test can try another value.
"""

from __future__ import annotations

from pathlib import Path

from lxml import etree

from wiregauge.config import reading, structure
from wiregauge.config.diagnostics import Diagnostic, TestError
from wiregauge.config.schema import NAMESPACE, validator

__all__ = ["HOST_MODEL", "take_over"]

HOST_MODEL = f"{{{NAMESPACE}}}host-model"
_PARTS = {f"{{{NAMESPACE}}}receive-buffer": "class", f"{{{NAMESPACE}}}stack": "protocol"}
"""What a host model holds beside attributes, and what tells two of a kind apart."""


def take_over(root: etree._Element, file: str, below: Path) -> None:
    """Puts the values of host models that are in files into the elements of `root` that name them.

    Relative paths begin at `below`. Raises `TestError` for files that cannot be read, or hold something else."""
    for here in root.iter(HOST_MODEL):
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
    """The host model of a file: one that the schema accepts and that names no other file."""
    model = reading.parse(reading.read(path), str(path))
    found = structure.explain_part(model, str(path)) if model.tag == HOST_MODEL else []
    if found:
        raise TestError(found)
    if model.tag != HOST_MODEL or model.get("file") is not None:
        message = f'"{path.name}" holds no host model, but <{structure.local(model)}>'
        if model.tag == HOST_MODEL:
            message = f'"{path.name}" names another file'
        cure = f'write <host-model xmlns="{NAMESPACE}" name="…" …/> into it, with the values themselves'
        place = Diagnostic(file, structure.line_of(here), structure.described(here), message, "", cure)
        raise TestError([place])
    schema = validator()
    if not schema.validate(model):
        wrong = structure.leftover(schema.error_log, model, [], str(path))
        raise TestError(wrong)
    return model
