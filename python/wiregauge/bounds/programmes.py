"""Solves linear programmes with HiGHS, by SciPy. The result is a guess that the native side proves or rejects."""

from __future__ import annotations

from collections.abc import Sequence

__all__ = ["solved"]

_WEIGHT = 1e4


def solved(
    starts: Sequence[int],
    columns: Sequence[int],
    values: Sequence[float],
    limits: Sequence[float],
    objective: Sequence[float],
) -> list[float] | None:
    """The multipliers of the rows in `max objective · x`, with rows at most their limits; None without a solution."""
    import numpy as np
    from scipy.optimize import linprog
    from scipy.sparse import csr_array

    shape = (len(limits), len(objective))
    rows = csr_array((np.asarray(values), np.asarray(columns), np.asarray(starts)), shape=shape)
    # Burst and rate of a slow flow weigh little: a multiplier of 1e-8 of the others must not become zero.
    tight = {"dual_feasibility_tolerance": 1e-10, "primal_feasibility_tolerance": 1e-10}
    found = linprog(
        -_WEIGHT * np.asarray(objective),
        A_ub=rows,
        b_ub=np.asarray(limits),
        bounds=(None, None),
        method="highs-ds",
        options=tight,
    )
    if found.status != 0:
        return None
    return [-float(multiplier) for multiplier in found.ineqlin.marginals]
