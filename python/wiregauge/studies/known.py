"""Finds studies: those shipped with the program, and folders of users."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Final

from msgspec.structs import replace

from wiregauge.studies.declaring import Study
from wiregauge.studies.size import StudyError

__all__ = ["names", "open_study"]

PAPERS: Final = Path(__file__).with_name("papers")
FILE: Final = "study.py"


def names() -> list[str]:
    """The names of the studies that are shipped with the program."""
    return sorted(path.parent.name.replace("_", "-") for path in PAPERS.glob(f"*/{FILE}"))


def open_study(name: str) -> Study:
    """Opens the study of this name, or that in a folder. Raises StudyError.

    A folder's `study.py` is executed as Python: open only those you would run.
    """
    folder = PAPERS / name.replace("-", "_") if name in names() else Path(name)
    file = folder / FILE
    if not file.is_file():
        raise StudyError(
            f'there is no study "{name}", and no folder of that name with a {FILE}; there are {", ".join(names())}'
        )
    study = getattr(_module(file), "STUDY", None)
    if not isinstance(study, Study):
        raise StudyError(f"{file}: it has no STUDY; say STUDY = Study(…) in it")
    return _checked(replace(study, folder=folder), file)


def _module(file: Path) -> ModuleType:
    name = f"wiregauge_study_{file.parent.resolve().name}"
    spec = importlib.util.spec_from_file_location(name, file)
    if spec is None or spec.loader is None:
        raise StudyError(f"{file}: cannot be loaded as Python")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    try:
        spec.loader.exec_module(module)
    except Exception as error:  # noqa: BLE001 - whatever somebody's file raises is said in one line
        raise StudyError(f"{file}: {type(error).__name__}: {error}") from None
    return module


def _checked(study: Study, file: Path) -> Study:
    for what, found in (
        ("part", [part.name for part in study.parts]),
        ("item", [item.number for item in study.items]),
    ):
        twice = [name for name in found if found.count(name) > 1]
        if twice:
            raise StudyError(f'{file}: the {what} "{twice[0]}" is declared twice')
    for part in study.parts:
        if not (study.folder / part.test).is_file():
            raise StudyError(f"{file}: part {part.name} names {part.test}, which is not in its folder")
    return study
