"""The output of commands: every line passes through this module.

Names from captures, run directories, hosts or files are shown safely (`wiregauge.files.printable`) and stay on their
line. `put` prints a sentence, `put_lines` lines that must not be broken, `make_console` makes rich's console with the
same rules, and `guard` wraps the streams for output of libraries: JSON, help, warnings.
"""

from __future__ import annotations

import contextlib
import io
import re
import sys
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from wiregauge.files import printable, printable_lines
from wiregauge.terminal.loudness import is_quiet
from wiregauge.terminal.wrapping import width_for, wrapped

if TYPE_CHECKING:
    from wiregauge.terminal.console import ShownConsole

__all__ = ["guard", "make_console", "put", "put_errors", "put_lines"]

_COLOUR: Final = re.compile(r"(\x1b\[[0-9;]*m)")
"""Colour sequences of libraries' help and errors on a terminal."""


def put(text: object = "", *, error: bool = False, indent: int | None = None) -> None:
    """Prints a sentence to standard output or standard error; on a terminal in lines, indented from the second on."""
    stream = sys.stderr if error else sys.stdout
    print(wrapped(printable(str(text)), width_for(stream), indent), file=stream)


def put_lines(lines: Iterable[object]) -> None:
    """Prints lines, none broken: commands, and text that is already laid out."""
    sys.stdout.writelines(f"{printable(str(line))}\n" for line in lines)


def put_errors(error: Exception) -> None:
    """Prints the faults of an input, a sentence each."""
    for line in str(error).split("\n"):
        put(line, error=True)


def make_console(*, stderr: bool = False) -> ShownConsole:
    """The console of a command: standard output, or standard error for progress and messages beside the answer."""
    from wiregauge.terminal.console import ShownConsole  # rich: many commands print plain lines only

    if stderr and is_quiet():
        return ShownConsole(file=cast(TextIO, _Nowhere()), emoji=False)
    stream = sys.stderr if stderr else sys.stdout
    # It writes colour sequences, and has made everything else printable itself.
    return ShownConsole(file=stream.under if isinstance(stream, _Shown) else None, stderr=stderr, emoji=False)


class _Nowhere(io.TextIOBase):
    """A stream that discards its input."""

    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


class _Shown(io.TextIOBase):
    """A text stream that escapes its input except line ends; on a terminal colours stay."""

    def __init__(self, under: TextIO) -> None:
        self.under = under

    def write(self, text: str) -> int:
        if self.under.isatty():
            parts = _COLOUR.split(text)
            self.under.write(
                "".join(part if k % 2 else printable_lines(part) for k, part in enumerate(parts))
            )
        else:
            self.under.write(printable_lines(text))
        return len(text)

    def writable(self) -> bool:
        return True

    def flush(self) -> None:
        self.under.flush()

    def isatty(self) -> bool:
        return self.under.isatty()

    def fileno(self) -> int:
        return self.under.fileno()

    def close(self) -> None:
        """Does nothing: the stream below belongs to the interpreter."""

    @property
    def buffer(self) -> Any:
        return self.under.buffer

    @property
    def encoding(self) -> str:  # type: ignore[override]
        return self.under.encoding

    @property
    def errors(self) -> str | None:  # type: ignore[override]
        return self.under.errors


def guard() -> None:
    """Wraps both output streams of the program; once."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, _Shown):
            continue
        with contextlib.suppress(AttributeError, ValueError, OSError):
            # A name with characters beyond the system's encoding is shown escaped, not an error.
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, cast(TextIO, _Shown(stream)))
