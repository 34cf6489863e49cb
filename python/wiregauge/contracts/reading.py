"""Reads contracts: TOML, as `--learn` writes it, and tables of virtual links as CSV."""

from __future__ import annotations

import csv
import hashlib
import re
import tomllib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NoReturn

from wiregauge.contracts.contract import Contract, ContractError, Expected, identities
from wiregauge.contracts.promises import PROMISES
from wiregauge.files import nearest, printable, read_text
from wiregauge.plan.quantity import QuantityError, size_b, time_ps
from wiregauge.streams import JITTER_LIMIT_PS, PS_PER_NS

__all__ = ["VIRTUAL_LINK", "digest", "read_contract", "virtual_link"]

VIRTUAL_LINK: Final = "arinc664"
_UNITS: Final = {promise.key: promise.unit for promise in PROMISES}
_LARGEST_ID: Final = 0xFFFF
_PS_PER_MS: Final = 10**9
_BAGS: Final = tuple(_PS_PER_MS << power for power in range(8))
_ABOUT: Final = ("name", "kind", "network", "vlans", "bag", "skew-max", "max-on-one")
_LARGEST_FILE: Final = 64 << 20
_COLUMNS: Final = {
    "id": ("id", "vl", "vl id", "vlid", "virtual link"),
    "bag": ("bag",),
    "lmax": ("lmax", "l max", "max frame size"),
    "networks": ("networks", "network", "a/b", "ab"),
    "max-jitter": ("max-jitter", "max jitter", "jitter"),
    "skew-max": ("skew-max", "skew max", "skewmax"),
    "name": ("name", "label"),
}
_SEPARATORS: Final = ",;\t"


def read_contract(path: Path) -> Contract:
    """The contract in a file of TOML or CSV. Raises ContractError."""
    try:
        text = read_text(path, _LARGEST_FILE)
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else error
        raise ContractError(f"{path}: cannot be read ({why}); name a contract: TOML, CSV or a test") from None
    read = _Csv if path.suffix.lower() in (".csv", ".tsv", ".txt") else _Toml
    return read(path, text).contract()


def digest(text: str) -> str:
    """SHA-256 of a file's text."""
    return hashlib.sha256(text.encode()).hexdigest()


def virtual_link(
    number: int,
    *,
    name: str,
    network: str,
    bag_ps: int,
    lmax: int | None,
    jitter_ps: float = JITTER_LIMIT_PS,
    skew_max_ps: int | None = None,
) -> Expected:
    """A virtual link on network A, B or both (AB), whose frames are numbered without a gap; empty: nobody says."""
    bounds = {"max-jitter": jitter_ps / PS_PER_NS, "max-missing": 0.0, "max-rejected": 0.0}
    if lmax is not None:
        bounds["lmax"] = float(lmax)
    return Expected(
        name=name,
        kind=VIRTUAL_LINK,
        fields={"vl": number},
        network="A" if network == "A" else "B" if network == "B" else None,
        bag_ps=bag_ps,
        bounds=bounds,
        skew_max_ps=skew_max_ps,
        max_on_one=0 if network == "AB" else None,
    )


def _once(streams: list[Expected], file: Path) -> tuple[Expected, ...]:
    known: dict[tuple[object, ...], str] = {}
    for one in streams:
        if one.identity in known:
            raise ContractError(
                f'{file}: "{one.name}" and "{known[one.identity]}" are recognised by the same; join them, or state '
                "what tells them apart"
            )
        known[one.identity] = one.name
    if not streams:
        raise ContractError(f"{file}: it lists no stream; write a table [[stream]], or a row, for each")
    return tuple(streams)


