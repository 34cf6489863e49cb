"""Learns a contract from a good capture, as a file that people read and edit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from typing import Final

from wiregauge.measures.definitions.units import count_of, duration
from wiregauge.streams import JITTER_LIMIT_PS, PS_PER_NS, Copies, Observed, Stream

__all__ = ["learnt"]

_LEAST_FRAMES: Final = 20
"""Frames of a stream from which on something is learnt of it."""
_MARGIN: Final = 0.2
"""Share by which a time may be beyond the least and the greatest that were seen."""
_MOST_VARIATION: Final = 0.5
"""Standard deviation, as a share of the mean, up to which times between frames are a period."""
_UNITS: Final = ((10**12, "s"), (10**9, "ms"), (10**6, "us"), (10**3, "ns"))
_DIGITS: Final = 3


def learnt(observed: Observed) -> str:
    """A contract, as TOML, that what was seen keeps."""
    return "\n".join([*_head(observed), *_tables(observed), ""])


def _head(observed: Observed) -> Iterator[str]:
    files = ", ".join(observed.sources) or ", ".join(tap.name for tap in observed.taps)
    per_cent = f"{_MARGIN:.0%}".replace("%", " %")
    yield f"# Learnt from {_comment(files)}: {count_of(observed.frames, 'frame')} in {_seen(observed.duration_ps)}."
    yield f"# Margins: times and skew {per_cent} beyond the least and the greatest seen; counts and lengths none."
    yield f"# A virtual link has the greatest BAG at which its jitter was within {_time(JITTER_LIMIT_PS)}."
    yield "# Edit it as you know better; `wiregauge docs contracts` has the keys."
    if observed.validity != "VALID":
        yield f"# The capture is {observed.validity}; what it lacks may have been learnt as missing."
    yield ""
    yield 'others = "allowed"    # "refused": a stream that is not listed breaks the contract'


def _tables(observed: Observed) -> Iterator[str]:
    by_group = {(copies.kind, _group(copies)): copies for copies in observed.copies}
    for stream in observed.streams:
        yield ""
        seen = f"{count_of(stream.frames, 'frame')}, period {_seen(stream.period.mean)}"
        if stream.period.n > 1:
            seen += f" ({_seen(stream.period.min)} to {_seen(stream.period.max)})"
        if stream.frames < _LEAST_FRAMES:
            yield f"# {_comment(stream.name)}: not learnt, too few: {seen}"
            continue
        yield f"# {seen}"
        yield "[[stream]]"
        yield f"name = {_text(stream.name)}"
        yield f"kind = {_text(stream.kind)}"
        for key, value in stream.fields.items():
            yield f"{key} = {_text(value) if isinstance(value, str) else value}"
        if stream.network is not None:
            yield f"network = {_text(stream.network)}"
        yield f"vlans = {stream.vlans}"
        yield from _promises(stream)
        copies = next(
            (one for (kind, group), one in by_group.items() if kind == stream.kind and _is_of(group, stream)),
            None,
        )
        if copies is not None:
            yield from _of_copies(copies)


def _promises(stream: Stream) -> Iterator[str]:
    yield f'lmax = "{stream.longest}B"'
    if stream.bags:
        fitting = [bag for bag in stream.bags if bag.tolerant_jitter_ps <= JITTER_LIMIT_PS]
        bag = fitting[-1] if fitting else stream.bags[0]
        yield f'bag = "{_time(bag.bag_ps)}"'
        most = JITTER_LIMIT_PS if fitting else _above(bag.tolerant_jitter_ps * (1 + _MARGIN))
        yield f'max-jitter = "{_time(most)}"'
    period = stream.period
    if period.sd is not None and period.mean and period.sd <= _MOST_VARIATION * period.mean:
        if period.min:
            yield f'min-interval = "{_time(_below(period.min * (1 - _MARGIN)))}"'
        yield f'max-interval = "{_time(_above((period.max or 0) * (1 + _MARGIN)))}"'
    else:
        yield "# no promise of a period: times between frames vary too much"
    sequence = stream.sequence
    if sequence is not None and sequence.numbered == stream.frames and not sequence.is_shared:
        counts = {
            "missing": sequence.missing,
            "duplicates": sequence.duplicates,
            "reordered": sequence.reordered,
            "rejected": sequence.rejected,
        }
        for name, count in counts.items():
            if count == 0:
                yield f"max-{name} = 0"
            elif count:
                yield f"# no promise of max-{name}: there were {count}"
    if stream.echo is not None and stream.echo.round_trip.max:
        yield f'max-round-trip = "{_time(_above(stream.echo.round_trip.max * (1 + _MARGIN)))}"'
        if not stream.echo.unreturned:
            yield "max-unreturned = 0"


def _of_copies(copies: Copies) -> Iterator[str]:
    if copies.skew_max_ps is not None:
        yield f'skew-max = "{_time(_above(copies.skew_max_ps * (1 + _MARGIN)))}"'
    if sum(copies.alone) == 0:
        yield "max-on-one = 0"
    else:
        yield f"# no promise of max-on-one: there were {sum(copies.alone)}"


def _group(copies: Copies) -> tuple[tuple[str, int | float | str], ...]:
    return (*copies.fields.items(), ("vlans", str(copies.vlans)))


def _is_of(group: tuple[tuple[str, int | float | str], ...], stream: Stream) -> bool:
    of_stream: dict[str, int | float | str] = {**stream.fields, "vlans": str(stream.vlans)}
    return all(of_stream.get(key) == value for key, value in group)


def _above(ps: float) -> int:
    """A time in as many digits as a margin is worth, no shorter."""
    return _rounded(ps, math.ceil)


def _below(ps: float) -> int:
    return _rounded(ps, math.floor)


def _rounded(ps: float, way: Callable[[float], int]) -> int:
    step: int = 10 ** max(len(str(int(ps))) - _DIGITS, 0)
    return way(ps / step) * step


def _time(ps: int) -> str:
    size, unit = next(((size, unit) for size, unit in _UNITS if ps >= size), (1, "ps"))
    whole, rest = divmod(ps, size)
    digits = str(rest).rjust(len(str(size)) - 1, "0").rstrip("0")
    return f"{whole}.{digits}{unit}" if digits else f"{whole}{unit}"


def _seen(ps: float | None) -> str:
    return duration(None if ps is None else ps / PS_PER_NS)


def _text(value: str) -> str:
    """A string of TOML, which JSON's are."""
    return json.dumps(value, ensure_ascii=False)


def _comment(text: str) -> str:
    return "".join(letter if letter.isprintable() else "?" for letter in text)
