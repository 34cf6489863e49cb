"""Selects the parameter values that a test is always run with."""

from __future__ import annotations

from typing import Any

import pytest

__all__ = ["also"]


def also(*values: object) -> Any:
    """Values of a parametrised test that are tried with `--all` only, in addition to the others."""
    return pytest.param(*values, marks=pytest.mark.thorough)
