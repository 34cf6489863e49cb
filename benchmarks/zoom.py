"""Opening a run and zooming into it: seconds and memory of the server of `wiregauge serve`, compared with the bars.

`python -m benchmarks.zoom [MESSAGES]` (default 10^8; `--smoke`: few) writes a message table of so many messages of one
flow, whose latency has noise and rare peaks, with the extremes that judging stores. A process of its own then asks the
server as a browser does: the page and its first picture, and windows of every width down to single messages. Bars: 2 s
to open, 200 ms for a window, 1 GiB. The peer is the same window read from the table by Polars. Before the first window
of single messages the table is compared with its hash, once; that time stands apart.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from benchmarks import table
from wiregauge.measures.extremes import keep
from wiregauge.measures.metrics.recorded import open_recorded
from wiregauge.records import RunDirectory, describe

MESSAGES, SMOKE = 100_000_000, 300_000
BATCH = 1 << 19
PERIOD_PS = 10_000_000
OPEN_BAR_S, ZOOM_BAR_S, MEMORY_BAR = 2.0, 0.2, 1 << 30
COLUMNS = 1200
TEST = """<test xmlns="urn:wiregauge:test:2" name="zoom" seed="1">
<network><end-system name="a"/><end-system name="b"/><link between="a b" rate="10Gbit/s"/></network>
<flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
<tasks><send flow="1" period="10us" payload="64B" count="{count}"/><receive flow="1"/></tasks></test>
"""
WORK = """
import json, random, sys, time
from pathlib import Path
import polars as pl
from starlette.testclient import TestClient
from wiregauge.serve import Server
folder, columns, span = Path(sys.argv[1]), sys.argv[2], float(sys.argv[3])
server = Server([folder], port=1)
server.index.look()
key = server.index.listed[0].key
client = TestClient(server.app, base_url="http://127.0.0.1:1", headers={"accept": "text/html"})

def asked(place, **query):
    begin = time.perf_counter()
    answer = client.get(f"/run/{key}/{place}", params=query)
    assert answer.status_code == 200, answer.text
    return time.perf_counter() - begin, answer

page, _ = asked("zoom")
first, answer = asked("columns", m="latency", columns=columns)
seen = sum(answer.json()["flows"]["1"]["n"])
checked, _ = asked("columns", m="latency", columns=columns, t=f"{span / 3},{span / 3 + 1e-3}")
chosen, found = random.Random(1), []
for width in (0.5, 0.1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6):
    for _ in range(5):
        begin = chosen.uniform(0.0, span * (1 - width))
        took, answer = asked("columns", m="latency", columns=columns, t=f"{begin},{begin + span * width}")
        found.append((took, width, begin, answer.json()["flows"]["1"]))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
