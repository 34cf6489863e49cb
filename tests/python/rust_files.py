"""Dependencies between the files of a Rust crate: by `use` and by paths, with re-exports followed to their file."""

from __future__ import annotations

import re
from pathlib import Path

_COMMENT = re.compile(r"//[^\n]*|/\*.*?\*/", re.DOTALL)
_STRING = re.compile(r'b?r?"(?:\\.|[^"\\])*"', re.DOTALL)
_TESTS = re.compile(r"#\[cfg\(test\)\]\s*(?:pub(?:\([^)]*\))?\s+)?mod\s+\w+\s*\{")
_USE = re.compile(r"(?:^|[;{}\s])(pub(?:\([^)]*\))?\s+)?use\s+([^;]+);")
_PATH = re.compile(r"\b(?:crate|super|self)(?:::\w+)+")


def needs_of(source: Path) -> dict[str, set[str]]:
    """The files below `source`, the folder of a crate with lib.rs or main.rs, with the other files each names."""
    crate = _Crate(source)
    return {name: crate.needs(name) for name in crate.code}


class _Crate:
    def __init__(self, source: Path) -> None:
        self.code: dict[str, str] = {}
        self.module_of: dict[str, tuple[str, ...]] = {}
        self.file_of: dict[tuple[str, ...], str] = {}
        for path in sorted(source.rglob("*.rs")):
            place = path.relative_to(source)
            if place.parts[0] == "bin" or "tests" in place.with_suffix("").parts:
                continue
            parts = place.with_suffix("").parts
            module = parts[:-1] if parts[-1] in ("mod", "lib", "main") else parts
            if parts == ("main",) and (source / "lib.rs").exists():
                continue
            name = str(place)
            self.code[name] = plain(path.read_text(encoding="utf-8"))
            self.module_of[name] = module
            self.file_of[module] = name
        self.handed_on = {name: self._handed_on(name) for name in self.code}

    def _handed_on(self, name: str) -> dict[str, tuple[str, ...]]:
        """Names that a file imports by `use` from its crate, with their paths."""
        trees = (tree for _, tree in _USE.findall(self.code[name]))
        return {called: path for tree in trees for path, called in flat(tree)}

    def _absolute(self, module: tuple[str, ...], path: tuple[str, ...]) -> tuple[str, ...] | None:
        """A path from the root of the crate; None for one that leads out of it."""
        if path[0] == "crate":
            return path[1:]
        if path[0] in ("super", "self"):
            base, rest = module, path
            while rest and rest[0] in ("super", "self"):
                base = base[:-1] if rest[0] == "super" else base
                rest = rest[1:]
            return base + rest
        return module + path if module + path[:1] in self.file_of else None

    def _file(self, path: tuple[str, ...], depth: int = 0) -> str | None:
        """The file that defines the item at an absolute path."""
        for length in range(len(path), -1, -1):
            name = self.file_of.get(path[:length])
            if name is None:
                continue
            if length == len(path) or depth > 8:
                return name
            wanted = path[length]
            if re.search(
                rf"\b(?:fn|struct|enum|trait|type|const|static|union)\s+{wanted}\b", self.code[name]
            ):
                return name
            onward = self.handed_on[name].get(wanted)
            if onward is not None:
                absolute = self._absolute(path[:length], onward)
                if absolute is None:
                    return None  # of another crate
                if absolute != path:
                    return self._file(absolute, depth + 1)
            return name
        return None

    def needs(self, name: str) -> set[str]:
        module, code = self.module_of[name], self.code[name]
        paths = [path for is_pub, tree in _USE.findall(code) if not is_pub for path, _ in flat(tree)]
        without = _USE.sub(" ", code)
        paths += [tuple(found.split("::")) for found in _PATH.findall(without)]
        # A module by its name: imported by `use`, or a child.
        own = self.handed_on[name]
        for head, tail in re.findall(r"(?<![:\w])([a-z_]\w*)::(\w+)", without):
            if head in own:
                paths.append((*own[head], tail))
            elif (*module, head) in self.file_of:
                paths.append((head, tail))
        found = set()
        for path in paths:
            absolute = self._absolute(module, path)
            where = None if absolute is None else self._file(absolute)
            if where is not None and where != name:
                found.add(where)
        return found


def plain(text: str) -> str:
    """Code without comments, strings and tests."""
    text = _COMMENT.sub(" ", _STRING.sub('""', text))
    while (found := _TESTS.search(text)) is not None:
        depth, at = 1, found.end()
        while depth and at < len(text):
            depth += {"{": 1, "}": -1}.get(text[at], 0)
            at += 1
        text = text[: found.start()] + text[at:]
    return text


def flat(tree: str) -> list[tuple[tuple[str, ...], str]]:
    """The paths of a `use`, each with its name in scope."""
    tree = " ".join(tree.split())
    brace = tree.find("{")
    if brace < 0:
        path, _, called = tree.partition(" as ")
        parts = tuple(part.strip() for part in path.strip().split("::") if part.strip())
        if parts and parts[-1] == "*":
            return [(parts[:-1], "*")]
        if parts and parts[-1] == "self":
            parts = parts[:-1]
        return [(parts, called.strip() or parts[-1])] if parts else []
    head, inner = tree[:brace], tree[brace + 1 : tree.rindex("}")]
    pieces, depth, begin = [], 0, 0
    for at, letter in enumerate(inner + ","):
        depth += {"{": 1, "}": -1}.get(letter, 0)
        if letter == "," and depth == 0:
            pieces.append(inner[begin:at])
            begin = at + 1
    return [found for piece in pieces if piece.strip() for found in flat(head.strip() + piece.strip())]
