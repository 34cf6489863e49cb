"""The plan, the executable test as `crates/plan` compiles it: typed, decoded once, each thing with one reader, here."""

from wiregauge.plan.campaign import (
    Campaign,
    Flow,
    Limit,
    PlanError,
    Run,
    Synchronise,
    as_json,
    decode,
    plain,
)
from wiregauge.plan.flows import receivers
from wiregauge.plan.network import Attachment, Clock, Hub, Link, Network, Node, Switch, TemperatureStep
from wiregauge.plan.routes import Hop, Route
from wiregauge.plan.tasks import Babble, ClockStep, Cut, Inject, Misdirect
from wiregauge.plan.upgrade import upgraded

__all__ = [
    "Attachment",
    "Babble",
    "Campaign",
    "Clock",
    "ClockStep",
    "Cut",
    "Flow",
    "Hop",
    "Hub",
    "Inject",
    "Limit",
    "Link",
    "Misdirect",
    "Network",
    "Node",
    "PlanError",
    "Route",
    "Run",
    "Switch",
    "Synchronise",
    "TemperatureStep",
    "as_json",
    "decode",
    "plain",
    "receivers",
    "upgraded",
]
