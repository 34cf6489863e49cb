"""Requests to stop: the first is an exception, or waits; the second ends the process whatever it is at."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from wiregauge.master.stopping import Interrupted, deaf, stoppable

BUSY = """
import hashlib, signal, sys, time
from wiregauge.master.stopping import Interrupted, deaf, leaving_at_second_request, stoppable
signal.signal(signal.SIGINT, lambda number, frame: None)  # a command's own, which would end it in its time
with leaving_at_second_request(4):
    try:
        with stoppable():
            print("ready", flush=True)
            time.sleep(60)
    except Interrupted:
        print("first", flush=True)
        if sys.argv[1] == "native":
            # A call that does not look at signals until it is over.
            hashlib.pbkdf2_hmac("sha512", b"a", b"b", 500_000_000)
        time.sleep(60)
print("went on", flush=True)
"""


@pytest.mark.parametrize("kind", ["native", "sleeping"])
def test_a_second_request_ends_the_process_at_once(kind: str) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, kind], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    assert process.stdout.readline() == "first\n"
    time.sleep(0.4)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 4, err
    assert "went on" not in out
    assert "second request" in err


@pytest.mark.parametrize("when", ["at once", "after it was obeyed"])
def test_the_same_request_twice_is_one(when: str) -> None:
    """A terminal and a manager of processes may both pass it on; a hang-up is never a second one."""
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, "sleeping"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGINT)
    if when == "after it was obeyed":
        assert process.stdout.readline() == "first\n"
    process.send_signal(signal.SIGTERM)
    if when == "at once":
        assert process.stdout.readline() == "first\n"
    time.sleep(0.5)
    assert process.poll() is None
    process.kill()
    process.communicate()


def test_a_request_waits_while_data_is_saved() -> None:
    saved = []

    def campaign() -> None:
        with stoppable(), deaf():
            os.kill(os.getpid(), signal.SIGTERM)
            time.sleep(0.05)
            saved.append(True)

    with pytest.raises(Interrupted, match="SIGTERM"):
        campaign()
    assert saved
