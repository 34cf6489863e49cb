"""Networks in NED, the language of OMNeT++: nodes, links, and what they assign to parameters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct, field
from msgspec.structs import replace

from wiregauge.inet.values import InetError

__all__ = ["End", "Library", "Link", "Ned", "Node"]

_TOKEN = re.compile(
    r"""\s*(?:(?P<comment>//[^\n]*)|(?P<text>"(?:[^"\\]|\\.)*")|(?P<word>[A-Za-z_@$][\w$-]*)"""
    r"""|(?P<number>\d[\w.]*)|(?P<sign><-->|<--|-->|\+\+|\.\.|[^\s]))"""
)
_EMPTY_BASES: Final = frozenset({"TsnNetworkBase", "WiredNetworkBase", "NetworkBase", "Module"})
"""Networks of INET that have no node of traffic, only what configures and draws."""
_CHANNELS: Final = {
    name: {"datarate": f"{name[3:]}bps"}
    for name in ("Eth10M", "Eth100M", "Eth1G", "Eth10G", "Eth40G", "Eth100G", "Eth200G", "Eth400G")
}
"""Channels of INET, for networks whose folder has no sources of INET."""
_LARGEST_FILES: Final = 20_000
"""Most files that are looked through for a network."""


class Node(Struct, frozen=True):
    """A submodule: its name, its type where the file has one, and whether it is there only under a condition."""

    name: str
    kind: str
    is_conditional: bool


class End(Struct, frozen=True):
    """One end of a link: a node, and the number of its interface."""

    node: str
    interface: int


class Link(Struct, frozen=True):
    """Two ends, the channel's type, and its parameters as they are written."""

    ends: tuple[End, End]
    channel: str
    parameters: Mapping[str, str]


class Ned(Struct, frozen=True):
    """A network, what it extends included. `assigned` has the defaults of parameters, by pattern."""

    name: str
    nodes: Sequence[Node]
    links: Sequence[Link]
    assigned: Sequence[tuple[str, str]]


class _Definition(Struct):
    """A network, module or channel of a file."""

    kind: str
    name: str
    base: str
    file: Path
    nodes: list[Node] = field(default_factory=list)
    links: list[tuple[tuple[str, int | None], tuple[str, int | None], str, dict[str, str]]] = field(
        default_factory=list
    )
    assigned: list[tuple[str, str]] = field(default_factory=list)


class Library:
    """The definitions of all NED files below some folders, read when they are asked for."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self._files = [
            file
            for folder in folders
            for file in sorted(folder.rglob("*.ned"))[:_LARGEST_FILES]
            if file.is_file()
        ]
        self._read: dict[Path, list[_Definition]] = {}
        self._texts: dict[Path, str] = {}

    def network(self, name: str) -> Ned:
        """The network of a name, which may have its package before it. Raises InetError, OSError."""
        short = name.rpartition(".")[2]
        found = self._definition(short, "network")
        if found is None:
            raise InetError(
                [
                    f'the network "{name}" is in none of {len(self._files)} NED files; name its folder with --ned-path'
                ]
            )
        chain = [found]
        while chain[-1].base and chain[-1].base not in _EMPTY_BASES:
            base = self._definition(chain[-1].base, "network")
            if base is None or base in chain:
                raise InetError(
                    [
                        f'{chain[-1].file}: the network extends "{chain[-1].base}", which no file has; add --ned-path'
                    ]
                )
            chain.append(base)
        whole = chain[::-1]
        counted: dict[str, int] = {}
        links = [
            Link((_end(one, counted), _end(other, counted)), channel, parameters)
            for part in whole
            for one, other, channel, parameters in part.links
        ]
        nodes = [node for part in whole for node in part.nodes]
        known = {node.name for node in nodes}
        strangers = {end.node for link in links for end in link.ends} - known
        if strangers:
            raise InetError(
                [f'{found.file}: a link leads to "{name}", which is no node' for name in sorted(strangers)]
            )
        return Ned(
            short,
            nodes,
            links,
            [pair for part in chain for pair in part.assigned],
        )

    def kinds(self, name: str) -> Iterator[str]:
        """A type and what it extends, the nearest first, as far as files have them."""
        known: set[str] = set()
        while name and name not in known:
            known.add(name)
            yield name
            found = self._definition(name, "module")
            name = "" if found is None else found.base

    def channel(self, name: str) -> Mapping[str, str]:
        """The parameters of a type of channel, those of what it extends included."""
        parameters: dict[str, str] = {}
        known: set[str] = set()
        while name and name not in known:
            known.add(name)
            found = self._definition(name, "channel")
            if found is None:
                parameters = _CHANNELS.get(name, {}) | parameters
                break
            parameters = dict(found.assigned) | parameters
            name = found.base
        return parameters

    def _definition(self, name: str, kind: str) -> _Definition | None:
        wanted = re.compile(rf"\b{kind}\s+{re.escape(name)}\b")
        for file in self._files:
            if wanted.search(self._text(file)) is None:
                continue
            for one in self._definitions(file):
                # One that extends another of its own name, elsewhere, adds how it is drawn.
                if one.name == name and one.kind == kind and one.base != name:
                    return one
        return None

    def _text(self, file: Path) -> str:
        from wiregauge.files import read_text

        if file not in self._texts:
            self._texts[file] = read_text(file, errors="replace")
        return self._texts[file]

    def _definitions(self, file: Path) -> list[_Definition]:
        if file not in self._read:
            self._read[file] = _Reader(self._text(file), file).definitions()
        return self._read[file]


def _end(end: tuple[str, int | None], counted: dict[str, int]) -> End:
    node, given = end
    number = counted.get(node, 0) if given is None else given
    counted[node] = max(counted.get(node, 0), number + 1)
    return End(node, number)


class _Reader:
    """The parts of a file that make a network; what lies in other blocks is passed over."""

    def __init__(self, text: str, file: Path) -> None:
        self._file = file
        self._tokens = [(found[0].strip(), found.end()) for found in _tokens(text)]
        self._text = text
        self._at = 0
        self._found: list[_Definition] = []

    def definitions(self) -> list[_Definition]:
        while (word := self._take()) is not None:
            if word in ("network", "channel", "module", "simple") and self._is_name():
                self._definition("module" if word == "simple" else word)
            elif word == "{":
                self._block()
        return self._found

    def _definition(self, kind: str) -> None:
        one = _Definition(kind, self._word(), "", self._file)
        self._found.append(one)
        while (word := self._take()) not in (None, "{"):
            if word == "extends":
                one.base = self._dotted().rpartition(".")[2]
        section = "parameters"
        while (word := self._peek()) not in (None, "}"):
            if word in ("parameters", "types", "gates", "submodules", "connections") and self._peek(1) in (
                ":",
                "allowunconnected",
            ):
                section = self._word()
                while self._take() not in (None, ":"):
                    pass
            elif section == "submodules":
                self._submodule(one)
            elif section == "connections" and kind == "network":
                self._connection(one)
            elif section == "types" and word in ("channel", "module", "simple", "network"):
                self._take()
                self._definition("module" if word == "simple" else word)
            else:
                self._parameter(one.assigned, "")
        self._take()

    def _submodule(self, of: _Definition) -> None:
        name = self._word()
        if self._peek() == "[":
            self._refuse(f'"{name}" is a vector of nodes')
        self._needs(":")
        is_conditional = False
        kind = self._typed() if self._peek() == "<" else self._dotted().rpartition(".")[2]
        while self._peek() not in (None, ";", "{"):
            is_conditional |= self._take() == "if"
        of.assigned += self._braced(f"*.{name}.")
        if self._peek() == ";":
            self._take()
        of.nodes.append(Node(name, kind, is_conditional))

    def _typed(self) -> str:
        """The default of `<default("Type")>`, or nothing."""
        self._needs("<")
        kind = ""
        depth = 0
        while (word := self._take()) is not None and (word != ">" or depth):
            depth += {"(": 1, ")": -1}.get(word, 0)
            if word.startswith('"') and not kind:
                kind = word.strip('"')
        return kind

    def _connection(self, of: _Definition) -> None:
        if self._peek() in ("for", "@"):
            self._refuse("its connections are in a loop")
        one = self._gate()
        sign = self._take()
        channel, parameters = "", dict[str, str]()
        if sign not in ("<-->", "-->", "<--"):
            self._refuse(f'a connection has "{sign}" where an arrow should be')
        if not self._is_gate():
            channel = "" if self._peek() == "{" else self._dotted().rpartition(".")[2]
            parameters = dict(self._braced(""))
            self._needs(str(sign))
        other = self._gate()
        if sign == "<-->":
            of.links.append((one, other, channel, parameters))
        if self._peek() == "if":
            words = [self._take() for _ in range(5)]
            # A node that is not there has no links anyway.
            if words[1:3] != ["exists", "("] or words[3] not in (one[0], other[0]):
                self._refuse("a connection has a condition")
        self._needs(";")

    def _braced(self, before: str) -> list[tuple[str, str]]:
        """The parameters of a block, if there is one."""
        assigned: list[tuple[str, str]] = []
        if self._peek() == "{":
            self._take()
            while self._peek() not in (None, "}"):
                self._parameter(assigned, before)
            self._take()
        return assigned

    def _is_gate(self) -> bool:
        """Whether what follows is `node.gate++` rather than a type with its package."""
        return self._peek(1) == "." and self._peek(3) in ("++", "[", ";", "if")

    def _gate(self) -> tuple[str, int | None]:
        node = self._word()
        if self._peek() == "[":
            self._refuse(f'"{node}" is a vector of nodes')
        self._needs(".")
        self._word()
        if self._peek() == "[":
            self._take()
            number = self._take() or ""
            self._needs("]")
            if not number.isdecimal():
                self._refuse(f'a gate of "{node}" has a computed number')
            return node, int(number)
        if self._peek() == "++":
            self._take()
        return node, None

    def _parameter(self, into: list[tuple[str, str]], before: str) -> None:
        """An assignment, `pattern = value;`; a declaration or a property without value is passed over."""
        begin = self._begin()
        equals = end = None
        depth = 0
        while (word := self._take()) is not None:
            depth += {"{": 1, "(": 1, "[": 1, "}": -1, ")": -1, "]": -1}.get(word, 0)
            if word == "=" and not depth and equals is None:
                equals = self._at
            if word == ";" and depth <= 0:
                end = self._at
                break
            if depth < 0:
                self._at -= word == "}"
                break
        if equals is None or end is None:
            return
        left = self._text[begin : self._tokens[equals - 1][1] - 1].strip()
        right = self._text[self._tokens[equals - 1][1] : self._tokens[end - 1][1] - 1].strip()
        given = re.fullmatch(r"default\((.*)\)", right, re.DOTALL)
        # What is declared has its type before it, and properties behind it.
        name = re.sub(r"@\w+(\([^)]*\))?", "", left).split()
        if name and not left.startswith("@"):
            into.append((before + name[-1], given[1] if given is not None else right))

    # -- tokens ---------------------------------------------------------------------------------------------------

    def _begin(self) -> int:
        return self._tokens[self._at - 1][1] if self._at else 0

    def _peek(self, ahead: int = 0) -> str | None:
        at = self._at + ahead
        return self._tokens[at][0] if at < len(self._tokens) else None

    def _take(self) -> str | None:
        word = self._peek()
        self._at += word is not None
        return word

    def _is_name(self) -> bool:
        word = self._peek()
        return word is not None and re.fullmatch(r"[A-Za-z_]\w*", word) is not None

    def _word(self) -> str:
        if not self._is_name():
            self._refuse(f'"{self._peek()}" stands where a name should be')
        return self._take() or ""

    def _dotted(self) -> str:
        name = self._word()
        while self._peek() == "." and self._peek(2) != "++":
            self._take()
            name += f".{self._word()}"
        return name

    def _needs(self, word: str) -> None:
        if self._take() != word:
            self._at -= 1
            self._refuse(f'"{self._peek()}" stands where "{word}" should be')

    def _block(self) -> None:
        depth = 1
        while depth and (word := self._take()) is not None:
            depth += {"{": 1, "}": -1}.get(word, 0)

    def _refuse(self, what: str) -> None:
        line = self._text.count("\n", 0, self._begin()) + 1
        raise InetError([f"{self._file}:{line}: {what}, which is not read here"])


def _tokens(text: str) -> Iterator[re.Match[str]]:
    return (found for found in _TOKEN.finditer(text) if found["comment"] is None)


def without(ned: Ned, names: frozenset[str]) -> Ned:
    """The network without some nodes, and without their links."""
    return replace(
        ned,
        nodes=[node for node in ned.nodes if node.name not in names],
        links=[link for link in ned.links if not names & {end.node for end in link.ends}],
    )
