"""The fields of the plan's types in Python (`python/wiregauge/plan`), from the types in Rust that write them as JSON.

Which class stands for which type, and what else it can do, is written there by hand; its fields, their types, defaults
and documentation are not. The Rust sources are read as text: rustfmt has one form for a type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

from builder_of_language import WIDTH, docstring
from msgspec import Struct

ROOT = Path(__file__).resolve().parent.parent
PLAN = ROOT / "python" / "wiregauge" / "plan"
MODULES = ("base", "campaign", "clusters", "network", "ptp", "routes", "tasks", "tsn")

_RUST_NAMES = {
    "AddressEnds": "",
    "ClusterParameters": "Parameters",
    "ClusterThresholds": "Thresholds",
    "Hop": "",
    "HostCost": "Cost",
    "LatentErrors": "LatentErrorConfig",
    "PortEnds": "",
    "Raster": "DeltaRaster",
}
"""Classes that have another name than their type; empty: kept by hand, for serde writes the type as something else."""
_PLAIN = {
    "Behaviour": "str | dict[str, Picoseconds]",
    "BTreeMap<String, String>": "dict[str, str]",
    "Bag": "Picoseconds",
    "Ends<MacAddress>": "AddressEnds",
    "Ends<[u8; 4]>": "AddressEnds",
    "Ends<u16>": "PortEnds",
    "Ends<u32>": "PortEnds",
    "LineRate": "int",
    "MacAddress": "tuple[int, ...]",
    "NodeIndex": "NodeIndex",
    "FlowId": "FlowId",
    "Span": "Picoseconds",
    "String": "str",
    "Trace": "str",
    "[u8; 4]": "tuple[int, ...]",
    "bool": "bool",
    "f64": "float",
}
_DEFAULTS = {"Picoseconds": "0", "int": "0", "bool": "False"}
_BY_VALUE = ("Addresses", "AddressEnds", "PortEnds", "SwitchChange")
"""Structures that stand with their own defaults where the plan has none; others are None there."""
_OTHERWISE = {
    "VirtualLink::usual_priority": "4",
    "least_gap": "GAP",
    "network_a": '"A"',
    "picosecond": "1",
    "unlimited": "None",
}
"""What functions give that serde calls for a default."""


class Field(Struct, frozen=True):
    """A field of a structure, or of a variant."""

    name: str
    kind: str
    serde: str
    doc: str


class Type(Struct, frozen=True):
    """A structure with its fields, or an enumeration with its variants: their fields, or the structure they hold."""

    serde: str
    fields: tuple[Field, ...] = ()
    variants: tuple[tuple[str, tuple[Field, ...] | str, bool], ...] = ()

    @property
    def is_tagged(self) -> bool:
        """Whether each variant is a structure with its name in `type`."""
        return "tag = " in self.serde

    def word(self, variant: str) -> str:
        """A variant as serde writes it."""
        if "kebab-case" in self.serde:
            return re.sub(r"(?<!^)(?=[A-Z])", "-", variant).lower()
        return variant.lower() if "lowercase" in self.serde else variant


def _serde(attributes: str) -> str:
    return " ".join(re.findall(r"serde\(((?:[^()]|\([^()]*\))*)\)", attributes))


def _doc(text: str) -> str:
    lines = re.findall(r"///(.*)", text)
    plain = re.sub(r"\[(`[^`]*`)\](?:\([^)]*\))?", r"\1", " ".join(line.strip() for line in lines))
    # What is absent in JSON is None in Python.
    return re.sub(r"\b[Aa]bsent\b", "None", plain.replace("::", "."))


def _fields(body: str, indent: str) -> Iterator[Field]:
    rest = ""
    for line in body.splitlines():
        found = re.fullmatch(rf"{indent}(?:pub )?(\w+): (.*),", line)
        if found:
            yield Field(found[1], found[2], _serde(rest), _doc(rest))
            rest = ""
        else:
            rest += line + "\n"


def _variants(body: str) -> Iterator[tuple[str, tuple[Field, ...] | str, bool]]:
    rest = ""
    for part in re.split(r"(?m)^(?=    [A-Z])", body):
        found = re.match(r"    (\w+)(?:\((\w+)\)| \{\n(.*?)^    \})?,\n", part, re.S | re.M)
        if found:
            inner = found[2] or tuple(_fields(found[3] or "", "        "))
            yield found[1], inner, "#[default]" in rest
        rest = part


@cache
def types() -> dict[str, Type]:
    """Every type that is written as JSON in the crates of the plan and of the cores."""
    found: dict[str, Type] = {}
    item = re.compile(r"((?:^#\[.*?\]\n)+)pub (struct|enum) (\w+)(?:<T>)? \{\n(.*?)^\}", re.S | re.M)
    for crate in ("core", "plan"):
        for path in sorted((ROOT / "crates" / crate / "src").rglob("*.rs")):
            for attributes, what, name, body in item.findall(path.read_text(encoding="utf-8")):
                if "Serialize" not in attributes:
                    continue
                if what == "struct":
                    found[name] = Type(_serde(attributes), fields=tuple(_fields(body, "    ")))
                else:
                    found[name] = Type(_serde(attributes), variants=tuple(_variants(body)))
    return found


@cache
def _aliases() -> dict[str, str]:
    """Names of types of words that Python has."""
    text = "".join((PLAN / f"{module}.py").read_text(encoding="utf-8") for module in MODULES)
    return {name: name for name in re.findall(r"^(\w+) = Literal\[", text, re.M)}


def _words(kind: Type, before: str = "") -> str:
    words = ", ".join(f'"{kind.word(name)}"' for name, _, _ in kind.variants)
    line = f"{before}Literal[{words}]"
    return line if len(line) <= WIDTH else f"{before}Literal[\n    {words}\n]"


def _class(rust: str) -> str:
    return next((name for name, other in _RUST_NAMES.items() if other == rust), rust)


def _kind(rust: str) -> str:
    """A type in Python."""
    if rust in _PLAIN:
        return _PLAIN[rust]
    for pattern, made in _GENERIC:
        if inner := re.fullmatch(pattern, rust):
            return made(*inner.groups())
    kind = types()[rust]
    if kind.is_tagged:
        return " | ".join(name for name, _, _ in kind.variants)
    if kind.variants:
        return _aliases().get(rust, _words(kind))
    return _class(rust)


_GENERIC: tuple[tuple[str, Callable[..., str]], ...] = (
    (r"[ui]\d+", lambda: "int"),
    (r"Option<(.*)>", lambda inner: f"{_kind(inner)} | None"),
    (r"(?:Box|Rc|Arc)<(.*)>", _kind),
    (r"Vec<(.*)>", lambda inner: f"tuple[{_kind(inner)}, ...]"),
    (r"\((\w+), (\w+)\)", lambda *inner: f"tuple[{', '.join(map(_kind, inner))}]"),
    (r"\[(\w+); ([23])\]", lambda inner, many: f"tuple[{', '.join([_kind(inner)] * int(many))}]"),
)


def _lines(field: Field) -> Iterator[str]:
    """A field as a line of its class, with its documentation below it."""
    if "flatten" in field.serde:
        for inner in types()[field.kind].fields:
            yield from _lines(inner)
        return
    renamed = re.search(r'rename = "(\w+)"', field.serde)
    name = renamed[1] if renamed else field.name
    name = f"{name}_" if name in ("from", "for", "class") else name
    kind, default = _kind(field.kind), _default(field)
    if default == "None" and not kind.endswith("| None"):
        kind += " | None"
    is_written = default not in ("", "None") and "skip_serializing_if" not in field.serde
    value = f" = {f'written({default})' if is_written else default}" if default else ""
    yield f"    {name}: {kind}{value}"
    if field.doc:
        yield from docstring(field.doc, 4)


def _default(field: Field) -> str:
    """What counts where the plan says nothing; empty: it has to."""
    stated = re.search(r'(?:^|[ ,(])default(?: = "([\w:]+)")?', field.serde)
    if stated is None:
        return ""
    if stated[1] in _OTHERWISE:
        return _OTHERWISE[stated[1]]
    kind = _kind(field.kind)
    if kind.startswith("tuple[") and not kind.endswith("| None"):
        return "()"
    usual = types().get(field.kind)
    if usual is not None and usual.variants and not usual.is_tagged:
        return f'"{next(usual.word(name) for name, _, is_usual in usual.variants if is_usual)}"'
    return f"{kind}()" if kind in _BY_VALUE else _DEFAULTS.get(kind, "None")


def _fields_of(name: str) -> tuple[Field, ...] | None:
    """The fields of the class with this name; None where they are kept by hand."""
    rust = _RUST_NAMES.get(name, name)
    if rust in types() and types()[rust].fields:
        return types()[rust].fields
    for kind in types().values():
        for variant, inner, _ in kind.variants if kind.is_tagged else ():
            if variant == name:
                return types()[inner].fields if isinstance(inner, str) else inner
    return None


_CLASS = re.compile(
    r'(?P<head>^class (?P<name>\w+)\((?:Plan|Variant)\b[^\n]*\n    """(?:[^"]|"(?!""))*"""\n)'
    r"(?P<fields>(?:(?!^    @|^    def |^\S).*\n)*)",
    re.M,
)


def renewed(module: str) -> str:
    """The text of a module of `wiregauge.plan` with the fields and the choices that the types in Rust have."""
    text = (PLAN / f"{module}.py").read_text(encoding="utf-8")

    def of_class(found: re.Match[str]) -> str:
        fields = _fields_of(found["name"])
        if fields is None:
            return found[0]
        lines = "".join(f"{line}\n" for field in fields for line in _lines(field))
        last = found["fields"].rstrip("\n")
        after = found["fields"][len(last) + 1 if last else 0 :]
        return f"{found['head']}\n{lines}{after}" if lines else found[0]

    def of_words(found: re.Match[str]) -> str:
        kind = types().get(found[1])
        return _words(kind, f"{found[1]} = ") if kind else found[0]

    return re.sub(r"^(\w+) = Literal\[[^\]]*\]", of_words, _CLASS.sub(of_class, text), flags=re.M)


def files() -> dict[Path, str]:
    """What each module is to hold."""
    return {PLAN / f"{module}.py": renewed(module) for module in MODULES}
