"""Replays the network of a run and compares its actions, row by row.

The network decides at instants of its model. Frames from hosts are stored with the instant at which the model took
them, and all random numbers come from the seed of the run: so every decision follows from the plan and the stored
frames. A difference means that the network of the run deviated from the model, or that its records are wrong.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import polars as pl
from msgspec import Struct

from wiregauge import _native
from wiregauge.measures.metrics.releases import release_of
from wiregauge.plan import Run, as_json
from wiregauge.records import RunDirectory, RunDirectoryError
from wiregauge.records.directory import BESIDE
from wiregauge.records.processing import checked_records
from wiregauge.records.reported import AgentReport

__all__ = [
    "LISTED",
    "CannotReplayError",
    "Compared",
    "Handed",
    "Otherwise",
    "Released",
    "Replay",
    "Unentered",
    "replay_run",
]

LISTED: Final = 1000
"""The most rows that are listed; all are counted."""
BY_HOSTS: Final = ("planted-fault", "send-refused", "ring-full", "corrupt-at-relay")
"""Reasons of drops by hosts rather than their cards."""
_MESSAGE: Final = ("flow", "sequence", "returning", "warm_up")
_FOREIGN: Final = 65_535
_TABLES: Final = ("messages", "passages", "sketches")
Row = dict[str, Any]
Progress = Callable[[float], object]


class CannotReplayError(Exception):
    """There is nothing to replay, or data are missing; the text says why."""


class Compared(Struct, frozen=True):
    """Rows of the run compared with those of its replay; rows on one side only are differences."""

    run: int
    """The number of rows of the run."""
    differing: int
    rows: tuple[Row, ...]
    """The first differing rows, by time; `side`: where each is."""


class Released(Struct, frozen=True):
    """Lateness of frames handed to an end system, against the model's times, ns."""

    end_system: str
    frames: int
    p50_ns: float | None
    p99_ns: float | None
    p999_ns: float | None
    """None where there are too few frames for it."""
    max_ns: float | None
    refused: int
    intervals_ns: Mapping[str, tuple[float | None, float | None]]
    """95 % intervals of the percentiles, by name; those that have none are not there."""


class Handed(Struct, frozen=True):
    """Messages between hosts and network, by the records of both."""

    sent: int
    """Copies that hosts sent, by their records."""
    entered: int
    """Messages that arrived at the network from them."""
    left: int
    """Messages that were handed to hosts."""
    unreceived: int
    """Those of `left` that the host has no record of."""
    rows: tuple[Row, ...]
    """The first of the unreceived messages."""


class Unentered(Struct, frozen=True):
    """Frames that hosts sent and the network lost before its model had them."""

    reasons: Mapping[str, int]
    """How many, by reason: `no-room` (no buffer, or no core to take them in before the end), `too-long` (for any line),
    `ring-full` (of a port: nobody saw which)."""
    rows: tuple[Row, ...]
    """Those that are known one by one, by time, the first of them; `reason`: why."""

    @property
    def frames(self) -> int:
        """All of them."""
        return sum(self.reasons.values())


class Otherwise(Struct, frozen=True):
    """Messages with a different outcome in a simulation of the same run."""

    messages: int
    """The number of compared messages."""
    differing: int
    rows: tuple[Row, ...]


class Replay(Struct, frozen=True):
    """A run and its replay."""

    index: int
    point: Mapping[str, str]
    until_ns: float
    """End of the replay, from the start of the run, ns."""
    missing: str
    """What the replay could not know; empty for nothing."""
    decisions: Compared
    truth: Compared
    departures: Compared
    releases: tuple[Released, ...]
    handed: Handed
    unentered: Unentered
    otherwise: Otherwise

    @property
    def equal(self) -> bool:
        """Whether the network of the run acted as the model does."""
        return not (self.decisions.differing or self.truth.differing or self.departures.differing)


