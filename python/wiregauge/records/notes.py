"""Notes and tags that people put on a run: `notes.json` beside what was recorded, which is never changed by them.

A note is on the campaign, on one of its runs, on a flow, or on an instant. The file has its own digest, and is replaced
as a whole. Its form is in docs/reference/run-directory.md.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct, to_builtins

from wiregauge.files import indented, printable, write_whole
from wiregauge.records.directory import utc_now
from wiregauge.records.errors import DamagedError, UnwritableError
from wiregauge.records.integrity import read_json, seal

__all__ = ["NOTES", "Note", "Notes", "change_notes", "read_notes"]

NOTES: Final = "notes.json"
SCHEMA: Final = 1
MOST_NOTES: Final = 1000
LONGEST_TEXT: Final = 2000
"""Characters of a note."""
LONGEST_TAG: Final = 40
MOST_TAGS: Final = 30


class Note(Struct, frozen=True):
    """A note; `run`, `flow`, `to` and `at_s` (s of the run) say what it is on, None: no one in particular."""

    text: str
    written: str
    run: int | None = None
    flow: int | None = None
    to: str | None = None
    """The receiver of a multicast flow."""
    at_s: float | None = None


class Notes(Struct, frozen=True):
    """The notes of a run directory in the order they were written, and its tags."""

    tags: tuple[str, ...] = ()
    notes: tuple[Note, ...] = ()

    def tagged(self, words: str) -> Notes:
        """With the tags of a text, which are separated by spaces or commas. Raises ValueError for too long ones."""
        tags = tuple(dict.fromkeys(printable(word) for word in words.replace(",", " ").split()))
        if len(tags) > MOST_TAGS or any(len(tag) > LONGEST_TAG for tag in tags):
            raise ValueError(f"there may be {MOST_TAGS} tags of {LONGEST_TAG} characters; shorten them")
        return Notes(tags, self.notes)

    def added(
        self,
        text: str,
        *,
        run: int | None = None,
        flow: int | None = None,
        to: str | None = None,
        at_s: float | None = None,
    ) -> Notes:
        """With one note more, of one line, written now. Raises ValueError for an empty, too long or surplus one."""
        text = printable(" ".join(text.split()))
        if not text or len(text) > LONGEST_TEXT:
            raise ValueError(f"a note has 1 to {LONGEST_TEXT} characters")
        if len(self.notes) >= MOST_NOTES:
            raise ValueError(f"there may be {MOST_NOTES} notes; remove some")
        return Notes(self.tags, (*self.notes, Note(text, utc_now(), run, flow, to, at_s)))

    def without(self, place: int, written: str) -> Notes:
        """Without the note at a place, if it is the one that was written then. Raises ValueError for another."""
        if not 0 <= place < len(self.notes) or self.notes[place].written != written:
            raise ValueError("the notes changed meanwhile; look again")
        return Notes(self.tags, (*self.notes[:place], *self.notes[place + 1 :]))


def read_notes(root: Path) -> Notes:
    """The notes of a run directory; none where nobody wrote any. Raises RunDirectoryError for a damaged file."""
    path = root / NOTES
    if not os.path.lexists(path):
        return Notes()
    content, digest = read_json(path)
    if digest is None or content.get("schema") != SCHEMA:
        raise DamagedError(f"{path}: is damaged, or of another version; restore it from a copy or remove it")
    try:
        found = {"tags": content.get("tags"), "notes": content.get("notes")}
        return msgspec.convert(found, Notes)
    except msgspec.ValidationError as error:
        raise DamagedError(f"{path}: is damaged ({error}); restore it from a copy or remove it") from None


def change_notes(root: Path, change: Callable[[Notes], Notes]) -> Notes:
    """Replaces the notes of a run directory by changed ones; of several processes one at a time does.

    Raises RunDirectoryError for a damaged file, UnwritableError, and what `change` raises.
    """
    try:
        with _alone(root):
            changed = change(read_notes(root))
            content = {"digest": "", "schema": SCHEMA, **to_builtins(changed)}
            write_whole(root / NOTES, seal(indented(content)))
    except OSError as error:
        raise UnwritableError(root, error.strerror) from error
    return changed


@contextlib.contextmanager
def _alone(root: Path) -> Iterator[None]:
    """Holds a lock of the folder itself, which is none of its files."""
    handle = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)
