"""A disk without room is no bad input: exit code 3, in whatever words a command tells it."""

from __future__ import annotations

import errno
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
import typer

from synthetic import Recipe, make
from wiregauge import results
from wiregauge.cli import program
from wiregauge.records import RunDirectoryError
from wiregauge.terminal import BAD_INPUT, INCOMPLETE, NO_ENVIRONMENT, disk_full, fail


def refused(number: int) -> OSError:
    return OSError(number, os.strerror(number), "a")


def failing(code: int) -> Callable[[OSError], None]:
    def command(error: OSError) -> None:
        try:
            raise error
        except OSError as why:
            fail(f"a: cannot be written ({why.strerror})", code)

    return command


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS])
@pytest.mark.parametrize("code", [BAD_INPUT, NO_ENVIRONMENT, INCOMPLETE])
def test_a_command_that_fails_for_want_of_room_says_so(number: int, code: int) -> None:
    full = number in (errno.ENOSPC, errno.EDQUOT)
    with pytest.raises(typer.Exit) as ended:
        failing(code)(refused(number))
    assert ended.value.exit_code == (NO_ENVIRONMENT if full and code == BAD_INPUT else code)


@pytest.mark.parametrize("number", [errno.ENOSPC, errno.EDQUOT, errno.EACCES])
@pytest.mark.parametrize("hidden", [False, True])
def test_an_error_of_ours_remembers_the_disk_behind_it(number: int, *, hidden: bool) -> None:
    def command() -> None:
        try:
            raise refused(number)
        except OSError as error:
            raise RunDirectoryError("a: figures cannot be written") from (None if hidden else error)

    with pytest.raises(RunDirectoryError) as raised:
        command()
    full = number != errno.EACCES
    assert disk_full(raised.value) is full
    assert program._report_error(raised.value) == (NO_ENVIRONMENT if full else BAD_INPUT)


COMMANDS = {
    "report": "report run",
    "pictures": "report run --png out",
    "pictures as SVG": "report run --svg out",
    "a comparison": "compare run run --out out.html",
    "JSON": "export run --to json --out out.json",
    "CSV": "export run --to csv --out out.csv",
    "Parquet": "export run --to parquet --out out.parquet",
    "Arrow": "export run --to arrow --out out.arrow",
    "JUnit": "export run --to junit --out out.xml",
    "a schedule": "schedule {examples}/schedule/robot-cell.xml --out out",
    "worst cases": "bounds {examples}/first.xml --search --time-limit 1s --out out",
    "bounds": "bounds {examples}/first.xml --results out.xml",
    "a page of bounds": "bounds {examples}/first.xml --out out.html",
    "a template": "new two-hosts out.xml",
    "a lab": "lab init out",
    "a run": "run {examples}/first.xml --out out",
    "captures": "import {faults}/slow-before.pcap {faults}/slow-behind.pcap --passive --out out",
}
OF_AN_ANSWER = {"a comparison", "a page of bounds"}
"""What was asked for is printed; only the page of it is missing."""
ON_A_FULL_DISK = """
import json, os, sys
from pathlib import Path
from typer.testing import CliRunner
from wiregauge.cli import app, program
commands, found = json.load(sys.stdin), {}
with open("fill", "wb", buffering=0) as fill:
    try:
        while True:
            fill.write(bytes(1024))
    except OSError:
        pass
before = sorted(map(str, Path().rglob("*")))
sizes = [os.stat(one).st_size for one in before]
for name, words in commands.items():
    done = CliRunner().invoke(app, words.split())
    code = done.exit_code
    if done.exception is not None and not isinstance(done.exception, SystemExit):
        code = program._report_error(done.exception)
    after = sorted(map(str, Path().rglob("*")))
    left = [one for one in after if one not in before]
    changed = [one for one, size in zip(before, sizes) if not os.path.exists(one) or os.stat(one).st_size != size]
    found[name] = {"code": code, "said": done.stderr, "left": left, "changed": changed}
print(json.dumps(found))
"""


UNSHARED = ["unshare", "--map-root-user", "--mount"]


def _can_mount() -> bool:
    try:
        return subprocess.run([*UNSHARED, "true"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(not _can_mount(), reason="no mounts of one's own here")
def test_nothing_half_written_is_left_on_a_full_disk(tmp_path: Path) -> None:
    """One line that says why, 3, and the disk as it was; on a file system of 64 KiB in a namespace of its own."""
    tests = Path(__file__).resolve().parents[1]
    places = {"examples": tests.parent / "examples", "faults": tests / "faults" / "taps"}
    commands = {name: words.format(**places) for name, words in COMMANDS.items()}
    make(tmp_path / "made", Recipe(payloads=(64,), messages=20, warm_up=0))
    results.judge(tmp_path / "made")
    (tmp_path / "disk").mkdir()
    script = (
        f"mount -t tmpfs -o size=512k none {tmp_path}/disk && cp -r {tmp_path}/made {tmp_path}/disk/run && "
        f'cd {tmp_path}/disk && exec {sys.executable} -c "$SCRIPT"'
    )
    done = subprocess.run(
        [*UNSHARED, "sh", "-c", script],
        input=json.dumps(commands),
        env={**os.environ, "SCRIPT": ON_A_FULL_DISK, "PYTHONPATH": ":".join(sys.path)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    for name, one in json.loads(done.stdout.splitlines()[-1]).items():
        assert one["code"] == (INCOMPLETE if name in OF_AN_ANSWER else NO_ENVIRONMENT), (name, one)
        assert (one["left"], one["changed"]) == ([], []), (name, one)
