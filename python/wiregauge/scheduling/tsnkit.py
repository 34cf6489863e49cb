"""Instances of tsnkit (https://github.com/ChuanyuXue/tsnkit): a table of streams and one of links, as a problem.

Streams: `stream` (or `id`), `src`, `dst` (a list), `size` (B), `period`, `deadline`, `jitter` (ns). Links, one for each
direction: `link` as `(from, to)`, `q_num`, `rate` (Gbit/s), `t_proc`, `t_prop` (ns). A frame takes `size` on the line,
and may leave the next node `t_proc` after its last bit; `t_prop` is added to it. Numbers of nodes are their names.

Its deadline counts from the release of a frame, which the schedule chooses.
"""

from __future__ import annotations

import csv
import io
import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Final

from msgspec import Struct

from wiregauge.files import SMALL, read_text
from wiregauge.plan import Attachment
from wiregauge.scheduling.problem import Demand, Problem, ProblemError, Tail, Window

__all__ = ["Instance", "Link", "Links", "Stream", "instance_of", "ports_of", "problem_of_instance", "table"]

Links = tuple[int, int]
"""A link by the nodes at its ends."""
_GRID_PS: Final = 1000
_MOST_ROWS: Final = 10_000
_PAIR: Final = re.compile(r"\(?\s*(\d{1,6})\s*,\s*(\d{1,6})\s*\)?")


class Link(Struct, frozen=True):
    """A link in one direction; `after` is the time from a frame's last bit until it may leave the next node, ns."""

    ends: Links
    rate_gbps: Fraction
    after: int
    propagation: int
    queues: int


class Stream(Struct, frozen=True):
    """A stream; `path` are its links in their order. Times are ns."""

    number: int
    size: int
    period: int
    deadline: int
    path: tuple[Links, ...]


