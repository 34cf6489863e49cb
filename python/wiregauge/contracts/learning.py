"""Learns a contract from a good capture, as a file that people read and edit."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from wiregauge.contracts.contract import identities
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
    # What is recognised by the same, as a stream that passes two interfaces, is promised once.
    alike: dict[tuple[object, ...], list[Stream]] = {}
    for stream in observed.streams:
        alike.setdefault((stream.kind, *_identity(stream), stream.network, *stream.vlans), []).append(stream)
    for streams in alike.values():
        yield ""
        learnt_from = [stream for stream in streams if stream.frames >= _LEAST_FRAMES]
        for stream in streams:
            seen = _seen_of(stream)
            few = stream.frames < _LEAST_FRAMES
            yield f"# {_comment(stream.name)}: not learnt, too few: {seen}" if few else f"# {seen}"
        if not learnt_from:
            continue
        yield from _recognised(learnt_from[0])
        yield from _promises(learnt_from)
        copies = next(
            (
                one
                for (kind, group), one in by_group.items()
                if kind == learnt_from[0].kind and _is_of(group, learnt_from[0])
            ),
            None,
        )
        if copies is not None:
            yield from _of_copies(copies)


def _seen_of(stream: Stream) -> str:
    seen = f"{count_of(stream.frames, 'frame')}, period {_seen(stream.period.mean)}"
    if stream.period.n > 1:
        seen += f" ({_seen(stream.period.min)} to {_seen(stream.period.max)})"
    return seen


def _identity(stream: Stream) -> list[tuple[str, int | float | str]]:
    """What it is recognised by another day: not the source of RTP, say, which is new with each session."""
    return [(key, value) for key, value in stream.fields.items() if key in identities()[stream.kind]]


def _recognised(stream: Stream) -> Iterator[str]:
    yield "[[stream]]"
    yield f"name = {_text(stream.name)}"
    yield f"kind = {_text(stream.kind)}"
    for key, value in _identity(stream):
        yield f"{key} = {_text(value) if isinstance(value, str) else value}"
    if stream.network is not None:
        yield f"network = {_text(stream.network)}"
    yield f"vlans = {stream.vlans}"


def _promises(streams: Sequence[Stream]) -> Iterator[str]:
    """What all of these streams keep."""
    yield f'lmax = "{max(stream.longest for stream in streams)}B"'
    if all(stream.bags for stream in streams):
        yield from _of_bag(streams)
    if all(_is_periodic(stream) for stream in streams):
        least = min(stream.period.min or 0 for stream in streams)
        if least:
            yield f'min-interval = "{_time(_below(least * (1 - _MARGIN)))}"'
        greatest = max(stream.period.max or 0 for stream in streams)
        yield f'max-interval = "{_time(_above(greatest * (1 + _MARGIN)))}"'
    else:
        yield "# no promise of a period: times between frames vary too much"
    numbered = [
        stream.sequence
        for stream in streams
        if stream.sequence is not None
        and stream.sequence.numbered == stream.frames
        and not stream.sequence.is_shared
    ]
    if len(numbered) == len(streams):
        for name in ("missing", "duplicates", "reordered", "rejected"):
            counts = [getattr(sequence, name) for sequence in numbered]
            if not any(counts) and None not in counts:
                yield f"max-{name} = 0"
            elif any(counts):
                yield f"# no promise of max-{name}: there were {max(filter(None, counts))}"
    trips = [stream.echo.round_trip.max for stream in streams if stream.echo is not None]
    if len(trips) == len(streams) and all(trips):
        yield f'max-round-trip = "{_time(_above(max(filter(None, trips)) * (1 + _MARGIN)))}"'
        if not any(stream.echo.unreturned for stream in streams if stream.echo is not None):
            yield "max-unreturned = 0"


def _of_bag(streams: Sequence[Stream]) -> Iterator[str]:
    """The greatest BAG within whose jitter all stay, else the least of all."""
    jitter: dict[int, float] = {}
    for stream in streams:
        for bag in stream.bags:
            jitter[bag.bag_ps] = max(jitter.get(bag.bag_ps, 0), bag.tolerant_jitter_ps)
    fitting = [bag for bag, most in jitter.items() if most <= JITTER_LIMIT_PS]
    chosen = max(fitting) if fitting else min(jitter)
    yield f'bag = "{_time(chosen)}"'
    most = JITTER_LIMIT_PS if fitting else _above(jitter[chosen] * (1 + _MARGIN))
    yield f'max-jitter = "{_time(most)}"'


def _is_periodic(stream: Stream) -> bool:
    period = stream.period
    return bool(period.sd is not None and period.mean and period.sd <= _MOST_VARIATION * period.mean)


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
