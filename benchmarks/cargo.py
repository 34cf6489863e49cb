"""How benchmarks run those of the crates."""

from __future__ import annotations

import os

__all__ = ["bench"]


def bench(*, smoke: bool) -> list[str]:
    """The command before `-p CRATE --bench NAME -- …`: as users build it, or for a smoke run as the tests are built."""
    command = [os.environ.get("CARGO", "cargo"), "bench", "--quiet", "--locked"]
    return [*command, "--profile", "dev"] if smoke else command
