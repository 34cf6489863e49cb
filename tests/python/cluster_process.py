"""Processes for the tests of the cluster: its nodes, and testmasters that work on it.

They are separate processes because Ray leaves warnings, threads and signal handlers in a process.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from wiregauge import runner
from wiregauge.cluster import OnCluster, connected, retrack
from wiregauge.records import RunDirectory


def written(place: Path, text: str) -> Path:
    """Writes the test file for a future run directory."""
    file = place.with_suffix(".xml")
    file.write_text(text, encoding="utf-8")
    return file


def nodes(home: str, port: int) -> None:
    """Runs two nodes of one processor each, until standard input is closed."""
    from ray.cluster_utils import Cluster

    size = {"num_cpus": 1, "object_store_memory": 100 << 20, "include_dashboard": False}
    head = {**size, "temp_dir": home, "ray_client_server_port": port}
    cluster = Cluster(initialize_head=True, head_node_args=head)
    try:
        cluster.add_node(**size)
        sys.stdout.write(f"{cluster.address}\n")
        sys.stdout.flush()
        sys.stdin.read()
    finally:
        cluster.shutdown()


def sweep(place: str, text: str, engine: str, storage: str | None) -> None:
    """Simulates a test on an engine; prints how it ended."""
    test = written(Path(place), text)
    with connected(engine, storage=storage) as cluster, runner.open(OnCluster(cluster)) as trials:
        judgement = trials.run(test, Path(place))
    json.dump({"state": judgement.state, "reason": judgement.reason}, sys.stdout)


def track(place: str, engine: str, parts: int | None, storage: str | None, adopt: bool = False) -> None:
    """Tracks all runs of a directory again; prints which."""
    directory = RunDirectory.open(Path(place))
    runs = directory.run_indices
    done: list[int] = []
    options: dict[str, Any] = {"parts": parts, "storage": storage, "adopt": adopt}
    stopped = retrack(directory, runs, engine, **options, tracked=done.append)
    json.dump({"stopped": stopped, "done": sorted(done)}, sys.stdout)


if __name__ == "__main__":
    commands: dict[str, Callable[..., None]] = {"nodes": nodes, "sweep": sweep, "track": track}
    commands[sys.argv[1]](*json.loads(sys.argv[2]))
