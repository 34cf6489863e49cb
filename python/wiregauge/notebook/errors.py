"""One exception for everything a notebook can run into."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from wiregauge.config import TestError
from wiregauge.export import ExportError
from wiregauge.records import RunDirectoryError
from wiregauge.runner import BenchError

__all__ = ["WiregaugeError", "in_one_class"]


class WiregaugeError(Exception):
    """It cannot be done; the text says why and what to do."""


@contextmanager
def in_one_class() -> Iterator[None]:
    """Turns the errors of the packages beneath into the public one, with the same sentences."""
    try:
        yield
    except (BenchError, RunDirectoryError, TestError, ExportError) as error:
        raise WiregaugeError(str(error)) from None
    except OSError as error:
        place = f"{error.filename}: " if error.filename is not None else ""
        raise WiregaugeError(f"{place}{error.strerror or error}") from error
