"""Faults planted between real hosts: the log processor names each of them, and none that was not planted.

`python -m campaigns.live_faults` (from `tests`) sends 1 000 000 messages through switches that the model plays. Of the
frames on four links one in a hundred is lost, altered, delayed or doubled, and some have bits inverted; of a second
flow one in a hundred is led to another host. The faults are in `truth/`, drawn by the seed of the test;
those that the log processor found are in `messages/`. Both must be the same messages, for every kind.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import polars as pl

COMMAND = Path(sys.executable).parent / "wiregauge"
FRAMES = 1_000_000
PERIOD_US = 100
SHARE = 100
"""One in this many messages is struck, by each kind of fault."""
MISLED = 20
"""The flow whose relay misdirects messages: one message for every ten of the other flow."""
END_S = 3600.0
# A delay above any stall of a sender on a busy machine, so that delayed messages are overtaken.
TEST = """<test xmlns="urn:wiregauge:test:2" name="live-faults" seed="{seed}" bench="netns">
  <network>
    <end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/><end-system name="e"/>
    <switch name="s1"/><switch name="s2"/><switch name="s3"/>
    <link between="a s1" rate="1Gbit/s"/><link between="s1 s2" rate="1Gbit/s"/><link between="s2 s3" rate="1Gbit/s"/>
    <link between="b s3" rate="1Gbit/s"/>
    <link between="c s1" rate="1Gbit/s"/><link between="d s1" rate="1Gbit/s"/><link between="e s1" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="udp" from="a" to="b" deadline="400ms"/>
    <flow id="20" protocol="raw" from="c" to="d"/>
  </flows>
  <tasks warm-up="50ms" drain="1s">
    <send flow="10" period="{period}us" payload="100B" count="{frames}"/><receive flow="10"/>
    <send flow="20" period="{slow}us" payload="64B" count="{misled}"/>
    <relay flow="20"><fault kind="misdirect" sequence="{numbers}" to="e"/></relay>
  </tasks>
  <faults>
    <loss link="a s1" share="1%" sent-by="a"/>
    <bit-errors link="a s1" rate="1e-6" sent-by="a"/>
    <corrupt link="s1 s2" share="1%" sent-by="s1"/>
    <delay link="s2 s3" share="1%" by="500ms" sent-by="s2"/>
    <duplicate link="b s3" share="1%" sent-by="s3"/>
  </faults>
</test>
"""


def run(place: Path, frames: int, seed: int) -> tuple[str, list[int]]:
    """Makes the run in `place`; returns the command's output, and the misdirected messages of the second flow."""
    count = frames // 10
    numbers = sorted(random.Random(seed).sample(range(1, count), count // SHARE))
    text = TEST.format(
        seed=seed,
        period=PERIOD_US,
        slow=10 * PERIOD_US,
        frames=frames,
        misled=count,
        numbers=" ".join(map(str, numbers)),
    )
    test = place.with_suffix(".xml")
    test.write_text(text)
    done = subprocess.run(
        [str(COMMAND), "run", str(test), "--switches", "model", "--out", str(place)],
        capture_output=True,
        text=True,
        timeout=END_S,
        check=False,
    )
    state = json.loads((place / "manifest.json").read_text(encoding="utf-8"))
    if state["state"] != "complete":
        raise RuntimeError(f"{state['reason']}: {done.stderr.strip()[-300:]}")
    return done.stdout + done.stderr, numbers


def planted(place: Path) -> dict[str, set[int]]:
    """Measured messages of flow 10 that the network recorded as struck, by kind."""
    truth = pl.read_parquet(place / "truth" / "run-0000.parquet").filter(
        ~pl.col("warm_up") & (pl.col("flow") == 10)
    )
    kinds = ("link-lost", "bit-error", "corrupted", "delayed", "duplicated")
    return {kind: set(truth.filter(pl.col("kind") == kind)["sequence"].to_list()) for kind in kinds}


def found(place: Path, flow: int) -> pl.DataFrame:
    """The measured messages of a flow, from the log processor."""
    messages = pl.read_parquet(place / "messages" / "run-0000.parquet")
    return messages.filter(~pl.col("warm_up") & (pl.col("flow") == flow))


def compared(place: Path, frames: int, misled: list[int]) -> dict[str, tuple[int, int, int]]:
    """For each kind: the number planted, of these not found, and found without being planted."""
    truth, messages, second = planted(place), found(place, 10), found(place, MISLED)

    def those(rows: pl.DataFrame, chosen: pl.Expr) -> set[int]:
        return set(rows.filter(chosen)["sequence"].to_list())

    lost = truth["link-lost"] | truth["bit-error"]
    altered = truth["corrupted"]
    whole = set(range(frames)) - lost - altered
    delayed = truth["delayed"] & whole
    last = max(whole - delayed)
    pairs = {
        "lost": (lost, those(messages, pl.col("outcome") == "lost")),
        "corrupted": (altered, those(messages, pl.col("corrupted_copies") > 0)),
        "corrupted, twice": (
            altered & truth["duplicated"],
            those(messages, pl.col("corrupted_copies") == 2),
        ),
        "late": (delayed, those(messages, pl.col("late"))),
        "reordered": ({one for one in delayed if one < last}, those(messages, pl.col("reordered"))),
        "duplicated": (whole & truth["duplicated"], those(messages, pl.col("copies") == 2)),
        "misdirected": (set(misled), those(second, pl.col("outcome") == "misdirected")),
        "of the second flow, anything else": (
            set(),
            those(second, ~pl.col("outcome").is_in(["delivered", "misdirected"])),
        ),
        "untouched": (
            whole - delayed - truth["duplicated"],
            those(messages, (pl.col("outcome") == "delivered") & (pl.col("copies") == 1)),
        ),
    }
    return {kind: (len(a), len(a - b), len(b - a)) for kind, (a, b) in pairs.items()}


def main() -> int:
    """Runs the test and reports every kind; 1 where a fault was missed or invented."""
    parser = argparse.ArgumentParser(
        description="faults planted between real hosts, and what is found of them"
    )
    parser.add_argument("--frames", type=int, default=FRAMES)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="live-faults-") as folder:
        begin = time.monotonic()
        place = Path(folder) / "r"
        said, misled = run(place, options.frames, options.seed)
        rows = compared(place, options.frames, misled)
    for kind, (many, missed, invented) in rows.items():
        sys.stdout.write(f"{kind:35s} {many:8d} planted, {missed} missed, {invented} invented\n")
    sys.stdout.write(f"{options.frames} frames in {time.monotonic() - begin:.0f} s\n")
    bad = any(missed or invented for _, missed, invented in rows.values())
    if bad:
        sys.stdout.write(said)
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
