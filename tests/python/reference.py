"""What every example gives, as digests: decoded columns of every table, captures byte for byte, every figure.

The judge of changes that must change nothing. `python reference.py compare OLD NEW` tells two directories of run
directories apart; `python reference.py write` makes the digests of today the reference (`reference.json`), for a change
that is meant, with a sentence in the changelog.
"""

from __future__ import annotations

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from typer.testing import CliRunner

HERE = Path(__file__).resolve().parent
EXAMPLES = HERE.parents[1] / "examples"
REFERENCE = HERE / "reference.json"

# Keys of measures.json to ignore: hashes of its source files, which have times and the program's version.
HASHES = ("/sources", "/digest")
# Files to ignore: with times, the program's version, and sizes and hashes of files whose layout may change.
VOLATILE = ("manifest.json", "report.html", "index.html")


def simulate(test: Path, out: Path, *options: str) -> tuple[int, str]:
    """Runs a test on the simulator, as a user does; returns the exit code and the output."""
    from wiregauge.cli import app

    words = ["run", str(test), "--bench", "sim", "--jobs", "1", "--out", str(out), *options]
    result = CliRunner().invoke(app, words)
    if not out.exists():
        raise RuntimeError(f"{test.name}: {result.output}")
    return result.exit_code, result.stdout


def _short(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


def _column(column: pl.Series) -> str:
    """The digest of a column's values, independent of their storage."""
    if column.dtype in (pl.Categorical, pl.Enum):
        column = column.cast(pl.String)
    if column.dtype.is_numeric() and column.null_count() == 0:
        wide = column.cast(pl.Int64) if column.dtype.is_integer() and column.dtype != pl.UInt64 else column
        return _short(wide.to_numpy().tobytes())
    return _short(_json(column).encode())


def _json(column: pl.Series) -> str:
    """The `json.dumps` text of the values, without ten million Python objects for a large table."""
    if column.dtype == pl.String and not column.str.contains(r"[^ !#-\[\]-~]").any():
        words = pl.select(pl.format('"{}"', column)).to_series()
    elif column.dtype.is_integer() or column.dtype == pl.Boolean:
        words = column.cast(pl.String)
    else:
        return json.dumps(column.to_list(), default=str)
    return f"[{words.fill_null('null').str.join(', ').item() if len(words) else ''}]"


def _leaves(path: str, value: Any) -> Iterator[tuple[str, Any]]:
    if path in HASHES:
        return
    if isinstance(value, dict):
        for key in sorted(value):
            yield from _leaves(f"{path}/{key}", value[key])
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _leaves(f"{path}/{number}", item)
    else:
        yield path, value


def _rounded(value: Any) -> Any:
    """The value rounded: processors differ in the last bits of sums and transforms."""
    return f"{value:.8g}" if isinstance(value, float) else value


def digests(run: Path) -> dict[str, str]:
    """Digests of a run directory, by file and column, or by file."""
    found = {}
    for path in sorted(path for path in run.rglob("*") if path.is_file() and path.name not in VOLATILE):
        name = path.relative_to(run).as_posix()
        if path.suffix == ".parquet":
            for column in pl.read_parquet(path).iter_columns():
                found[f"{name}: {column.name}"] = _column(column)
        elif path.suffix == ".json":
            leaves = _leaves("", json.loads(path.read_text(encoding="utf-8")))
            found[name] = _short(
                json.dumps([(at, _rounded(value)) for at, value in leaves], default=str).encode()
            )
        else:
            found[name] = _short(path.read_bytes())
    return found


def every_example(below: Path) -> dict[str, dict[str, str]]:
    """Digests of all examples, simulated into `below`."""
    found = {}
    for test in sorted(EXAMPLES.glob("*.xml")):
        simulate(test, below / test.stem)
        found[test.stem] = digests(below / test.stem)
    return found


def differences(old: dict[str, str], new: dict[str, str]) -> list[str]:
    """The entries that are missing or different in one of the two."""
    return sorted(name for name in old.keys() | new.keys() if old.get(name) != new.get(name))


def _main(arguments: list[str]) -> int:
    match arguments:
        case ["compare", old, new]:
            differ = 0
            for run in sorted(path for path in Path(old).iterdir() if path.is_dir()):
                for name in differences(digests(run), digests(Path(new) / run.name)):
                    differ += 1
                    sys.stdout.write(f"{run.name}: {name}\n")
            sys.stdout.write(f"{differ} differences\n")
            return 1 if differ else 0
        case ["simulate", below]:
            every_example(Path(below))
        case ["write", below]:
            REFERENCE.write_text(json.dumps(every_example(Path(below)), indent=1) + "\n", encoding="utf-8")
        case _:
            sys.stdout.write(f"{__doc__}\n")
            return 2
    return 0


if __name__ == "__main__":
    sys.exit(_main(sys.argv[1:]))
