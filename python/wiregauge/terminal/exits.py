"""Exit codes, decided in one place and in one order, and errors as one line.

In this order: 2 bad input or usage; 3 this machine cannot; 4 no answer, because the campaign is incomplete, INVALID, or
was stopped by a signal or a disk that filled; 1 a limit failed, or a comparison found worse; 4 undecided, whether a
limit, a named threshold, an equivalence, or a comparison with too few messages; 0 within limits.
DEGRADED alone changes nothing.

Bad input and an unfit machine end a command where they are met (`fail`); `exit_code` orders what is left.
"""

from __future__ import annotations

import errno
import math
import re
import sys
from typing import NoReturn

from wiregauge.files import printable
from wiregauge.terminal.wrapping import width_for, wrapped

WITHIN, FAILED, BAD_INPUT, NO_ENVIRONMENT, INCOMPLETE = 0, 1, 2, 3, 4
_FULL = (errno.ENOSPC, errno.EDQUOT)
_NUMBERED = re.compile(r"\(os error (\d+)\)")
UNDECIDED = INCOMPLETE
"""Same code: neither gives an answer."""


def exit_code(*, answered: bool, failed: bool = False, undecided: bool = False) -> int:
    """The exit code of a command that judged or compared.

    `answered`: everything planned was measured, and is fit to judge. `failed`: a limit failed, or a comparison found
    worse. `undecided`: a requested decision was impossible.
    """
    if not answered:
        return INCOMPLETE
    if failed:
        return FAILED
    return UNDECIDED if undecided else WITHIN


def say(text: str) -> None:
    """Prints one line to standard error; a name with a line feed or an escape in it stays on one line."""
    print(wrapped(f"wiregauge: {printable(text)}", width_for(sys.stderr)), file=sys.stderr)


def finite(value: float) -> float:
    """Refuses `nan` and infinities as the value of an option: bounds do not, as nothing is less than `nan`."""
    if not math.isfinite(value):
        import typer

        raise typer.BadParameter("is not a usable number; write one like 2.5")
    return value


def fail(text: str, code: int) -> NoReturn:
    """Prints the reason and ends the command with `code`, or NO_ENVIRONMENT for bad input due to a full disk."""
    import typer  # only commands end like this; judging in Python needs no command line

    say(text)
    raise typer.Exit(NO_ENVIRONMENT if code == BAD_INPUT and disk_full(sys.exc_info()[1]) else code)


def _says_full(text: str) -> bool:
    """Whether a text of the native side reports a full disk: Rust prints the error number."""
    return any(int(number) in _FULL for number in _NUMBERED.findall(text))


def disk_full(error: BaseException | None) -> bool:
    """Whether an error was caused by a full disk, however it was reworded."""
    while error is not None:
        if (isinstance(error, OSError) and error.errno in _FULL) or _says_full(str(error)):
            return True
        error = error.__cause__ or error.__context__
    return False
