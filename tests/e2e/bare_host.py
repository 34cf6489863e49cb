"""A host with nothing but its network, and a testmaster, on one machine.

    wiregauge-agent enclose -- python bare_host.py

builds both as `lab_world` does, prints its process id when they are ready, and ends with its standard input. The host
is the network namespace `host`; a process that enters the enclosure is the testmaster.
"""

from __future__ import annotations

import os
import sys

from lab_world import build, tell

if __name__ == "__main__":
    build(["host"])
    tell({"pid": os.getpid()})
    sys.stdin.read()
