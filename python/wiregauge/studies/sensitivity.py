"""How each compared result moves with each parameter of a study's model that its paper does not state.

One number is moved at a time, and the tests that it changes are run again with their seed; the others keep their runs.
The results are stored in `sensitivity.json` of a study directory, or shipped with the study. A move is identified by
the tests that it makes, so that results of other tests are not used.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Final, Literal

import msgspec

from wiregauge import runner
from wiregauge._version import __version__
from wiregauge.config import Loaded
from wiregauge.files import ForeignFileError, cure_for, write_whole
from wiregauge.measures import Judgement
from wiregauge.records import RunDirectoryError
from wiregauge.runner import Bench, Observer, Trials
from wiregauge.runner.stopping import Interrupted, stoppable
from wiregauge.studies.carrying import Carried, load_parts
from wiregauge.studies.declaring import Key, Study
from wiregauge.studies.laying import ItemResult, Laid, lay
from wiregauge.studies.moving import Move, key_of, moved_files, moves, write_moved
from wiregauge.studies.results import Results
from wiregauge.studies.size import Size, StudyError

__all__ = ["FILE", "Found", "MovedCells", "Sensitivity", "compared", "find_sensitivity", "measure"]

FILE: Final = "sensitivity.json"
_MARK: Final = b'"sensitivity of":'
_DIGITS: Final = 7
Found = Literal["holds", "fails", "undecided"]
Name = tuple[str, str, str, str]
"""Item, series, x and statistic of a cell."""


class MovedCells(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The compared cells of a study with one number moved; `name` is empty for the unchanged tests."""

    name: str
    to: str
    changes: tuple[str, ...]
    """The changed attributes, as `before → after`, each once."""
    key: str
    """The key of the tests: `moving.key_of`."""
    ours: tuple[float | None, ...]
    """Our figures in the paper's units, in the order of the cells."""
    results: tuple[Found, ...]


class Sensitivity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The content of `sensitivity.json`: the cells' names, and their values for every move."""

    of: str = msgspec.field(name="sensitivity of")
    size: Size
    version: str
    """The version of the program that made it."""
    cells: tuple[Name, ...]
    figures: tuple[int, ...]
    """For each cell the index of the first with the same figure of the same runs; cells may share one."""
    base: MovedCells
    moved: tuple[MovedCells, ...]

    def named(self) -> Iterator[Key]:
        """The keys of the cells in their order."""
        return (Key(*name) for name in self.cells)

    def at(self, key: Key) -> int | None:
        """The index of a cell; None for one that is not compared."""
        name = (key.item, key.series, key.x, key.statistic)
        return self.cells.index(name) if name in self.cells else None


def compared(items: Sequence[ItemResult]) -> tuple[Laid, ...]:
    """The cells of a study that are judged, in their order."""
    return tuple(
        cell for item in items for cell in item.cells if cell.result in ("holds", "fails", "undecided")
    )


def find_sensitivity(study: Study, size: Size, *folders: Path) -> Sensitivity | None:
    """The stored sensitivity of exactly these tests in one of the folders, in `size` or else the quick form, or None.

    It is complete: it has every move of the study, and no others.
    """
    for wanted in dict.fromkeys((size, "quick")):
        for folder in folders:
            kept = _read(folder / FILE)
            if kept is not None and kept.size == wanted and _is_of(kept, study):
                return kept
    return None


def _read(path: Path) -> Sensitivity | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=Sensitivity)
    except (OSError, msgspec.DecodeError):
        return None


def _is_of(kept: Sensitivity, study: Study) -> bool:
    planned = {(move.name, move.to): move for move in moves(study)}
    if kept.of != study.name or [(one.name, one.to) for one in kept.moved] != list(planned):
        return False
    if len(kept.figures) != len(kept.cells) or any(
        len(one.ours) != len(kept.cells) or len(one.results) != len(kept.cells)
        for one in (kept.base, *kept.moved)
    ):
        return False
    found = {("", ""): None} | planned
    return all(
        one.key == key_of(study, kept.size, moved_files(study, found[one.name, one.to])[0])
        for one in (kept.base, *kept.moved)
    )


