"""How benchmarks run those of the crates."""

from __future__ import annotations

import os

__all__ = ["bench"]


def bench(crate: str, name: str, *, smoke: bool) -> list[str]:
    """The command before the options of a benchmark: as it is published, or for a smoke run as the tests are built.

    Of the whole workspace then: of a single crate, cargo would choose other features and build most of it again.
    """
    command = [os.environ.get("CARGO", "cargo"), "bench", "--quiet", "--locked"]
    command += ["--workspace", "--profile", "dev"] if smoke else ["--package", crate, "--profile", "dist"]
    return [*command, "--bench", name, "--"]
