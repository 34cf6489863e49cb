"""Files that appear whole or not at all, and are never written over what somebody else made."""

from wiregauge.files.indented import indented
from wiregauge.files.whole import (
    TEMPORARY,
    ForeignFileError,
    check_place,
    cure_for,
    move_folder,
    put_in_place,
    sync_folder,
    whole,
    write_whole,
)

__all__ = [
    "TEMPORARY",
    "ForeignFileError",
    "check_place",
    "cure_for",
    "indented",
    "move_folder",
    "put_in_place",
    "sync_folder",
    "whole",
    "write_whole",
]
