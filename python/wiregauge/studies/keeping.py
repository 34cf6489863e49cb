"""The study directory: `study.json`, `report.html` and a run directory for every part in `runs`."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Final

from wiregauge.files import ForeignFileError, cure_for, write_whole
from wiregauge.records import RunDirectory, RunDirectoryError, check_contained, read_json
from wiregauge.records.directory import utc_now
from wiregauge.results import json_text
from wiregauge.studies.beside import Beside, beside_of
from wiregauge.studies.carrying import RUNS, Carried
from wiregauge.studies.declaring import Study
from wiregauge.studies.shown import StudyShown
from wiregauge.studies.size import Size, StudyError

__all__ = ["FILE", "StudyDirectory"]

FILE: Final = "study.json"
_MARK: Final = b'"study": '
_KEPT: Final = ("study", "size", "bench", "started")


class StudyDirectory:
    """The directory of a study. Only its own `study.json` and report are ever replaced."""

    def __init__(self, place: Path) -> None:
        self.place = place

    @staticmethod
    def check_free(place: Path) -> None:
        """Raises RunDirectoryError for a place that is not empty."""
        RunDirectory.check_free(place)

    def begin(self, study: Study, size: Size, bench: str) -> Carried:
        """Creates the directory of a new study. Raises RunDirectoryError where it cannot."""
        self.check_free(self.place)
        try:
            (self.place / RUNS).mkdir(parents=True)
        except OSError as error:
            raise RunDirectoryError(
                f"{self.place}: cannot be made ({error.strerror}); {cure_for(error)}"
            ) from None
        return Carried(study, size, bench, self.place, utc_now())

    def resume(self, study: Study, size: Size | None, bench: str | None) -> Carried:
        """Resumes the study of this directory; size and bench may be repeated, but not changed.

        Raises StudyError where there is no study directory, or that of another study, size or bench.
        """
        kept = self._kept()
        for what, here, asked in (
            ("study", kept.get("study"), study.name),
            ("size", kept.get("size"), size),
            ("bench", kept.get("bench"), bench),
        ):
            if asked is not None and here != asked:
                raise StudyError(
                    f"{self.place}: its {what} is {here}, not {asked}; leave that out or name another directory"
                )
        return Carried(study, kept["size"], kept["bench"], self.place, kept["started"])

    def beside(self, study: Study) -> Beside:
        """The figures of a study in this directory, to compare with. Raises StudyError where there is none."""
        kept = self._kept()
        if kept["study"] != study.name:
            raise StudyError(f"{self.place}: it is of the study {kept['study']}, not of {study.name}")
        found = beside_of(kept)
        if not found.figures:
            raise StudyError(f"{self.place}: it has no figure yet; go on with it by --resume first")
        return found

    def _kept(self) -> Any:
        path = self.place / FILE
        if not path.is_file():
            raise StudyError(
                f"{self.place}: it holds no {FILE}; name the directory of a study that was begun"
            )
        check_contained(self.place)
        kept, _ = read_json(path)
        if kept.get("schema") != 1 or not all(isinstance(kept.get(k), str) for k in _KEPT):
            raise StudyError(f"{path}: it is not the {FILE} of a study of this version")
        return kept

    def save(self, shown: StudyShown) -> None:
        """Writes `study.json` atomically. Raises RunDirectoryError where it cannot."""
        path = self.place / FILE
        try:
            write_whole(path, json_text(shown, depth=5) + "\n", replacing=_MARK)
        except ForeignFileError as error:
            raise RunDirectoryError(f"{path}: {error.strerror}") from None
        except OSError as error:
            raise RunDirectoryError(
                f"{path}: cannot be written ({error.strerror}); {cure_for(error)}"
            ) from None
