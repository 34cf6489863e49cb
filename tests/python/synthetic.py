"""A run directory as the testmaster would leave it, made from a seeded generator: no network, no agent.

The format is that of docs/reference/run-directory.md. Values follow no real host; they only have the features that
judging and drawing must handle: skewed latencies, clusters of long delays, losses, duplicates, reordering, repeats.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field

from wiregauge._native import PLAN_SCHEMA
from wiregauge.measures.metrics.recorded import WIRE_TIMES
from wiregauge.records import Traits

MS = 1_000_000_000
US = 1_000_000
NODES = ("mac", "sensor", "flooder", "sw1")
TIMES = (
    "intended",
    "tx_app",
    "tx_drv",
    "rx_drv",
    "rx_app",
    "back_tx_app",
    "back_tx_drv",
    "back_rx_drv",
    "back_rx_app",
)
OUTCOMES = ("delivered", "duplicated", "reordered", "late", "lost", "misdirected", "corrupted")
POINTS = ("intended-send", "application-send", "driver-send", "driver-receive", "application-receive", "drop")

Columns = dict[str, Any]


class Recipe(Struct, frozen=True):
    """The parameters. The default is the demo: both protocols over six payloads, one-way flow 10, relayed flow 20."""

    protocols: Sequence[str] = ("udp", "raw")
    payloads: Sequence[int] = (64, 128, 256, 512, 1024, 1472)
    loads: Sequence[int] = ()
    repeats: int = 1
    messages: int = 1000
    warm_up: int = 50
    relay: bool = True
    loss: float = 0.001
    seed: int = 7
    state: str = "complete"
    reason: str | None = None
    stop_after: int | None = None
    limits: Sequence[Mapping[str, Any]] = ()
    name: str = "udp-and-raw"
    agent: Mapping[str, Any] = field(default_factory=dict)
    alter: Callable[[Columns, int], None] | None = None
    """Changes the columns of a flow (given its number) before outcomes are counted."""


def make(path: Path, recipe: Recipe | None = None) -> Path:
    """Writes the run directory and returns its path."""
    recipe = recipe or Recipe()
    (path / "messages").mkdir(parents=True, exist_ok=True)
    plan = _plan(recipe)
    done = plan["runs"][: recipe.stop_after]
    tracked = []
    entries = []
    for run in done:
        rng = np.random.default_rng([recipe.seed, run["index"]])
        flows = []
        frames = []
        for flow in run["flows"]:
            columns = _messages(rng, recipe, run, flow)
            if recipe.alter is not None:
                recipe.alter(columns, flow["id"])
            frames.append(_frame(columns))
            flows.append(_count(columns, recipe.messages, flow["id"]))
        table = pl.concat(frames).sort("flow", pl.col("warm_up").not_(), "sequence")
        table.write_parquet(
            path / "messages" / f"run-{run['index']:04d}.parquet",
            metadata={"wiregauge.schema": "3", "wiregauge.kind": "messages"},
        )
        entries.append(_entry(run, recipe))
        tracked.append(
            {
                "index": run["index"],
                "records": sum(agent["records_written"] for agent in entries[-1]["agents"].values()),
                "window": 4096,
                "flows": flows,
                "unplanned": {"foreign": 0, "unknown_flow": 0, "never_sent": 0, "damaged": 0},
                "damaged_segments": [],
            }
        )
    test = b"<test/>\n"
    (path / "test.xml").write_bytes(test)
    (path / "tracking.json").write_text(json.dumps({"schema": 3, "runs": tracked}))
    manifest = {
        "schema": 3,
        "program": {"name": "wiregauge", "version": "0.1.0"},
        "test": {"name": recipe.name, "file": "test.xml", "sha256": hashlib.sha256(test).hexdigest()},
        "seed": recipe.seed,
        "bench": "netns",
        "traits": Traits(one_clock=True, driver="veth").as_json(),
        "state": recipe.state,
        "reason": recipe.reason,
        "started": "2026-01-05T09:00:00Z",
        "finished": "2026-01-05T09:01:12Z" if recipe.state == "complete" else None,
        "writer_pid": 2**22 + 1,
        "host": {
            "kernel": "Linux 6.8.0 x86_64",
            "cpu": "Example CPU @ 3.0 GHz",
            "cores": "2",
            "clocksource": "tsc",
        },
        "bench_facts": [
            {"name": "port shaping", "value": "tbf 1 Gbit/s", "note": "token bucket on every switch port"},
            {
                "name": "wire",
                "value": "none",
                "note": "veth pairs carry no preamble, gap or propagation delay",
            },
        ],
        "plan": plan,
        "runs": entries,
    }
    (path / "manifest.json").write_text(json.dumps(manifest, indent=1))
    return path


def _plan(recipe: Recipe) -> dict[str, Any]:
    axes = [
        {"of": "protocol", "values": list(recipe.protocols)},
        {"of": "payload", "values": [f"{p}B" for p in recipe.payloads]},
    ]
    if recipe.loads:
        axes.append({"of": "load", "values": [f"{load}%" for load in recipe.loads]})
    axes = [axis for axis in axes if len(axis["values"]) > 1]
    swept = {axis["of"] for axis in axes}
    runs: list[dict[str, Any]] = []
    for protocol in recipe.protocols:
        for payload in recipe.payloads:
            for load in recipe.loads or (0,):
                for repeat in range(recipe.repeats):
                    values = {"protocol": protocol, "payload": f"{payload}B", "load": f"{load}%"}
                    point = {k: v for k, v in values.items() if k in swept}
                    runs.append(_run(recipe, len(runs), protocol, payload, load, repeat, point))
    return {
        "schema": PLAN_SCHEMA,
        "name": recipe.name,
        "seed": recipe.seed,
        "network": {
            "nodes": [
                {
                    "name": name,
                    "kind": {"type": "switch", "kind": "cots", "port_buffer": {"bytes": 524288}}
                    if name == "sw1"
                    else {"type": "end-system"},
                    "mac": [2, 0x57, 0x47, 0, 0, k + 1],
                    "ipv4": [198, 18, 0, k + 1],
                }
                for k, name in enumerate(NODES)
            ],
            "links": [
                {"ends": [{"node": k, "port": 1}, {"node": 3, "port": k + 1}], "rate_bps": 10**9, "delay": 0}
                for k in range(3)
            ],
        },
        "axes": axes,
        "repeats": recipe.repeats,
        "runs": runs,
        "limits": list(recipe.limits),
        "warnings": [],
    }


def _run(
    recipe: Recipe, index: int, protocol: str, payload: int, load: int, repeat: int, point: dict[str, str]
) -> dict[str, Any]:
    ids = (10, 20) if recipe.relay else (10,)
    period = 2 * MS
    injects = [
        {
            "on": 2,
            "to": 1,
            "payload": 1472,
            "burst": 10,
            "interval": 123 * US * 100 // load,
            "load_ppm": load * 10_000,
            "route": {"hops": []},
        }
        for _ in range(1)
        if load
    ]
    return {
        "index": index,
        "point": point,
        "repeat": repeat,
        "seed": recipe.seed + index,
        "warm_up": recipe.warm_up * period,
        "duration": recipe.messages * period,
        "drain": 200 * MS,
        "flows": [
            {
                "id": k,
                "protocol": protocol,
                "from": 0,
                "to": 1,
                "deadline": None,
                "vlan": None,
                "routes": [{"hops": [[0, 0, 1, 3, 1], [1, 3, 2, 1, 1]]}],
            }
            for k in ids
        ],
        "sends": [
            {
                "flow": k,
                "period": period,
                "offset": (k - 10) * US * 50,
                "payload": payload,
                "fill": "random",
                "count": recipe.messages,
                "warm_up_count": recipe.warm_up,
            }
            for k in ids
        ],
        "receives": [{"flow": 10, "on": 1}],
        "relays": [{"flow": 20, "on": 1, "through": "servicing", "faults": []}] if recipe.relay else [],
        "injects": injects,
    }


def _messages(
    rng: np.random.Generator, recipe: Recipe, run: Mapping[str, Any], flow: Mapping[str, Any]
) -> Columns:
    send = next(s for s in run["sends"] if s["flow"] == flow["id"])
    n = recipe.warm_up + recipe.messages
    warm = np.arange(n) < recipe.warm_up
    sequence = np.where(warm, np.arange(n), np.arange(n) - recipe.warm_up)
    intended = run["warm_up"] + send["offset"] + (np.arange(n) - recipe.warm_up) * send["period"]
    bits = 8 * (send["payload"] + (66 if flow["protocol"] == "udp" else 38))
    wire = 2 * bits * 1000
    load = max((i["load_ppm"] for i in run["injects"]), default=0) / 1e6
    stack = 9 * US if flow["protocol"] == "udp" else 6 * US
    # A slow interval: a busy core delays several messages in a row, so neighbours are correlated.
    slow = np.zeros(n)
    start = int(rng.integers(0, max(n - 8, 1)))
    slow[start : start + 8] = rng.gamma(2.0, 40, 8)[: len(slow[start : start + 8])]

    def noise(scale_us: float) -> np.ndarray:
        return (
            (rng.gamma(3.0, scale_us / 3, n) + (rng.random(n) < 0.01) * rng.gamma(2.0, 6 * scale_us, n)) * US
        ).astype(np.int64)

    def leg(start: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        tx_drv = start + stack // 3 + noise(0.8)
        queueing = (rng.random(n) < load) * rng.uniform(0, 120 * US * load, n)
        rx_drv = tx_drv + wire + 4 * US + noise(1.5) + queueing.astype(np.int64)
        rx_app = rx_drv + stack + noise(2.5) + (slow * US).astype(np.int64)
        return tx_drv, rx_drv, rx_app

    tx_app = intended + (
        rng.gamma(1.2, 0.6, n) * US + (rng.random(n) < 0.004) * rng.gamma(2, 30, n) * US
    ).astype(np.int64)
    tx_drv, rx_drv, rx_app = leg(tx_app)
    columns: Columns = {
        "flow": flow["id"],
        "sequence": sequence,
        "warm_up": warm,
        "relayed": flow["id"] == 20,
    }
    lost = ~warm & (rng.random(n) < recipe.loss)
    columns |= {"intended": intended, "tx_app": tx_app, "tx_drv": tx_drv, "rx_drv": rx_drv, "rx_app": rx_app}
    columns["present"] = {name: np.ones(n, dtype=bool) for name in TIMES}
    for name in ("rx_drv", "rx_app"):
        columns["present"][name] = ~lost
    if columns["relayed"]:
        back_tx = rx_app + 1 * US + noise(0.4)
        back_drv, back_rx_drv, back_rx_app = leg(back_tx)
        columns |= {
            "back_tx_app": back_tx,
            "back_tx_drv": back_drv,
            "back_rx_drv": back_rx_drv,
            "back_rx_app": back_rx_app,
        }
        lost_back = lost | (~warm & (rng.random(n) < recipe.loss))
        columns["present"] |= {
            "back_tx_app": ~lost,
            "back_tx_drv": ~lost,
            "back_rx_drv": ~lost_back,
            "back_rx_app": ~lost_back,
        }
        lost = lost_back
    columns["lost"] = lost
    columns["copies"] = np.where(lost, 0, 1 + (~warm & (rng.random(n) < 0.0005)))
    columns["reordered"] = ~lost & ~warm & (rng.random(n) < 0.0005)
    columns["length"] = send["payload"] + (46 if flow["protocol"] == "udp" else 18)
    return columns


def _outcomes(columns: Columns) -> np.ndarray:
    chosen = np.where(columns["reordered"], "reordered", "delivered")
    chosen = np.where(columns["copies"] > 1, "duplicated", chosen)
    return np.where(columns["lost"], "lost", chosen)


def _frame(columns: Columns) -> pl.DataFrame:
    n = len(columns["sequence"])
    lost = columns["lost"]
    times = {}
    for name in TIMES:
        values = columns.get(name)
        seen = columns["present"][name] if values is not None else np.zeros(n, dtype=bool)
        times[name] = pl.Series(values if values is not None else np.zeros(n, dtype=np.int64), dtype=pl.Int64)
        times[name] = times[name].set(~pl.Series(seen), None)
    last = pl.Series(np.where(lost, 3, 0)).cast(pl.UInt16).set(~pl.Series(lost), None)
    return pl.DataFrame(
        {
            "flow": pl.Series(np.full(n, columns["flow"]), dtype=pl.UInt16),
            "sequence": pl.Series(columns["sequence"], dtype=pl.UInt32),
            "warm_up": columns["warm_up"],
            "outcome": pl.Series(list(_outcomes(columns))).cast(pl.Enum([*OUTCOMES, "unknown"])),
            **times,
            "length": pl.Series(np.full(n, columns["length"]), dtype=pl.UInt16),
            "copies": pl.Series(columns["copies"], dtype=pl.UInt16),
            "corrupted_copies": pl.Series(np.zeros(n), dtype=pl.UInt16),
            "misdirected_copies": pl.Series(np.zeros(n), dtype=pl.UInt16),
            "reordered": columns["reordered"],
            "reorder_extent": pl.Series(columns["reordered"] * 1, dtype=pl.UInt32),
            "late": np.zeros(n, dtype=bool),
            "life": pl.Series(np.zeros(n), dtype=pl.UInt16),
            "to": pl.Series(np.ones(n), dtype=pl.UInt16),
            **{name: pl.Series([None] * n, dtype=pl.Int64) for name in WIRE_TIMES},
            "last_node": last,
            "last_point": pl.Series(["driver-send" if gone else None for gone in lost]).cast(pl.Enum(POINTS)),
            "drop_reason": pl.Series(["none"] * n).cast(pl.Enum(["none", "planted-fault"])),
        }
    )


def _count(columns: Columns, planned: int, flow: int) -> dict[str, Any]:
    measured = ~columns["warm_up"]
    outcomes = _outcomes(columns)[measured]
    tally = {name: int((outcomes == name).sum()) for name in OUTCOMES}
    lost = int(columns["lost"][measured].sum())
    sent = int(measured.sum())
    return {
        "flow": flow,
        "planned": planned,
        "sent": sent,
        "delivered": sent - lost,
        "lost": lost,
        "duplicated": int((columns["copies"][measured] > 1).sum()),
        "extra_copies": int((columns["copies"][measured] > 1).sum()),
        "reordered": int(columns["reordered"][measured].sum()),
        "late": 0,
        "misdirected": 0,
        "corrupted": 0,
        "outcomes": tally,
        "warm_up": {"sent": int((~measured).sum()), "delivered": int((~measured).sum())},
        "drop_reasons": {"planted-fault": 0},
        "missing_send_records": 0,
    }


def _entry(run: Mapping[str, Any], recipe: Recipe) -> dict[str, Any]:
    frames = recipe.messages + recipe.warm_up
    agents = {}
    for name in NODES[:3]:
        tasks = []
        for inject in run["injects"]:
            if NODES[inject["on"]] == name:
                bursts = (run["warm_up"] + run["duration"]) // inject["interval"]
                tasks.append(
                    {
                        "kind": "inject",
                        "flow": 0,
                        "planned": 10 * bursts,
                        "done": 10 * bursts,
                        "wire_bytes": 15380 * bursts,
                    }
                )
        agents[name] = {
            "end_system": name,
            "complete": True,
            "incomplete_reason": "",
            "access_points": [
                {"protocol": "udp", "frames_sent": frames, "frames_received": frames, "send_errors": 0}
            ],
            "tasks": tasks,
            "records_written": 4 * frames,
            "records_dropped": 0,
            "clock_steps": 0,
            "involuntary_switches": 3,
            "steal_ns": 0,
            "grants": [
                {"name": "sched-fifo", "granted": True, "detail": "priority 80"},
                {
                    "name": "cpu-dma-latency",
                    "granted": False,
                    "detail": "no /dev/cpu_dma_latency on this host",
                },
            ],
            **recipe.agent,
        }
    return {
        "index": run["index"],
        "state": "complete",
        "reason": None,
        "epoch_realtime_ns": 1_767_603_600_000_000_000,
        "started": "2026-01-05T09:00:00Z",
        "finished": "2026-01-05T09:00:06Z",
        "agents": agents,
        "clock_offsets": {
            name: {"offset_ns": 0, "uncertainty_ns": 0, "method": "same-clock"} for name in NODES[:3]
        },
    }
