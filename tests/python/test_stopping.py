"""Requests to stop: the first is an exception, or waits; the second ends the process whatever it is at."""

from __future__ import annotations

import os
import select
import signal
import subprocess
import sys

import pytest

from wiregauge.runner.stopping import Interrupted, signals_deferred, stoppable

BUSY = """
import hashlib, signal, sys
from wiregauge.runner import stopping
from wiregauge.runner.stopping import Interrupted, signals_deferred, exit_on_second_signal, stoppable
stopping._SAME_S = float(sys.argv[2])
signal.signal(signal.SIGINT, lambda number, frame: None)  # a command's own, which would end it in its time
with exit_on_second_signal(4):
    try:
        with stoppable():
            print("ready", flush=True)
            sys.stdin.readline()
    except Interrupted:
        print("first", flush=True)
        if sys.argv[1] == "native":
            # A call that does not look at signals until it is over.
            hashlib.pbkdf2_hmac("sha512", b"a", b"b", 500_000_000)
        for line in sys.stdin:
            print(line, end="", flush=True)
print("went on", flush=True)
"""


def begun(kind: str, same_s: float) -> subprocess.Popen[str]:
    """The process above; requests within `same_s` are one."""
    process = subprocess.Popen(
        [sys.executable, "-c", BUSY, kind, str(same_s)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert line_of(process) == "ready\n"
    return process


def line_of(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    return process.stdout.readline()


@pytest.mark.parametrize("kind", ["native", "sleeping"])
def test_a_second_request_ends_the_process_at_once(kind: str) -> None:
    process = begun(kind, same_s=-1)
    process.send_signal(signal.SIGINT)
    assert line_of(process) == "first\n"
    process.send_signal(signal.SIGINT)
    process.wait(timeout=60)
    out, err = process.communicate()
    assert process.returncode == 4, err
    assert "went on" not in out
    assert "second request" in err


@pytest.mark.parametrize("when", ["at once", "after it was obeyed"])
def test_the_same_request_twice_is_one(when: str) -> None:
    """A terminal and a manager of processes may both pass it on; a hang-up is never a second one."""
    process = begun("sleeping", same_s=3600)
    process.send_signal(signal.SIGINT)
    if when == "after it was obeyed":
        assert line_of(process) == "first\n"
    process.send_signal(signal.SIGTERM)
    if when == "at once":
        assert line_of(process) == "first\n"
    # It gets the signal before it gets the line.
    assert process.stdin is not None
    process.stdin.write("still there\n")
    process.stdin.flush()
    assert line_of(process) == "still there\n"
    assert process.poll() is None
    process.kill()
    process.communicate()


ASLEEP = """
import signal, sys, threading, time
from wiregauge.runner.stopping import Interrupted, exit_on_second_signal, stoppable
def elsewhere():
    time.sleep(0.2)
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)  # the call that waits is not interrupted by it
    time.sleep(60)
threading.Thread(target=elsewhere, daemon=True).start()
with exit_on_second_signal(4):
    try:
        with stoppable():
            sys.stdin.readline()
    except Interrupted:
        print("first", flush=True)
"""


def test_a_request_reaches_a_call_that_its_signal_did_not_wake() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", ASLEEP], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        heard, _, _ = select.select([process.stdout], [], [], 60)
        line = process.stdout.readline() if heard else ""
        process.kill()
    assert line == "first\n"


def test_a_request_waits_while_data_is_saved() -> None:
    saved = []

    def campaign() -> None:
        with stoppable(), signals_deferred():
            os.kill(os.getpid(), signal.SIGTERM)
            saved.append(True)

    with pytest.raises(Interrupted, match="SIGTERM"):
        campaign()
    assert saved
