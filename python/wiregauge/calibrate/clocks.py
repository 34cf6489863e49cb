"""The cost of reading each clock, its step, and the drift between clocks.

The loops are the agent program's (`wiregauge-agent clocks`); their facts are evaluated here. The table is Table 1 of
the MAPS study (Verbree and Shvartsman, GVSETS 2015), with the steps added.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from wiregauge import stats

REFERENCE = "CLOCK_MONOTONIC_RAW"


def clock_results(facts: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """The results from the agent program's facts, in order; those not reached are missing.

    Raises ValueError when not even the first fact is there.
    """
    begun = next((fact for fact in facts if fact["kind"] == "begun"), None)
    if begun is None:
        raise ValueError("the agent program told nothing")
    steps = {fact["clock"]: fact for fact in facts if fact["kind"] == "step"}
    together = [fact for fact in facts if fact["kind"] == "together"]
    clocks = []
    for position, name in enumerate(begun["clocks"]):
        cost = next((f for f in facts if f["kind"] == "cost" and f["clock"] == name), None)
        clocks.append(
            {
                "clock": name,
                "cost": _cost(cost, name, begun) if cost is not None else None,
                "step": _without(steps[name]) if name in steps else None,
                "drift": _drift(together, position, name, begun, steps.get(name, {}).get("stated_ns") or 0),
            }
        )
    return {
        "ruler": begun["ruler"],
        "ruler_ticks_per_ns": begun["ticks_per_ns"],
        "ruler_cost_ns": begun["floor_ns"],
        "refused": begun["refused"],
        "reference": REFERENCE,
        "clocks": clocks,
    }


def _without(fact: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in fact.items() if key not in ("kind", "clock")}


def _cost(cost: Mapping[str, Any], name: str, begun: Mapping[str, Any]) -> dict[str, Any]:
    """Statistics of the cost, ns. Readings overlap with the reference's, so each may hide up to one of these."""
    ruler = name == begun["ruler"]
    return {
        "n": cost["n"],
        "mean_ns": cost["mean"],
        "median_ns": dict(map(tuple, cost["quantiles"]))[0.5],
        "sd_ns": cost["sd"],
        "min_ns": cost["min"],
        "max_ns": cost["max"],
        "quantiles_ns": [[q, value] for q, value in cost["quantiles"]],
        "uncertainty_ns": 1 / begun["ticks_per_ns"] if ruler else begun["floor_ns"],
    }


def _drift(
    together: Sequence[Mapping[str, Any]], position: int, name: str, begun: Mapping[str, Any], step_ns: float
) -> dict[str, Any] | None:
    """Rate of a clock against the reference, by regression of their difference; None with too few readings.

    Each difference may be off by half its bracket, and by a step of the clock.
    """
    if len(together) < 3 or name == REFERENCE:
        return None
    rows = [fact["readings"][position] for fact in together]
    # Differences from the first reading are integers far below 2**53; readings since 1970 are not.
    at = np.array([row[1] - rows[0][1] for row in rows], dtype=np.float64)
    shown = np.array([row[0] - rows[0][0] for row in rows], dtype=np.float64)
    if name == begun["ruler"] and name != REFERENCE:
        shown /= begun["ticks_per_ns"]
    widths = np.array([row[2] for row in rows], dtype=np.float64)
    if at[-1] <= 0:
        return None
    fit = stats.line_fit(at, shown - at, widths / 2 + step_ns, in_order=True)
    away = np.abs(fit.residuals)
    shape = stats.envelope(at / 1e9, shown - at, 400)
    half = fit.slope.half_width
    return {
        "n": fit.n,
        "n_independent": fit.independent,
        "seconds": float(at[-1]) / 1e9,
        "ppm": fit.slope.value * 1e6,
        "half_width_ppm": None if half is None else half * 1e6,
        "sampling_ppm": None if fit.slope.sampling is None else fit.slope.sampling * 1e6,
        "bound_ppm": fit.slope.bound * 1e6,
        "residual_max_ns": float(away.max()),
        "bracket_median_ns": float(np.median(widths)),
        "series": {"t_s": shape.t.tolist(), "difference_ns": shape.value.tolist()},
    }
