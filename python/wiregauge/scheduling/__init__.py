"""Schedules of periodic flows: computes, checks, draws and exports them."""

from __future__ import annotations

from wiregauge.scheduling.checking import Fault, faults_of
from wiregauge.scheduling.gate_checking import GatesJudged, has_gates, judge_gates
from wiregauge.scheduling.gated import Gated, gated
from wiregauge.scheduling.gates import GateList, gate_lists, taprio
from wiregauge.scheduling.isolation import of_others, priorities_of
from wiregauge.scheduling.managed import managed
from wiregauge.scheduling.problem import Demand, Problem, ProblemError, problem_of
from wiregauge.scheduling.proving import Clash, has_solver
from wiregauge.scheduling.searching import Objective
from wiregauge.scheduling.shown import (
    Shown,
    figure_of,
    gates_json,
    gates_text,
    json_of,
    openings_from,
    text_of,
    write_page,
)
from wiregauge.scheduling.solving import Answer, solve
from wiregauge.scheduling.writing import NotKeptError, author_of, scheduled, unscheduled

__all__ = [
    "Answer",
    "Clash",
    "Demand",
    "Fault",
    "GateList",
    "Gated",
    "GatesJudged",
    "NotKeptError",
    "Objective",
    "Problem",
    "ProblemError",
    "Shown",
    "author_of",
    "faults_of",
    "figure_of",
    "gate_lists",
    "gated",
    "gates_json",
    "gates_text",
    "has_gates",
    "has_solver",
    "json_of",
    "judge_gates",
    "managed",
    "of_others",
    "openings_from",
    "priorities_of",
    "problem_of",
    "scheduled",
    "solve",
    "taprio",
    "text_of",
    "unscheduled",
    "write_page",
]
