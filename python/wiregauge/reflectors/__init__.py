"""Reflectors of other makers, measured by STAMP and TWAMP Light."""

from wiregauge.reflectors.exchange import Collected, SessionError
from wiregauge.reflectors.limits import Limit, LimitError, read_limit
from wiregauge.reflectors.measured import Measured, Order
from wiregauge.reflectors.session import json_text, judged, measure
from wiregauge.reflectors.text import lines, table

__all__ = [
    "Collected",
    "Limit",
    "LimitError",
    "Measured",
    "Order",
    "SessionError",
    "json_text",
    "judged",
    "lines",
    "measure",
    "read_limit",
    "table",
]
