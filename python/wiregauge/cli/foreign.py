"""Measurements of other programs where a command takes a run directory, and `import` of one."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from wiregauge.cli.shared import open_run, show_judgement
from wiregauge.terminal import BAD_INPUT, fail, say

if TYPE_CHECKING:
    from wiregauge.measures import Judgement

__all__ = ["import_measurement", "is_measurement", "run_directories"]

_BEGINNINGS = (b"{", b"\x1f\x8b")
"""First octets of JSON, and of gzip."""


def is_measurement(path: Path) -> bool:
    """Whether a file looks like a measurement of another program rather than a capture, compressed or not."""
    import gzip
    import zlib

    from wiregauge.files import open_regular

    try:
        with open_regular(path) as file:
            packed = file.peek(2).startswith(_BEGINNINGS[1])
            with gzip.open(file) if packed else file as opened:
                return opened.read(64).lstrip().startswith(_BEGINNINGS[0])
    except (OSError, EOFError, zlib.error):
        return False


def import_measurement(path: Path, out: Path, agree_ns: float | None, *, as_json: bool) -> int:
    """Imports a measurement into a run directory and shows it; returns the exit code."""
    troubles: list[str] = []
    return show_judgement(_judged(path, out, agree_ns, troubles), troubles, as_json=as_json, with_report=True)


@contextlib.contextmanager
def run_directories(places: Sequence[Path]) -> Iterator[dict[Path, Path]]:
    """The run directory of each place: itself, or for a file one that is made of it and lasts as long as the block."""
    from wiregauge.files import is_file
    from wiregauge.reflectors import is_of_session

    names = [place.name for place in places]
    with tempfile.TemporaryDirectory(prefix="wiregauge-") as below:
        found = {}
        for place in places:
            found[place] = place
            if is_file(place) or is_of_session(place):
                name = (
                    place.name
                    if names.count(place.name) == 1
                    else f"{place.absolute().parent.name}-{place.name}"
                )
                found[place] = Path(below) / str(len(found)) / name
                _judged(place, found[place], None, [])
                for line in _remarks(found[place]):
                    say(f"{place}: {line}")
            open_run(found[place])
        yield found


def _judged(path: Path, out: Path, agree_ns: float | None, troubles: list[str]) -> Judgement:
    from wiregauge import runner
    from wiregauge.files import unwritten
    from wiregauge.foreign import ForeignError, opened

    try:
        bench, test = opened(path, agree_ns)
        out.parent.mkdir(parents=True, exist_ok=True)
        with runner.open(bench, told=troubles.append) as trials:
            return trials.run(test, out, file=str(path))
    except ForeignError as error:
        fail(str(error), BAD_INPUT)
    except OSError as error:
        fail(unwritten(out, error), BAD_INPUT)


def _remarks(place: Path) -> Iterator[str]:
    """What a measurement cannot show."""
    from wiregauge.records import RunDirectory

    for fact in RunDirectory.open(place).manifest["bench_facts"]:
        if fact["name"] in ("not compared", "server", "duplicates", "times", "session"):
            yield f"{fact['name']}: {fact['value']}"
