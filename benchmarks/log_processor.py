"""The log processor compared with DuckDB and Polars: one question, one file, one run.

`python -m benchmarks.log_processor [RECORDS]` (default 10^8) has `crates/track/benches/volume.rs` write sent and
received records of 16 flows with losses, duplicates and swaps (Parquet, as a run directory holds them), and asks of
each flow: how many messages were sent, how many received, and p50, p99, p99.9 and the maximum of the one-way latency.
Answers are compared, then times. Duplicates and swaps make this no plain join: a message counts once, by its first
intact copy.

The log processor also judges every message (outcome, order, deadline), unlike the others; it stores only the required
distribution. Each runs in its own process, with as many threads as cores.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from benchmarks import cargo, table

ROOT = Path(__file__).resolve().parent.parent
SMOKE = "--smoke" in sys.argv
ROUNDS = 1 if SMOKE else 2
QUANTILES = (0.5, 0.99, 0.999)
WITHIN = 1e-3
"""Relative error of sketches: three significant digits."""

Answer = list[tuple[int, int, int, float, float, float, float]]
"""Per flow: number, sent, received, three percentiles and the maximum, ps."""


def ours(file: Path, records: int) -> tuple[Answer, float, int]:
    """The answer, its time, s, and the peak memory, KiB."""
    command = cargo.bench("wg-track", "volume", smoke=SMOKE)
    done = subprocess.run(
        [*command, str(file), str(records), str(os.cpu_count() or 1)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.exit(f"the log processor could not be run:\n{done.stderr}")
    told: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    rows = [
        (f["flow"], f["sent"], f["received"], f["p50"], f["p99"], f["p99.9"], f["max"]) for f in told["flows"]
    ]
    return rows, told["seconds"], told["peak_kib"]


def duckdb(file: Path) -> Answer:
    import duckdb as engine

    rows = (
        engine.connect(config={"threads": os.cpu_count() or 1})
        .execute(
            """
            WITH messages AS (
                SELECT flow, sequence,
                       min(time) FILTER (point = 'application-send') AS sent,
                       min(time) FILTER (point = 'application-receive' AND crc = 'ok') AS came
                FROM read_parquet(?) GROUP BY flow, sequence)
            SELECT flow, count(sent), count(came), quantile_disc(came - sent, ?), max(came - sent)
            FROM messages GROUP BY flow ORDER BY flow
            """,
            [str(file), list(QUANTILES)],
        )
        .fetchall()
    )
    return [(flow, sent, came, *quantiles, top) for flow, sent, came, quantiles, top in rows]


def polars(file: Path) -> Answer:
    import polars as pl

    point, took = pl.col("point").cast(pl.String), pl.col("came") - pl.col("sent")
    intact = (point == "application-receive") & (pl.col("crc").cast(pl.String) == "ok")
    table = (
        pl.scan_parquet(file)
        .group_by("flow", "sequence")
        .agg(
            sent=pl.col("time").filter(point == "application-send").min(),
            came=pl.col("time").filter(intact).min(),
        )
        .group_by("flow")
        .agg(
            pl.col("sent").count().alias("n"),
            pl.col("came").count().alias("m"),
            *(took.quantile(q, "higher").alias(f"q{q}") for q in QUANTILES),
            took.max().alias("top"),
        )
        .sort("flow")
        .collect(engine="streaming")
    )
    return list(table.iter_rows())


def _timed(name: str, file: Path, answers: Any) -> None:
    start = time.perf_counter()
    rows = {"DuckDB": duckdb, "Polars": polars}[name](file)
    answers.put((rows, time.perf_counter() - start))


def peer(name: str, file: Path) -> tuple[Answer, float]:
    """A peer's answer and time, s, from its own process."""
    context = get_context("spawn")
    answers = context.Queue()
    process = context.Process(target=_timed, args=(name, file, answers))
    process.start()
    while process.is_alive() and answers.empty():
        time.sleep(0.05)
    if answers.empty():
        sys.exit(f"{name} gave no answer (exit code {process.exitcode}); is there memory for it?")
    found: tuple[Answer, float] = answers.get()
    process.join()
    return found


def same(name: str, theirs: Answer, our: Answer) -> None:
    """Fails when a peer disagrees: counts and maxima exactly, percentiles within the error of a sketch."""
    for (flow, *exact), (_, *sketched) in zip(theirs, our, strict=True):
        close = all(abs(a - b) <= WITHIN * b for a, b in zip(sketched[2:5], exact[2:5], strict=True))
        if [*exact[:2], exact[5]] != [*sketched[:2], sketched[5]] or not close:
            sys.exit(f"{name} says {exact} of flow {flow}, the log processor {sketched}")


def main() -> None:
    numbers = [argument for argument in sys.argv[1:] if argument != "--smoke"]
    records = int(float(numbers[0])) if numbers else 100_000 if SMOKE else 100_000_000
    with tempfile.TemporaryDirectory() as scratch:
        file = Path(scratch) / "records.parquet"
        our, _, _ = ours(file, records)
        print(f"{records} records of 16 flows, {file.stat().st_size / records:.2f} B each in Parquet")
        best: dict[str, float] = {}
        peak = 0
        for _ in range(ROUNDS):
            our, seconds, peak = ours(file, records)
            best["Wiregauge"] = min(seconds, best.get("Wiregauge", seconds))
            for name in ("DuckDB", "Polars"):
                theirs, seconds = peer(name, file)
                same(name, theirs, our)
                best[name] = min(seconds, best.get(name, seconds))
    for name, seconds in best.items():
        ratio = f", {seconds / best['Wiregauge']:.1f} times as long" if name != "Wiregauge" else ""
        if name != "Wiregauge":
            table.add(
                f"tracking and percentiles, {records:.0e} records", f"{records / best['Wiregauge'] / 1e6:.1f} M/s",
                peer=name, theirs=f"{records / seconds / 1e6:.1f} M/s", ratio=seconds / best["Wiregauge"],
                bar=">= 50 M/s", reached=records / best["Wiregauge"] >= 50e6,
            )  # fmt: skip
        print(f"{name:<10} {seconds:8.2f} s {records / seconds / 1e6:8.1f} M records/s{ratio}")
    print(f"the log processor's memory: {peak / 1024:.0f} MiB at most")


if __name__ == "__main__":
    main()