class _Toml:
    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def contract(self) -> Contract:
        try:
            held = tomllib.loads(self._text)
        except tomllib.TOMLDecodeError as error:
            raise ContractError(f"{self._path}: is no TOML: {error}") from None
        self._identities = identities()
        tables = held.pop("stream", [])
        others = held.pop("others", "allowed")
        for key in held:
            self._fail(
                key, 0, f'there is no "{key}"{nearest(key, ("stream", "others"))}; write [[stream]] or others'
            )
        if others not in ("allowed", "refused"):
            self._fail("others", 0, f'"{others}" is neither "allowed" nor "refused"')
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            self._fail("stream", 0, "write a table [[stream]] for each stream")
        streams = [self._stream(table, number) for number, table in enumerate(tables, 1)]
        return Contract(
            file=str(self._path),
            sha256=digest(self._text),
            streams=_once(streams, self._path),
            refuses_others=others == "refused",
        )

    def _fail(self, key: str, table: int, why: str) -> NoReturn:
        """Raises ContractError with the line of a key in the table of this number; 0: before all tables."""
        lines = self._text.splitlines()
        heads = [0, *(n for n, line in enumerate(lines) if re.match(r"\s*\[\[\s*stream\s*\]\]", line))]
        begin = heads[min(table, len(heads) - 1)]
        own = (
            n
            for n in range(begin, len(lines))
            if re.match(rf'\s*(\[+\s*)?"?{re.escape(key)}"?\s*[\].=]', lines[n])
        )
        raise ContractError(f"{self._path}:{next(own, begin) + 1}: {printable(why)}")

    def _stream(self, table: Mapping[str, Any], number: int) -> Expected:
        kind = table.get("kind")
        if kind not in self._identities:
            self._fail(
                "kind",
                number,
                f"the kind is missing or unknown{nearest(str(kind), self._identities)}; write one of "
                f"{', '.join(self._identities)}",
            )
        parts = self._identities[str(kind)]
        known = (*_ABOUT, *_UNITS, *parts)
        bounds, fields = {}, {}
        for key, value in table.items():
            if key not in known:
                self._fail(
                    key, number, f'there is no "{key}"{nearest(key, known)}; there are {", ".join(known)}'
                )
            if key in _UNITS:
                bounds[key] = self._bound(key, value, number)
            elif key in parts:
                fields[key] = self._whole_or_text(key, value, number)
        bag = self._read("bag", table["bag"], number, time_ps) if "bag" in table else 0
        if bag and (kind != VIRTUAL_LINK or bag not in _BAGS):
            self._fail("bag", number, f'"{table["bag"]}": a virtual link has a BAG of 1ms, 2ms, 4ms … 128ms')
        if "max-jitter" in bounds and not bag:
            self._fail("max-jitter", number, 'a jitter is one of a BAG; add bag = "8ms"')
        if bag:
            bounds.setdefault("max-jitter", JITTER_LIMIT_PS / PS_PER_NS)
        network = table.get("network")
        if network not in (None, "A", "B"):
            self._fail("network", number, f'"{network}" is no network; write "A" or "B", or leave it out')
        vlans = table.get("vlans")
        if vlans is not None and not (isinstance(vlans, list) and all(type(vlan) is int for vlan in vlans)):
            self._fail("vlans", number, "write the VLANs, outermost first, as a list of numbers: [100, 5]")
        skew = table.get("skew-max")
        return Expected(
            name=str(table.get("name", f"stream {number}")),
            kind=str(kind),
            fields=fields,
            network=network,
            vlans=None if vlans is None else tuple(vlans),
            bag_ps=bag,
            bounds=bounds,
            skew_max_ps=None if skew is None else self._read("skew-max", skew, number, time_ps),
            max_on_one=self._count("max-on-one", table["max-on-one"], number)
            if "max-on-one" in table
            else None,
        )

    def _bound(self, key: str, value: object, number: int) -> float:
        if _UNITS[key] == "frames":
            return self._count(key, value, number)
        if _UNITS[key] == "B":
            return self._read(key, value, number, size_b)
        return self._read(key, value, number, time_ps) / PS_PER_NS

    def _count(self, key: str, value: object, number: int) -> int:
        if type(value) is not int or value < 0:
            self._fail(key, number, f"{key} = {value!r}: write a number of frames, 0 or more")
        return value

    def _read(self, key: str, value: object, number: int, reader: Callable[[str], int]) -> int:
        try:
            return reader(value if isinstance(value, str) else str(value))
        except QuantityError as error:
            self._fail(key, number, f"{key}: {error}")

    def _whole_or_text(self, key: str, value: object, number: int) -> int | str:
        if type(value) is not int and not isinstance(value, str):
            self._fail(key, number, f"{key} = {value!r}: write it as `wiregauge show --json` does, in fields")
        return value


