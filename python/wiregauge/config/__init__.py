"""Tests as their authors write them: the test language, its schema, its checks, and a builder for Python.

`load(path)` gives a campaign that can be run or a `TestError` whose text names every mistake with file, line,
element, limit and cure. `builder.Test` makes the same without a file.
"""

from __future__ import annotations

from wiregauge.config.builder import Clock, Exchange, Fault, FlowPath, Host, Ptp, Test, Window
from wiregauge.config.builder_tsn import (
    Cbs,
    Classify,
    Etf,
    GateEntry,
    GateSchedule,
    HostTsn,
    Ingress,
    Police,
    StreamGate,
    StreamGateEntry,
    TrafficClass,
)
from wiregauge.config.diagnostics import Diagnostic, TestError
from wiregauge.config.loading import Loaded, load, upgrade_file
from wiregauge.config.schema import schema_path

__all__ = [
    "Cbs",
    "Classify",
    "Clock",
    "Diagnostic",
    "Etf",
    "Exchange",
    "Fault",
    "FlowPath",
    "GateEntry",
    "GateSchedule",
    "Host",
    "HostTsn",
    "Ingress",
    "Loaded",
    "Police",
    "Ptp",
    "StreamGate",
    "StreamGateEntry",
    "Test",
    "TestError",
    "TrafficClass",
    "Window",
    "load",
    "schema_path",
    "upgrade_file",
]
