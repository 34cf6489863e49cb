"""Translation of the builder's calls into elements: their parts, and the common writer to the tree of a test."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar, Self

from lxml import etree
from msgspec import Struct
from msgspec.structs import asdict

from wiregauge.config.diagnostics import Diagnostic, TestError, shown
from wiregauge.config.schema import NAMESPACE

__all__ = ["Building", "Part", "given"]


Pairs = tuple[tuple[str, str, str, str], ...]


class Part(Struct, frozen=True):
    """An element that belongs to another; its fields are attributes of the same names, or parts of its own."""

    TAG: ClassVar[str]
    KEY: ClassVar[str] = ""
    """The attribute whose values are the keys of a mapping of such parts."""
    PAIRS: ClassVar[Pairs] = ()
    """Fields that hold elements with two attributes: the element and both."""


class Building:
    """The tree of a test under construction."""

    PAIRS: ClassVar[Pairs] = ()

    def __init__(self, name: str) -> None:
        self._name = name
        self._file = f'Test("{shown(name)}")'
        default: Any = {None: NAMESPACE}  # the stubs know no default namespace
        self._root = etree.Element(f"{{{NAMESPACE}}}test", nsmap=default)
        self._sections: dict[str, etree._Element] = {}

    def _section(self, tag: str) -> etree._Element:
        if tag not in self._sections:
            self._sections[tag] = etree.SubElement(self._root, f"{{{NAMESPACE}}}{tag}")
        return self._sections[tag]

    def _add(self, section: str, tag: str, values: Mapping[str, Any]) -> Self:
        self._fill(etree.SubElement(self._section(section), f"{{{NAMESPACE}}}{tag}"), values, self.PAIRS)
        return self

    def _say(self, section: str, values: Mapping[str, Any]) -> Self:
        self._fill(self._section(section), values, self.PAIRS)
        return self

    def _fill(self, node: etree._Element, values: Mapping[str, Any], pairs: Pairs = ()) -> None:
        """Writes values as attributes, or as child elements: parts, lists of parts, and flags."""
        paired = {field: words for field, *words in pairs}
        for name, value in values.items():
            if value is None or value is False:
                continue
            if name in paired:
                tag, first, second = paired[name]
                for one, other in value.items() if isinstance(value, Mapping) else value:
                    self._child(node, tag, {first: one, second: other})
            elif value is True:
                self._child(node, name, {})
            elif isinstance(value, Part):
                self._part(node, value)
            elif isinstance(value, Mapping):
                for key, part in value.items():
                    self._part(node, part, {part.KEY: key})
            elif isinstance(value, Iterable) and not isinstance(value, str):
                self._several(node, name, list(value))
            else:
                self._set(node, name, str(value))

    def _several(self, node: etree._Element, name: str, values: list[Any]) -> None:
        parts = [value for value in values if isinstance(value, Part)]
        for part in parts:
            self._part(node, part)
        if values and not parts:
            self._set(node, name, " ".join(map(str, values)))

    def _part(self, parent: etree._Element, part: Part, key: Mapping[str, Any] | None = None) -> None:
        self._child(parent, part.TAG, {**(key or {}), **values_of(part)}, part.PAIRS)

    def _child(
        self,
        parent: etree._Element,
        tag: str,
        values: Mapping[str, Any],
        pairs: Pairs = (),
    ) -> None:
        self._fill(etree.SubElement(parent, f"{{{NAMESPACE}}}{tag}"), values, pairs)

    def _set(self, node: etree._Element, name: str, value: str) -> None:
        attribute = name.rstrip("_").replace("_", "-")
        try:
            node.set(attribute, value)
        except ValueError:
            tag = f"<{etree.QName(node).localname}>"
            message = f'{attribute} "{shown(value)}" contains characters that XML does not allow'
            raise TestError([Diagnostic(self._file, 0, tag, message, "", "remove them")]) from None


def values_of(part: Part) -> dict[str, Any]:
    """The fields of a part."""
    return asdict(part)


def given(arguments: Mapping[str, Any], *others: str) -> dict[str, Any]:
    """The arguments of a method but for `others`."""
    return {name: value for name, value in arguments.items() if name not in ("self", *others)}
