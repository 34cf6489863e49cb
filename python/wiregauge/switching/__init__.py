"""Characterises a device under test by tests that choose each trial from the last, and writes a data sheet.

`device_of` and `plain_device` give the device, `Store` stores every trial, `carry_out` executes the tests through a
`Session`, `switch_json` and `write_page` present the results.
"""

from wiregauge.switching.catalogue import TESTS, Kind, carry_out, chosen
from wiregauge.switching.device import Device, device_of, plain_device
from wiregauge.switching.envelopes import Envelope, envelopes_of
from wiregauge.switching.errors import BeyondError, DeviceError, SheetError, StopError
from wiregauge.switching.page import write_page
from wiregauge.switching.results import Result
from wiregauge.switching.services import Service, check_services, read_services, service_of
from wiregauge.switching.session import Session, Sizes
from wiregauge.switching.shown import schema_path, switch_json, switch_schema
from wiregauge.switching.store import RUNS, Store
from wiregauge.switching.trials import Bench, Carrier, Latency, Load, Outcome, Seen, Stream, Trial

__all__ = [
    "RUNS",
    "TESTS",
    "Bench",
    "BeyondError",
    "Carrier",
    "Device",
    "DeviceError",
    "Envelope",
    "Kind",
    "Latency",
    "Load",
    "Outcome",
    "Result",
    "Seen",
    "Service",
    "Session",
    "SheetError",
    "Sizes",
    "StopError",
    "Store",
    "Stream",
    "Trial",
    "carry_out",
    "check_services",
    "chosen",
    "device_of",
    "envelopes_of",
    "plain_device",
    "read_services",
    "schema_path",
    "service_of",
    "switch_json",
    "switch_schema",
    "write_page",
]
