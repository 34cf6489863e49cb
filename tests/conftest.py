"""Settings for all tests."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Generator, Iterator
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest
import typer.testing
from hypothesis import settings

# Started in the background of a shell, this process and commands that tests interrupt would ignore Ctrl-C.
signal.signal(signal.SIGINT, signal.default_int_handler)

# The program is built from its declarations once, not for each of a thousand invoked commands.
typer.testing._get_command = cache(typer.testing._get_command)

# Machines are shared and noisy: the time of an example says nothing about the program.
settings.register_profile("wiregauge", deadline=None)
# Continuous integration always tries the same examples, so that a change cannot fail for a random one.
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
"""Beginnings of reasons for which continuous integration may skip a test, and why.

A missing program is no such reason: `.ci/run` installs what tests need, and then refuses skips.
"""


LONGEST: Final = (
    "python/test_reference.py",
    "python/test_shown_commands.py",
    "python/test_switching_tests.py",
    "python/test_study_robot.py",
    "python/test_compare_untold.py",
    "python/test_config_effect.py",
    "python/test_cluster.py",
    "python/test_extremes.py",
    "python/test_modes.py",
    "python/test_studies.py",
    "python/test_ci_recipes.py",
    "python/test_bounds_search.py",
    "python/test_certificates.py",
    "python/test_confidence.py",
    "python/test_run_directory.py",
    "python/test_study_precision.py",
    "python/test_ptp.py",
    "python/test_study_maps.py",
    "python/test_verdict.py",
    "python/test_simulated_campaign.py",
    "e2e/test_lab.py",
    "e2e/test_lab_faults.py",
    "e2e/test_live_network.py",
    "e2e/test_lab_clocks.py",
    "e2e/test_benchmarks.py",
    "e2e/test_shown_live.py",
)
"""The slowest files, which are started first, since the last one to start keeps the other cores waiting."""


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--all",
        action="store_true",
        dest="thorough",
        help="tests marked thorough as well, and campaigns in full (make test-all)",
    )


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Selects tests marked thorough only with `--all`, and reports the others' number; the slowest files come first."""
    left_out = [item for item in items if item.get_closest_marker("thorough")]
    if left_out and not config.option.thorough:
        config.hook.pytest_deselected(items=left_out)
        items[:] = [item for item in items if not item.get_closest_marker("thorough")]
    rank = {file: place for place, file in enumerate(LONGEST)}
    # A stable sort: within a file, and among unnamed files, the order of collection remains.
    items.sort(key=lambda item: rank.get(item.path.relative_to(HERE).as_posix(), len(rank)))


@pytest.fixture(scope="session")
def thorough(request: pytest.FixtureRequest) -> bool:
    """Whether campaigns run in full."""
    return bool(request.config.option.thorough)


@pytest.fixture(scope="module")
def unreported() -> Iterator[None]:
    """Commands write no page of a run: half of the time of `run`, for files that look at no page."""
    from wiregauge import report

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(report, "write", lambda directory, judgement: directory / "report.html")
        yield


def _refused(reason: str) -> str | None:
    """The reason why this skip is a failure here; None where it is none."""
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
    """Prints the slowest files and the total time, so that the cost of new tests is seen."""
    taken: Counter[str] = Counter()
    for report in (report for reports in terminalreporter.stats.values() for report in reports):
        if isinstance(report, pytest.TestReport):
            taken[report.nodeid.partition("::")[0]] += report.duration
    if len(taken) > 1:
        terminalreporter.section(f"{sum(taken.values()):.0f} s of tests; the slowest files")
        for file, duration in taken.most_common(10):
            terminalreporter.write_line(f"{duration:6.0f} s  {file}")