def measure(
    carried: Carried,
    items: Sequence[ItemResult],
    loaded: Mapping[str, Loaded],
    bench: Bench,
    *,
    observer: Observer | None = None,
    going: Callable[[int, int, str], object],
    told: Callable[[str], object] = print,
) -> Sensitivity:
    """Moves each parameter of a finished study, and writes the results into its directory.

    Stored moves of the same tests are reused; each is stored as soon as it is made. `going` is called with the number
    of a move, their count, and its name. Raises StudyError for a study that is incomplete or has no
    parameters; Interrupted, and BenchError, RunDirectoryError, DiskError and NothingRunError as the runner does.
    """
    study, size = carried.study, carried.size
    if not study.parameters:
        raise StudyError(f"study {study.name}: it declares no parameters to move")
    if carried.state != "complete":
        raise StudyError(f"{carried.place}: the study is {carried.state}; go on with it by --resume first")
    cells = compared(items)
    names = tuple((cell.key.item, cell.key.series, cell.key.x, cell.key.statistic) for cell in cells)
    figures = first_places([cell.source for cell in cells])
    base = _cells_of(study, size, None, (), cells)
    planned = list(moves(study))
    made = _known(_read(carried.place / FILE), study, names, base, planned)
    with runner.open(bench, observer=observer, told=told) as trials, stoppable():
        for number, move in enumerate(planned, start=1):
            if move in made:
                continue
            going(number, len(planned), f"{move.name} {move.to}")
            files, changes = moved_files(study, move)
            with tempfile.TemporaryDirectory(dir=carried.place, prefix="moved-") as place:
                other = write_moved(study, files, Path(place))
                judged = _judged(other, carried, loaded, trials, Path(place))
                results = Results(size, carried.bench, carried.place, judged, {}, carried.skipped)
                made[move] = _cells_of(study, size, move, changes, compared(lay(study, results)), names)
            whole = [made[one] for one in planned if one in made]
            _write(carried.place / FILE, study, size, names, figures, base, whole)
    return _write(carried.place / FILE, study, size, names, figures, base, [made[one] for one in planned])


def first_places(sources: Sequence[str]) -> tuple[int, ...]:
    """For each source the index of the first equal one."""
    places: dict[str, int] = {}
    return tuple(places.setdefault(source, at) for at, source in enumerate(sources))


def _known(
    kept: Sensitivity | None,
    study: Study,
    names: Sequence[Name],
    base: MovedCells,
    planned: Sequence[Move],
) -> dict[Move, MovedCells]:
    """The stored moves that were made of exactly these tests."""
    if kept is None or (kept.of, kept.cells, kept.base) != (study.name, tuple(names), base):
        return {}
    known = {(one.name, one.to, one.key): one for one in kept.moved}
    keys = {
        move: (move.name, move.to, key_of(study, kept.size, moved_files(study, move)[0])) for move in planned
    }
    return {move: known[key] for move, key in keys.items() if key in known}


def _judged(
    moved: Study, carried: Carried, loaded: Mapping[str, Loaded], trials: Trials, place: Path
) -> dict[str, Judgement]:
    """The judgements of the study's parts; those whose tests have changed are run again."""
    judged = dict(carried.judgements)
    for name, one in load_parts(moved, carried.size, carried.bench).items():
        if one.campaign != loaded[name].campaign:
            judged[name] = found = trials.run(one, place / name, file=f"{name}.xml")
            if found.state == "interrupted":
                raise Interrupted(str(found.reason))
            if found.state != "complete":
                raise StudyError(f"study {moved.name}, {name} with a number moved: {found.reason}")
    return judged


def _cells_of(
    study: Study,
    size: Size,
    move: Move | None,
    changes: tuple[str, ...],
    cells: Sequence[Laid],
    names: Sequence[Name] | None = None,
) -> MovedCells:
    """The cells of a move by `names`; one that is no longer judged is undecided."""
    found = {(cell.key.item, cell.key.series, cell.key.x, cell.key.statistic): cell for cell in cells}
    ordered = [found.get(name) for name in (names if names is not None else found)]
    return MovedCells(
        move.name if move is not None else "",
        move.to if move is not None else "",
        changes,
        key_of(study, size, moved_files(study, move)[0]),
        tuple(_rounded(cell.ours) if cell is not None else None for cell in ordered),
        tuple(_result(cell) for cell in ordered),
    )


def _result(cell: Laid | None) -> Found:
    if cell is None:
        return "undecided"
    return "holds" if cell.result == "holds" else "fails" if cell.result == "fails" else "undecided"


def _rounded(value: float | None) -> float | None:
    return None if value is None else float(f"{value:.{_DIGITS}g}")


def _write(
    path: Path,
    study: Study,
    size: Size,
    names: Sequence[Name],
    figures: tuple[int, ...],
    base: MovedCells,
    moved: Sequence[MovedCells],
) -> Sensitivity:
    """Writes the moves so far, a line for each."""
    found = Sensitivity(study.name, size, __version__, tuple(names), figures, base, tuple(moved))
    text = msgspec.json.encode(found)
    text = text.replace(b'{"name":', b'\n{"name":')
    try:
        write_whole(path, text + b"\n", replacing=_MARK)
    except ForeignFileError as error:
        raise RunDirectoryError(f"{path}: {error.strerror}") from None
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be written ({error.strerror}); {cure_for(error)}") from None
    return found