# Afterwards, so that its memory does not count: the peer, and what it says of the same windows.
rows = pl.scan_parquet(next(folder.rglob("messages/*.parquet")))
worst = max(found)
theirs = []
for took, width, begin, drawn in [worst, *found[::7]]:
    low, high = round(begin * 1e12), round((begin + span * width) * 1e12)
    start = time.perf_counter()
    value = pl.col("rx_app") - pl.col("tx_app")
    own = (
        rows.filter((pl.col("tx_app") >= low) & (pl.col("tx_app") < high))
        .group_by((pl.col("tx_app") - low) * int(columns) // (high - low))
        .agg(n=value.count(), least=value.min(), greatest=value.max())
        .collect(engine="streaming")
    )
    theirs.append(time.perf_counter() - start)
    assert own["n"].sum() == sum(drawn["n"]), (width, begin)
    assert own["greatest"].max() / 1e3 == max(v for v in drawn["greatest"] if v is not None), (width, begin)
    assert own["least"].min() / 1e3 == min(v for v in drawn["least"] if v is not None), (width, begin)
print(json.dumps([page + first, seen, checked, worst[0], sorted(t for t, *_ in found)[len(found) // 2], theirs[0],
                  int(peak.split()[1]) * 1024]))
"""


def batch(first: int, count: int, seed: int) -> dict[str, NDArray[np.int64]]:
    """Times of messages, ps: sent with jitter, received after a gamma-distributed latency with rare peaks."""
    rng = np.random.default_rng([seed, first])
    due = (np.arange(first, first + count, dtype=np.int64) + 1) * PERIOD_PS
    sent = due + rng.integers(0, 200_000, count)
    latency = (rng.gamma(9.0, 400_000, count) + 4_000_000).astype(np.int64)
    latency[rng.random(count) < 1e-5] += 50_000_000
    return {
        "sequence": np.arange(first, first + count, dtype=np.int64),
        "intended": due,
        "tx_app": sent,
        "tx_drv": sent + 700_000,
        "rx_drv": sent + latency - 900_000,
        "rx_app": sent + latency,
    }


def write_messages(path: Path, messages: int) -> None:
    """Replaces a message table by one of so many rows, of the same columns; others are as in its first row."""
    small = pq.read_table(path)
    # What kind of table it is, and of which schema.
    said = {
        name: text
        for name, text in (pq.read_metadata(path).metadata or {}).items()
        if name.startswith(b"wiregauge.")
    }
    schema = small.schema.with_metadata(said)
    usual = {name: small.column(name)[0] for name in schema.names}
    times = ["sequence", "intended", "tx_app", "tx_drv", "rx_drv", "rx_app"]
    encodings = dict.fromkeys(times, "DELTA_BINARY_PACKED")
    words = [name for name in schema.names if name not in times]
    with pq.ParquetWriter(
        path, schema, compression="lz4", use_dictionary=words, column_encoding=encodings
    ) as writer:
        for first in range(0, messages, BATCH):
            count = min(BATCH, messages - first)
            made = batch(first, count, 1)
            columns = [
                pa.array(made[name]).cast(schema.field(name).type)
                if name in made
                else pa.repeat(usual[name], count).cast(schema.field(name).type)
                for name in schema.names
            ]
            writer.write_table(pa.Table.from_arrays(columns, schema=schema), row_group_size=BATCH)


def build(folder: Path, messages: int) -> int:
    """Makes the run directory; returns the size of its extremes, bytes."""
    file, place = folder / "test.xml", folder / "run"
    file.write_text(TEST.format(count=2000))
    run = [sys.executable, "-m", "wiregauge", "run", str(file), "--bench", "sim", "--out", str(place), "-q"]
    subprocess.run(run, check=True, capture_output=True)
    own = RunDirectory.open(place)
    path = own.messages(0)
    write_messages(path, messages)
    (place / "report.html").unlink()
    name = own.name_of(path)
    own.note_files({name: describe(path, own.manifest["files"][name]["from"])})
    own.save()
    keep(open_recorded(place), print)
    return open_recorded(place).directory.extremes(0).stat().st_size


def main() -> int:
    """Builds, asks, prints."""
    asked = [int(float(word)) for word in sys.argv[1:] if not word.startswith("-")]
    messages = SMOKE if "--smoke" in sys.argv else asked[0] if asked else MESSAGES
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        stored = build(folder, messages)
        size = (folder / "run" / "messages" / "run-0000.parquet").stat().st_size
        span = messages * PERIOD_PS / 1e12
        work = [sys.executable, "-c", WORK, str(folder), str(COLUMNS), str(span)]
        done = subprocess.run(work, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"the server could not be asked:\n{done.stderr}")
    opened, seen, checked, worst, median, theirs, peak = json.loads(done.stdout.splitlines()[-1])
    assert seen == messages
    what = f"{messages:.0e} messages"
    print(f"{what}: opened in {opened:.2f} s ({opened / OPEN_BAR_S:.2f} of the bar); {peak / 2**30:.2f} GiB")
    print(
        f"a window: median {median * 1e3:.0f} ms, at most {worst * 1e3:.0f} ms ({worst / ZOOM_BAR_S:.2f} of the bar)"
    )
    print(f"the slowest by Polars: {theirs * 1e3:.0f} ms; extremes take {stored / size:.1%} of the table")
    print(f"comparing {size / 1e9:.1f} GB with their hash, once: {checked:.1f} s")
    table.add(
        f"serve: {what}, open", f"{opened:.2f} s", ratio=opened / OPEN_BAR_S,
        bar=f"{OPEN_BAR_S:g} s", reached=opened <= OPEN_BAR_S,
    )  # fmt: skip
    table.add(
        f"serve: {what}, slowest of 35 windows", f"{worst * 1e3:.0f} ms",
        peer="Polars", theirs=f"{theirs * 1e3:.0f} ms",
        ratio=worst / theirs, bar=f"{ZOOM_BAR_S * 1e3:g} ms", reached=worst <= ZOOM_BAR_S,
    )  # fmt: skip
    table.add(
        f"serve: {what}, memory", f"{peak / 2**20:.0f} MiB", ratio=peak / MEMORY_BAR,
        bar="1 GiB", reached=peak <= MEMORY_BAR,
    )  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main())
