"""Checks that files of a run directory are the ones that were written, by their hashes, on every read.

The manifest lists every file with its length, rows and SHA-256, and what it was made from; JSON files carry a digest of
themselves. A directory may have neither: it is read as *unverified*. SHA-256 is the one hash that every
system can compute without this program (`sha256sum`), and processors have instructions for it.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import threading
from collections.abc import Iterable, Mapping
from math import isfinite
from pathlib import Path
from typing import Any, Final, NoReturn

import msgspec

from wiregauge.files import open_regular, printable_content, read_regular
from wiregauge.records.errors import DamagedError, RunDirectoryError
from wiregauge.records.uncollected import uncollected

__all__ = ["Inventory", "describe", "read_json", "seal", "sealed_digest", "write_sealed"]

_UNSEALED: Final = re.compile(rb'(?:\A\{\s{0,4}"digest": |<meta name="digest" content=)"(?=")')
_SEAL: Final = re.compile(rb'(?:\A\{\s{0,4}"digest": |<meta name="digest" content=)"([0-9a-f]{64})"')
_HEAD: Final = 600
"""Bytes at the beginning of a file that hold its digest."""
_CHECKED: set[tuple[object, ...]] = set()
"""Files that this process has found to be whole: none is hashed twice."""
_CHECKING: Final = threading.Lock()


# -- JSON files that carry their own digest ----------------------------------------------------------------


def seal(text: str) -> bytes:
    """The bytes of a JSON object whose first key is `"digest": ""`, with SHA-256 of these bytes filled in.

    Likewise of an HTML page with `<meta name="digest" content="">` in its head.
    """
    data = text.encode("utf-8", "backslashreplace")
    empty = _UNSEALED.search(data, 0, _HEAD)
    if empty is None:
        raise ValueError("there is no empty digest at the beginning")
    return data[: empty.end()] + hashlib.sha256(data).hexdigest().encode() + data[empty.end() :]


def write_sealed(path: Path, chunks: Iterable[str]) -> None:
    """Writes a text to `path` as `seal` does, from parts that are not kept in memory. Raises OSError."""
    digest, head, place = hashlib.sha256(), b"", None
    with path.open("wb") as file:
        for chunk in chunks:
            data = chunk.encode("utf-8", "backslashreplace")
            digest.update(data)
            if place is not None:
                file.write(data)
                continue
            head += data
            empty = _UNSEALED.search(head, 0, _HEAD)
            if empty is not None:
                place = empty.end()
                file.write(head[:place] + bytes(2 * digest.digest_size) + head[place:])
        if place is None:
            raise ValueError("there is no empty digest at the beginning")
        file.seek(place)
        file.write(digest.hexdigest().encode())


def sealed_digest(data: bytes, path: Path) -> str | None:
    """The digest within the bytes of a file; None without one.

    Raises DamagedError where it does not match them.
    """
    found = _SEAL.search(data, 0, _HEAD)
    if found is None:
        return None
    start, end = found.span(1)
    if hashlib.sha256(data[:start] + data[end:]).hexdigest().encode() != found[1]:
        raise DamagedError(
            f"{path}: is damaged or was altered: its digest is not that of its content; restore it from a copy"
        )
    return found[1].decode()


def read_json(path: Path, *, sound: bool = False) -> tuple[dict[str, Any], str | None]:
    """A JSON object that the program wrote, and its digest.

    `sound`: the hash of the file was verified. Non-finite numbers and integers over 64 bits are refused. Raises
    RunDirectoryError, or DamagedError where the digest shows damage.
    """
    try:
        data = read_regular(path)
    except OSError as error:
        kind = DamagedError if error.errno == errno.EFBIG else RunDirectoryError
        raise kind(f"{path}: cannot be read: {error.strerror}") from None
    digest = sealed_digest(data, path)
    try:
        # Content that the program does not write takes the slow path, which finds out what is wrong.
        content = _quickly(data) if digest is not None or sound else None
        content = content or json.loads(data, parse_constant=_refuse, parse_float=_finite, parse_int=_bounded)
        if _UNSEEN.search(data):
            content = printable_content(content)
    except (ValueError, RecursionError) as error:
        raise DamagedError(f"{path}: is not JSON ({_first_line(error)}); the file is damaged") from None
    if not isinstance(content, dict):
        raise DamagedError(f"{path}: should hold an object; the file is damaged")
    if digest is None and "digest" in content:
        raise DamagedError(
            f"{path}: is damaged or was altered: its digest is no digest; restore it from a copy"
        )
    return content, digest


def _quickly(data: bytes) -> dict[str, Any] | None:
    """The decoded object of bytes with a verified digest; None if they may hold a number or a word that is refused."""
    if _SURROGATE.search(data) or not all(map(_fitting, _LONG.findall(data))):
        return None
    try:
        with uncollected():
            return msgspec.json.decode(data, type=dict[str, Any])
    except msgspec.MsgspecError:
        return None


_LONG: Final = re.compile(rb"-?[0-9]{19,}")
"""A number near or beyond 64 bits, such as a seed."""
_UNSEEN: Final = re.compile(
    rb"\\[bfnrt]|\\u(?:00[01789]|00[aA][dD]|0[6-9]|1[78]|20[0-6]|[dD][89a-fA-F]|[eEfF])|\x7f"
    rb"|\xc2[\x80-\x9f\xad]|[\xd8\xdb\xdc\xe0\xe1\xee\xef\xf0\xf3\xf4]|\xe2\x80[\x8b-\x8f\xa8-\xae]|\xe2\x81[\xa0-\xaf]"
)
"""Bytes of JSON in which a character may be that is not to be seen; other bytes are not looked at string by string."""
_SURROGATE: Final = re.compile(rb"\\u[dD][89a-fA-F]")
"""Half a surrogate pair."""


def _fitting(digits: bytes) -> bool:
    return len(digits) <= 20 and -(2**63) <= int(digits) < 2**64


def _refuse(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")


def _finite(text: str) -> float:
    value = float(text)
    return value if isfinite(value) else _refuse(text)


def _bounded(text: str) -> int:
    """A whole number of at most 64 bits; nothing that the program writes is larger."""
    if len(text) > 20 or not -(2**63) <= int(text) < 2**64:
        raise ValueError(f"{text[:20]}… is larger than 64 bits")
    return int(text)


def _first_line(error: BaseException) -> str:
    lines = str(error).splitlines()
    return lines[0][:160] if lines else type(error).__name__


# -- files and their entries in the manifest ----------------------------------------------------------------


def describe(path: Path, made_from: Mapping[str, str]) -> dict[str, Any]:
    """The manifest entry of a file: `bytes`, `rows` (of a table), `sha256`, and `from`, the hashes of its sources.

    Raises RunDirectoryError where it cannot be read.
    """
    try:
        with open_regular(path) as file:
            digest = hashlib.file_digest(file, "sha256").hexdigest()
            size = os.fstat(file.fileno()).st_size
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    return {"bytes": size, "rows": _rows(path), "sha256": digest, "from": dict(made_from)}


def _rows(path: Path) -> int | None:
    """Number of rows of a table; None for other files."""
    if path.suffix != ".parquet":
        return None
    import polars as pl  # heavy, and not needed while frames travel

    try:
        return int(pl.scan_parquet(path, glob=False).select(pl.len()).collect().item())
    except (OSError, pl.exceptions.PolarsError):
        return None


class Inventory:
    """The files of a run directory as its manifest lists them; None where it lists none."""

    def __init__(self, root: Path, files: Mapping[str, Any] | None) -> None:
        self.root = root
        self.files = files

    @property
    def verified(self) -> bool:
        """Whether files are checked when read; False for a directory without hashes."""
        return self.files is not None

    @property
    def adopted(self) -> list[str]:
        """Records that somebody put in the place of those that the run wrote."""
        return sorted(name for name, entry in (self.files or {}).items() if entry.get("adopted"))

    def find(self, path: Path) -> Path | None:
        """`path` if it is there, checked; None where there is no such file and should be none.

        Raises DamagedError for a file that is missing, not as it was written, or does not belong to the run.
        """
        there = path.is_file()
        if self.files is None:
            return path if there else None
        listed = self.files.get(path.relative_to(self.root).as_posix())
        if listed is None:
            if there:
                raise DamagedError(
                    f"{path}: does not belong to this run: the manifest does not list it; move it elsewhere"
                )
            return None
        wrong = fault(path, listed)
        if wrong is not None:
            raise DamagedError(f"{path}: {wrong}; {_cure(path, self.root)}")
        return path

    def check(self, paths: Iterable[Path]) -> None:
        """Checks each file, as `find`."""
        for path in paths:
            self.find(path)


def fault(path: Path, listed: Mapping[str, Any]) -> str | None:
    """A short description of how a file differs from its manifest entry `listed`; None where it does not."""
    try:
        with open_regular(path) as file:
            found = os.fstat(file.fileno())
            if found.st_size != listed["bytes"]:
                kind = "was cut short" if found.st_size < listed["bytes"] else "has grown"
                return f"{kind}: {found.st_size} bytes, {listed['bytes']} were written"
            key = (
                found.st_dev,
                found.st_ino,
                found.st_size,
                found.st_mtime_ns,
                found.st_ctime_ns,
                listed["sha256"],
            )
            with _CHECKING:
                if key in _CHECKED:
                    return None
                if hashlib.file_digest(file, "sha256").hexdigest() != listed["sha256"]:
                    return "is not the file that was written: its content is another"
                _CHECKED.add(key)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    return None


_MADE_ANEW: Final = {"messages", "passages", "sketches", "extremes", "tracking.json"}


def _cure(path: Path, root: Path) -> str:
    """Cure for a damaged file: tables can be made again from complete records; measurements cannot."""
    if path.relative_to(root).parts[0] in _MADE_ANEW:
        return f"`wiregauge track {root}` makes it again from the records, or restore it from a copy"
    return "restore it from a copy"
