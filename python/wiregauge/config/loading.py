"""Loads a test file: to the campaign a bench can run, or to all its diagnostics."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import msgspec
from lxml import etree
from msgspec import Struct

from wiregauge.config import reading, structure
from wiregauge.config.diagnostics import MOST_DIAGNOSTICS, Diagnostic, TestError
from wiregauge.config.groups import expanded
from wiregauge.config.host_files import take_over
from wiregauge.config.schema import Refusal, refusals
from wiregauge.config.settings import set_attributes, set_members
from wiregauge.plan import Campaign, decode
from wiregauge.plan.processors import with_overloads


class Loaded(Struct, frozen=True):
    """A test that can be run."""

    campaign: Campaign
    xml: bytes
    """The file, byte for byte."""
    sha256: str
    """SHA-256 of `xml`, in hex."""
    warnings: tuple[str, ...]
    """Warnings on what is allowed but worth knowing, one sentence each."""
    settings: tuple[str, ...] = ()
    """Attributes that were set outside the file, as they were written."""


Scheduling = Literal["done", "open", "unjudged"]
"""Windows of time-triggered flows that may clash: none; those of flows that name no offset and no window; all."""


def load(path: Path | str, settings: Sequence[str] = (), scheduling: Scheduling = "done") -> Loaded:
    """Reads and checks a test file, with attributes set as described in `wiregauge.config.settings`.

    Raises `TestError` with every diagnostic found: those of the file's structure first and alone, because what follows
    from them would only distract.
    """
    return load_bytes(reading.read(Path(path)), Path(path), settings, scheduling)


def load_bytes(
    data: bytes, path: Path, settings: Sequence[str] = (), scheduling: Scheduling = "done"
) -> Loaded:
    """Like `load`, for a text that is, or would be, the file `path`."""
    file = str(path)
    root = reading.parse(data, file)
    campaign = compile_tree(root, file, path.parent, settings, scheduling)
    return Loaded(campaign, data, hashlib.sha256(data).hexdigest(), campaign.warnings, tuple(settings))


def checked_tree(data: bytes, file: str) -> etree._Element:
    """The tree of a test as its author wrote it, groups unexpanded, every element in a permitted place; raises
    `TestError`.

    For editors of files: values are not checked.
    """
    root = reading.parse(data, file)
    _refused(root, file)
    return root


def compile_tree(
    root: etree._Element,
    file: str,
    below: Path,
    settings: Sequence[str] = (),
    scheduling: Scheduling = "done",
) -> Campaign:
    """The campaign of a test; raises `TestError`. `file` is named in the diagnostics; captures that are replayed lie in
    `below` where their paths are not absolute. Settings of groups and single elements are made in `root`."""
    of_members = set_attributes(root, settings)
    refused = _refused(root, file)
    take_over(root, file, below)
    test = expanded(root, file)
    if of_members:
        set_members(test.root, of_members)
    if test.root is not root:
        refused = _refused(test.root, file)
    from wiregauge._native import compile_plan

    tree = msgspec.json.encode(plain_tree(test.root)).decode()
    answer: dict[str, Any] = msgspec.json.decode(compile_plan(tree, below, scheduling))
    found = [Diagnostic(file=file, **diagnostic) for diagnostic in answer.get("diagnostics", [])]
    total = len(found) + int(answer.get("beyond", 0))
    if refused:
        # Values refused by the plan are mostly refused by the schema, too.
        found += structure.leftover(refused, found, file)
        total = max(total, len(found), len(refused) if len(refused) > MOST_DIAGNOSTICS else 0)
    beyond = total - len(found)
    if found or "campaign" not in answer:
        raise TestError(test.gathered(found), beyond)
    return with_overloads(decode(answer["campaign"]))


def _refused(root: etree._Element, file: str) -> list[Refusal]:
    """Attribute values that the schema refuses. Raises `TestError` for misplaced elements or attributes."""
    found = refusals(root)
    if found and (misplaced := structure.explain(root, file)):
        raise TestError(misplaced)
    return found


def plain_tree(node: etree._Element) -> dict[str, Any]:
    """Element tree for the native side; white space in values is collapsed, as every type of the schema requires."""
    return {
        "tag": structure.local(node),
        "line": structure.line_of(node),
        "attributes": {
            str(name): " ".join(str(value).split())
            for name, value in node.attrib.items()
            if etree.QName(name).namespace is None
        },
        "children": [plain_tree(child) for child in node],
    }
