"""What is printed: one place through which every line of every command goes.

Whatever a name holds that came with a capture, a run directory, a host or a file name, the terminal shows it and does
not obey it (`wiregauge.files.printable`), and it stays on its line. `put` prints a sentence, `put_lines` what is not to
be broken, `make_console` gives rich's console of which the same holds, and `guard` stands before the streams for what a
library prints: JSON, help, warnings.
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
"""How a library colours its help and its errors, on a terminal."""


def put(text: object = "", *, error: bool = False, indent: int | None = None) -> None:
    """One sentence, on standard output or on standard error; a terminal gets it in lines, the others indented."""
    stream = sys.stderr if error else sys.stdout
    print(wrapped(printable(str(text)), width_for(stream), indent), file=stream)


def put_lines(lines: Iterable[object]) -> None:
    """Lines, each by itself and none broken: commands, and what is laid out already."""
    sys.stdout.writelines(f"{printable(str(line))}\n" for line in lines)


def put_errors(error: Exception) -> None:
    """What is wrong with an input, a sentence for each fault."""
    for line in str(error).split("\n"):
        put(line, error=True)


def make_console(*, stderr: bool = False) -> ShownConsole:
    """The console of a command: standard output, or standard error for progress and what is not the answer."""
    from wiregauge.terminal.console import ShownConsole  # rich: many a command prints plain lines only

    if stderr and is_quiet():
        return ShownConsole(file=cast(TextIO, _Nowhere()), emoji=False)
    stream = sys.stderr if stderr else sys.stdout
    # It writes the sequences for colours, and has made everything else printable itself.
    return ShownConsole(file=stream.under if isinstance(stream, _Shown) else None, stderr=stderr, emoji=False)


class _Nowhere(io.TextIOBase):
    """Where goes what nobody wants to see."""

    def write(self, text: str) -> int:
        return len(text)

    def writable(self) -> bool:
        return True


class _Shown(io.TextIOBase):
    """A text stream that escapes what is written to it, lines apart; on a terminal colours stay."""

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
        """The stream below belongs to the interpreter."""

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
    """Puts both streams of the program behind the one place; once."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None or isinstance(stream, _Shown):
            continue
        with contextlib.suppress(AttributeError, ValueError, OSError):
            # A name that the system's encoding has no characters for is shown, and is no error.
            stream.reconfigure(errors="backslashreplace")
        setattr(sys, name, cast(TextIO, _Shown(stream)))
