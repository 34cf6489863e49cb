"""Tests as their authors write them: the test language, its schema, its checks, and a builder for Python.

`load(path)` gives a campaign that can be run or a `TestError` whose text names every mistake with file, line,
element, limit and cure. `builder.Test` makes the same without a file.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Final

from wiregauge.config.diagnostics import Diagnostic, TestError
from wiregauge.config.loading import Loaded, Scheduling, checked_tree, load, load_bytes
from wiregauge.config.schema import schema_path

if TYPE_CHECKING:
    from wiregauge.config.builder import Test
    from wiregauge.config.parts import (
        Ats,
        Cbs,
        Classify,
        Clock,
        Cluster,
        CyclicQueuing,
        Etf,
        Event,
        Exchange,
        Fault,
        FaultyMaster,
        FlowPath,
        Frer,
        GateEntry,
        GateSchedule,
        Host,
        HostTsn,
        Ingress,
        OwnFrames,
        Police,
        Ptp,
        PtpClock,
        PtpDomain,
        ReceiveBuffer,
        Scheduler,
        Stack,
        StreamGate,
        StreamGateEntry,
        StreamReservation,
        SwitchTsn,
        Timestamps,
        TrafficClass,
        Window,
    )

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
]

_BUILDER: Final = ("builder", "parts")
"""Modules imported on first use of one of their names: commands with a file need none of them."""


def __getattr__(name: str) -> object:
    if name in __all__:
        for home in _BUILDER:
            module = import_module(f"wiregauge.config.{home}")
            if hasattr(module, name):
                return getattr(module, name)
    raise AttributeError(f"module 'wiregauge.config' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
