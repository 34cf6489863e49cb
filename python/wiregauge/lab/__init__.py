"""The lab: the hosts that run tests, who may control them, and their interfaces."""

from __future__ import annotations

from wiregauge.lab.authority import ROLES, Lab, Member, usual_lab
from wiregauge.lab.enrolment import enrol
from wiregauge.lab.errors import LabError
from wiregauge.lab.inventory import PORT, Host, read_inventory
from wiregauge.lab.join_code import JoinCode

__all__ = [
    "PORT",
    "ROLES",
    "Host",
    "JoinCode",
    "Lab",
    "LabError",
    "Member",
    "enrol",
    "read_inventory",
    "usual_lab",
]
