"""Every command of the program: what it is called, what it is for, and where it is.

Help and completion are made from this alone. Importing every command would take longer than most of them take to
answer, so the one that is given is imported, and no other.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["COMMANDS", "Entry"]


class Entry(NamedTuple):
    """A command, or a group of commands."""

    panel: str
    """Under which heading the help has it."""
    place: str
    """The module in `wiregauge.cli` and what it has."""
    summary: str
    """The first sentence of its help; its docstring has what follows."""


_PREPARE: Final = "Prepare a test"
_MEASURE: Final = "Measure"
_JUDGE: Final = "Judge"
_HAND_ON: Final = "Hand on"
_PREDICT: Final = "Predict"
_HOSTS: Final = "Hosts and instrument"

COMMANDS: Final = {
    "new": Entry(
        _PREPARE,
        "new:new",
        "Write a commented test file that runs as it is; without a name, list the templates.",
    ),
    "check": Entry(
        _PREPARE,
        "running:check",
        "Check test files: structure, references, routes, capacities. Exit code 2 names every fault found.",
    ),
    "docs": Entry(
        _PREPARE,
        "docs:docs",
        "Print a page of the documentation of this version; without a name, list the pages.",
    ),
    "run": Entry(_MEASURE, "running:run", "Run a test on a bench, judge it and write the report."),
    "probe": Entry(
        _MEASURE,
        "probe:probe",
        "Measure between this host and another, without a test file: start `wiregauge agent serve` there, "
        "then probe it.",
    ),
    "switch": Entry(
        _MEASURE,
        "switch:switch",
        "Characterise a switch: throughput, latency, loss and more, each trial decided from the last, to a data "
        "sheet.",
    ),
    "study": Entry(
        _MEASURE,
        "study:study",
        "Repeat a published experiment and compare its tables and figures with the paper's.",
    ),
    "import": Entry(
        _MEASURE,
        "importing:import_captures",
        "Make a run directory from captures, judge it and write the report.",
    ),
    "watch": Entry(
        _MEASURE,
        "watch:watch",
        "Follow the streams of live interfaces, found by themselves, and judge them by a contract while they come.",
    ),
    "track": Entry(
        _JUDGE,
        "running:track",
        "Track the stored records of a run directory again, judge them and write the report.",
    ),
    "show": Entry(
        _JUDGE,
        "reading:show",
        "Judge a run directory again and show measures, validity and verdict.",
    ),
    "report": Entry(
        _JUDGE,
        "reading:report",
        "Write the report of run directories again, and the figures of one as files. `compare` compares two.",
    ),
    "compare": Entry(
        _JUDGE,
        "reading:compare",
        "Compare two run directories: what moved, by how much, and did it get worse (exit code 1)?",
    ),
    "trend": Entry(
        _JUDGE,
        "reading:trend",
        "Follow figures over many runs by date: intervals, steps, and is the newest run worse (exit code 1)?",
    ),
    "serve": Entry(
        _JUDGE,
        "serving:serve",
        "Show runs in the browser of this machine: every message under the zoom, down to the story of one.",
    ),
    "verify": Entry(
        _JUDGE,
        "verifying:verify",
        "Compare every file of a run directory with its hash (exit code 4 names what is damaged, missing or "
        "foreign), or check a certificate of bounds.",
    ),
    "replay": Entry(
        _JUDGE,
        "replaying:replay",
        "Replay the network of a run between real hosts: did it do what its model does?",
    ),
    "export": Entry(
        _HAND_ON,
        "exporting:export",
        "Write a run directory in the format of another tool: tables, histograms, test results, metrics.",
    ),
    "figure": Entry(
        _HAND_ON,
        "figures:figure",
        "Draw a figure of run directories for print: PDF, SVG or PNG in the size and fonts of a journal's column; "
        "without a directory, list figures and styles.",
    ),
    "table": Entry(
        _HAND_ON,
        "tables:table",
        "Print figures of run directories as a table for a paper: LaTeX, Markdown or CSV; without a directory, list "
        "columns.",
    ),
    "dissector": Entry(
        _HAND_ON,
        "exporting:dissector",
        "Print the Wireshark dissector of messages, ARINC 664 and protocol control frames (Lua), or install it.",
    ),
    "schedule": Entry(
        _PREDICT,
        "schedule:schedule",
        "Compute the schedule of time-triggered flows, or check one; print it, and write it with --out.",
    ),
    "bounds": Entry(_PREDICT, "bounds:bounds", "Bound worst-case delays and backlogs by network calculus."),
    "identify": Entry(
        _PREDICT,
        "identify:identify",
        "Identify a switch: forwarding, delay, rates, service curves, buffers and the arrival curves of flows.",
    ),
    "doctor": Entry(
        _HOSTS,
        "doctor:doctor",
        "Show what this machine or hosts of a lab can measure, what disturbs a measurement, and the cure.",
    ),
    "tsn": Entry(
        _HOSTS,
        "tsn:tsn",
        "Print the tc and ethtool commands of a test's TSN settings, by host; nothing is run and no host is "
        "asked.",
    ),
    "lab": Entry(_HOSTS, "lab:app", "Make a lab of hosts, admit hosts and people, and show its state."),
    "agent": Entry(_HOSTS, "host:agent", "Run the agent program (`wiregauge agent serve --help`)."),
    "calibrate": Entry(
        _HOSTS,
        "calibrate.commands:app",
        "Measure the instrument itself: its clocks, its schedule, its constant overhead and its error.",
    ),
}
"""By name, in the order of the help; those of one panel follow one another."""
