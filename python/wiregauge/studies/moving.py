"""The tests of a study with one number changed: a parameter of its model, or the seed.

Copies of the files are changed; those of the study stay as they are.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from pathlib import Path
from typing import Final

from lxml import etree
from msgspec import Struct
from msgspec.structs import replace

from wiregauge.config.reading import parse, read
from wiregauge.studies.declaring import Study
from wiregauge.studies.published import read_expected
from wiregauge.studies.size import Size, StudyError

__all__ = ["SEED", "Move", "key_of", "moved_files", "moves", "write_moved"]

SEED: Final = "seed"
"""The name of the move of the seed, which shows what varies by chance."""
_SEEDS: Final = ("2", "3")
_LANGUAGE: Final = {"t": "urn:wiregauge:test:2"}
_NUMBER: Final = re.compile(r"(?<![\w.])-?\d+(?:\.\d+)?(?![\d.]*%)(?!\d)")
Files = Mapping[str, etree._Element]


class Move(Struct, frozen=True):
    """A parameter at another value, `to`: a share of the value in the files, or a replacement."""

    name: str
    to: str
    places: tuple[tuple[str, str], ...]


def moves(study: Study) -> Iterator[Move]:
    """Every parameter at each of its other values, and other seeds, which show what varies by chance."""
    for seed in _SEEDS:
        yield Move(SEED, seed, (("*.xml", "/t:test/@seed"),))
    for one in study.parameters:
        yield from (Move(one.name, to, tuple(one.places)) for to in one.moved)


def moved_files(study: Study, move: Move | None) -> tuple[Files, tuple[str, ...]]:
    """The files of a study by name with a move made, and the changes as `before → after`, each once.

    Raises StudyError for a place that does not exist, and TestError for a file that is not XML.
    """
    files = {path.name: parse(read(path), str(path)) for path in sorted(study.folder.glob("*.xml"))}
    changes: dict[str, None] = {}
    for pattern, where in move.places if move is not None else ():
        named = [name for name in files if Path(name).match(pattern)]
        found = [at for name in named for at in _attributes(files[name], where)]
        if not found:
            raise StudyError(f"study {study.name}, {move.name if move else ''}: {pattern} has no {where}")
        for attribute in found:
            before, element = str(attribute), attribute.getparent()
            after = _changed(before, move.to) if move is not None else before
            if element is not None:
                element.set(str(attribute.attrname), after)
            changes[f"{before} \N{RIGHTWARDS ARROW} {after}"] = None
    return files, tuple(changes)


def _attributes(root: etree._Element, where: str) -> list[etree._ElementUnicodeResult]:
    found = root.xpath(where, namespaces=_LANGUAGE)
    each = found if isinstance(found, list) else []
    return [one for one in each if isinstance(one, etree._ElementUnicodeResult)]


def _changed(before: str, to: str) -> str:
    """`to` in place of the old value; a share scales each quantity, but not the shares of a distribution."""
    if not to.endswith("%"):
        return to
    factor = Decimal(to.removesuffix("%")) / 100
    return _NUMBER.sub(lambda found: _scaled(found, factor, before), before)


def _scaled(found: re.Match[str], factor: Decimal, whole: str) -> str:
    value = Decimal(found[0]) * factor
    unit = re.match(r"[A-Za-z/]*", whole[found.end() :])
    # Bytes and plain numbers are integers.
    if unit is None or unit[0] in ("", "B"):
        value = value.to_integral_value()
    text = f"{value:f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def write_moved(study: Study, files: Files, place: Path) -> Study:
    """The study with these files, which are written into `place`."""
    for name, root in files.items():
        (place / name).write_bytes(etree.tostring(root, encoding="utf-8", xml_declaration=True))
    return replace(study, folder=place)


def key_of(study: Study, size: Size, files: Files) -> str:
    """SHA-256, in hex, of the tests, settings and criteria, which with the program decide the cells."""
    expected = read_expected(study.folder, [item.number for item in study.items])
    told = {
        "files": {
            name: etree.tostring(root, method="c14n", with_comments=False).decode()
            for name, root in files.items()
        },
        "settings": {part.name: list(part.settings_of("sim", size)) for part in study.parts},
        "left out": [part.name for part in study.parts if part.left_out("sim", size)],
        "cells": [
            [str(one.key), one.text, one.unit, one.criterion.written]
            for one in expected
            if one.criterion is not None
        ],
    }
    return hashlib.sha256(json.dumps(told, sort_keys=True).encode()).hexdigest()


def _canonical(root: etree._Element) -> str:
    return etree.tostring(root, method="c14n", with_comments=False).decode()
