"""The Rust side of wiregauge: compiling tests, simulating runs and judging records."""

from collections.abc import Callable, Mapping, Sequence
from os import PathLike
from typing import Literal

import numpy as np
from numpy.typing import NDArray

SEGMENT_SCHEMA: int
"""Version of the record columns this program writes and reads."""
PLAN_SCHEMA: int
"""Version of the JSON form of the plan this program writes and reads."""
LATE_DIVISOR: int
"""Benches count a message as late that was sent more than its sender's period divided by this after it was to be."""
PREAMBLE_LEN: int
GAP_LEN: int
MIN_FRAME_LEN: int
MAX_FRAME_LEN: int
FRAME_OVERHEAD: int
TAG_LEN: int
DATAGRAM_HEADER_LEN: int
"""Octets of Ethernet frames and of their surroundings; `wiregauge.plan.ethernet` says of which."""

class NativeError(Exception):
    """What could not be done, as a sentence for the user: which file, what happened, the cure."""

def compile_plan(
    tree_json: str, below: str | PathLike[str], scheduling: Literal["done", "open", "unjudged"] = "done"
) -> str:
    """JSON: `{"campaign": …}`, or `{"diagnostics": […]}` when the test is not valid. Captures it replays lie in `below`
    where their paths are not absolute. Windows of time-triggered flows may clash: none ("done"), those of flows that
    are still to be scheduled ("open"), or all ("unjudged"). Raises NativeError for another word."""

def bound_network(
    source: str,
    question: str,
    solve: Callable[[list[int], list[int], list[float], list[float], list[float]], Sequence[float] | None]
    | None = None,
) -> str:
    """JSON: `{"answer": …}`, or `{"refused": …}` with what keeps a network from bounds.

    `solve` gets linear programmes (starts, columns, values, limits, objective) and returns multipliers of their rows.
    Raises what `solve` raises.
    """

def certify_network(source: str, question: str) -> str:
    """JSON: `{"certificate": …}`, the steps of the bounds of a network, or `{"refused": …}`."""

def convert_network(source: str, form: str) -> str:
    """JSON: `{"written": …}`, a network in the form `output-ports` or `physical`, or `{"refused": …}`.

    Raises nothing.
    """

def process_run(
    network_json: str,
    run_json: str,
    segments: Sequence[str | PathLike[str]],
    records_out: str | PathLike[str],
    messages_out: str | PathLike[str],
    passages_out: str | PathLike[str],
    sketches_out: str | PathLike[str],
) -> str:
    """Stores and judges the records of one run; returns its entry of tracking.json. Raises NativeError."""

def take_captures(order_json: str, spool: str | PathLike[str]) -> str:
    """Writes the records of the messages in captures as segments below `spool`; JSON of what was found in which.

    `no_message` alone, a sentence, where there is none in any. Raises NativeError.
    """

def compare_captures(order_json: str, spool: str | PathLike[str]) -> str:
    """Matches the frames of two captures, before and after a device; writes what is certain as segments below `spool`.

    JSON of how, and of what is left open. Raises NativeError.
    """

def observe_captures(order_json: str) -> str:
    """Reads captures of one place; JSON of their streams. Raises NativeError."""

def stream_identities() -> str:
    """JSON: the kinds of streams, each with the parts of an identity that tell its streams apart."""

def spool_observations(
    spool: str | PathLike[str],
    epoch_realtime_ns: int,
    observations: Sequence[tuple[int, int, int, int, int, bool]],
) -> int:
    """Writes what another program observed at the ends of flows as segments of run 0 below `spool`; returns how much.

    Each is time (ps after the epoch), flow, sequence number, node, frame length (B), on the way back. Raises
    NativeError.
    """

class Counts:
    """Counts of integers in the buckets of tracking's own sketches."""

    def add(self, values: NDArray[np.int64]) -> None:
        """Counts the values of an array of 64-bit integers."""

    def counted(self) -> tuple[int, int, int, int, float, bytes, bytes, bytes] | None:
        """Number, least, greatest and sum of the values, exact; the sum of their squared deviations from the mean.

        And as bytes of 64-bit integers the lowest and the highest value of each bucket, ascending, and its count. None
        without values.
        """

def first_places(among: NDArray[np.uint64], wanted: NDArray[np.uint64]) -> bytes:
    """For each of `wanted` the place of the first number of `among` that equals it, -1 where there is none, as bytes of
    64-bit integers."""

def harmonic_peaks(power: NDArray[np.float64], first: int, past: int, octaves: int) -> tuple[bytes, bytes]:
    """The local maxima of the sums of the first `2^octaves` harmonics of a power spectrum.

    Their ordinates, of the highest harmonic, as bytes of 64-bit integers, and the sums there, of doubles. Only
    ordinates from `first` to before `past` are looked at. Raises ValueError where these are not all in the spectrum.
    """

def section_medians(values: NDArray[np.float64], edges: Sequence[int]) -> list[float]:
    """The medians of the sections of doubles from each edge to the next. Raises ValueError where the edges do not
    ascend within the values."""

def fold(weights: NDArray[np.float64], width: float, frequency: float, rows: int, phases: int) -> bytes:
    """Sums of weights in bins of `width` folded at `frequency`: for each of `rows` parts of the series `phases`
    doubles."""

def superpose(cells: NDArray[np.float64], phases: int, shifts: NDArray[np.int64]) -> bytes:
    """For each row of `shifts` the sum of all rows of `cells`, of `phases` doubles each, moved right by its own number
    round the ring. Raises ValueError without a phase."""

