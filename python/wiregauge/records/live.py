"""A campaign while it goes on: `live.json` in its run directory, replaced once a second, and a request to stop it.

Whoever runs the campaign writes the file; pages read it, so that watching takes nothing from the measurement. Its
figures are provisional: no verdict rests on them. The form is in docs/reference/run-directory.md.
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from wiregauge.files import SMALL, read_regular, write_whole
from wiregauge.records.errors import DamagedError, OtherVersionError, RunDirectoryError

__all__ = [
    "LIVE",
    "STOP",
    "ClockNow",
    "FlowNow",
    "LimitNow",
    "Live",
    "PortNow",
    "RunNow",
    "Stretch",
    "ask_to_stop",
    "clear_live",
    "is_asked_to_stop",
    "read_live",
    "write_live",
]

LIVE: Final = "live.json"
STOP: Final = "stop"
"""A file whose presence asks the campaign to stop."""
SCHEMA: Final = 1


class FlowNow(Struct, frozen=True):
    """A flow: counts since the run began, times of the last second (in virtual time: since the figures before);
    None where no message had one."""

    flow: int
    source: str
    destination: str
    measure: Literal["latency", "rtt"]
    sent: int
    received: int
    lost: int
    repeats: int
    rate: float
    """Messages that arrived in a second of the run."""
    measured: int
    p50_ns: float | None
    p99_ns: float | None
    mean_ns: float | None
    max_ns: float | None
    late_ns: int
    """The most that a message was sent late."""

    @property
    def label(self) -> str:
        """The flow's number and ends."""
        return f"flow {self.flow} ({self.source} → {self.destination})"


class PortNow(Struct, frozen=True):
    """A port by which frames of the test left a switch since the figures before."""

    node: str
    port: int
    frames: int
    longest_ns: int
    """The longest stay of one of them in the switch."""
    queued: int
    """The most of them that left during one such stay, the one that stayed included."""


class ClockNow(Struct, frozen=True):
    """The last that is known of a clock."""

    node: str
    source: str
    """What tells it: `AS6802`, `PTP` or `model` of a clock that the simulator plays; the program (`ptp4l`, `phc2sys`,
    `chrony`) of a host's own."""
    state: str
    """As source and protocol name it; empty where nothing synchronises the clock."""
    synchronised: bool | None
    """Whether that state says so; None where nothing synchronises the clock."""
    offset_ns: float | None
    """Of a played clock against true time, of a host's against its server; None where nothing told it."""
    at_s: float
    """When that was so, s of the run."""


class RunNow(Struct, frozen=True):
    """A run at one moment."""

    position: int
    index: int
    seconds: float
    """End of the time that the figures cover, s of the run."""
    flows: tuple[FlowNow, ...]
    left_out: int
    """Flows without live figures, since an agent follows 256 at most."""
    dropped: int
    """Records that the instrument lost, which are in no figure."""
    ports: tuple[PortNow, ...] | None = None
    """Ports of switches; None where they are known only when the run has ended."""
    clocks: tuple[ClockNow, ...] = ()


class Stretch(msgspec.Struct, frozen=True, array_like=True):
    """Some seconds of a flow."""

    begin: float
    """Of the run, s."""
    end: float
    greatest_ns: float | None
    """The longest time of any message in it; None where none was measured."""
    lost: int
    """By how much the count of lost messages grew."""


class LimitNow(Struct, frozen=True):
    """A limit of the test beside live figures, which the end of the run may contradict."""

    measure: str
    written: str
    """The limit as the test has it."""
    flow: int | None
    """The flow it is for; None: all."""
    has_figures: bool
    """Whether there are live figures of the measure; without, only the end of the run tells."""
    beyond: tuple[int, ...] = ()
    """Flows that were beyond it in the last second."""
    seconds: int = 0
    """In how many seconds of the run so far any flow was."""
    worst: str = ""
    """The worst figure of the run so far with its unit, and of which flow; empty without one."""


class Live(msgspec.Struct, frozen=True):
    """The content of `live.json`."""

    schema: int
    written: str
    """RFC 3339."""
    virtual_time: bool
    runs: int
    """Runs of the campaign."""
    ended: int
    share: float
    """Of the campaign that is done, 0 to 1."""
    left_s: float | None
    """Time left, roughly; None while nothing tells."""
    shares: dict[int, float]
    """Runs under way, by index, and the share of each that is done."""
    now: RunNow | None = None
    """The run under way, in virtual time one of them; None where there are no figures."""
    courses: dict[int, tuple[Stretch, ...]] = msgspec.field(default_factory=dict)
    """All of that run so far, by flow."""
    limits: tuple[LimitNow, ...] = ()
    told: tuple[str, ...] = ()
    """The last alarms and remarks, as the terminal shows them."""


class _Head(msgspec.Struct):
    schema: int


def write_live(root: Path, live: Live) -> None:
    """Replaces the file; without waiting for the disk, which belongs to the records. Raises OSError."""
    write_whole(root / LIVE, msgspec.json.encode(live), is_synced=False)


def read_live(root: Path) -> Live | None:
    """What a campaign last wrote; None where there is nothing. Raises RunDirectoryError with a sentence."""
    path = root / LIVE
    try:
        data = read_regular(path, SMALL)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise RunDirectoryError(f"{path}: cannot be read: {error.strerror}") from None
    try:
        schema = msgspec.json.decode(data, type=_Head).schema
        if schema == SCHEMA:
            return msgspec.json.decode(data, type=Live)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise DamagedError(f"{path}: is damaged ({error}); the next second replaces it") from None
    raise OtherVersionError(
        f"{path}: schema {schema} is unknown to this wiregauge, which reads {SCHEMA}; "
        "look with the version that runs the test"
    )


def clear_live(root: Path) -> None:
    """Removes the file and a request to stop: nothing goes on any more."""
    for name in (LIVE, STOP):
        with contextlib.suppress(OSError):
            (root / name).unlink()


def ask_to_stop(root: Path) -> None:
    """Asks whoever runs the campaign to stop it, which happens within a second or two. Raises OSError."""
    # A link of that name is not followed.
    os.close(os.open(root / STOP, os.O_WRONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o666))


def is_asked_to_stop(root: Path) -> bool:
    """Whether somebody asked the campaign to stop."""
    return os.path.lexists(root / STOP)
