"""Atomic file writes that never overwrite foreign files; foreign files are read without blocking or filling memory, and
printed safely.
"""

from wiregauge.files.indented import indented
from wiregauge.files.nearest import nearest
from wiregauge.files.printable import printable, printable_content, printable_lines
from wiregauge.files.regular import (
    LARGEST,
    SMALL,
    check_regular,
    is_file,
    open_regular,
    read_regular,
    read_text,
)
from wiregauge.files.shipped import shipped
from wiregauge.files.whole import (
    TEMPORARY,
    ForeignFileError,
    check_place,
    cure_for,
    move_folder,
    new_folder,
    put_in_place,
    sync_folder,
    unwritten,
    whole,
    write_whole,
)

__all__ = [
    "LARGEST",
    "SMALL",
    "TEMPORARY",
    "ForeignFileError",
    "check_place",
    "check_regular",
    "cure_for",
    "indented",
    "is_file",
    "move_folder",
    "nearest",
    "new_folder",
    "open_regular",
    "printable",
    "printable_content",
    "printable_lines",
    "put_in_place",
    "read_regular",
    "read_text",
    "shipped",
    "sync_folder",
    "unwritten",
    "whole",
    "write_whole",
]
