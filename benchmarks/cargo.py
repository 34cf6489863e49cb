"""Commands for the benchmarks of the crates."""

from __future__ import annotations

import os

__all__ = ["bench"]


def bench(crate: str, name: str, *, smoke: bool) -> list[str]:
    """The command before the options of a benchmark: as published, or for a smoke run with the profile of tests.

    A smoke run builds the whole workspace: for a single crate cargo would choose other features and rebuild most of it.
    """
    command = [os.environ.get("CARGO", "cargo"), "bench", "--quiet", "--locked"]
    command += ["--workspace", "--profile", "dev"] if smoke else ["--package", crate, "--profile", "dist"]
    return [*command, "--bench", name, "--"]
