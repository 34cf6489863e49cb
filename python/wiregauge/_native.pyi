"""The Rust side of wiregauge: compiling tests and judging records."""

from collections.abc import Sequence
from os import PathLike

RECORD_SCHEMA: int
"""Version of the record columns this program writes and reads."""
PLAN_SCHEMA: int
"""Version of the JSON form of the plan this program writes and reads."""

class NativeError(Exception):
    """What could not be done, as a sentence for the user: which file, what happened, the cure."""

def compile_plan(tree_json: str) -> str:
    """JSON: `{"campaign": …}`, or `{"diagnostics": […]}` when the test is not valid. Raises nothing."""

def process_run(
    network_json: str,
    run_json: str,
    segments: Sequence[str | PathLike[str]],
    records_out: str | PathLike[str],
    messages_out: str | PathLike[str],
) -> str:
    """Stores and judges the records of one run; returns its entry of tracking.json. Raises NativeError."""

def retrack(
    network_json: str,
    run_json: str,
    records: str | PathLike[str],
    messages_out: str | PathLike[str],
) -> str:
    """Judges the stored records of one run again; returns its entry of tracking.json. Raises NativeError."""

def version() -> str:
    """Version of the program."""
