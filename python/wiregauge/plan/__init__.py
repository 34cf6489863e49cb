"""The plan, the executable test as `crates/plan` compiles it: typed, decoded once, each thing with one reader, here."""

from wiregauge.plan.base import Plan
from wiregauge.plan.campaign import (
    Campaign,
    Flow,
    Limit,
    OtherPlanError,
    PlanError,
    Ptp,
    Run,
    Synchronise,
    as_json,
    decode,
    plain,
    planned_runs,
)
from wiregauge.plan.clusters import Cluster
from wiregauge.plan.host_commands import HostCommands, host_commands
from wiregauge.plan.network import (
    NETWORK,
    NETWORK_NODE,
    Attachment,
    Capacity,
    Clock,
    EndSystem,
    HostModel,
    Hub,
    Link,
    Network,
    Node,
    Switch,
    TemperatureStep,
)
from wiregauge.plan.ptp import PtpClock, PtpDomain
from wiregauge.plan.routes import Hop, Route
from wiregauge.plan.tasks import Babble, ClockStep, Cut, Inject, Misdirect, Restart, Send
from wiregauge.plan.tsn import Etf, PortTsn

__all__ = [
    "NETWORK",
    "NETWORK_NODE",
    "Attachment",
    "Babble",
    "Campaign",
    "Capacity",
    "Clock",
    "ClockStep",
    "Cluster",
    "Cut",
    "EndSystem",
    "Etf",
    "Flow",
    "Hop",
    "HostCommands",
    "HostModel",
    "Hub",
    "Inject",
    "Limit",
    "Link",
    "Misdirect",
    "Network",
    "Node",
    "OtherPlanError",
    "Plan",
    "PlanError",
    "PortTsn",
    "Ptp",
    "PtpClock",
    "PtpDomain",
    "Restart",
    "Route",
    "Run",
    "Send",
    "Switch",
    "Synchronise",
    "TemperatureStep",
    "as_json",
    "decode",
    "host_commands",
    "plain",
    "planned_runs",
]
