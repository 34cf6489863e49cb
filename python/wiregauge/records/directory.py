"""The run directory of one campaign on disk.

The manifest is replaced atomically, so it is complete at every instant, also after a crash or on a full disk. A writer
holds a lock (`lock`): a directory whose manifest has the state `running` and whose lock is free belongs to a campaign
that was killed. A process number could not show that, because the testmaster may run in a process-number namespace of
its own.
"""

from __future__ import annotations

import contextlib
import datetime
import errno
import hashlib
import os
import shutil
import threading
from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Literal

from msgspec import ValidationError, json

from wiregauge.files import indented, move_folder, write_whole
from wiregauge.plan import NETWORK, NETWORK_NODE, Campaign, OtherPlanError, PlanError, decode
from wiregauge.records.contained import check_contained, check_names
from wiregauge.records.errors import (
    DamagedError,
    NoRoomError,
    OtherVersionError,
    RunDirectoryError,
    UnwritableError,
)
from wiregauge.records.integrity import Inventory, describe, read_json, seal
from wiregauge.records.lock import LOCK, Lock, is_locked
from wiregauge.records.reported import RunEntry, entry_json, read_entries
from wiregauge.records.traits import Traits, traits_of
from wiregauge.records.uncollected import uncollected

__all__ = ["MANIFEST", "RunDirectory", "RunDirectoryError", "holds_instead", "read_manifest", "utc_now"]

SCHEMA: Final = 3
"""Schema version of manifest.json and tracking.json."""

MANIFEST: Final = "manifest.json"
# Released when the disk is full, so that the manifest can always record how the campaign ended.
_RESERVE = ".reserve"
_RESERVE_BYTES = 256 << 10
WHOLE: Final = ".whole"
"""Marker in the spool of a node whose records came from another host: the records are complete."""
Beside = Literal["truth", "crossings"]

BESIDE: Final[Mapping[Beside, str]] = {"truth": "truth.arrows", "crossings": "crossings.arrows"}
"""Kinds of tables stored with the records of a run, and their file names in its spool while it goes on."""
_OWN_FOLDERS: Final = ("records", "messages", "spool")


class _LastPlan:
    """The plan that this process has made or decoded last, by the digest of its JSON.

    The steps of a command each open the run directory, and the plan of very many flows takes seconds to decode.
    """

    held: tuple[bytes, Campaign] | None = None
    """One object, for threads that open directories at a time."""

    @classmethod
    def remember(cls, raw: object, plan: Campaign) -> None:
        cls.held = cls._digest_of(raw), plan

    @classmethod
    def of(cls, raw: object) -> Campaign:
        """The plan of this JSON. Raises PlanError."""
        digest, held = cls._digest_of(raw), cls.held
        if held is not None and held[0] == digest:
            return held[1]
        with uncollected():
            plan = decode(raw)
        cls.held = digest, plan
        return plan

    @staticmethod
    def _digest_of(raw: object) -> bytes:
        return hashlib.sha256(json.encode(raw)).digest()


