"""What holds for every test."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Generator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer.testing
from hypothesis import settings

# Started in the background of a shell, nobody here would hear Ctrl-C, nor would the commands that tests interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The program is made of its declarations once, not anew for each of a thousand commands that tests invoke.
typer.testing._get_command = cache(typer.testing._get_command)

# Machines are shared and noisy: how long an example takes says nothing about the program.
settings.register_profile("wiregauge", deadline=None)
# A change is not refused for an example that another would have met: continuous integration tries the same ones.
settings.register_profile("repeatable", deadline=None, derandomize=True)
settings.load_profile("repeatable" if os.environ.get("CI") else "wiregauge")

HERE: Final = Path(__file__).parent

MAY_BE_SKIPPED: Final = {
    "only root can be another user": "a machine of continuous integration need not give root",
    "BPF programmes and AF_XDP need root": "the same",
    "this host grants no virtual interfaces to this user": "the same",
    "no right to packet sockets here": "the same",
    "no mounts of one's own here": "the same",
}
"""Beginnings of reasons for which a test may be left out in continuous integration, and why.

A program that is missing is none: `.ci/run` installs what tests need, and then refuses skips.
"""


LONGEST: Final = (
    "python/test_reference.py",
    "python/test_ring_tsn.py",
    "python/test_simulated_campaign.py",
    "python/test_study_robot.py",
    "python/test_study_maps.py",
    "python/test_study_precision.py",
    "python/test_verdict.py",
    "python/test_cluster.py",
    "python/test_switching_tests.py",
    "python/test_config_effect.py",
    "python/test_studies.py",
    "python/test_study_sensitivity.py",
    "python/test_shown_commands.py",
    "e2e/test_benchmarks.py",
    "e2e/test_lab.py",
    "e2e/test_lab_faults.py",
)
"""Files that take longest, which are begun first: one that begins last is waited for by all cores but one."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        dest="thorough",
        help="tests marked thorough as well, and campaigns in full (make test-all)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Tests marked thorough run with `--all` only, and pytest says how many were left out; the longest come first."""
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    if left_out and not config.option.thorough:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    rank = {file: place for place, file in enumerate(LONGEST)}
    # Stable: within a file, and among the files that are not named, the order is that of the collection.
    items.sort(key=lambda item: rank.get(item.path.relative_to(HERE).as_posix(), len(rank)))


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether campaigns run in full."""
    return bool(request.config.option.thorough)


def _refused(reason: str) -> str | None:
    """Why this skip is a failure here; None where it is none."""
    reason = reason.removeprefix("Skipped: ")
    if os.environ.get("WIREGAUGE_SKIPS") != "refused" or reason.startswith(tuple(MAY_BE_SKIPPED)):
        return None
    return (
        f"skipped in continuous integration, where a check that cannot run fails: {reason}\n"
        "Install what is missing, or give the reason a place in MAY_BE_SKIPPED (tests/conftest.py)."
    )


def _checked(report: pytest.TestReport | pytest.CollectReport) -> None:
    if report.outcome == "skipped" and not hasattr(report, "wasxfail") and isinstance(report.longrepr, tuple):
        why = _refused(str(report.longrepr[2]))
        if why is not None:
            report.outcome, report.longrepr = "failed", why


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport() -> Generator[None, Any, Any]:
    report: pytest.TestReport = yield
    _checked(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report() -> Generator[None, Any, Any]:
    report: pytest.CollectReport = yield
    _checked(report)
    return report


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """The files that took longest, and how long all took: whoever adds a test sees what it costs."""
    taken: Counter[str] = Counter()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            taken[report.nodeid.partition("::")[0]] += report.duration
    if len(taken) > 1:
        terminalreporter.section(f"{sum(taken.values()):.0f} s of tests; the slowest files")
        for file, duration in taken.most_common(10):
            terminalreporter.write_line(f"{duration:6.0f} s  {file}")
