"""Which of many alike values a test is always run with."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["also"]


def also(*values: object) -> Any:
    """Values of a parametrized test that are tried with `--all` only: the others beside them are always tried."""
    return pytest.param(*values, marks=pytest.mark.thorough)
