"""Reads the JSON of `irtt client -o` (format 1): https://github.com/heistp/irtt, its manual irtt-client(1).

Every time is taken from the monotonic clock of its host where the file has it, as a wall clock may be set.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct, field

from wiregauge.foreign.exchanges import LARGEST_SEQUENCE, Exchange, ForeignError, Measurement, Series

__all__ = ["FORMAT", "read"]

FORMAT = 1


class _Version(Struct):
    json_format: int
    irtt: str = "unknown"


class _Params(Struct):
    length: int = 0


class _Config(Struct):
    params: _Params = field(default_factory=_Params)


class _Stats(Struct):
    duplicates: int = 0


class _Time(Struct):
    wall: int | None = None
    monotonic: int | None = None


class _End(Struct):
    send: _Time | None = None
    receive: _Time | None = None


class _Timestamps(Struct):
    client: _End = field(default_factory=_End)
    server: _End = field(default_factory=_End)


class _RoundTrip(Struct):
    seqno: int
    lost: str
    timestamps: _Timestamps = field(default_factory=_Timestamps)


class _File(Struct):
    version: _Version
    round_trips: list[_RoundTrip]
    config: _Config = field(default_factory=_Config)
    stats: _Stats = field(default_factory=_Stats)


def read(data: bytes) -> Measurement:
    """The measurement of a client. Raises ForeignError."""
    try:
        file = msgspec.json.decode(data, type=_File)
    except msgspec.ValidationError as error:
        raise ForeignError(f"is no result of irtt: {error}") from None
    if file.version.json_format != FORMAT:
        raise ForeignError(f"is of irtt's JSON format {file.version.json_format}; {FORMAT} can be read")
    trips = file.round_trips
    if any(not 0 <= trip.seqno <= LARGEST_SEQUENCE for trip in trips):
        raise ForeignError(f"has numbers of packets beyond {LARGEST_SEQUENCE}")
    if not any(trip.timestamps.client.send for trip in trips):
        raise ForeignError("has no round trip with the time at which it was sent")
    client, server = _Clock(trips, "client"), _Clock(trips, "server")
    made = [
        Exchange(
            trip.seqno,
            client.time(trip.timestamps.client.send),
            client.time(trip.timestamps.client.receive) if trip.lost == "false" else None,
            server.time(trip.timestamps.server.receive),
            server.time(trip.timestamps.server.send),
        )
        for trip in trips
    ]
    remarks = [
        ("rtt", "with the time in the server, as of every relayed flow here; irtt's own rtt leaves it out"),
    ]
    for way, text in (("true_up", "to the server"), ("true_down", "from the server")):
        if count := sum(trip.lost == way for trip in trips):
            remarks.append(("lost", f"{count} on the way {text}, as irtt states"))
    if file.stats.duplicates:
        remarks.append(("duplicates", f"irtt counted {file.stats.duplicates}; the file has no time of them"))
    if not any(one.reached is not None for one in made):
        remarks.append(("server", "the file has no times of the server: nothing one way is known"))
    series = Series("irtt", made, file.config.params.length, 1.0)
    return Measurement(f"irtt {file.version.irtt}", [series], remarks)


class _Clock:
    """Times of one end: monotonic ones, beginning at the first wall time, or wall times alone."""

    def __init__(self, trips: list[_RoundTrip], end: str) -> None:
        times = [
            time
            for trip in trips
            for stamps in [trip.timestamps.client if end == "client" else trip.timestamps.server]
            for time in (stamps.send, stamps.receive)
            if time is not None
        ]
        self._monotonic = bool(times) and all(time.monotonic is not None for time in times)
        both = next((time for time in times if time.wall is not None and time.monotonic is not None), None)
        self._ahead = (both.wall or 0) - (both.monotonic or 0) if both is not None else 0

    def time(self, stamped: _Time | None) -> int | None:
        if stamped is None:
            return None
        if self._monotonic and stamped.monotonic is not None:
            return stamped.monotonic + self._ahead
        return stamped.wall
