"""Frames before and after a switch, from the records of any run: simulated, tapped or matched by content."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final, Literal

import numpy as np
import polars as pl
from msgspec import Struct
from numpy.typing import NDArray

from wiregauge.identify.errors import IdentifyError
from wiregauge.plan import Campaign, Run, Switch
from wiregauge.plan.ethernet import AROUND_FRAME, PREAMBLE
from wiregauge.records import RunDirectory
from wiregauge.records.reported import RunEntry

__all__ = ["HEADER", "Passed", "Port", "passed_by", "switches_of", "wire_bits"]

TAP = "tap"
"""The point name of records made from captures."""

Times = NDArray[np.int64]
HEADER: Final = 14
"""Octets that a switch needs to know where a frame goes."""
MOST: Final = 4_000_000
"""The most records read of a switch."""
_FEW: Final = 3
"""The fewest frames of a length for a vote."""
_PS: Final = 10**12
_NEAR: Final = 0.05
"""Tolerance, as a share of the expected time for more octets, for a vote."""

Stamps = Literal["first", "whole", "header"] | None
"""The octet that arrival times refer to: the first, known from captures; the last; the last of the header. None: the
switch's own timestamps, of either the last octet or the header.
"""


class Port(Struct, frozen=True):
    """Frames of an output port in the order in which they left; times in ps, lengths in octets, DA to FCS."""

    name: str
    rate_bps: int
    first_in: Times
    """Time of the first bit of the preamble at the input."""
    last_in: Times
    left: Times
    """Time of the first bit of the preamble at the output."""
    lengths: Times
    in_rate_bps: NDArray[np.float64]
    in_ports: Times
    priorities: Times
    lost_in: Times
    """Time of the last bit of frames that arrived and did not leave."""
    lost_lengths: Times
    lost_priorities: Times
    lost_in_rate_bps: NDArray[np.float64]


class Passed(Struct, frozen=True):
    """Frames that passed a switch. `doubtful` counts frames that arrived and may have left unseen."""

    name: str
    ports: tuple[Port, ...]
    arrivals: Mapping[int, tuple[Times, Times]]
    """Times and lengths of arrivals, by flow."""
    doubtful: int
    step_ps: int
    untold: tuple[str, ...]
    stamps: Stamps = "first"
    unseen: str = ""
    """A name for unrecorded frames that may have delayed others; empty: there are none."""


def wire_bits(lengths: Times) -> NDArray[np.float64]:
    """Bits that frames occupy on a line, preamble and gap included."""
    return np.asarray(8.0 * (lengths + AROUND_FRAME))


def switches_of(directory: RunDirectory) -> tuple[str, ...]:
    """The switches of the test, or the device between two captures."""
    if _is_compared(directory):
        return ("device",)
    return tuple(node.name for node in directory.plan.network.nodes if isinstance(node.kind, Switch))


def passed_by(directory: RunDirectory, name: str | None = None, run: int = 0) -> Passed:
    """The frames that passed switch `name` (None: the only one) in a run. Raises IdentifyError."""
    known = switches_of(directory)
    if not known:
        raise IdentifyError(f"{directory.root}: its network has no switch")
    if name is None and len(known) > 1:
        raise IdentifyError(f"{directory.root}: name one of its switches with --switch: {', '.join(known)}")
    name = name or known[0]
    if name not in known:
        raise IdentifyError(f'{directory.root}: has no switch "{name}"; it has {", ".join(known)}')
    plan = next((one for one in directory.plan.runs if one.index == run), None)
    path = directory.records(run)
    if plan is None or not path.exists():
        raise IdentifyError(
            f"{directory.root}: has no records of run {run} (records/), of which it has to be told"
        )
    directory.inventory.check([path])
    try:
        rows = (
            pl.scan_parquet(path, glob=False)
            .with_columns(pl.col("point").cast(pl.String))
            .head(MOST)
            .collect()
        )
    except (pl.exceptions.PolarsError, OSError) as error:
        raise IdentifyError(f"{path}: cannot be read ({str(error).splitlines()[0][:120]})") from None
    if _is_compared(directory):
        return _between_taps(directory, plan, rows)
    return _through(directory.plan, plan, rows, name)


def _entry(directory: RunDirectory) -> RunEntry:
    return next(iter(directory.entries().values()), RunEntry())


def _is_compared(directory: RunDirectory) -> bool:
    return bool(_entry(directory).passive)


_KEY: Final = ["flow", "sequence", "returning", "warm_up"]


def _through(campaign: Campaign, run: Run, rows: pl.DataFrame, name: str) -> Passed:
    """Frames from the records of the switch itself, whose times are those of preamble out and last octet in."""
    node = campaign.network.names.index(name)
    at = rows.filter(pl.col("node") == node)
    came = at.filter(pl.col("point") == "switch-in").select(*_KEY, "length", came="time", in_port="port")
    left = at.filter(pl.col("point") == "switch-out").select(*_KEY, left="time", out_port="port")
    if came.is_empty() or left.is_empty():
        raise IdentifyError(
            f'"{name}": no records of frames that came to it and left; simulate it, or tap its ports and import the '
            "captures with --test"
        )
    rates = {
        end.port: link.rate_bps for link in campaign.network.links for end in link.ends if end.node == node
    }
    if run.link_rate_bps is not None:
        rates = dict.fromkeys(rates, run.link_rate_bps)
    priorities = {flow.id: flow.vlan.priority if flow.vlan else 0 for flow in run.flows}
    twice = came.group_by(_KEY).len().filter(pl.col("len") > 1)
    came = came.join(twice, on=_KEY, how="anti")
    stamps = _stamps(rows, came, rates)
    joined = came.join(left.unique(_KEY, keep="none"), on=_KEY, how="left")
    multicast = came.join(left.group_by(_KEY).len().filter(pl.col("len") > 1), on=_KEY)
    joined = pl.concat(
        [
            joined.join(multicast, on=_KEY, how="anti"),
            came.join(left, on=_KEY).join(multicast.select(_KEY), on=_KEY),
        ]
    )
    ways = {
        flow.id: [hop.from_port for route in flow.routes for hop in route.hops if hop.from_ == node]
        for flow in run.flows
    }
    untold = [f"{twice.height} frames that came twice are left out"] if twice.height else []
    ports = tuple(
        _port(f"{name}:{port}", port, rates, joined, ways, priorities, stamps=stamps)
        for port in sorted(set(left["out_port"].to_list()))
    )
    arrivals = {int(flow): _series(part, "came") for (flow,), part in came.group_by("flow")}
    return Passed(name, ports, arrivals, 0, 0, tuple(untold), stamps, _unseen(campaign, run, node))


def _unseen(campaign: Campaign, run: Run, node: int) -> str:
    """Traffic without records that may have passed the switch too, as text; empty for none."""
    kind = campaign.network.nodes[node].kind
    found = [
        "background load" if any(node in inject.route.nodes for inject in run.injects) else "",
        "frames of its own" if isinstance(kind, Switch) and kind.own_frames else "",
        "frames that keep clocks" if run.clusters or run.ptp_domains else "",
        "records on their way to a server" if run.remote_logs else "",
    ]
    return ", ".join(filter(None, found))


def _stamps(rows: pl.DataFrame, came: pl.DataFrame, rates: Mapping[int, int]) -> Stamps:
    """Whether the switch timestamps the header, as in cut-through, or the last octet.

    From the sender's driver to the last octet a frame that found its sender idle takes 8 / R more for each octet, to
    its header no more. Lengths that came by one port vote if they are near one of the two; None without votes, or if
    they disagree.
    """
    sent = rows.filter((pl.col("point") == "driver-send") & ~pl.col("returning"))
    sent = sent.unique(_KEY, keep="none").select(*_KEY, "node", "length", sent="time")
    both = came.join(sent.drop("length"), on=_KEY).sort("in_port", "sent")
    votes: set[Stamps] = set()
    for (port,), part in both.group_by("in_port"):
        rate = rates[int(str(port))]
        least = (
            _found_idle(part, rate)
            .group_by("length")
            .agg(pl.col("took").min(), pl.len())
            .filter(pl.col("len") >= _FEW)
            .sort("length")
        )
        if least.height < 2:
            continue
        octets = least["length"].to_numpy().astype(np.float64)
        took = least["took"].to_numpy().astype(np.float64)
        grown = (took[1:] - took[0]) / ((octets[1:] - octets[0]) * 8 * _PS / rate)
        if np.all(np.abs(grown - 1) < _NEAR):
            votes.add("whole")
        elif np.all(np.abs(grown) < _NEAR):
            votes.add("header")
        else:
            votes.add(None)
    return votes.pop() if len(votes) == 1 else None


def _found_idle(part: pl.DataFrame, rate: int) -> pl.DataFrame:
    """Frames of a port, in send order, that found their sender idle; `took`: the time to the switch, ps."""
    sent = part["sent"].to_numpy().astype(np.int64)
    own = np.rint(wire_bits(part["length"].to_numpy().astype(np.int64)) * _PS / rate).astype(np.int64)
    done = np.cumsum(own)
    free = np.concatenate(
        ([np.iinfo(np.int64).min], (np.maximum.accumulate(sent - (done - own)) + done)[:-1])
    )
    return part.with_columns(took=pl.col("came") - pl.col("sent")).filter(pl.Series(sent >= free))


def _port(
    name: str,
    port: int,
    rates: Mapping[int, int],
    joined: pl.DataFrame,
    ways: Mapping[int, list[int]],
    priorities: Mapping[int, int],
    *,
    stamps: Stamps,
) -> Port:
    own = joined.filter(pl.col("out_port") == port).sort("left")
    gone = joined.filter(
        pl.col("left").is_null()
        & pl.col("flow").is_in([flow for flow, ports in ways.items() if ports == [port]])
    )

    def times(part: pl.DataFrame) -> tuple[Times, Times, Times, NDArray[np.float64]]:
        came = part["came"].to_numpy().astype(np.int64)
        lengths = part["length"].to_numpy().astype(np.int64)
        rate = np.array([rates[port] for port in part["in_port"].to_list()], dtype=np.float64)
        known = (HEADER if stamps == "header" else lengths) + PREAMBLE
        first = came - np.rint(8.0 * known * _PS / rate).astype(np.int64)
        last = first + np.rint(8.0 * (lengths + PREAMBLE) * _PS / rate).astype(np.int64)
        return first, last, lengths, rate

    first, last, lengths, rate = times(own)
    _, lost, lost_lengths, lost_rate = times(gone)
    return Port(
        name,
        rates[port],
        first,
        last,
        own["left"].to_numpy().astype(np.int64),
        lengths,
        rate,
        own["in_port"].to_numpy().astype(np.int64),
        _priorities(own, priorities),
        lost,
        lost_lengths,
        _priorities(gone, priorities),
        lost_rate,
    )


def _priorities(part: pl.DataFrame, priorities: Mapping[int, int]) -> Times:
    return np.array([priorities.get(flow, 0) for flow in part["flow"].to_list()], dtype=np.int64)


def _series(part: pl.DataFrame, column: str) -> tuple[Times, Times]:
    return part[column].to_numpy().astype(np.int64), part["length"].to_numpy().astype(np.int64)


def _between_taps(directory: RunDirectory, run: Run, rows: pl.DataFrame) -> Passed:
    """Frames between two captures: times refer to the first octet, so the lines' rates give the preambles."""
    entry = _entry(directory)
    taps, compared = {tap.node: tap for tap in entry.taps}, entry.passive or {}
    rates = {name: tap.rate_bps for name, tap in taps.items() if tap.rate_bps}
    names = directory.plan.network.names
    missing = [name for name in names if name not in rates]
    if missing:
        raise IdentifyError(
            f"{directory.root}: the line rate at {' and '.join(missing)} is not known; import the captures again with "
            "--rate, for example --rate 1Gbit/s"
        )
    if compared["offset_uncertainty_ps"] is None:
        raise IdentifyError(
            f"{directory.root}: the offset of the captures' clocks is not known, so that no residence time is; "
            "import them with --max-clock-offset"
        )
    rows = rows.filter(pl.col("point") == TAP)
    messages = pl.read_parquet(directory.messages(run.index), glob=False).select(
        "flow", "sequence", outcome=pl.col("outcome").cast(pl.String)
    )
    ports: list[Port] = []
    arrivals: dict[int, tuple[Times, Times]] = {}
    doubtful = 0
    for side in (0, 1):
        flows = [flow.id for flow in run.flows if flow.from_ == side]
        own = rows.filter(pl.col("flow").is_in(flows))
        came = own.filter(pl.col("node") == side).select("flow", "sequence", "length", came="time")
        if came.is_empty():
            continue
        came = came.join(messages, on=["flow", "sequence"], how="left")
        left = own.filter(pl.col("node") != side).select("flow", "sequence", left="time")
        left = left.sort("left").unique(["flow", "sequence"], keep="first")
        joined = came.join(left, on=["flow", "sequence"], how="left")
        doubtful += joined.filter(pl.col("outcome") == "unknown").height
        rate = [float(rates[names[end]]) for end in (side, 1 - side)]
        ports.append(_tap_port(names[1 - side], joined, rate))
        arrivals |= {int(flow): _series(part, "came") for (flow,), part in came.group_by("flow")}
    step = sum(tap.step_ns or 0.0 for tap in taps.values()) * 1000
    step = step + float(compared["offset_uncertainty_ps"])
    strangers = sum(flow["appeared"] for flow in compared["flows"])
    behind = {names[1 - side] for side in (0, 1) if any(flow.from_ == side for flow in run.flows)}
    strangers += sum(flow["frames"] for flow in compared["uncrossed"] if flow["seen"] in behind)
    unseen = f"{strangers} frames that came from elsewhere" if strangers else ""
    return Passed(
        "device",
        tuple(ports),
        arrivals,
        doubtful,
        round(step),
        tuple(_strangers(strangers)),
        unseen=unseen,
    )


