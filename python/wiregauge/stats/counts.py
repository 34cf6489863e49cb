"""Confidence bounds of the share of rare events."""

from __future__ import annotations

from msgspec import Struct

from wiregauge.stats import special

CONFIDENCE = 0.95


class ShareBound(Struct, frozen=True):
    """`count` of `n` and 95 % bounds of the true share; `one_sided` if the count is 0 or n."""

    count: int
    n: int
    low: float
    high: float
    one_sided: bool


def share_bound(count: int, n: int, worth: float | None = None) -> ShareBound:
    """Exact (Clopper-Pearson) 95 % bounds of the share `count / n`.

    None of n: the one-sided bound 1 - 0.05 ** (1/n), which the rule of three calls 3/n; 0 lost is never printed
    as 0 %. All of n: the mirrored bound. Otherwise two-sided. With n = 0 the bounds are 0 to 1.

    `worth` is the number of independent observations where events cluster (`flags_worth`, `repeated_share_worth`):
    the same share of so many (Korn and Graubard, 1998). The bounds hold with at least 95 %, for rare events with
    more: the price of a guarantee for every share. Mid-P bounds would hold with 95 % on average and fail for some.
    """
    if not 0 <= count <= n:
        raise ValueError(f"{count} of {n} is not a count")
    alpha = 1 - CONFIDENCE
    if n == 0:
        return ShareBound(0, 0, 0.0, 1.0, one_sided=False)
    size = float(n) if worth is None else min(float(n), max(1.0, worth))
    hits = count / n * size
    if count == 0:
        return ShareBound(0, n, 0.0, 1 - alpha ** (1 / size), one_sided=True)
    if count == n:
        return ShareBound(n, n, alpha ** (1 / size), 1.0, one_sided=True)
    low = float(special.betaincinv(hits, size - hits + 1, alpha / 2))
    high = float(special.betaincinv(hits + 1, size - hits, 1 - alpha / 2))
    return ShareBound(count, n, low, high, one_sided=False)
