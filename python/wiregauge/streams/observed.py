"""What captures of one place show, as `streams.json` has it; times of frames count from the first one on."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from wiregauge.files.typed_json import Count, Verdict, json_schema

__all__ = [
    "SCHEMA",
    "Bag",
    "ContractSource",
    "Copies",
    "Distribution",
    "Observed",
    "PromiseResult",
    "Sequence",
    "Stream",
    "Tap",
    "schema_path",
    "streams_schema",
]

SCHEMA = 1
Written = int | float | str
"""A part of an identity or a value, in the way of its protocol."""
Both = tuple[Count, Count]
"""A count of each of two networks."""


class Distribution(Struct, frozen=True):
    """Extremes, mean and n are exact; None: n does not support it."""

    n: Count
    min: int | None
    mean: float | None
    sd: float | None
    """Standard deviation (n - 1)."""
    max: int | None
    quantiles: dict[str, tuple[int, int]]
    """Those that n supports, each from the least to the greatest value that it may have."""


class Jump(Struct, frozen=True):
    """A jump of sequence numbers, at the frame behind it."""

    at_ps: int
    last: Count
    next: Count
    missing: Count


class Sequence(Struct, frozen=True):
    """What the sequence numbers of a stream tell."""

    numbered: Count
    missing: Count
    """Numbers that were skipped and never came."""
    duplicates: Count
    reordered: Count
    resets: Count
    """How often the series began anew."""
    rejected: Count | None
    """Frames that the integrity check of an end system rejects; None but for ARINC 664."""
    stride: Count | None
    """By how much numbers grow, where the stream has a step of its own."""
    is_shared: bool
    """Whether other streams may take numbers of the series, so that what is missing need not be lost."""
    jumps: list[Jump]
    """The first of them."""


class Value(Struct, frozen=True):
    """A value in the frames of a stream; `min` and `max` are None where it is no quantity."""

    n: Count
    first: Written | None
    min: Written | None
    max: Written | None
    last: Written | None
    changes: Count


class Echo(Struct, frozen=True):
    """Frames that pass the tap on their way out and back."""

    round_trip: Distribution
    unreturned: Count
    unsent: Count
    """Returns of frames that were not seen before."""


class Bag(Struct, frozen=True):
    """A bandwidth allocation gap, and the longest that a regulator with it would have held a frame."""

    bag_ps: int
    jitter_ps: int
    tolerant_jitter_ps: int
    """The same, of a sender whose clock may be faster than that of the capture by 100 ppm: what contracts judge."""


class Stream(Struct, frozen=True):
    """A stream at one tap."""

    kind: str
    name: str
    fields: dict[str, Written]
    """Parts of its identity."""
    vlans: list[int]
    """Outermost first."""
    network: Literal["A", "B"] | None
    """Redundant network that its frames state."""
    tap: Count
    """Index among the taps."""
    frames: Count
    """Messages; of most kinds, each frame has one."""
    octets: Count
    """Of their frames, FCS included."""
    shortest: Count
    """Length with FCS, B."""
    longest: Count
    first_ps: int
    last_ps: int
    period: Distribution
    """Time between frames."""
    sequence: Sequence | None
    """None where the kind has no numbers, or none was captured."""
    values: dict[str, Value]
    echo: Echo | None
    bags: list[Bag]
    is_around: bool
    """Whether it is around content that is a stream of its own."""
    histogram: list[tuple[int, int, Count]]
    """Times between frames in up to 40 classes of equal width: least and greatest value, ps, and count."""


class Timestamps(Struct, frozen=True):
    """Origin of the timestamps, and the octet that they refer to."""

    kind: str
    sent: str
    received: str


class Tap(Struct, frozen=True):
    """An interface of the captures."""

    name: str
    file: str
    """The file that it is first in; empty for a live interface."""
    frames: Count
    dropped: Count | None
    """Frames that the capture lacks, as it says; None where one of its files does not say."""
    step_ps: Count
    """Smallest step of its timestamps."""
    timestamps: Timestamps | None
    rate_bps: Count | None
    has_fcs: bool
    """Whether its frames end with their FCS, stated or found."""
    back_ps: Count
    """Greatest amount by which a time precedes an earlier frame's."""
    turns: Count
    """How often a time precedes that of the frame before."""


