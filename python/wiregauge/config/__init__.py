"""Tests as their authors write them: the test language, its schema, its checks, and a builder for Python.

`load(path)` gives a campaign that can be run or a `TestError` whose text names every mistake with file, line,
element, limit and cure. `builder.Test` makes the same without a file.
"""

from __future__ import annotations

from wiregauge.config.builder import Test
from wiregauge.config.builder_flows import Fault, FlowPath, Frer, StreamReservation, Window
from wiregauge.config.builder_nodes import Clock, Event, Host, OwnFrames, ReceiveBuffer, Stack, Timestamps
from wiregauge.config.builder_ptp import PtpClock, PtpDomain
from wiregauge.config.builder_sync import Cluster, Exchange, FaultyMaster, Ptp
from wiregauge.config.builder_tsn import (
    Ats,
    Cbs,
    Classify,
    CyclicQueuing,
    Etf,
    GateEntry,
    GateSchedule,
    HostTsn,
    Ingress,
    Police,
    Scheduler,
    StreamGate,
    StreamGateEntry,
    SwitchTsn,
    TrafficClass,
)
from wiregauge.config.diagnostics import Diagnostic, TestError
from wiregauge.config.loading import Loaded, Scheduling, checked_tree, load, load_bytes, upgrade_file
from wiregauge.config.schema import schema_path

__all__ = [
    "Ats",
    "Cbs",
    "Classify",
    "Clock",
    "Cluster",
    "CyclicQueuing",
    "Diagnostic",
    "Etf",
    "Event",
    "Exchange",
    "Fault",
    "FaultyMaster",
    "FlowPath",
    "Frer",
    "GateEntry",
    "GateSchedule",
    "Host",
    "HostTsn",
    "Ingress",
    "Loaded",
    "OwnFrames",
    "Police",
    "Ptp",
    "PtpClock",
    "PtpDomain",
    "ReceiveBuffer",
    "Scheduler",
    "Scheduling",
    "Stack",
    "StreamGate",
    "StreamGateEntry",
    "StreamReservation",
    "SwitchTsn",
    "Test",
    "TestError",
    "Timestamps",
    "TrafficClass",
    "Window",
    "checked_tree",
    "load",
    "load_bytes",
    "schema_path",
    "upgrade_file",
]
