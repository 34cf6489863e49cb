"""Hosts that run tests for somebody: who may give them orders, where they are, and what they have."""

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
