"""The directory of a characterisation: the request, a line for every trial, and the run directories."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any, Final

from msgspec import to_builtins

from wiregauge.files import ForeignFileError, cure_for, read_text, write_whole
from wiregauge.records import RunDirectory, RunDirectoryError, check_contained, read_json, seal
from wiregauge.results import json_text
from wiregauge.switching.errors import SheetError
from wiregauge.switching.trials import Outcome, Trial

__all__ = ["PLAN", "RUNS", "SHEET", "Store"]

PLAN: Final = "switch.json"
SHEET: Final = "datasheet.json"
LINES: Final = "trials.jsonl"
RUNS: Final = "trials"


class Store:
    """Trials in the order of their requests. Stored ones are returned instead of being repeated."""

    def __init__(self, place: Path, asked: dict[str, Any], lines: list[dict[str, Any]]) -> None:
        self.place = place
        self.asked = asked
        self._lines = lines
        self.kept = len(lines)
        """The number of trials that were stored when it was opened."""

    @classmethod
    def begin(cls, place: Path, asked: dict[str, Any]) -> Store:
        """Creates a directory. Raises RunDirectoryError for a place that is not empty, or cannot be created."""
        RunDirectory.check_free(place)
        try:
            (place / RUNS).mkdir(parents=True)
            plan = json.dumps({"digest": "", "characterisation": 1, **asked}, indent=1, ensure_ascii=False)
            write_whole(place / PLAN, seal(plan + "\n"), replacing=None)
        except OSError as error:
            raise RunDirectoryError(
                f"{place}: cannot be made ({error.strerror}); {cure_for(error)}"
            ) from None
        return cls(place, asked, [])

    @classmethod
    def resume(cls, place: Path) -> Store:
        """Opens a directory to resume. Raises SheetError where it is of another kind, or has damaged lines.

        The last line may be truncated by a crash: its trial is repeated.
        """
        if not (place / PLAN).is_file():
            raise SheetError(f"{place}: it holds no {PLAN}; name the directory of a characterisation")
        check_contained(place)
        asked, digest = read_json(place / PLAN)
        if digest is None:
            raise SheetError(f"{place / PLAN}: it is not that of a characterisation")
        asked.pop("digest")
        if asked.pop("characterisation", None) != 1 or not isinstance(asked.get("device"), str):
            raise SheetError(f"{place / PLAN}: it is not that of a characterisation of this version")
        return cls(place, asked, _lines_of(place / LINES))

    def known(self, index: int, test: str, trial: Trial) -> Outcome | None:
        """The stored outcome of a trial; None where it is a new one.

        Raises SheetError where a different trial is stored at this index.
        """
        if index >= len(self._lines):
            return None
        line = self._lines[index]
        if line["test"] != test or line["trial"] != json.loads(json.dumps(trial.as_json())):
            raise SheetError(
                f"{self.place / LINES}, line {index + 1}: it holds another trial than this version asks for; "
                "begin anew in another directory"
            )
        return Outcome.of(line["outcome"])

    def add(self, test: str, trial: Trial, outcome: Outcome) -> None:
        """Appends a trial, and waits until it is on the disk. Raises RunDirectoryError where it cannot."""
        line = {"test": test, "trial": trial.as_json(), "outcome": to_builtins(outcome)}
        path = self.place / LINES
        try:
            whole = "".join(json.dumps(one) + "\n" for one in [line])
            with path.open("a", encoding="utf-8") as file:
                file.write(whole)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise RunDirectoryError(
                f"{path}: cannot be written ({error.strerror}); {cure_for(error)}"
            ) from None
        self._lines.append(line)

    def mend(self) -> None:
        """Removes a truncated last line, and folders of trials without a line. Raises RunDirectoryError."""
        path = self.place / LINES
        try:
            if path.exists():
                write_whole(path, "".join(json.dumps(one) + "\n" for one in self._lines))
        except OSError as error:
            raise RunDirectoryError(
                f"{path}: cannot be written ({error.strerror}); {cure_for(error)}"
            ) from None

    def folder(self, index: int, test: str) -> str:
        """An unused name of a run directory."""
        name = f"{index + 1:04d}-{test}"
        again = 0
        while (self.place / RUNS / name).exists():
            again += 1
            name = f"{index + 1:04d}-{test}-again{again}"
        return name

    def save(self, shown: dict[str, Any]) -> None:
        """Writes the data sheet. Raises RunDirectoryError where it cannot."""
        path = self.place / SHEET
        try:
            write_whole(path, json_text(shown, depth=4) + "\n", replacing=b'"datasheet": ')
        except ForeignFileError as error:
            raise RunDirectoryError(f"{path}: {error.strerror}") from None
        except OSError as error:
            raise RunDirectoryError(
                f"{path}: cannot be written ({error.strerror}); {cure_for(error)}"
            ) from None


def _lines_of(path: Path) -> list[dict[str, Any]]:
    if not path.exists():
        return []
    try:
        texts = read_text(path).split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise SheetError(f"{path}: it cannot be read ({error})") from None
    found = []
    for number, text in enumerate(texts, 1):
        if not text and number == len(texts):
            break
        try:
            line = json.loads(text)
            Outcome.of(line["outcome"])
            if not isinstance(line["test"], str) or not isinstance(line["trial"], dict):
                raise TypeError
        except (ValueError, KeyError, TypeError, AttributeError):
            if number == len(texts):  # truncated: the writer was killed
                break
            raise SheetError(
                f"{path}, line {number}: it is no trial; the file is damaged, begin anew in another directory"
            ) from None
        found.append(line)
    return found