def replay_run(directory: RunDirectory, index: int, progress: Progress | None = None) -> Replay:
    """Replays a run. Raises CannotReplayError, RunDirectoryError, DamagedError, and the errors of `progress`."""
    entry = directory.entries().get(index)
    if entry is None:
        raise CannotReplayError(f"{directory.root}: run {index} was not made")
    if directory.traits.switches != "model":
        cure = "a run of bench netns whose switches are the model's can be (`--switches model`)"
        raise CannotReplayError(
            f"{directory.root}: no network was played between its hosts, so none can be replayed; {cure}"
        )
    crossings = directory.inventory.find(directory.crossings(index))
    if crossings is None:
        raise CannotReplayError(
            f"{directory.crossings(index)}: is missing: what crossed between hosts and network was not stored; "
            "run the test again"
        )
    rows = _plain([crossings])
    if not rows["time"].is_sorted():
        raise CannotReplayError(
            f"{crossings}: its rows are not in the order of time, as they were written; restore it from a copy"
        )
    plan = directory.plan
    run = plan.runs[index]
    network_json, run_json = as_json(plan.network), as_json(run)
    with tempfile.TemporaryDirectory(prefix="wiregauge-replay-") as temporary:
        place = Path(temporary)
        try:
            told = json.loads(
                _native.replay_run(network_json, run_json, str(crossings), str(place / "replay"), progress)
            )
            replayed = _processed(network_json, run_json, place / "replay")
            simulated = _simulated(network_json, run_json, place / "simulation")
        except _native.NativeError as error:
            raise RunDirectoryError(str(error)) from error
        stored = {kind: _stored(place / "replay", kind, index) for kind in BESIDE}
        end_systems = list(plan.network.end_systems)
        until = int(told["until_ps"])
        own = _plain(checked_records(directory, index))
        return Replay(
            index=index,
            point=run.point,
            until_ns=until / 1e3,
            missing=_missing(entry.network, rows, whole=bool(told["is_whole"]), until_ns=until / 1e3),
            decisions=_compared(
                _of_network(own, end_systems, until),
                _of_network(replayed, end_systems, until),
                plan.network.names,
            ),
            truth=_compared(
                _truth(directory, index, until), _until(stored["truth"], until), plan.network.names
            ),
            departures=_compared(_departures(rows), _departures(stored["crossings"]), plan.network.names),
            releases=_releases(rows, plan.network.names, end_systems),
            handed=_handed(rows, own, end_systems, plan.network.names),
            unentered=_unentered(entry.network, rows, plan.network.names),
            otherwise=_otherwise(directory, run, simulated),
        )


def _missing(network: AgentReport | None, rows: pl.DataFrame, *, whole: bool, until_ns: float) -> str:
    dropped = network.records_dropped if network is not None else None
    told = []
    if dropped is None:
        told.append("the network left no report: how many frames and records it lost is unknown")
    if not (rows["kind"] == "entered").any():
        told.append("no frame came from a host: there was nothing to do once more")
    if not whole:
        told.append(f"what crossed is stored up to {until_ns / 1e6:.3f} ms; what came later is not compared")
    if dropped:
        told.append(f"the network lost {dropped} of its records, which the replay has")
    return "; ".join(told)


def _plain(paths: list[Path]) -> pl.DataFrame:
    """The records with plain text columns: each file has its own dictionary."""
    return pl.read_parquet(paths, glob=False).with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))


def _stored(spool: Path, kind: Any, index: int) -> pl.DataFrame:
    out = spool / f"{kind}.parquet"
    _native.store_beside(kind, index, str(spool / BESIDE[kind]), str(out))
    return _plain([out])


def _processed(network_json: str, run_json: str, spool: Path, table: str = "records") -> pl.DataFrame:
    segments = [str(path) for path in sorted(spool.glob("*/*.arrows"))]
    out = {name: spool / f"{name}.parquet" for name in ("records", *_TABLES)}
    _native.process_run(
        network_json, run_json, segments, str(out["records"]), *(str(out[name]) for name in _TABLES)
    )
    return _plain([out[table]])


def _simulated(network_json: str, run_json: str, spool: Path) -> pl.DataFrame:
    _native.simulate_run(network_json, run_json, str(spool))
    return _processed(network_json, run_json, spool, "messages")


def _until(rows: pl.DataFrame, until: int) -> pl.DataFrame:
    return rows.filter(pl.col("time") <= until)


def _of_network(records: pl.DataFrame, end_systems: Sequence[int], until: int) -> pl.DataFrame:
    """Records of devices, and drops by cards."""
    at_host = pl.col("node").is_in(list(end_systems))
    by_card = (pl.col("point") == "drop") & ~pl.col("reason").is_in(BY_HOSTS)
    return _until(records, until).filter(~at_host | by_card)


def _truth(directory: RunDirectory, index: int, until: int) -> pl.DataFrame:
    path = directory.inventory.find(directory.truth(index))
    if path is None:
        raise RunDirectoryError(
            f"{directory.truth(index)}: is missing; without it a replay has nothing to compare with"
        )
    return _until(_plain([path]), until)


def _departures(rows: pl.DataFrame) -> pl.DataFrame:
    """The departures that were due at each host."""
    gone = rows.filter(pl.col("kind").is_in(["left", "refused"]))
    return gone.select("time", "node", "flow", "sequence", "length", "returning", "warm_up")


def _compared(run: pl.DataFrame, replay: pl.DataFrame, names: Sequence[str]) -> Compared:
    columns = list(run.columns)
    both = (
        run.group_by(columns)
        .len("run")
        .join(replay.select(columns).group_by(columns).len("replay"), on=columns, how="full", coalesce=True)
        .with_columns(pl.col("run", "replay").fill_null(0).cast(pl.Int64))
        .filter(pl.col("run") != pl.col("replay"))
        .sort("time", "node")
    )
    differing = int(both.select((pl.col("run") - pl.col("replay")).abs().sum()).item() or 0)
    return Compared(
        run.height,
        differing,
        tuple(
            _named(row, names) | {"side": "run" if row["run"] > row["replay"] else "replay"}
            for row in both.head(LISTED).iter_rows(named=True)
        ),
    )