def _strangers(count: int) -> Iterator[str]:
    if count:
        yield f"where {count} frames behind the device came from; they may have kept others waiting"


def _tap_port(name: str, joined: pl.DataFrame, rates: list[float]) -> Port:
    own = joined.filter(pl.col("left").is_not_null()).sort("left")
    gone = joined.filter(pl.col("outcome") == "lost")

    def placed(part: pl.DataFrame, column: str, rate: float, octets: Times | int) -> Times:
        moved = np.rint(8.0 * np.asarray(octets) * _PS / rate).astype(np.int64)
        return np.asarray(part[column].to_numpy().astype(np.int64) + moved)

    lengths, lost = (part["length"].to_numpy().astype(np.int64) for part in (own, gone))
    return Port(
        f"device to {name}",
        round(rates[1]),
        placed(own, "came", rates[0], -PREAMBLE),
        placed(own, "came", rates[0], lengths),
        placed(own, "left", rates[1], -PREAMBLE),
        lengths,
        np.full(own.height, rates[0]),
        np.zeros(own.height, dtype=np.int64),
        np.zeros(own.height, dtype=np.int64),
        placed(gone, "came", rates[0], lost),
        lost,
        np.zeros(gone.height, dtype=np.int64),
        np.full(gone.height, rates[0]),
    )
