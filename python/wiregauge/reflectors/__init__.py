"""Reflectors of other makers, measured by STAMP and TWAMP Light."""

from wiregauge.reflectors.exchange import Collected, SessionError
from wiregauge.reflectors.limits import Limit, LimitError, read_limit
from wiregauge.reflectors.measured import Measured, Order
from wiregauge.reflectors.session import EXCHANGES, is_of_session, json_text, judged, measure, opened, stored
from wiregauge.reflectors.text import lines, table

__all__ = [
    "EXCHANGES",
    "Collected",
    "Limit",
    "LimitError",
    "Measured",
    "Order",
    "SessionError",
    "is_of_session",
    "json_text",
    "judged",
    "lines",
    "measure",
    "opened",
    "read_limit",
    "stored",
    "table",
]
