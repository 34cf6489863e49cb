"""Records as they come from an agent: from where the last attempt ended, and checked when they are whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path

from wiregauge.records.directory import WHOLE
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["AlteredError", "Collected"]


class AlteredError(Exception):
    """A file differs from the agent's; no part of it is kept."""


class Collected:
    """The files of one agent's run, in a folder of this run directory's spool."""

    def __init__(self, place: Path) -> None:
        self._place = place
        self._whole: set[str] = set()

    def have(self) -> Mapping[str, int]:
        """Bytes there are of each file."""
        if not self._place.is_dir():
            return {}
        return {
            file.name: file.stat().st_size
            for file in self._place.iterdir()
            if file.is_file() and file.name != WHOLE
        }

    def done(self) -> None:
        """Marks the folder as complete."""
        self._place.mkdir(parents=True, exist_ok=True)
        (self._place / WHOLE).touch()

    @property
    def whole(self) -> int:
        """Files that are complete and match the agent's hashes."""
        return len(self._whole)

    def take(self, chunk: pb.Chunk) -> None:
        """Writes a chunk to its place in its file. Raises AlteredError where a complete file does not match its
        hash."""
        # The name comes over the network: only its last part is used.
        file = self._place / Path(chunk.file).name
        self._place.mkdir(parents=True, exist_ok=True)
        with file.open("r+b" if file.exists() else "w+b") as out:
            out.seek(chunk.offset)
            out.write(chunk.data)
            out.truncate()
            if not chunk.sha256:
                return
            out.seek(0)
            digest = hashlib.file_digest(out, "sha256").digest()
        if digest != chunk.sha256:
            file.unlink()
            raise AlteredError(f"{file.name} is not what the agent has")
        self._whole.add(file.name)
