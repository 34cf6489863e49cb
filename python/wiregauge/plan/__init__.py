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
from wiregauge.plan.tasks import Babble, ClockStep, Cut, Inject, Misdirect

__all__ = [
    "Attachment",
    "Babble",
    "Campaign",
    "Clock",
    "ClockStep",
    "Cut",
    "Flow",
    "Hub",
    "Inject",
    "Limit",
    "Link",
    "Misdirect",
    "Network",
    "Node",
    "PlanError",
    "Run",
    "Switch",
    "Synchronise",
    "TemperatureStep",
    "as_json",
    "decode",
    "plain",
    "receivers",
]
