"""One campaign on disk.

The manifest is replaced atomically, so it is whole at every instant, also after a crash or on a full disk. Who
writes holds a lock that the kernel lets go when the process ends in whatever way: a directory whose manifest
says `running` and whose lock is free belongs to a campaign that was killed. A process number could not tell
that, because the testmaster may run in a process-number namespace of its own.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import fcntl
import json
import os
from pathlib import Path
from typing import Any, TextIO

__all__ = ["RunDirectory", "RunDirectoryError", "utc_now"]

SCHEMA = 1
_MANIFEST = "manifest.json"
_LOCK = ".lock"
# Given back when the disk is full, so that the manifest can always say how the campaign ended.
_RESERVE = ".reserve"
_RESERVE_BYTES = 256 << 10


class RunDirectoryError(Exception):
    """The run directory cannot be used; the text says why and what to do."""


def utc_now() -> str:
    """The present as RFC 3339 in UTC, whole milliseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


class RunDirectory:
    """Paths and manifest of one campaign."""

    def __init__(self, root: Path, manifest: dict[str, Any]) -> None:
        self.root = root
        self.manifest = manifest
        self._lock: TextIO | None = None

    # -- making and opening ---------------------------------------------------------------------------------

    @staticmethod
    def check_free(root: Path) -> None:
        """Refuses a place that already holds something, before anything else is done."""
        if root.exists() and not root.is_dir():
            raise RunDirectoryError(f"{root}: is a file; name a directory that is empty or does not exist")
        if root.is_dir() and any(root.iterdir()):
            raise RunDirectoryError(
                f"{root}: already holds files; results are never overwritten, so name another directory or remove it"
            )

    @classmethod
    def create(cls, root: Path, manifest: dict[str, Any], test_xml: bytes) -> RunDirectory:
        """Makes the directory, writes test and manifest, and holds the lock until `close`."""
        cls.check_free(root)
        try:
            for sub in ("records", "messages", "spool"):
                (root / sub).mkdir(parents=True, exist_ok=True)
            (root / "test.xml").write_bytes(test_xml)
            (root / _RESERVE).write_bytes(b"\1" * _RESERVE_BYTES)
        except OSError as error:
            raise RunDirectoryError(f"{root}: cannot be written: {error.strerror}") from error
        directory = cls(root, manifest)
        directory._lock = (root / _LOCK).open("w")
        fcntl.flock(directory._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        directory.save()
        return directory

    @classmethod
    def open(cls, root: Path) -> RunDirectory:
        """Opens what is there; an error says what is missing."""
        path = root / _MANIFEST
        if not root.is_dir():
            raise RunDirectoryError(f"{root}: no such directory; `wiregauge run TEST --out {root}` makes one")
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
        except FileNotFoundError as error:
            raise RunDirectoryError(f"{root}: not a run directory: it has no {_MANIFEST}") from error
        except (OSError, UnicodeDecodeError) as error:
            raise RunDirectoryError(f"{path}: cannot be read: {error}") from error
        except json.JSONDecodeError as error:
            raise RunDirectoryError(f"{path}:{error.lineno}: not JSON: {error.msg}") from error
        if not isinstance(manifest, dict) or manifest.get("schema") != SCHEMA:
            found = manifest.get("schema") if isinstance(manifest, dict) else None
            raise RunDirectoryError(
                f"{path}: schema {found!r}, this version reads {SCHEMA}; use the version of wiregauge that wrote it"
            )
        missing = [key for key in ("test", "plan", "runs", "state") if key not in manifest]
        if missing:
            raise RunDirectoryError(f"{path}: incomplete: {', '.join(missing)} missing")
        return cls(root, manifest)

    # -- state ----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Replaces the manifest as a whole."""
        self.write_json(_MANIFEST, self.manifest)

    def write_json(self, name: str, content: object) -> None:
        """Replaces a JSON file of the directory as a whole."""
        path = self.root / name
        try:
            _replace(path, content)
        except OSError as error:
            reserve = self.root / _RESERVE
            try:
                if error.errno != errno.ENOSPC or not reserve.exists():
                    raise
                reserve.unlink()
                _replace(path, content)
            except OSError as final:
                raise RunDirectoryError(f"{path}: cannot be written: {final.strerror}") from final

    def is_being_written(self) -> bool:
        """Whether another process is still running this campaign."""
        if self._lock is not None:
            return False
        try:
            with (self.root / _LOCK).open("r") as lock:
                fcntl.flock(lock, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except FileNotFoundError:
            return False
        except BlockingIOError:
            return True
        return False

    def hold(self) -> None:
        """Takes the lock of an opened directory, until `close`. Raises RunDirectoryError when another has it."""
        try:
            lock = (self.root / _LOCK).open("w")
        except OSError as error:
            raise RunDirectoryError(f"{self.root}: cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            lock.close()
            raise RunDirectoryError(
                f"{self.root}: another process is working on it; wait for it to end"
            ) from error
        self._lock = lock

    def close(self) -> None:
        """Lets the lock go."""
        if self._lock is not None:
            self._lock.close()
            self._lock = None
            for name in (_LOCK, _RESERVE):
                with contextlib.suppress(OSError):
                    (self.root / name).unlink()

    # -- places ---------------------------------------------------------------------------------------------

    @property
    def plan(self) -> dict[str, Any]:
        """The campaign, JSON form of `wg_plan::Campaign`."""
        plan: dict[str, Any] = self.manifest["plan"]
        return plan

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs that were started."""
        runs: list[dict[str, Any]] = self.manifest["runs"]
        return runs

    def spool(self, run: int, end_system: str | None = None) -> Path:
        """Where the segments of a run are while it goes on."""
        place = self.root / "spool" / f"run-{run:04d}"
        return place if end_system is None else place / end_system

    def segments(self, run: int) -> list[Path]:
        """Segment files of a run, in a stable order."""
        return sorted(self.spool(run).glob("*/*.arrows"))

    def records(self, run: int) -> Path:
        """Every record of a run."""
        return self.root / "records" / f"run-{run:04d}.parquet"

    def captures(self, run: int) -> Path:
        """What the capture tasks of a run wrote, one pcapng file per node; absent without any."""
        return self.root / "captures" / f"run-{run:04d}"

    def spooled_captures(self, run: int) -> Path:
        """Where captures of a run are while it goes on, but for those of agents, which are in their own spools."""
        return self.spool(run) / "captures"

    def spooled_truth(self, run: int) -> Path:
        """What was true of a run, while it goes on; only a simulation knows it."""
        return self.spool(run) / "truth.arrows"

    def truth(self, run: int) -> Path:
        """What was true of a run beside its records; missing where nobody could know it."""
        return self.root / "truth" / f"run-{run:04d}.parquet"

    def clocks(self, run: int) -> Path:
        """What synchronisation programs said of the clocks of a run; missing where none ran."""
        return self.root / "clocks" / f"run-{run:04d}.parquet"

    def noise(self, run: int) -> Path:
        """What else the hosts of a run did; missing where no host took part."""
        return self.root / "noise" / f"run-{run:04d}.parquet"

    def messages(self, run: int) -> Path:
        """One row per message of a run."""
        return self.root / "messages" / f"run-{run:04d}.parquet"

    def passages(self, run: int) -> Path:
        """One row per frame and switch it passed in a run."""
        return self.root / "passages" / f"run-{run:04d}.parquet"

    def sketches(self, run: int) -> Path:
        """The distributions of a run's measures."""
        return self.root / "sketches" / f"run-{run:04d}.parquet"

    def record_files(self, run: int) -> list[Path]:
        """The stored records of a run: one file, or the parts of a folder of its name, in any division."""
        whole = self.records(run)
        return [whole] if whole.exists() else sorted(whole.with_suffix("").glob("*.parquet"))


def _replace(path: Path, content: object) -> None:
    """Writes beside the file and renames: a reader sees the old or the new content, never a part."""
    temporary = path.with_name(f".{path.name}.new")
    try:
        with temporary.open("w", encoding="utf-8") as file:
            json.dump(content, file, indent=1, ensure_ascii=False)
            file.write("\n")
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
        raise
