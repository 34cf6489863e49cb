"""Types of run entries are used for the first time by several threads at once, as runs of a sweep end together."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

THREADS = """
import json, sys, threading
sys.setswitchinterval(1e-6)
from wiregauge.records import reported
read, raw = getattr(reported, sys.argv[1]), json.loads(sys.argv[2])
begin = threading.Barrier(8)
def use():
    begin.wait()
    read(raw)
threads = [threading.Thread(target=use) for _ in range(8)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
"""
ENTRIES = [{"index": 0, "state": "complete", "agents": {"a": {"complete": True}}, "simulation": {}}]
TRACKED = [{"index": 0, "flows": [{"flow": 1}]}]


@pytest.mark.parametrize(("read", "raw"), [("read_entries", ENTRIES), ("read_tracked", TRACKED)])
def test_threads_that_meet_at_the_first_use_of_a_type_do_not_crash(read: str, raw: object) -> None:
    for _ in range(5):
        words = [sys.executable, "-c", THREADS, read, json.dumps(raw)]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stderr) == (0, "")