def taut_string(x: NDArray[np.float64], y: NDArray[np.float64], band: float) -> tuple[bytes, bytes]:
    """The knots of the shortest line from the first of some points to the last that stays within `band` of the others.

    Their abscissae and ordinates, as bytes of doubles. Raises ValueError where the points have not as many of both.
    """

class LiveRun:
    """A simulated run that is followed until `stop`, on a thread that has only time that nobody else wants."""

    def __init__(self, run_json: str, segments: str, spool: str) -> None:
        """Begins to follow a run by its segments and the truth in its spool. Raises NativeError."""

    def figures(self) -> str | None:
        """JSON of the sums of a second, once; None where there are no new ones."""

    def stop(self) -> None:
        """Ends it, without waiting for the thread."""

class Watch:
    """Live interfaces whose streams are followed until `stop`."""

    def __init__(self, interfaces: Sequence[str], stretches: int = 0) -> None:
        """Begins to follow the streams of these interfaces, and in so many stretches besides. Raises NativeError."""

    def turn(self, number: int) -> str:
        """Ends a stretch and begins it anew; JSON of what came in it, as `second`. Raises NativeError."""

    def second(self) -> str:
        """JSON: `observed`, as of `observe_captures`, and in its order `recent` and `skew`, since the last call.

        Raises NativeError.
        """

    def has_ended(self) -> bool:
        """Whether an interface went away or down, so that nothing comes any more."""

    def stop(self) -> str:
        """Ends it; what came, as `second`. Raises NativeError."""

def retrack(
    network_json: str,
    run_json: str,
    records: Sequence[str | PathLike[str]],
    gaps_json: str,
    messages_out: str | PathLike[str],
    passages_out: str | PathLike[str],
    sketches_out: str | PathLike[str],
) -> str:
    """Judges the stored records of one run again; returns its entry of tracking.json. Raises NativeError."""

def track_part(
    network_json: str,
    run_json: str,
    records: Sequence[str | PathLike[str]],
    gaps_json: str,
    part: int,
    parts: int,
    messages_out: str | PathLike[str],
    passages_out: str | PathLike[str],
    sketches_out: str | PathLike[str],
) -> str:
    """Judges part `part` of `parts` of the flows of a run from its stored records; returns its share of the entry.

    Counts of all parts add up to those of the run; lists of all parts together are those of the run, and so are the
    rows of their tables. Raises NativeError.
    """

def read_quantity(kind: str, text: str) -> int:
    """Reads a quantity as the test language does, exactly or not at all: `time` in ps, `size` in B, `rate` in bit/s,
    `share` in ppb. Raises NativeError with a sentence that begins with the text, ValueError for another kind."""

def simulate_run(
    network_json: str,
    run_json: str,
    spool: str | PathLike[str],
    progress: Callable[[float], object] | None = None,
    threads: int = 1,
) -> str:
    """Simulates one run: records as segments in `spool/simulator`, truth and captures beside them.

    What is written and returned is the same for any number of `threads`.

    Returns JSON: `agents` (end system → report in the shape of `AgentReport`), `switches`, `records`,
    `frame_hops` and `simulated_ps`. `progress` is called now and then with the share of simulated time that is
    done; what it raises ends the simulation and is raised here. Raises NativeError.
    """

def count_stages(network_json: str, run_json: str, threads: int) -> int:
    """The number of stages in which a run is simulated on up to `threads` threads.

    1 if its network cannot be divided. Raises NativeError.
    """

def simulate_offsets(
    network_json: str, run_json: str, offsets: Sequence[Sequence[int]], passages: bool
) -> str:
    """Simulates one run in memory for each list of offsets, ps, of its senders in their order; on all cores.

    Returns JSON, a list: `longest` (flow, receiver, sequence, latency in ps of the message that took longest) and
    `passages` (flow, sequence, node, port, time in ps, length in bytes), empty unless asked for. Raises NativeError.
    """

def replay_run(
    network_json: str,
    run_json: str,
    crossings: str | PathLike[str],
    spool: str | PathLike[str],
    progress: Callable[[float], object] | None = None,
) -> str:
    """What the network between the hosts of a run did, done once more from what they sent, which `crossings` holds.

    Records and truth as of a simulation; in `spool/crossings.arrows` what was handed out. Returns JSON: `until_ps`, and
    `is_whole`: the crossings have their end. `progress` as there. Raises NativeError.
    """

def store_beside(
    kind: Literal["truth", "crossings"],
    run_index: int,
    spooled: str | PathLike[str],
    out: str | PathLike[str],
) -> str:
    """Stores a table beside the records of a run, from the bench's stream to Parquet.

    Returns JSON: null, or what was wrong with the spooled file, whose rows up to there are stored. Raises NativeError.
    """

def label_table(
    source: str | PathLike[str], target: str | PathLike[str], metadata: Mapping[str, str]
) -> None:
    """Copies an Arrow IPC file to `target`, with `metadata` in its schema. Raises NativeError."""

def tsn_commands(network_json: str, run_json: str, node: int, interface: str) -> str:
    """The commands that make the TSN settings of a host, and those that take them off again.

    Returns JSON: `apply` and `undo`, lists of lines, and `restored`, what else gets its former value.
    Raises NativeError.
    """

def language() -> str:
    """The test language as JSON: elements with their attributes, and the forms of values."""

def version() -> str:
    """Version of the program."""
