"""`probe --protocol stamp` and `twamp-light`: a reflector of another maker."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from msgspec import Struct

from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, exit_code, fail, make_console, put, put_lines

if TYPE_CHECKING:
    from wiregauge.cli.forever import Around
    from wiregauge.reflectors import Limit, Measured, Order

PROTOCOLS: Final = ("stamp", "twamp-light")
PERIOD: Final = "20ms"
OPEN_B: Final = 44
AUTHENTICATED_B: Final = 112
_TLV_HEAD_B: Final = 4
_TLV_HASH_B: Final = 20
_LARGEST_B: Final = 65_507
_PORT: Final = 862
_LARGEST_PORT: Final = 65_535
_TARGET: Final = re.compile(
    r"\[(?P<v6>[0-9A-Fa-f:.]+(%[\w.-]+)?)\](:(?P<port>\d{1,5}))?"
    r"|(?P<name>[0-9A-Fa-f]*:[0-9A-Fa-f:.]*:[0-9A-Fa-f:.]*(%[\w.-]+)?|[^\s:\[\]]+)(:(?P<port_of_name>\d{1,5}))?"
)
_SCOPE: Final = 3
"""Place of the scope in an address of IPv6."""
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
    priority: int | None = None
    around: Around | None = None
    """Without an end, and what goes on around it; None: with one."""


def probe_reflector(host: str, wishes: Wishes, out: Path | None, *, as_json: bool) -> int:
    """Measures and shows; returns the exit code."""
    from wiregauge.reflectors import LimitError, SessionError, measure, read_limit

    try:
        limits = [read_limit(text) for text in wishes.limits]
        if wishes.around is not None:
            return _without_end(host, wishes, limits, out, as_json=as_json)
        measured = measure(_order(host, wishes), wishes.key, limits, out)
    except LimitError as error:
        fail(f"--limit {error}", BAD_INPUT)
    except SessionError as error:
        fail(str(error), BAD_INPUT if error.is_input else NO_ENVIRONMENT)
    return show_session(measured, as_json=as_json)


def _without_end(
    host: str, wishes: Wishes, limits: Sequence[Limit], out: Path | None, *, as_json: bool
) -> int:
    """Measures until it is stopped; shows each second as JSON, or the session in the end. Raises SessionError."""
    from wiregauge.cli.forever import measured_forever
    from wiregauge.records import RunDirectory, RunDirectoryError
    from wiregauge.reflectors import stored
    from wiregauge.runner.bench import BenchError

    assert wishes.around is not None
    try:
        if out is not None:
            RunDirectory.check_free(out)
        measured = measured_forever(_order(host, wishes), wishes.key, limits, wishes.around, as_json=as_json)
    except RunDirectoryError as error:
        fail(str(error), BAD_INPUT)
    except BenchError as error:
        fail(str(error), NO_ENVIRONMENT)
    if out is not None:
        stored(measured, None, out)
    return code_of_session(measured) if as_json else show_session(measured, as_json=False)


def _order(host: str, wishes: Wishes) -> Order:
    from wiregauge.reflectors import Order

    period_ns = _time("--period", wishes.period)
    if period_ns < _LEAST_PERIOD_NS:
        fail(f"--period {wishes.period}: write 10us at least", BAD_INPUT)
    count = 0 if wishes.around is not None else wishes.count
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
        priority=wishes.priority,
    )


def _time(option: str, text: str) -> int:
    from wiregauge.plan.quantity import QuantityError, time_ns

    try:
        return int(time_ns(text))
    except QuantityError as error:
        fail(f"{option} {error}", BAD_INPUT)


def _payload(wishes: Wishes) -> int:
    """UDP payload in bytes: that of the fields, and padding, which STAMP gives a head and a key a hash of its own."""
    from wiregauge.plan.quantity import QuantityError, size_b

    fields = OPEN_B if wishes.key is None else AUTHENTICATED_B
    if wishes.payload is None:
        return fields
    try:
        size = size_b(wishes.payload)
    except QuantityError as error:
        fail(f"--payload {error}", BAD_INPUT)
    least = fields + (_TLV_HEAD_B if wishes.protocol == "stamp" else 0)
    least += 0 if wishes.key is None else _TLV_HASH_B
    if size != fields and not least <= size <= _LARGEST_B:
        fail(f"--payload {wishes.payload}: write {fields}B, or {least}B to {_LARGEST_B}B", BAD_INPUT)
    return size


def _target(host: str) -> str:
    """Address and port of a name: IPv4 where it has that, otherwise IPv6, which is written in brackets with a port."""
    import socket

    found = _TARGET.fullmatch(host)
    number = int(found["port"] or found["port_of_name"] or _PORT) if found is not None else 0
    if found is None or not 0 < number <= _LARGEST_PORT:
        fail(
            f"{host}: write a name or an address, and :PORT where it is not {_PORT}; an IPv6 address with a port in "
            "brackets, as [2001:db8::1]:862",
            BAD_INPUT,
        )
    name = found["v6"] or found["name"]
    try:
        answers = socket.getaddrinfo(name, number, socket.AF_UNSPEC, socket.SOCK_DGRAM)
    except OSError as error:
        fail(f"{host}: has no address ({error.strerror}); write its address", BAD_INPUT)
    except ValueError:
        fail(f"{host}: is no name of a host; write its address", BAD_INPUT)
    answers.sort(key=lambda one: one[0] != socket.AF_INET)
    family, address = answers[0][0], answers[0][4]
    if family == socket.AF_INET:
        return f"{address[0]}:{number}"
    scope = f"%{address[3]}" if len(address) > _SCOPE and address[_SCOPE] else ""
    return f"[{str(address[0]).partition('%')[0]}{scope}]:{number}"


def show_session(measured: Measured, *, as_json: bool) -> int:
    """Shows a session; returns the exit code."""
    from wiregauge.reflectors import json_text, lines, table

    if as_json:
        put_lines(json_text(measured).splitlines())
    else:
        for line in lines(measured):
            put(line)
        table(measured, make_console())
    return code_of_session(measured)


def code_of_session(measured: Measured) -> int:
    """The exit code of a session and its limits."""
    return exit_code(
        answered=measured.complete and measured.validity != "INVALID",
        failed=measured.verdict == "FAIL",
        undecided=measured.verdict == "UNDECIDED",
    )
