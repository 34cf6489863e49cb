"""Generates the testmaster's side of the control plane from agent.proto. `make proto` runs it.

The result is committed, so that an installation needs no compiler for protocol buffers; a test generates it
again and compares.
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from pathlib import Path

from grpc_tools import protoc

ROOT = Path(__file__).resolve().parent.parent
PROTO = ROOT / "crates" / "agent" / "proto" / "agent.proto"
PACKAGE = Path("wiregauge") / "runner" / "rpc"


def generate(out: Path) -> list[Path]:
    """Writes agent_pb2.py and agent_pb2.pyi below `out`; returns their paths."""
    with tempfile.TemporaryDirectory() as staging:
        # The module is imported by its package path, which protoc derives from the file's place.
        place = Path(staging) / PACKAGE
        place.mkdir(parents=True)
        shutil.copy(PROTO, place / PROTO.name)
        code = protoc.main(
            ["protoc", f"-I{staging}", f"--python_out={out}", f"--pyi_out={out}", str(place / PROTO.name)]
        )
    if code != 0:
        sys.exit(f"protoc failed with {code}")
    return [out / PACKAGE / "agent_pb2.py", out / PACKAGE / "agent_pb2.pyi"]


if __name__ == "__main__":
    generate(ROOT / "python")
