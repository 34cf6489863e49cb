"""A disk without room is no bad input: exit code 3, in whatever words a command tells it."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable

import pytest
import typer

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
