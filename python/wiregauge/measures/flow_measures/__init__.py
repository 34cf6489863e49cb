"""The measures of a flow that are more than a distribution or a counter, each an object in a file of its own.

To add one: CONTRIBUTING.md, "Where things go".
"""

from __future__ import annotations

from typing import Any

from wiregauge.measures.definitions import define
from wiregauge.measures.flow_measures.availability import AVAILABILITY
from wiregauge.measures.flow_measures.base import FlowMeasure
from wiregauge.measures.flow_measures.conformity import CONFORMITY
from wiregauge.measures.flow_measures.credit import CREDIT
from wiregauge.measures.flow_measures.deadline import DEADLINE
from wiregauge.measures.flow_measures.derived import EFFECTIVE_BANDWIDTH, JITTER, LOSS, VARIATION
from wiregauge.measures.flow_measures.elimination import ELIMINATION
from wiregauge.measures.flow_measures.gates import GATES
from wiregauge.measures.flow_measures.hops import HOPS
from wiregauge.measures.flow_measures.losses import LOSSES
from wiregauge.measures.flow_measures.pairs import PAIRS
from wiregauge.measures.flow_measures.policing import POLICING
from wiregauge.measures.flow_measures.rates import GOODPUT, RATES
from wiregauge.measures.flow_measures.reordering import REORDERING
from wiregauge.measures.flow_measures.with_loss import WITH_LOSS
from wiregauge.measures.run_measures import RUN_MEASURES

__all__ = [
    "AVAILABILITY",
    "CONFORMITY",
    "CREDIT",
    "DEADLINE",
    "ELIMINATION",
    "FLOW_MEASURES",
    "GATES",
    "GOODPUT",
    "HOPS",
    "LOSSES",
    "PAIRS",
    "POLICING",
    "RATES",
    "REORDERING",
    "WITH_LOSS",
]

FLOW_MEASURES: dict[str, FlowMeasure[Any]] = {
    one.name: one
    for one in (
        LOSS,
        VARIATION,
        WITH_LOSS,
        JITTER,
        HOPS,
        PAIRS,
        ELIMINATION,
        POLICING,
        GATES,
        CREDIT,
        GOODPUT,
        EFFECTIVE_BANDWIDTH,
        LOSSES,
        AVAILABILITY,
        REORDERING,
        DEADLINE,
        CONFORMITY,
        RATES,
    )
}
"""Flow measures by name, in the order in which their figures are computed and listed."""

define(*(one.definition for one in RUN_MEASURES.values()))
for _measure in FLOW_MEASURES.values():
    define(*_measure.definitions)
