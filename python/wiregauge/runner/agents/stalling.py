"""Time limit on the parts of a streamed call, for a peer that exists but hangs."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator
from typing import Final, Protocol, TypeVar

import grpc

__all__ = ["StalledError", "in_time"]

_LOOK_S: Final = 0.25

Part_co = TypeVar("Part_co", covariant=True)


class StalledError(Exception):
    """No part arrived within the time limit."""


class Stream(Protocol[Part_co]):
    """A gRPC call with a stream of answers."""

    def __iter__(self) -> Iterator[Part_co]: ...

    def cancel(self) -> bool:
        """Cancels the call, from any thread: a wait for the next part ends with an error."""


def in_time(stream: Stream[Part_co], seconds: float) -> Iterator[Part_co]:
    """The parts of a stream. What the caller does between them takes nothing of the time.

    Raises StalledError where none comes for so long; gRPC's own errors as they are.
    """
    waiting: list[float | None] = [time.monotonic()]
    over, stalled = threading.Event(), threading.Event()

    def look() -> None:
        while not over.wait(min(_LOOK_S, seconds / 4)):
            since = waiting[0]
            if since is not None and time.monotonic() - since > seconds:
                stalled.set()
                stream.cancel()
                return

    watcher = threading.Thread(target=look, name="stalls", daemon=True)
    watcher.start()
    try:
        with _explained(stalled, seconds):
            for part in stream:
                waiting[0] = None
                yield part
                waiting[0] = time.monotonic()
    finally:
        over.set()
        stream.cancel()


@contextlib.contextmanager
def _explained(stalled: threading.Event, seconds: float) -> Iterator[None]:
    try:
        yield
    except (grpc.RpcError, grpc.FutureCancelledError) as error:
        if stalled.is_set():
            raise StalledError(f"nothing came for {seconds:.0f} s") from error
        raise
