"""Prints what `pip install '.[dev]'` installs besides wiregauge itself, for pip to read."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = tomllib.loads(
    (Path(__file__).resolve().parent.parent / "pyproject.toml").read_text(encoding="utf-8")
)["project"]

if __name__ == "__main__":
    sys.stdout.write("\n".join([*PROJECT["dependencies"], *PROJECT["optional-dependencies"]["dev"], ""]))