def _named(row: Mapping[str, Any], names: Sequence[str]) -> Row:
    """A row for output: times in ns, nodes by name, without empty fields."""
    told: Row = {"time_ns": row["time"] / 1e3, "node": names[row["node"]]}
    for key in ("port", "point", "reason", "kind", "value", "length"):
        if row.get(key) not in (None, 0, "none"):
            told[key] = row[key]
    if row["flow"] != _FOREIGN:
        told |= {key: row[key] for key in _MESSAGE}
    return told


def _releases(rows: pl.DataFrame, names: Sequence[str], end_systems: Sequence[int]) -> tuple[Released, ...]:
    found = []
    for node in end_systems:
        own = rows.filter(pl.col("node") == node)
        late = own.filter(pl.col("kind") == "left")["late"].to_numpy() / 1e3
        refused = own.filter(pl.col("kind") == "refused").height
        one = release_of(names[node], late, refused)
        found.append(
            Released(
                one.end_system,
                one.frames,
                one.p50_ns,
                one.p99_ns,
                one.p999_ns,
                one.max_ns,
                refused,
                one.intervals_ns,
            )
        )
    return tuple(found)


def _handed(
    rows: pl.DataFrame, records: pl.DataFrame, end_systems: Sequence[int], names: Sequence[str]
) -> Handed:
    of_messages = rows.filter(pl.col("flow") != _FOREIGN)
    at_host = records.filter(pl.col("node").is_in(list(end_systems)))
    key = ("node", *_MESSAGE)
    left = of_messages.filter(pl.col("kind") == "left")
    got = at_host.filter(pl.col("point") == "application-receive").select(key).unique()
    missed = left.join(got, on=list(key), how="anti").sort("time")
    return Handed(
        sent=at_host.filter(pl.col("point") == "application-send").height,
        entered=of_messages.filter(pl.col("kind") == "entered").height,
        left=left.height,
        unreceived=missed.height,
        rows=tuple(_named(row, names) for row in missed.head(LISTED).drop("kind").iter_rows(named=True)),
    )


def _unentered(network: AgentReport | None, rows: pl.DataFrame, names: Sequence[str]) -> Unentered:
    lost = network.intake.lost if network is not None and network.intake is not None else 0
    single = rows.filter(pl.col("kind") == "no-room")
    too_long = sum(one.frames for one in network.overlong) if network is not None else 0
    reasons = {
        "no-room": single.height,
        "too-long": too_long,
        "ring-full": max(lost - single.height - too_long, 0),
    }
    told = single.head(LISTED).rename({"kind": "reason"})
    return Unentered(
        {reason: count for reason, count in reasons.items() if count},
        tuple(_named(row, names) for row in told.iter_rows(named=True)),
    )


def _otherwise(directory: RunDirectory, run: Run, simulated: pl.DataFrame) -> Otherwise:
    path = directory.inventory.find(directory.messages(run.index))
    if path is None:
        raise RunDirectoryError(
            f"{directory.messages(run.index)}: is missing; `wiregauge track {directory.root}` makes it"
        )
    names = directory.plan.network.names
    key = ["flow", "to", "sequence", "warm_up", "life"]
    kept = [*key, "outcome", "last_node", "drop_reason"]
    live = _plain([path])
    both = (
        live.select(*kept, sent_late=pl.col("tx_app") - pl.col("intended"), intended="intended")
        .join(simulated.select(kept), on=key, how="full", coalesce=True, suffix="_simulated")
        .filter(pl.col("outcome").ne_missing(pl.col("outcome_simulated")))
        .sort("intended", "flow", "sequence")
    )
    return Otherwise(
        live.height,
        both.height,
        tuple(
            {
                "flow": row["flow"],
                "to": names[row["to"]],
                "sequence": row["sequence"],
                "warm_up": row["warm_up"],
                "run": _outcome(row, "", names),
                "simulation": _outcome(row, "_simulated", names),
                "sent_late_ns": None if row["sent_late"] is None else row["sent_late"] / 1e3,
            }
            for row in both.head(LISTED).iter_rows(named=True)
        ),
    )


def _outcome(row: Mapping[str, Any], side: str, names: Sequence[str]) -> str:
    outcome = row[f"outcome{side}"]
    if outcome is None:
        return "not sent"
    reason, node = row[f"drop_reason{side}"], row[f"last_node{side}"]
    if reason in (None, "none"):
        return str(outcome)
    return f"{outcome}: {reason}" + (f" at {names[node]}" if node is not None else "")
