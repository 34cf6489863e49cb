"""Damages run directories in every way we know and reads them: no figure may change without a word.

`python -m campaigns.damage` (from `tests`) makes small run directories, and for each of 1000 seeded mutations runs
every reading command. Each has to give exactly the figures of the whole directory, or to name what is damaged with a
documented exit code; `verify` has to name it always. Directories of a version without hashes cannot tell damage: of
these only a clean end is asked.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import stored
from msgspec import Struct

VERIFY = ("verify", "r", "--json")
READERS: tuple[tuple[str, ...], ...] = (
    ("show", "r", "--explain", "--json"),
    ("export", "r", "--to", "csv", "--what", "messages", "--out", "-"),
    ("export", "r", "--to", "csv", "--what", "passages", "--out", "-"),
    ("export", "r", "--to", "csv", "--what", "records", "--out", "-"),
    ("export", "r", "--to", "csv", "--what", "sketches", "--out", "-"),
    ("compare", "r", "other", "--json"),
    ("trend", "r", "other", "--json"),
    ("report", "r"),
    ("track", "r", "--json"),
    ("show", "r", "--json"),
)
"""Reading commands, in an order in which none repairs data of a later one; `track` may repair tables."""
CLEAN = {0, 1, 2, 4}
UNCLEAN = re.compile(r"Traceback|internal error|panicked|RUST_BACKTRACE|please report|Exception ignored")
MESSAGES = 40
SELDOM = ("captures", "truth", "test.xml", "measures.json", "report.html")
"""Files that hardly any command reads, damaged a quarter as often as those that figures come from."""


class Answer(Struct, frozen=True):
    """The output of a command and how it ended."""

    code: int
    out: str
    err: str


class Case(Struct, frozen=True):
    """A mutation; `verified` where the directory has hashes."""

    number: int
    seed: int
    verified: bool


class Outcome(Struct, frozen=True):
    """The result of a mutation: `same` or `named` for each command, and every failure, in words."""

    case: Case
    kind: str
    file: str
    ends: tuple[str, ...]
    faults: tuple[str, ...]


# -- commands -----------------------------------------------------------------------------------------------


def run(words: tuple[str, ...]) -> Answer:
    """Runs a command in this process, capturing all its standard output and error."""
    from wiregauge.cli.program import main

    sys.argv = ["wiregauge", *words]
    code = 0
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile() as err:
        with _redirected(1, out.fileno()), _redirected(2, err.fileno()):
            try:
                main()
            except SystemExit as end:
                code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        return Answer(code, _text(out), _text(err))


@contextlib.contextmanager
def _redirected(handle: int, to: int) -> Iterator[None]:
    stream = sys.stdout if handle == 1 else sys.stderr
    stream.flush()
    kept = os.dup(handle)
    os.dup2(to, handle)
    replaced = open(handle, "w", encoding="utf-8", errors="backslashreplace", closefd=False)  # noqa: SIM115
    if handle == 1:
        before, sys.stdout = sys.stdout, replaced
    else:
        before, sys.stderr = sys.stderr, replaced
    try:
        yield
    finally:
        replaced.flush()
        if handle == 1:
            sys.stdout = before
        else:
            sys.stderr = before
        os.dup2(kept, handle)
        os.close(kept)


def _text(file: Any) -> str:
    file.seek(0)
    return str(file.read().decode("utf-8", "backslashreplace"))


def figures(words: tuple[str, ...], answer: Answer, place: Path) -> str:
    """The output of a command without times of day and the state of the directory."""
    if words[0] == "report" and answer.code == 0:
        page = (place / "r" / "report.html").read_text(encoding="utf-8")
        return re.sub(r'<meta name="(digest|made-from)" content="\w*">', "", page)
    return answer.out


# -- mutations ----------------------------------------------------------------------------------------------


def _flip(file: Path, draw: random.Random, _other: Path) -> None:
    stored.flip(file, draw.randrange(1 << 30), draw.randrange(8))


def _truncate(file: Path, draw: random.Random, _other: Path) -> None:
    os.truncate(file, draw.randrange(max(file.stat().st_size, 1)))


def _append(file: Path, draw: random.Random, _other: Path) -> None:
    with file.open("ab") as out:
        out.write(draw.randbytes(draw.choice((1, 7, 4096))))


def _zero(file: Path, draw: random.Random, _other: Path) -> None:
    """Zeroes a block, as if it never reached the disk; zeroes become ones."""
    data = bytearray(file.read_bytes())
    begin = draw.randrange(max(len(data), 1))
    end = min(begin + draw.choice((16, 512, 4096)), len(data))
    data[begin:end] = bytes(end - begin) if any(data[begin:end]) else b"\xff" * (end - begin)
    file.write_bytes(data)


def _delete(file: Path, _draw: random.Random, _other: Path) -> None:
    file.unlink()


def _swap(file: Path, _draw: random.Random, other: Path) -> None:
    """Replaces a file by that of another directory of the same test."""
    place = next(folder for folder in file.parents if (folder / "manifest.json").exists())
    shutil.copyfile(other / file.relative_to(place), file)


def _swap_runs(file: Path, draw: random.Random, _other: Path) -> None:
    """Replaces a file by that of another run of this directory."""
    beside = [path for path in file.parent.iterdir() if path.suffix == file.suffix and path != file]
    shutil.copyfile(draw.choice(beside), file) if beside else _append(file, draw, _other)


def _edit(file: Path, draw: random.Random, _other: Path) -> None:
    """Changes, removes or moves one value of a JSON file, as in an editor."""
    if file.suffix != ".json":
        _flip(file, draw, _other)
        return
    tree = json.loads(file.read_text(encoding="utf-8"))
    place: Any = tree
    while True:
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        key = draw.choice(keys)
        if isinstance(place[key], dict | list) and place[key] and draw.random() < 0.9:
            place = place[key]
            continue
        break
    if draw.random() < 0.2:
        del place[key]
    else:
        value = place[key]
        changed: dict[type, Callable[[], Any]] = {
            bool: lambda: not value,
            int: lambda: value + draw.choice((-1, 1, 1000)),
            float: lambda: value * 1.5,
        }
        place[key] = changed.get(type(value), lambda: draw.choice([None, "x", 7, [], {"a": 1}]))()
    file.write_text(json.dumps(tree, indent=1, ensure_ascii=False), encoding="utf-8")


MUTATIONS: dict[str, tuple[int, Callable[[Path, random.Random, Path], None]]] = {
    "bit flipped": (40, _flip),
    "cut short": (12, _truncate),
    "bytes appended": (8, _append),
    "block zeroed": (12, _zero),
    "deleted": (8, _delete),
    "swapped with another directory": (8, _swap),
    "swapped with another run": (6, _swap_runs),
    "JSON edited": (20, _edit),
}
"""The frequency of each mutation, and its function of a file, a generator and another directory of the same test."""


def mutate(place: Path, other: Path, draw: random.Random) -> tuple[str, str]:
    """Damages one file of `place`; returns how and which. A mutation without effect is repeated."""
    files = sorted(path for path in place.rglob("*") if path.is_file())
    while True:
        (kind,) = draw.choices(list(MUTATIONS), [weight for weight, _ in MUTATIONS.values()])
        of_json = [path for path in files if path.suffix == ".json"]
        weights = [1 if path.relative_to(place).parts[0] in SELDOM else 4 for path in files]
        file = draw.choice(of_json) if kind == "JSON edited" else draw.choices(files, weights)[0]
        before = file.read_bytes()
        MUTATIONS[kind][1](file, draw, other)
        if not file.exists() or file.read_bytes() != before:
            return kind, str(file.relative_to(place))


# -- one case -----------------------------------------------------------------------------------------------


def examine(case: Case, material: Path, expected: dict[tuple[str, ...], tuple[int, str]]) -> Outcome:
    """Damages a copy of the directory and reads it with every command."""
    draw = random.Random(case.seed)
    home = os.getcwd()  # noqa: PTH109
    with tempfile.TemporaryDirectory(prefix="wiregauge-damage-") as folder:
        place = Path(folder)
        shutil.copytree(material / ("r" if case.verified else "unverified"), place / "r")
        (place / "other").symlink_to(material / "other")
        kind, file = mutate(place / "r", material / "other", draw)
        os.chdir(place)
        try:
            return _examined(case, place, kind, file, expected)
        finally:
            os.chdir(home)


def _examined(
    case: Case, place: Path, kind: str, file: str, expected: dict[tuple[str, ...], tuple[int, str]]
) -> Outcome:
    faults, ends = [], []
    # A complete manifest of another directory is valid in itself: the files that disagree with it are named.
    swapped = file == "manifest.json" and kind.startswith("swapped")

    def named(answer: Answer) -> bool:
        told = answer.out + answer.err if answer.out.startswith("{") else answer.err
        return answer.code in (2, 4) and (
            file in told or (swapped and bool(re.search(r"run-\d{4}\.|tracking", told)))
        )

    answer = run(VERIFY)
    faults += _unclean(VERIFY, answer)
    # Files that any command makes again from the rest cannot be missing.
    made_again = kind == "deleted" and file in ("measures.json", "report.html")
    if case.verified and not made_again and not named(answer):
        faults.append(f"verify does not name {file} (exit code {answer.code})")
    for words in READERS:
        answer = run(words)
        unclean = _unclean(words, answer)
        faults += unclean
        if unclean or not case.verified:
            ends.append("unclean" if unclean else "ended")
            continue
        if (answer.code, figures(words, answer, place)) == expected[words]:
            ends.append("same")
        elif named(answer) and answer.err.startswith("wiregauge: "):
            ends.append("named")
        else:
            ends.append("silent")
            faults.append(
                f"{' '.join(words)}: ends with {answer.code} instead of {expected[words][0]} and does not name {file}: "
                f"{answer.err[:300]!r}"
            )
    return Outcome(case, kind, file, tuple(ends), tuple(faults))


def _unclean(words: tuple[str, ...], answer: Answer) -> list[str]:
    if answer.code in CLEAN and not UNCLEAN.search(answer.err + answer.out[-2000:]):
        return []
    return [f"{' '.join(words)}: exit code {answer.code}: {answer.err[-400:]!r}"]


# -- the campaign -------------------------------------------------------------------------------------------


def prepare(material: Path) -> dict[tuple[str, ...], tuple[int, str]]:
    """Makes the directories to damage, and the output of every command for the intact one."""
    for name, seed in (("r", 1), ("other", 2)):
        stored.make(material / name, seed=seed, count=MESSAGES)
        run(("report", str(material / name)))
    stored.unsealed(material / "r", material / "unverified")
    home = os.getcwd()  # noqa: PTH109
    expected = {}
    with tempfile.TemporaryDirectory(prefix="wiregauge-damage-") as folder:
        place = Path(folder)
        shutil.copytree(material / "r", place / "r")
        (place / "other").symlink_to(material / "other")
        os.chdir(place)
        try:
            for words in READERS:
                answer = run(words)
                if _unclean(words, answer) or answer.code not in (0, 1):
                    raise SystemExit(f"{words} fails on a whole directory: {answer}")
                expected[words] = answer.code, figures(words, answer, place)
        finally:
            os.chdir(home)
    return expected


def campaign(
    mutations: int,
    unverified: int,
    seed: int,
    jobs: int,
    told: Callable[[Outcome], None],
    *,
    first: int = 0,
) -> list[Outcome]:
    """Runs all cases from number `first` on; the same seed gives the same cases."""
    cases = [
        Case(number, seed * 1_000_003 + number, verified=number < mutations)
        for number in range(first, mutations + unverified)
    ]
    with tempfile.TemporaryDirectory(prefix="wiregauge-damage-") as folder:
        material = Path(folder)
        expected = prepare(material)
        outcomes = []
        # A fresh interpreter each: threads of libraries do not survive a fork.
        with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
            try:
                for future in [pool.submit(examine, case, material, expected) for case in cases]:
                    outcomes.append(future.result())
                    told(outcomes[-1])
            except BaseException:
                # An error of the campaign itself, or Ctrl-C, is reported at once and not at the end.
                pool.shutdown(cancel_futures=True)
                raise
    return outcomes


def main() -> int:
    """Runs the command line; the exit code is 1 where a figure changed silently or a command ended badly."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--mutations", type=int, default=1000, help="of directories with hashes")
    parser.add_argument("--unverified", type=int, default=200, help="of directories without")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument(
        "--first", type=int, default=0, help="number of the first mutation; the seed tells the rest"
    )
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    begin = time.monotonic()

    def told(outcome: Outcome) -> None:
        for fault in outcome.faults:
            sys.stdout.write(f"case {outcome.case.number}: {outcome.file} {outcome.kind}: {fault}\n")
        if (outcome.case.number + 1) % 50 == 0:
            sys.stdout.write(f"{outcome.case.number + 1} mutations in {time.monotonic() - begin:.0f} s\n")
        sys.stdout.flush()

    outcomes = campaign(
        options.mutations, options.unverified, options.seed, options.jobs, told, first=options.first
    )
    for verified, title in ((True, "with hashes"), (False, "without hashes")):
        chosen = [outcome for outcome in outcomes if outcome.case.verified is verified]
        ends = Counter(end for outcome in chosen for end in outcome.ends)
        kinds = Counter(outcome.kind for outcome in chosen)
        sys.stdout.write(f"{len(chosen)} mutations of a directory {title}: {dict(kinds.most_common())}\n")
        sys.stdout.write(f"  reading commands: {dict(ends.most_common())}\n")
    faulty = [outcome for outcome in outcomes if outcome.faults]
    sys.stdout.write(f"{len(faulty)} with a silent change or an unclean end, seed {options.seed}\n")
    return 1 if faulty else 0


if __name__ == "__main__":
    sys.exit(main())
