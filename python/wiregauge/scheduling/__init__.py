"""Schedules of periodic flows: computed, judged, drawn and written where they are to be used."""

from __future__ import annotations

from wiregauge.scheduling.checking import Fault, faults_of
from wiregauge.scheduling.gates import GateList, gate_lists, taprio
from wiregauge.scheduling.problem import Demand, Problem, ProblemError, problem_of
from wiregauge.scheduling.proving import Clash, has_solver
from wiregauge.scheduling.searching import Objective
from wiregauge.scheduling.shown import Shown, figure_of, json_of, openings_from, text_of, write_page
from wiregauge.scheduling.solving import Answer, solve
from wiregauge.scheduling.writing import NotKeptError, author_of, scheduled, unscheduled

__all__ = [
    "Answer",
    "Clash",
    "Demand",
    "Fault",
    "GateList",
    "NotKeptError",
    "Objective",
    "Problem",
    "ProblemError",
    "Shown",
    "author_of",
    "faults_of",
    "figure_of",
    "gate_lists",
    "has_solver",
    "json_of",
    "openings_from",
    "problem_of",
    "scheduled",
    "solve",
    "taprio",
    "text_of",
    "unscheduled",
    "write_page",
]
