"""Predictions of live runs by a model of this machine identified from another live run: ratios from five pairs.

`python -m benchmarks.host_model [--smoke]` runs, in turns, the test of `wiregauge calibrate host` and a fresh one with
other payloads and another rate between namespaces, and has the models of the first predict the second. Predicted over
measured, for the median and the 99th percentile of each flow; there is no bar.
"""

from __future__ import annotations

import json
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from benchmarks import table

SMOKE = "--smoke" in sys.argv
PAIRS = 1 if SMOKE else 5
COUNT = 200 if SMOKE else 2_000
FRESH = f"""<test xmlns="urn:wiregauge:test:2" name="fresh" seed="7">
  <network><end-system name="one"/><end-system name="two"/><link between="one two" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="one" to="two"/></flows>
  <tasks warm-up="50ms"><send flow="1" period="700us" payload="64B" count="{COUNT}"/><receive flow="1"/></tasks>
  <sweep><axis of="payload" values="100B 1300B"/></sweep>
</test>
"""


def wiregauge(folder: Path, *words: str) -> str:
    """The output of a command; RuntimeError where it failed."""
    program = str(Path(sys.executable).with_name("wiregauge"))
    found = program if Path(program).exists() else shutil.which("wiregauge") or "wiregauge"
    done = subprocess.run([found, *words], cwd=folder, capture_output=True, text=True, check=False)
    if done.returncode not in (0, 4):
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip()}")
    return done.stdout


def main() -> int:
    """Prints the ratios of every pair, and their medians."""
    ratios: dict[tuple[str, str], list[float]] = defaultdict(list)
    with tempfile.TemporaryDirectory(prefix="host-model-") as name:
        folder = Path(name)
        (folder / "fresh.xml").write_text(FRESH, encoding="utf-8")
        for pair in range(PAIRS):
            model, fresh = f"model-{pair}", f"fresh-{pair}"
            wiregauge(folder, "calibrate", "host", "--out", model, "--count", str(COUNT))
            wiregauge(folder, "run", "fresh.xml", "--bench", "netns", "--out", fresh)
            shown: dict[str, Any] = json.loads(
                wiregauge(
                    folder,
                    "calibrate",
                    "host",
                    "--from",
                    f"{model}/run",
                    "--beside",
                    fresh,
                    "--out",
                    f"said-{pair}",
                    "--json",
                )
            )
            for one in shown["predictions"][0]["figures"]:
                if one["ratio"] is not None:
                    ratios[one["run"], one["statistic"]].append(one["ratio"])
    for (run, statistic), found in sorted(ratios.items()):
        middle = statistics.median(found)
        print(f"{run} {statistic}: {' '.join(f'{ratio:.3f}' for ratio in found)}; median {middle:.3f}")
        what = f"host model, {run}, {statistic}"
        table.add(what, f"{middle:.3f} times measured", peer="live run", ratio=middle)
    return 0 if ratios else 1


if __name__ == "__main__":
    sys.exit(main())