class Trouble(Struct, frozen=True):
    """An unusable part of a file."""

    file: str
    what: str
    count: Count
    ends_the_file: bool


class Alone(Struct, frozen=True):
    """A frame without a copy."""

    at_ps: int
    number: Count


class Copies(Struct, frozen=True):
    """The copies of one series of numbers on two networks."""

    kind: str
    name: str
    fields: dict[str, Written]
    """Parts of the identity that the copies share."""
    vlans: list[int]
    """Outermost first."""
    networks: tuple[str, str]
    frames: Both
    pairs: Count
    """Frames that came on both."""
    alone: Both
    """Frames whose copy never came on the other network."""
    listed: tuple[list[Alone], list[Alone]]
    """The first of them."""
    at_edge: Count
    """Frames so near to an end of the capture that their copy may lie beyond."""
    repeated: Both
    """Frames that came on one network twice."""
    elsewhere: Count
    """Frames on a third network."""
    skew: Distribution
    """Time on the second network less time on the first."""
    skew_max_ps: Count | None
    """The smallest SkewMax that joins all pairs."""


class PromiseResult(Struct, frozen=True):
    """One promise of a contract on one stream, or one series of copies."""

    stream: str
    measure: str
    bound: Literal["at-most", "at-least"]
    value: float
    """The bound, in `unit`."""
    written: str
    unit: Literal["ns", "B", "frames"]
    observed: float | None
    n: Count
    """Values that it is the extreme of, or frames that it is counted among."""
    instrument: tuple[float, float] | None
    """The range of the figure within the errors of timestamps and clock; None for counts."""
    lacking: Count | None
    """Frames of the stream that the capture may lack; None: unknown."""
    result: Literal["pass", "fail", "undecided"]
    reason: str
    """Why it is undecided; empty where it is not."""


class ContractSource(Struct, frozen=True):
    """The contract that the streams were judged by."""

    file: str
    sha256: str
    streams: Count
    """Streams that it lists."""


class Observed(Struct, frozen=True):
    """The content of `streams.json`."""

    schema: Literal[1]
    program: str
    sources: dict[str, str]
    """SHA-256 of each capture."""
    complete: bool
    """Whether all captures were read to their end."""
    validity: Literal["VALID", "DEGRADED"]
    reasons: list[str]
    epoch_realtime_ns: int
    """Time of the first frame, since 1970."""
    duration_ps: int
    frames: Count
    runts: Count
    """Frames shorter than a header, which belong to no stream."""
    beyond: Count
    """Messages of streams beyond the greatest number that is followed."""
    uncompared: Count
    """Messages of redundant series beyond the greatest number whose copies are compared."""
    taps: list[Tap]
    troubles: list[Trouble]
    streams: list[Stream]
    copies: list[Copies]
    contract: ContractSource | None = None
    verdict: Verdict = "NONE"
    """NONE without a contract."""
    promises: list[PromiseResult] = field(default_factory=list)
    unseen: list[str] = field(default_factory=list)
    """Streams of the contract of which no frame was seen."""
    others: list[str] = field(default_factory=list)
    """Streams that the contract does not list, and series of copies of them."""
    notes: list[str] = field(default_factory=list)
    """What of the contract cannot be judged."""


def schema_path() -> Path:
    """The JSON Schema of `streams.json`, shipped with the package."""
    return Path(__file__).with_name("streams.schema.json")


def streams_schema() -> dict[str, Any]:
    """The schema of `streams.json`, which `import --json` and `show --json` print for such a directory."""
    return json_schema(
        Observed,
        "the streams of one place",
        closed=True,
        **{"$id": "urn:wiregauge:streams:1", "description": "null: not stated, or not supported by n."},
    )
