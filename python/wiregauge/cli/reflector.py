"""`probe --protocol stamp` and `twamp-light`: a reflector of another maker."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, exit_code, fail, make_console, put, put_lines

if TYPE_CHECKING:
    from wiregauge.reflectors import Measured, Order

PROTOCOLS: Final = ("stamp", "twamp-light")
PERIOD: Final = "20ms"
OPEN_B: Final = 44
AUTHENTICATED_B: Final = 112
_TLV_HEAD_B: Final = 4
_LARGEST_B: Final = 65_507
_PORT: Final = 862
_LARGEST_PORT: Final = 65_535
_LEAST_PERIOD_NS: Final = 10_000
_MOST: Final = 10_000_000
_PATIENCE_NS: Final = 1_000_000_000
"""How long answers are awaited after the last packet."""


class Wishes(Struct, frozen=True):
    """The options of `probe` that a reflector bears on."""

    protocol: str
    period: str
    payload: str | None
    count: int | None
    duration: str | None
    limits: Sequence[str]
    key: Path | None
    timestamps: str
    session: int
    dscp: int


def probe_reflector(host: str, wishes: Wishes, out: Path | None, *, as_json: bool) -> int:
    """Measures and shows; returns the exit code."""
    from wiregauge.reflectors import LimitError, SessionError, measure, read_limit

    try:
        limits = [read_limit(text) for text in wishes.limits]
        measured = measure(_order(host, wishes), wishes.key, limits, out)
    except LimitError as error:
        fail(f"--limit {error}", BAD_INPUT)
    except SessionError as error:
        fail(str(error), BAD_INPUT if error.is_input else NO_ENVIRONMENT)
    return show_session(measured, as_json=as_json)


def show_stored_session(place: Path, *, as_json: bool) -> int:
    """Shows the session that a directory holds; returns the exit code."""
    from wiregauge.reflectors import SessionError, opened

    try:
        measured = opened(place)
    except SessionError as error:
        fail(str(error), BAD_INPUT)
    return show_session(measured, as_json=as_json)


def _order(host: str, wishes: Wishes) -> Order:
    from wiregauge.reflectors import Order

    period_ns = _time("--period", wishes.period)
    if period_ns < _LEAST_PERIOD_NS:
        fail(f"--period {wishes.period}: write 10us at least", BAD_INPUT)
    count = wishes.count
    if count is None:
        count = max(_time("--duration", wishes.duration or "10s") // period_ns, 1)
    if count > _MOST:
        fail(f"{count} packets are more than the {_MOST} of a session; send fewer, or less often", BAD_INPUT)
    if wishes.protocol == "twamp-light" and (wishes.key is not None or wishes.session):
        fail(
            "--key and --session are STAMP's: TWAMP Light has no session identifier, and its authenticated mode needs "
            "the keys of a TWAMP control connection; leave them out, or use --protocol stamp",
            BAD_INPUT,
        )
    if wishes.timestamps not in ("ntp", "ptp"):
        fail(f'--timestamps {wishes.timestamps}: there are "ntp" and "ptp"', BAD_INPUT)
    timestamps: Literal["ntp", "ptp"] = "ntp" if wishes.timestamps == "ntp" else "ptp"
    return Order(
        target=_target(host),
        protocol="stamp" if wishes.protocol == "stamp" else "twamp-light",
        count=count,
        period_ns=period_ns,
        payload=_payload(wishes),
        is_authenticated=wishes.key is not None,
        timestamps=timestamps,
        session=wishes.session,
        dscp=wishes.dscp,
        patience_ns=_PATIENCE_NS,
    )


def _time(option: str, text: str) -> int:
    from wiregauge.plan.quantity import QuantityError, time_ns

    try:
        return int(time_ns(text))
    except QuantityError as error:
        fail(f"{option} {error}", BAD_INPUT)


def _payload(wishes: Wishes) -> int:
    """UDP payload in bytes: that of the fields, and padding, which STAMP gives a head of its own."""
    from wiregauge.plan.quantity import QuantityError, size_b

    if wishes.key is not None:
        if wishes.payload is not None:
            fail(
                "--payload: authenticated packets have no padding, as that would need a hash of its own; leave it out",
                BAD_INPUT,
            )
        return AUTHENTICATED_B
    if wishes.payload is None:
        return OPEN_B
    try:
        size = size_b(wishes.payload)
    except QuantityError as error:
        fail(f"--payload {error}", BAD_INPUT)
    least = OPEN_B + (_TLV_HEAD_B if wishes.protocol == "stamp" else 0)
    if size != OPEN_B and not least <= size <= _LARGEST_B:
        fail(f"--payload {wishes.payload}: write {OPEN_B}B, or {least}B to {_LARGEST_B}B", BAD_INPUT)
    return size


def _target(host: str) -> str:
    """IPv4 address and port of a name."""
    import socket

    name, _, port = host.partition(":")
    number = int(port) if port.isascii() and port.isdecimal() else _PORT if not port else 0
    if not name or not 0 < number <= _LARGEST_PORT:
        fail(f"{host}: write a name or an IPv4 address, and :PORT where it is not {_PORT}", BAD_INPUT)
    try:
        found = socket.getaddrinfo(name, number, socket.AF_INET, socket.SOCK_DGRAM)
    except OSError as error:
        fail(f"{host}: has no IPv4 address ({error.strerror}); write its address", BAD_INPUT)
    except ValueError:
        fail(f"{host}: is no name of a host; write its address", BAD_INPUT)
    return f"{found[0][4][0]}:{number}"


def show_session(measured: Measured, *, as_json: bool) -> int:
    """Shows a session; returns the exit code."""
    from wiregauge.reflectors import json_text, lines, table

    if as_json:
        put_lines(json_text(measured).splitlines())
    else:
        for line in lines(measured):
            put(line)
        table(measured, make_console())
    return exit_code(
        answered=measured.complete and measured.validity != "INVALID",
        failed=measured.verdict == "FAIL",
        undecided=measured.verdict == "UNDECIDED",
    )
