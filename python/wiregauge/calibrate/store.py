"""Calibrations on disk: one JSON file each, written atomically and never changed afterwards.

A file is identified by its number, a hash of its content, so that a run can cite it and a reader can check that it
was not altered. Nothing is ever overwritten: a newer calibration replaces an older one by its date.
"""

from __future__ import annotations

import datetime
import functools
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from wiregauge._version import __version__
from wiregauge.calibrate.errors import CalibrationError
from wiregauge.files import printable_content, read_text, write_whole

if TYPE_CHECKING:
    from jsonschema_rs import Draft202012Validator

KINDS: Final = ("clocks", "pacing", "generator", "loop", "cable", "linearity")
_LARGEST: Final = 16 << 20
SCHEMA: Final = 2


class Calibration(Struct, frozen=True):
    """A calibration: its content, schema 2 of docs/reference/calibrations.md, and its file once it has one."""

    content: Mapping[str, Any]
    file: Path | None = None

    @property
    def number(self) -> str:
        """The number, `KIND-` and twelve hexadecimal digits."""
        return str(self.content["id"])

    @property
    def kind(self) -> str:
        """The kind, of `KINDS`."""
        return str(self.content["calibration"])

    @property
    def made(self) -> datetime.datetime:
        """The time it was finished, UTC."""
        return datetime.datetime.fromisoformat(self.content["made"])

    @property
    def results(self) -> dict[str, Any]:
        """The results, in the form of its kind."""
        found: dict[str, Any] = self.content["results"]
        return found


def make(
    kind: str,
    *,
    bench: str,
    identity: Mapping[str, str],
    settings: Mapping[str, Any],
    results: Mapping[str, Any],
    grade: str = "VALID",
    reasons: list[str] | None = None,
    state: str = "complete",
) -> Calibration:
    """Makes a calibration from a measurement. `grade` is the validity of the runs behind it."""
    if kind not in KINDS:
        raise ValueError(f"{kind} is none of {KINDS}")
    content = {
        "schema": SCHEMA,
        "calibration": kind,
        "made": datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds"),
        "program": {"name": "wiregauge", "version": __version__},
        "state": state,
        "bench": bench,
        "grade": grade,
        "reasons": list(reasons or []),
        "identity": dict(identity),
        "settings": dict(settings),
        "results": dict(results),
    }
    return Calibration({"id": _number(content), **content})


def _number(content: Mapping[str, Any]) -> str:
    text = json.dumps({k: v for k, v in content.items() if k != "id"}, sort_keys=True, allow_nan=False)
    return f"{content['calibration']}-{hashlib.sha256(text.encode()).hexdigest()[:12]}"


def schema_path() -> Path:
    """The JSON Schema of a calibration, shipped with the package."""
    return Path(__file__).with_name("calibration.schema.json")


def store_folder(given: Path | None = None) -> Path:
    """The folder of calibrations: the one given, that of WIREGAUGE_CALIBRATIONS, or the user's own."""
    if given is not None:
        return given
    named = os.environ.get("WIREGAUGE_CALIBRATIONS")
    if named:
        return Path(named)
    data = os.environ.get("XDG_DATA_HOME") or str(Path.home() / ".local" / "share")
    return Path(data) / "wiregauge" / "calibrations"


class Store:
    """A folder of calibrations."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = store_folder(folder)

    def save(self, calibration: Calibration) -> Calibration:
        """Adds a calibration; returns it with its file. Raises CalibrationError where the disk refuses."""
        timestamp = calibration.made.strftime("%Y%m%dT%H%M%SZ")
        path = self.folder / f"{timestamp}-{calibration.number}.json"
        text = json.dumps(calibration.content, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(path, text)
        except OSError as error:
            raise CalibrationError(
                f"{path}: cannot be written ({error.strerror}); name a folder that can with --store"
            ) from None
        return Calibration(calibration.content, path)

    def all(self) -> tuple[list[Calibration], list[str]]:
        """All calibrations, newest first, and a sentence for each invalid file."""
        found, wrong = [], []
        for path in sorted(self._files()):
            try:
                found.append(read(path))
            except CalibrationError as error:
                wrong.append(str(error))
        return sorted(found, key=lambda one: one.made, reverse=True), wrong

    def _files(self) -> Iterator[Path]:
        try:
            yield from (path for path in self.folder.iterdir() if path.suffix == ".json")
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise CalibrationError(f"{self.folder}: cannot be read ({error.strerror})") from None

    def find(self, name: str) -> Calibration:
        """Finds a calibration by its number or the beginning of one, by kind (its newest), or by file."""
        if name.endswith(".json"):
            return read(Path(name))
        found, _ = self.all()
        if name in KINDS:
            named = [one for one in found if one.kind == name][:1]
        else:
            named = [one for one in found if one.number.startswith(name)]
        if len(named) > 1:
            raise CalibrationError(
                f"{name}: {len(named)} calibrations begin so ({', '.join(one.number for one in named[:3])}); "
                "write more of the number"
            )
        if not named:
            raise CalibrationError(
                f"{name}: no such calibration in {self.folder}; `wiregauge calibrate list` shows what there is"
            )
        return named[0]


def read(path: Path) -> Calibration:
    """Reads a file. Raises CalibrationError where it is no calibration, or was altered."""
    try:
        content = json.loads(read_text(path, _LARGEST), parse_constant=_refuse)
        if not isinstance(content, dict):
            raise CalibrationError(f"{path}: holds no object, so it is no calibration")
        if content.get("schema") != SCHEMA:
            raise CalibrationError(
                f"{path}: is of schema {content.get('schema')!r}, this version reads {SCHEMA}; calibrate again"
            )
        fault = _fault(content)
        if fault is not None:
            raise CalibrationError(f"{path}: {fault}; calibrate again")
        if datetime.datetime.fromisoformat(content["made"]).tzinfo is None:
            raise CalibrationError(f"{path}: made {content['made']} has no time zone; calibrate again")
        if _number(content) != content["id"]:
            raise CalibrationError(
                f"{path}: was altered after it was written (its content is not that of {content['id']}); "
                "calibrate again"
            )
    except OSError as error:
        raise CalibrationError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:
        raise CalibrationError(
            f"{path}: is damaged ({str(error).splitlines()[0][:120]}); calibrate again"
        ) from None
    return Calibration(printable_content(content), path)


def _fault(content: dict[str, Any]) -> str | None:
    """The violation of the schema by a content, in a few words; None when there is none."""
    error = min(_validator().iter_errors(content), key=lambda error: len(error.instance_path), default=None)
    if error is None:
        return None
    path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in error.instance_path)
    return f"${path} is not as schema {SCHEMA} says ({error.message.splitlines()[0][:120]})"


@functools.cache
def _validator() -> Draft202012Validator:
    from jsonschema_rs import Draft202012Validator

    return Draft202012Validator(json.loads(schema_path().read_text(encoding="utf-8")))


def _refuse(name: str) -> float:
    raise ValueError(f"{name} is no number")
