"""Common output of commands: documented exit codes, errors in one line, tables that are not cut."""

from wiregauge.terminal.exits import (
    BAD_INPUT,
    FAILED,
    INCOMPLETE,
    NO_ENVIRONMENT,
    UNDECIDED,
    WITHIN,
    disk_full,
    exit_code,
    fail,
    finite,
    say,
)
from wiregauge.terminal.loudness import is_quiet, is_verbose, set_loudness
from wiregauge.terminal.output import guard, make_console, put, put_errors, put_lines
from wiregauge.terminal.tables import print_table

__all__ = [
    "BAD_INPUT",
    "FAILED",
    "INCOMPLETE",
    "NO_ENVIRONMENT",
    "UNDECIDED",
    "WITHIN",
    "disk_full",
    "exit_code",
    "fail",
    "finite",
    "guard",
    "is_quiet",
    "is_verbose",
    "make_console",
    "print_table",
    "put",
    "put_errors",
    "put_lines",
    "say",
    "set_loudness",
]
