"""The run directory: what was run, what was recorded, and how it is turned into one row per message.

Its layout is documented in `docs/reference/run-directory.md`.
"""

from __future__ import annotations

from wiregauge.records.adding import add_spooled
from wiregauge.records.beside import store_beside
from wiregauge.records.clockstates import store_clock_states
from wiregauge.records.contained import check_contained
from wiregauge.records.directory import MANIFEST, RunDirectory, holds_instead, read_manifest
from wiregauge.records.errors import (
    DamagedError,
    NoRoomError,
    OtherVersionError,
    RunDirectoryError,
    UnfinishedError,
)
from wiregauge.records.integrity import Inventory, describe, read_json, seal, write_sealed
from wiregauge.records.notes import NOTES, Note, Notes, change_notes, read_notes
from wiregauge.records.processing import process_run
from wiregauge.records.recovering import recover
from wiregauge.records.resuming import missing_runs, resumed
from wiregauge.records.traits import Traits, traits_of
from wiregauge.records.uncollected import uncollected

__all__ = [
    "MANIFEST",
    "NOTES",
    "DamagedError",
    "Inventory",
    "NoRoomError",
    "Note",
    "Notes",
    "OtherVersionError",
    "RunDirectory",
    "RunDirectoryError",
    "Traits",
    "UnfinishedError",
    "add_spooled",
    "change_notes",
    "check_contained",
    "describe",
    "holds_instead",
    "missing_runs",
    "process_run",
    "read_json",
    "read_manifest",
    "read_notes",
    "recover",
    "resumed",
    "seal",
    "store_beside",
    "store_clock_states",
    "traits_of",
    "uncollected",
    "write_sealed",
]