class Instance(Struct, frozen=True):
    """Streams over links."""

    name: str
    streams: tuple[Stream, ...]
    links: Mapping[Links, Link]

    def takes(self, stream: Stream, ends: Links) -> int:
        """The time of a frame of the stream on a link, ns, rounded up."""
        return -(-stream.size * 8 // self.links[ends].rate_gbps)


def instance_of(streams: Path, links: Path) -> Instance:
    """Reads both tables; each stream takes a shortest path, of several that with the least numbers of nodes.

    Raises ProblemError.
    """
    found = dict(_links(links))
    return Instance(streams.stem.removesuffix("_task"), tuple(_streams(streams, found)), found)


def ports_of(instance: Instance) -> Mapping[Links, Attachment]:
    """The port at the begin of each link."""
    return {ends: Attachment(ends[0], place + 1) for place, ends in enumerate(instance.links)}


def problem_of_instance(instance: Instance) -> Problem:
    """The scheduling problem, on a grid of 1 ns and with clocks that agree."""
    ports = ports_of(instance)
    demands = []
    for stream in instance.streams:
        windows: list[Window] = []
        ready = 0
        for place, ends in enumerate(stream.path):
            length = instance.takes(stream, ends)
            windows.append(Window(ports[ends], place - 1, ready, length, length, 0, ready))
            ready = length + instance.links[ends].after
        last = instance.links[stream.path[-1]]
        tail = Tail(last.ends[1], len(windows) - 1, windows[-1].length + last.propagation)
        demands.append(
            Demand(
                stream.number,
                stream.period,
                tuple(windows),
                (tail,),
                None,
                stream.deadline,
                steady_wait=0,
            )
        )
    used = {ends for stream in instance.streams for ends in stream.path}
    return Problem(
        tuple(demands),
        {ports[ends]: f"{ends[0]}-{ends[1]}" for ends in used},
        {ports[ends]: int(instance.links[ends].rate_gbps * 10**9) for ends in used},
        _GRID_PS,
        0,
    )


def table(path: Path, columns: Sequence[str]) -> Iterator[tuple[int, dict[str, str]]]:
    """The rows of a table with their lines. Raises ProblemError."""
    try:
        text = read_text(path, SMALL)
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or "it is no text in UTF-8"
        raise ProblemError(f"{path}: cannot be read: {reason}") from None
    if text.startswith("version https://git-lfs"):
        raise ProblemError(f"{path}: is a pointer of Git LFS, not the table; fetch it with `git lfs pull`")
    reader = csv.DictReader(io.StringIO(text))
    missing = [name for name in columns if name not in (reader.fieldnames or ())]
    if missing:
        raise ProblemError(f"{path}: has no column {', '.join(missing)}; it needs {', '.join(columns)}")
    for place, row in enumerate(reader):
        if place >= _MOST_ROWS:
            raise ProblemError(f"{path}: has more than {_MOST_ROWS} rows")
        yield reader.line_num, {name: (row[name] or "").strip() for name in columns}


def whole(path: Path, line: int, row: Mapping[str, str], name: str, least: int = 0) -> int:
    """A whole number of a row."""
    text = row[name]
    number = int(text) if re.fullmatch(r"\d{1,15}", text) else -1
    if number < least:
        raise ProblemError(f'{path}, line {line}: {name} "{text}" is no whole number of {least} or more')
    return number


def pair(path: Path, line: int, text: str) -> Links:
    """The ends of a link."""
    found = _PAIR.fullmatch(text)
    if found is None:
        raise ProblemError(f'{path}, line {line}: "{text}" is no link; write (from, to)')
    return int(found[1]), int(found[2])


def _links(path: Path) -> Iterator[tuple[Links, Link]]:
    seen: set[Links] = set()
    for line, row in table(path, ("link", "q_num", "rate", "t_proc", "t_prop")):
        ends = pair(path, line, row["link"])
        if ends in seen or ends[0] == ends[1]:
            raise ProblemError(f"{path}, line {line}: link {ends} is there twice, or leads to itself")
        seen.add(ends)
        if not re.fullmatch(r"\d{1,6}(\.\d{1,6})?", row["rate"]) or not Fraction(row["rate"]):
            raise ProblemError(f'{path}, line {line}: rate "{row["rate"]}" is no number of Gbit/s above 0')
        propagation = whole(path, line, row, "t_prop")
        after = whole(path, line, row, "t_proc") + propagation
        queues = whole(path, line, row, "q_num", 1)
        yield ends, Link(ends, Fraction(row["rate"]), after, propagation, queues)


def _streams(path: Path, links: Mapping[Links, Link]) -> Iterator[Stream]:
    seen: set[int] = set()
    number = "stream" if "stream" in _heads(path) else "id"
    for line, row in table(path, (number, "src", "dst", "size", "period", "deadline", "jitter")):
        stream = whole(path, line, row, number)
        if stream in seen:
            raise ProblemError(f"{path}, line {line}: stream {stream} is there twice")
        seen.add(stream)
        ends = re.fullmatch(r"\[?\s*(\d{1,6})\s*\]?", row["dst"])
        if ends is None:
            raise ProblemError(f'{path}, line {line}: dst "{row["dst"]}" is no single node; write [12]')
        source, destination = whole(path, line, row, "src"), int(ends[1])
        way = _shortest(links, source, destination)
        if not way:
            raise ProblemError(f"{path}, line {line}: no links lead from node {source} to node {destination}")
        period = whole(path, line, row, "period", 1)
        yield Stream(
            stream, whole(path, line, row, "size", 1), period, whole(path, line, row, "deadline"), way
        )
    if not seen:
        raise ProblemError(f"{path}: has no stream")


def _heads(path: Path) -> list[str]:
    return next(csv.reader(io.StringIO(read_text(path, SMALL))), []) if path.is_file() else []


def _shortest(links: Mapping[Links, Link], source: int, destination: int) -> tuple[Links, ...]:
    before: dict[int, int] = {source: source}
    waiting = deque([source])
    while waiting and destination not in before:
        here = waiting.popleft()
        for _, there in sorted(ends for ends in links if ends[0] == here):
            if there not in before:
                before[there] = here
                waiting.append(there)
    way: list[Links] = []
    at = destination
    while at != source and at in before:
        way.append((before[at], at))
        at = before[at]
    return tuple(reversed(way))