def utc_now() -> str:
    """The present as RFC 3339 in UTC, whole milliseconds."""
    return datetime.datetime.now(datetime.UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def holds_instead(place: Path, file: str) -> bool:
    """Whether a directory holds what this file is of, rather than a run."""
    return (place / file).is_file() and not (place / MANIFEST).exists()


def read_manifest(root: Path) -> dict[str, Any]:
    """The manifest of a run directory, whose plan and list of files are not looked into.

    Raises RunDirectoryError for what is no run directory, DamagedError, OtherVersionError.
    """
    path = root / MANIFEST
    _check_name(root)
    try:
        if not root.is_dir():
            raise RunDirectoryError(f"{root}: no such directory; `wiregauge run TEST --out {root}` makes one")
        if not path.exists() and not path.is_symlink():
            raise RunDirectoryError(f"{root}: not a run directory: it has no {MANIFEST}")
        check_contained(root)
    except (OSError, ValueError) as error:  # no path at all: too long, or with a zero byte
        reason = error.strerror if isinstance(error, OSError) else error
        raise RunDirectoryError(f"{root}: cannot be read: {reason}; name a run directory") from None
    manifest, digest = read_json(path)
    if (digest is None) != ("files" not in manifest):
        raise DamagedError(
            f"{path}: is damaged or was altered: its digest is missing; restore it from a copy"
        )
    if manifest.get("schema") != SCHEMA:
        raise OtherVersionError(
            f"{path}: schema {manifest.get('schema')!r} is unknown to this wiregauge, which reads {SCHEMA}; "
            "use the version that wrote it"
        )
    missing = [key for key in ("test", "plan", "runs", "state") if key not in manifest]
    if missing:
        raise DamagedError(
            f"{path}: is damaged or was altered: it lacks {', '.join(missing)}; restore it from a copy"
        )
    return manifest


class RunDirectory:
    """Paths and manifest of one campaign."""

    def __init__(self, root: Path, manifest: dict[str, Any]) -> None:
        self.root = root
        self.manifest = manifest
        self._lock: Lock | None = None
        self._made_root = False
        # Threads that finish runs note their files; saving the manifest includes those noted so far.
        self._noting = threading.Lock()

    # -- making and opening ---------------------------------------------------------------------------------

    @staticmethod
    def check_free(root: Path) -> None:
        """Refuses a place that already holds something, before anything else is done."""
        _check_name(root)
        try:
            with os.scandir(root) as found:
                taken = next(found, None) is not None
        except FileNotFoundError:
            return
        except NotADirectoryError:
            raise RunDirectoryError(
                f"{root}: is a file or lies below one; name a directory that is empty or does not exist"
            ) from None
        except (OSError, ValueError) as error:
            raise _unwritable(root, error) from None
        if taken:
            raise RunDirectoryError(
                f"{root}: already holds files; results are never overwritten, so name another directory or remove it"
            )

    @classmethod
    def create(
        cls, root: Path, manifest: dict[str, Any], test_xml: bytes, plan: Campaign | None = None
    ) -> RunDirectory:
        """Makes the directory, writes test and manifest, and holds the lock until `close`.

        `plan` is what the manifest has as JSON: who has it decoded spares the next step to decode it again.

        Of several processes that make the same directory at once one succeeds; what it made stays as it is. Raises
        RunDirectoryError, with nothing of this process left behind.
        """
        cls.check_free(root)
        manifest["files"] = {}
        directory = cls(root, manifest)
        if plan is not None:
            _LastPlan.remember(manifest["plan"], plan)
        try:
            root.parent.mkdir(parents=True, exist_ok=True)
            with contextlib.suppress(FileExistsError):
                root.mkdir()
                directory._made_root = True
            directory._lock = Lock.make(root)
        except FileExistsError:
            raise RunDirectoryError(
                f"{root}: another command is making a run directory there; name another directory"
            ) from None
        except (OSError, ValueError) as error:
            if directory._made_root:
                with contextlib.suppress(OSError):
                    root.rmdir()
            raise _unwritable(root, error) from None
        try:
            if {path.name for path in root.iterdir()} != {LOCK}:
                # Another process came between the check and the lock; the directory is its own.
                directory.close()
                raise RunDirectoryError(
                    f"{root}: another process put files there in the meantime; name another directory"
                )
            for name in _OWN_FOLDERS:
                # Agents write nowhere where others may.
                (root / name).mkdir(mode=0o700 if name == "spool" else 0o777)
            (root / "test.xml").write_bytes(test_xml)
            (root / _RESERVE).write_bytes(b"\1" * _RESERVE_BYTES)
            directory.note_files({"test.xml": describe(root / "test.xml", {})})
            directory.save()
        except (OSError, RunDirectoryError) as error:
            directory.discard()
            cause = error.__cause__ if isinstance(error, RunDirectoryError) else error
            raise _unwritable(root, cause) if isinstance(cause, OSError) else error from None
        return directory

    def discard(self) -> None:
        """Removes the files that this process made in a directory without measurements; all others stay.

        Without the lock, which only the maker has until it closes, nothing is touched.
        """
        if self._lock is None:
            return
        shutil.rmtree(self.root / "spool", ignore_errors=True)
        for name in (MANIFEST, "test.xml", "tracking.json", _RESERVE):
            with contextlib.suppress(OSError):
                (self.root / name).unlink()
        for name in _OWN_FOLDERS:
            with contextlib.suppress(OSError):
                (self.root / name).rmdir()
        self.close()
        if self._made_root:
            with contextlib.suppress(OSError):
                self.root.rmdir()

    @classmethod
    def open(cls, root: Path) -> RunDirectory:
        """Opens an existing run directory; an error says what is missing."""
        manifest = read_manifest(root)
        directory = cls(root, manifest)
        path = root / MANIFEST
        files = manifest.get("files", {})
        if not isinstance(files, dict) or not all(map(_is_entry, files.values())):
            raise DamagedError(
                f"{path}: is damaged or was altered: its list of files is none; restore it from a copy"
            )
        check_names(files, path)
        if not _fits(manifest["runs"], directory.plan):
            raise DamagedError(
                f"{path}: is damaged or was altered: its runs are not those of its plan; restore it from a copy"
            )
        return directory

    # -- state ----------------------------------------------------------------------------------------------

    def save(self) -> None:
        """Replaces the manifest as a whole."""
        if "plan" not in self.manifest:
            raise ValueError("a manifest without its plan is not saved")
        with self._noting:
            files = self.manifest.get("files")
            content = (
                self.manifest if files is None else {**self.manifest, "files": dict(sorted(files.items()))}
            )
        self.write_json(MANIFEST, content)

    @property
    def inventory(self) -> Inventory:
        """The inventory of files, for checking those that are read."""
        return Inventory(self.root, self.manifest.get("files"))

    def note_files(self, entries: Mapping[str, Mapping[str, Any]]) -> None:
        """Lists complete files by their paths in the directory; `save` makes the list permanent.

        A directory without hashes stays unverified: nobody knows whether its files are still what they were.
        """
        with self._noting:
            if "files" in self.manifest:
                self.manifest["files"].update(entries)

    def strike_files(self, names: Iterable[str]) -> None:
        """Removes files from the list before they are replaced: if the process is killed meanwhile, they count as
        unfinished."""
        with self._noting:
            for name in names:
                self.manifest.get("files", {}).pop(name, None)

    def is_listed(self, path: Path) -> bool:
        """Whether the manifest lists a file, or, without hashes, whether it exists."""
        files = self.manifest.get("files")
        return path.exists() if files is None else self.name_of(path) in files

    def name_of(self, path: Path) -> str:
        """A file's path in the directory, as the manifest lists it."""
        return path.relative_to(self.root).as_posix()

    def describe_run(self, index: int, sources: Mapping[str, str] | None = None) -> dict[str, dict[str, Any]]:
        """The manifest entries of every existing file of a run.

        Recorded files have `sources` as their origin, or else the test; tables have the records.
        """
        files: Mapping[str, Any] = self.manifest.get("files", {})
        test = {"test.xml": files["test.xml"]["sha256"]} if "test.xml" in files else {}
        measured = [
            *self.measured_beside(index),
            *sorted(self.captures(index).glob("*")),
        ]
        # Records that are listed were checked before they were tracked again.
        records = {
            name: files[name]
            if name in files
            else describe(self.root / name, test if sources is None else sources)
            for name in map(self.name_of, self.record_files(index))
        }
        beside = {self.name_of(path): describe(path, test) for path in measured if path.is_file()}
        digests = {name: entry["sha256"] for name, entry in records.items()}
        made = {self.name_of(path): describe(path, digests) for path in self.tables(index) if path.is_file()}
        return records | beside | made

    def write_json(self, name: str, content: Mapping[str, Any]) -> None:
        """Replaces a JSON file of the directory as a whole, with its digest where files of the directory have one."""
        path = self.root / name
        digest = {"digest": ""} if "files" in self.manifest else {}
        rest = {key: value for key, value in content.items() if key != "digest"}
        plain = indented({**digest, **rest})
        text = seal(plain) if digest else plain
        try:
            write_whole(path, text)
        except OSError as error:
            reserve = self.root / _RESERVE
            try:
                if error.errno != errno.ENOSPC or not reserve.exists():
                    raise
                reserve.unlink()
                write_whole(path, text)
            except OSError as final:
                raise RunDirectoryError(f"{path}: cannot be written: {final.strerror}") from final

    def is_being_written(self) -> bool:
        """Whether another process is still running this campaign."""
        return self._lock is None and is_locked(self.root)

    def hold(self) -> None:
        """Takes the lock until `close`. Raises RunDirectoryError when another process has it, or UnwritableError."""
        try:
            self._lock = Lock.take(self.root)
        except BlockingIOError:
            raise RunDirectoryError(
                f"{self.root}: another process is working on it; wait for it to end"
            ) from None
        except OSError as error:
            raise UnwritableError(self.root, error.strerror) from error

    def close(self) -> None:
        """Removes the reserve and releases the lock."""
        if self._lock is not None:
            with contextlib.suppress(OSError):
                (self.root / _RESERVE).unlink()
            self._lock.release()
            self._lock = None

    # -- places ---------------------------------------------------------------------------------------------

    @cached_property
    def plan(self) -> Campaign:
        """The campaign, decoded when first needed. Raises DamagedError, RunDirectoryError for another schema."""
        try:
            return _LastPlan.of(self.manifest["plan"])
        except PlanError as error:
            kind = RunDirectoryError if isinstance(error, OtherPlanError) else DamagedError
            raise kind(f"{self.root / MANIFEST}, plan: {error}") from None

    def forget_plan(self) -> None:
        """Frees the JSON of the plan, which takes hundreds of megabytes for very many flows. Nothing is saved after."""
        self.manifest.pop("plan", None)
        self.__dict__.pop("plan", None)

    @property
    def traits(self) -> Traits:
        """The traits of the bench the runs were made on."""
        return traits_of(self.manifest)

    @property
    def runs(self) -> list[dict[str, Any]]:
        """The runs that were started."""
        runs: list[dict[str, Any]] = self.manifest["runs"]
        return runs

    @property
    def run_indices(self) -> list[int]:
        """Indices of the runs that were started."""
        return [run["index"] for run in self.runs]

    def enter(self, *entries: RunEntry) -> None:
        """Puts entries of runs into the manifest, in the order of the plan; keys that no type has stay as they are."""
        known = {run["index"]: run for run in self.runs}
        known |= {entry.index: known.get(entry.index, {}) | entry_json(entry) for entry in entries}
        self.runs[:] = [known[index] for index in sorted(known)]

    def take_out(self, indices: Iterable[int]) -> Mapping[int, dict[str, Any]]:
        """Takes the entries of these runs out of the manifest; returns those there were, as they stood in it."""
        known = {run["index"]: run for run in self.runs}
        out = {index: known.pop(index) for index in indices if index in known}
        self.runs[:] = known.values()
        return out

    def entries(self) -> dict[int, RunEntry]:
        """The entries of the runs that were started, typed, by run. Raises DamagedError for one of another form."""
        try:
            return read_entries(self.runs)
        except ValidationError as error:
            raise DamagedError(
                f"{self.root / MANIFEST}: is damaged or was altered: {error}; restore it from a copy"
            ) from None

    def spool(self, run: int, node: int | None = None) -> Path:
        """The folder of a run's segments while it goes on; for one node by its number in the plan, which no name can
        equal."""
        place = self.root / "spool" / f"run-{run:04d}"
        return place if node is None else place / f"node-{node:04d}"

    def collected(self, run: int) -> list[int]:
        """Nodes whose records came whole from other hosts into the spool of a run."""
        return sorted(
            int(mark.parent.name.removeprefix("node-")) for mark in self.spool(run).glob(f"node-*/{WHOLE}")
        )

    def put_by(self, run: int, node: int) -> None:
        """Sets the partial records of a node aside until the rest arrives, for a part must not be tracked."""
        place, aside = self.spool(run, node), self._put_by(run, node)
        if place.exists() and not aside.exists():
            move_folder(place, aside)

    def take_up(self, run: int, node: int) -> None:
        """Restores the records that were set aside, so that the rest can be added."""
        place, aside = self.spool(run, node), self._put_by(run, node)
        if aside.exists() and not place.exists():
            place.parent.mkdir(parents=True, exist_ok=True)
            move_folder(aside, place)

    def _put_by(self, run: int, node: int) -> Path:
        return self.root / "spool" / f"incomplete-{run:04d}-{node:04d}"

    def spooled_by(self, place: Path) -> str:
        """The node that has this folder of a run's spool."""
        number = place.name.removeprefix("node-")
        if number == str(NETWORK_NODE):
            return NETWORK
        names = self.plan.network.names
        # Version 0.1.0 named the folder after its node.
        return names[int(number)] if number.isdigit() and int(number) < len(names) else place.name

    def segments(self, run: int) -> list[Path]:
        """Segment files of a run, in a stable order."""
        places = [self.spool(run), self._spooled_network(run)]
        found = {path for place in places for path in place.glob("*/*.arrows")}
        return sorted(path for path in found if path.name not in BESIDE.values())

    def records(self, run: int) -> Path:
        """The table of all records of a run."""
        return self.root / "records" / f"run-{run:04d}.parquet"

    def captures(self, run: int) -> Path:
        """The folder of pcapng files, one per node, that the capture tasks of a run wrote; absent without captures."""
        return self.root / "captures" / f"run-{run:04d}"

    def spooled_captures(self, run: int) -> Path:
        """The folder of a run's captures while it goes on, except those of agents, which are in their own spools."""
        return self.spool(run) / "captures"

    def _spooled_network(self, run: int) -> Path:
        """The spool of the agent that plays the network, if there is one; simulation output is below it."""
        return self.spool(run, NETWORK_NODE)

    def capture_files(self, run: int) -> dict[str, Path]:
        """Captures of a run while it goes on, by the names of their final files."""
        found = {
            path.name: path
            for place in (self._spooled_network(run) / "captures", self.spooled_captures(run))
            for path in place.glob("*.pcapng")
        }
        own = self.spool(run).glob("*/capture.pcapng")
        return found | {f"{self.spooled_by(path.parent)}.pcapng": path for path in own}

    def spooled_beside(self, kind: Beside, run: int) -> Path:
        """A table of a run while it goes on: from a simulation, or from an agent that plays the network."""
        of_network = self._spooled_network(run) / BESIDE[kind]
        return of_network if of_network.exists() else self.spool(run) / BESIDE[kind]

    def beside(self, kind: Beside, run: int) -> Path:
        """The stored table of that kind of a run."""
        return self.root / kind / f"run-{run:04d}.parquet"

    def truth(self, run: int) -> Path:
        """The file of true values of a run; absent where they are not known."""
        return self.beside("truth", run)

    def crossings(self, run: int) -> Path:
        """Frames that crossed between hosts and a network that was played; missing where none was."""
        return self.beside("crossings", run)

    def clocks(self, run: int) -> Path:
        """The table of clock states that synchronisation programs reported during a run; absent without them."""
        return self.root / "clocks" / f"run-{run:04d}.parquet"

    def noise(self, run: int) -> Path:
        """The table of host activity during a run; absent where no host took part."""
        return self.root / "noise" / f"run-{run:04d}.parquet"

    def measured_beside(self, run: int) -> tuple[Path, ...]:
        """All measured files of a run except its records and captures; any may be missing."""
        return (*(self.beside(kind, run) for kind in BESIDE), self.clocks(run), self.noise(run))

    def messages(self, run: int) -> Path:
        """One row per message of a run."""
        return self.root / "messages" / f"run-{run:04d}.parquet"

    def tables(self, run: int) -> tuple[Path, Path, Path]:
        """The tables that tracking makes from the records of a run: messages, passages, sketches."""
        return self.messages(run), self.passages(run), self.sketches(run)

    def passages(self, run: int) -> Path:
        """One row per frame and switch it passed in a run."""
        return self.root / "passages" / f"run-{run:04d}.parquet"

    def sketches(self, run: int) -> Path:
        """The distributions of a run's measures."""
        return self.root / "sketches" / f"run-{run:04d}.parquet"

    def extremes(self, run: int) -> Path:
        """The file of extremes, from which figures of a run's messages are drawn; absent for small runs."""
        return self.root / "extremes" / f"run-{run:04d}.parquet"

    def derived(self, run: int) -> tuple[Path, ...]:
        """The files derived from the records of a run: its tables, and the extremes that judging computes."""
        return (*self.tables(run), self.extremes(run))

    def record_files(self, run: int) -> list[Path]:
        """The stored records of a run: one file, or the parts of a folder of its name, in any division."""
        whole = self.records(run)
        return [whole] if whole.exists() else sorted(whole.with_suffix("").glob("*.parquet"))


def _check_name(root: Path) -> None:
    """Refuses names that are no text: tables cannot be opened by them, nor pages and JSON show them."""
    try:
        os.fspath(root.absolute()).encode("utf-8")
    except UnicodeEncodeError:
        shown = os.fsencode(root).decode("utf-8", "backslashreplace")
        raise RunDirectoryError(
            f"{shown}: its path is not UTF-8; give the directory a name that is"
        ) from None


def _unwritable(root: Path, error: OSError | ValueError) -> RunDirectoryError:
    """The sentence for a place where no run directory can be made."""
    if not isinstance(error, OSError):
        return RunDirectoryError(f"{root}: is no path ({error}); name another directory")
    cure = {
        errno.ENAMETOOLONG: "; a name has at most 255 bytes and a path 4095: choose a shorter one",
        errno.EACCES: "; choose a directory this user may write to",
        errno.EROFS: "; choose a directory on a disk that can be written",
        errno.ENOSPC: "; free space there or choose another disk",
        errno.EDQUOT: "; free space there or choose another disk",
        errno.ELOOP: "; its symbolic links lead in a circle",
    }.get(error.errno or 0, "")
    kind = NoRoomError if error.errno in (errno.ENOSPC, errno.EDQUOT) else RunDirectoryError
    return kind(f"{root}: cannot be written: {error.strerror}{cure}")


def _is_entry(entry: object) -> bool:
    return (
        isinstance(entry, dict)
        and isinstance(entry.get("bytes"), int)
        and isinstance(entry.get("sha256"), str)
        and isinstance(entry.get("from"), dict)
    )


def _fits(runs: object, plan: Campaign) -> bool:
    """Whether each run is one of the plan, and none is there twice."""
    if not isinstance(runs, list):
        return False
    found = [run.get("index") if isinstance(run, dict) else None for run in runs]
    return len(set(map(str, found))) == len(found) and all(
        type(index) is int and 0 <= index < len(plan.runs) for index in found
    )