class _Csv:
    """A row for each virtual link. Numbers without a unit have that of their column's head: `bag (ms)`, `lmax (B)`."""

    def __init__(self, path: Path, text: str) -> None:
        self._path, self._text = path, text

    def contract(self) -> Contract:
        head = next(
            (line for line in self._text.splitlines() if line.strip() and not line.lstrip().startswith("#")),
            "",
        )
        separator = max(_SEPARATORS, key=head.count)
        rows = csv.reader(self._text.splitlines(), delimiter=separator, skipinitialspace=True)
        columns: list[tuple[str, str]] | None = None
        streams = []
        for line, row in enumerate(rows, 1):
            if not any(cell.strip() for cell in row) or row[0].lstrip().startswith("#"):
                continue
            if columns is None:
                columns = self._columns(row, line)
                continue
            if len(row) != len(columns):
                self._fail(line, f"there are {len(row)} cells below {len(columns)} heads")
            cells = {name: (cell.strip(), unit) for (name, unit), cell in zip(columns, row, strict=True)}
            streams.append(self._link(cells, line))
        return Contract(file=str(self._path), sha256=digest(self._text), streams=_once(streams, self._path))

    def _fail(self, line: int, why: str) -> NoReturn:
        raise ContractError(f"{self._path}:{line}: {printable(why)}")

    def _columns(self, row: list[str], line: int) -> list[tuple[str, str]]:
        columns = []
        for cell in row:
            found = re.fullmatch(r"(.*?)\s*(?:[(\[]\s*(\w+)\s*[)\]])?", cell.strip().lstrip("\ufeff"))
            title, unit = (found[1].lower().replace("_", " "), found[2] or "") if found else (cell, "")
            name = next((name for name, titles in _COLUMNS.items() if title in titles), None)
            if name is None:
                known = tuple(title for titles in _COLUMNS.values() for title in titles)
                self._fail(
                    line,
                    f'there is no column "{cell}"{nearest(title, known)}; there are {", ".join(_COLUMNS)}',
                )
            columns.append((name, unit))
        names = [name for name, _ in columns]
        for name in ("id", "bag", "lmax"):
            if name not in names:
                self._fail(line, f'the first row has the names of columns; there is no column "{name}"')
        twice = [name for name in names if names.count(name) > 1]
        if twice:
            self._fail(line, f'the column "{twice[0]}" is there twice')
        return columns

    def _link(self, cells: Mapping[str, tuple[str, str]], line: int) -> Expected:
        try:
            number = int(cells["id"][0], 0)
        except ValueError:
            self._fail(line, f'"{cells["id"][0]}" is no number of a virtual link; write 0 to 65535')
        if not 0 <= number <= _LARGEST_ID:
            self._fail(line, f"{number} is no number of a virtual link; write 0 to 65535")
        bag = self._quantity(cells, "bag", line, time_ps, "ms")
        if bag not in _BAGS:
            self._fail(line, f'"{cells["bag"][0]}": a virtual link has a BAG of 1ms, 2ms, 4ms … 128ms')
        networks = re.sub(r"[^a-z]", "", cells.get("networks", ("", ""))[0].lower()).upper()
        if networks not in ("", "A", "B", "AB"):
            self._fail(line, f'"{cells["networks"][0]}" names no networks; write A, B or AB')
        jitter = self._quantity(cells, "max-jitter", line, time_ps, "us")
        return virtual_link(
            number,
            name=cells.get("name", ("", ""))[0] or f"VL {number}",
            network=networks,
            bag_ps=bag,
            lmax=self._quantity(cells, "lmax", line, size_b, "B"),
            jitter_ps=JITTER_LIMIT_PS if jitter is None else jitter,
            skew_max_ps=self._quantity(cells, "skew-max", line, time_ps, "us"),
        )

    def _quantity(
        self,
        cells: Mapping[str, tuple[str, str]],
        name: str,
        line: int,
        reader: Callable[[str], int],
        usual: str,
    ) -> int | None:
        text, unit = cells.get(name, ("", ""))
        if not text:
            return None
        if re.fullmatch(r"[\d.]+", text):
            if not unit:
                self._fail(
                    line, f'{name} "{text}" has no unit; write {text}{usual}, or {name} ({usual}) as head'
                )
            text += unit
        try:
            return reader(text)
        except QuantityError as error:
            self._fail(line, f"{name}: {error}")
