"""How often do 95 % intervals hold the truth? Simulated series of known mean, percentile or loss ratio, in cells.

A cell is one figure of one family of series at one length. A row says how many of the series had an interval, how many
of those intervals held the truth, and how long they were in units of the shortest that could have done so: 2 * 1.96
standard deviations of the estimates themselves. The truth is exact where a formula gives it, else that of all series of
the cell together, which is known 45 times as well as one of them.

`python -m benchmarks.coverage [--series 2000] [FAMILY …]` prints the table of `docs/explanation/confidence.md`. With
`--check` it fails where fewer than 93 % of the intervals of a cell hold the truth, unless nothing is promised of it.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import product
from math import exp, log, sqrt

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray
from scipy import fft, special
from scipy.signal import lfilter

from wiregauge import stats

__all__ = ["CELLS", "Cell", "Covered", "cover"]

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Make = Callable[[np.random.Generator, int, int], NDArray[np.generic]]
"""Makes series as rows, from a random generator, the number of series, and the number of values in each."""

SERIES = 2000
POOLED = 20_000_000
"""Values from which a percentile is estimated as the truth where no formula gives it."""
HELD = 1 << 22
"""The most values that are generated at a time."""
LOWEST, HIGHEST, PRINTED = 0.93, 0.98, 0.90


class Cell(Struct, frozen=True):
    """`figure` (mean, loss, p50 …) of series of `n` values; `truth` None where only simulation gives it.

    `promised` is False where too few series show their nature for any interval to cover the truth in 93 %.
    """

    family: str
    name: str
    figure: str
    n: int
    make: Make
    truth: float | None = None
    promised: bool = True


class Covered(Struct, frozen=True):
    """Shares of the series that had an interval, and of intervals that covered the truth; the median length."""

    cell: Cell
    series: int
    printed: float
    share: float
    length: float

    @property
    def good(self) -> bool:
        """Whether the cell keeps what `confidence.md` promises."""
        return LOWEST <= self.share <= HIGHEST and self.printed >= PRINTED

    @property
    def kept(self) -> bool:
        """Whether its intervals cover the truth as often as promised; without any interval nothing is claimed."""
        return not self.cell.promised or not self.printed or self.share >= LOWEST


def cover(cell: Cell, series: int = SERIES, seed: int = 1) -> Covered:
    """Judges `series` series of a cell."""
    rng = np.random.default_rng([seed, *cell.name.encode(), cell.n])
    estimates: list[float] = []
    ends: list[tuple[float, float] | None] = []
    for size in _batches(series, cell.n):
        made = cell.make(rng, size, cell.n)
        for row in made:
            value, interval = _figure(cell.figure, row)
            estimates.append(value)
            ends.append(interval)
    each = np.array(estimates)
    truth = _truth(cell, each, seed)
    known = np.array([pair for pair in ends if pair is not None]).reshape(-1, 2)
    shortest = 2 * 1.96 * float(each.std())
    lengths = known[:, 1] - known[:, 0]
    held = (known[:, 0] <= truth) & (truth <= known[:, 1])
    return Covered(
        cell,
        series,
        len(known) / series,
        float(held.mean()) if len(known) else float("nan"),
        float(np.median(lengths)) / shortest if len(known) and shortest else float("nan"),
    )


def _truth(cell: Cell, estimates: Floats, seed: int) -> float:
    if cell.truth is not None:
        return cell.truth
    if not cell.figure.startswith("p"):
        return float(estimates.mean())
    # Percentiles of short series differ from those of long ones on average: use other series, pooled.
    rng = np.random.default_rng([seed, cell.n, 1])
    pooled = [cell.make(rng, size, cell.n).ravel() for size in _batches(max(POOLED // cell.n, 1), cell.n)]
    return float(np.quantile(np.concatenate(pooled).astype(np.float64), float(cell.figure[1:]) / 100))


def _batches(series: int, n: int) -> Iterator[int]:
    size = max(1, HELD // n)
    while series > 0:
        yield min(size, series)
        series -= size


def _figure(figure: str, row: NDArray[np.generic]) -> tuple[float, tuple[float, float] | None]:
    """An estimate and its interval, None without one; an open end is infinite."""
    if figure == "loss":
        lost = row.astype(np.bool_)
        bound = stats.share_bound(int(lost.sum()), len(lost), stats.flags_worth(lost))
        return float(lost.mean()), (bound.low, bound.high)
    values = row.astype(np.float64)
    if figure == "mean":
        mean = stats.mean_estimate(values)
        assert mean is not None
        half = mean.half_width
        return mean.mean, None if half is None else (mean.mean - half, mean.mean + half)
    q = float(figure[1:]) / 100
    ascending = np.sort(values)
    found = stats.quantile_interval(values, ascending, q)
    value = stats.quantile(ascending, q)
    if found.low is None and found.high is None:
        return value, None
    return value, (
        -np.inf if found.low is None else found.low,
        np.inf if found.high is None else found.high,
    )


def autoregressive(phi: float, rng: np.random.Generator, rows: int, n: int) -> Floats:
    """Log-normal values whose logarithm is a Gaussian AR(1) of standard deviation 0.5."""
    lead = int(np.ceil(-12 / log(phi))) if phi else 0
    noise = rng.normal(size=(rows, n + lead)) * np.sqrt(1 - phi**2)
    series: Floats = np.exp(0.5 * lfilter([1.0], [1.0, -phi], noise, axis=1)[:, lead:])
    return series


def states(duty: float, stay: float, rng: np.random.Generator, rows: int, n: int) -> Flags:
    """Two states in geometric runs: a share `duty` of the values is on, for `stay` values on average."""
    leave = 1 / stay
    enter = min(leave * duty / (1 - duty), 1.0)
    # Runs on and off alternate, end to end over all rows: each row starts in either state.
    found = np.zeros((rows, n), dtype=np.bool_)
    pairs = int(n / (1 / leave + 1 / enter) * 1.5) + 40
    on_first = rng.random(rows) < duty
    for row in range(rows):
        lengths = np.empty(2 * pairs, dtype=np.int64)
        first = int(not on_first[row])
        lengths[first::2] = rng.geometric(leave, pairs)
        lengths[1 - first :: 2] = rng.geometric(enter, pairs)
        edges = np.cumsum(lengths)
        while edges[-1] < n:
            more = np.empty(2 * pairs, dtype=np.int64)
            more[first::2] = rng.geometric(leave, pairs)
            more[1 - first :: 2] = rng.geometric(enter, pairs)
            edges = np.concatenate([edges, edges[-1] + np.cumsum(more)])
        starts = np.concatenate([[0], edges])[first::2]
        ends = edges[first::2]
        steps = np.zeros(n + 1, dtype=np.int8)
        count = min(len(starts), len(ends))
        np.add.at(steps, np.minimum(starts[:count], n), 1)
        np.add.at(steps, np.minimum(ends[:count], n), -1)
        found[row] = np.cumsum(steps[:n]) > 0
    return found


def gilbert_elliott(
    ratio: float, burst: float, lost_in_burst: float, rng: np.random.Generator, rows: int, n: int
) -> Flags:
    """Losses in bursts of `burst` messages on average, of which `lost_in_burst` are lost: `ratio` of all."""
    bad = states(ratio / lost_in_burst, burst, rng, rows, n)
    return bad & (rng.random((rows, n)) < lost_in_burst) if lost_in_burst < 1 else bad


def on_off(duty: float, stay: float, rng: np.random.Generator, rows: int, n: int) -> Floats:
    """Levels of 100 and 150 in runs, with an exponential part added to each value."""
    on = states(duty, stay, rng, rows, n)
    return 100 + 50 * on + rng.exponential(10, (rows, n))


def waits(load: float, service: str, burst: float, rng: np.random.Generator, rows: int, n: int) -> Floats:
    """Times from arrival to departure in a queue with one server, in mean service times.

    Arrivals are a Poisson process of bursts of geometric length (`burst` = 1: of single messages).
    """
    lead = 40_000 if load > 0.85 else 10_000
    gaps = rng.exponential(burst / load, (rows, n + lead))
    if burst > 1:
        gaps *= rng.random((rows, n + lead)) < 1 / burst
    took = _services(service, rng, (rows, n + lead))
    # Lindley: the wait is the sum of services minus gaps, above its own minimum so far.
    work = np.cumsum(took[:, :-1] - gaps[:, 1:], axis=1)
    least = np.minimum(np.minimum.accumulate(work, axis=1), 0.0)
    return ((work - least) + took[:, 1:])[:, lead - 1 :]


def _services(kind: str, rng: np.random.Generator, size: tuple[int, int]) -> Floats:
    """Service times of mean 1: constant (D), exponential (M), hyperexponential (H, squared coefficient of variation 4),
    log-normal (L, sigma 1), Pareto (P, exponent 2.5).
    """
    if kind == "D":
        return np.ones(size)
    if kind == "M":
        return rng.exponential(1.0, size)
    if kind == "H":
        slow = 0.5 * (1 - sqrt(3 / 5))
        return np.asarray(
            rng.exponential(1.0, size) / (2 * np.where(rng.random(size) < slow, slow, 1 - slow))
        )
    if kind == "L":
        return np.asarray(rng.lognormal(-0.5, 1.0, size))
    return np.asarray(0.6 * (1 + rng.pareto(2.5, size)))


def heavy_on_off(exponent: float, stay: float, rng: np.random.Generator, rows: int, n: int) -> Floats:
    """As `on_off`, half of the time on, but in runs of Pareto lengths of mean `stay`: below an exponent of 2 their
    lengths have infinite variance, and the memory never ends."""
    least = stay * (exponent - 1) / exponent
    lead, found = 20 * n, np.empty((rows, n), dtype=np.bool_)
    count = int((n + lead) / stay * 1.5) + 200
    for row in range(rows):
        edges = np.cumsum(least * (1 + rng.pareto(exponent, count)))
        first = rng.random() * lead
        while edges[-1] < first + n:
            edges = np.concatenate([edges, edges[-1] + np.cumsum(least * (1 + rng.pareto(exponent, count)))])
        found[row] = (np.searchsorted(edges, first + np.arange(n)) + int(rng.random() < 0.5)) % 2 == 0
    return np.asarray(100 + 50 * found + rng.exponential(10, (rows, n)))


def long_memory(d: float, rng: np.random.Generator, rows: int, n: int) -> Floats:
    """Fractional Gaussian noise of H = d + 1/2, exactly (Davies and Harte, Biometrika 74, 1987)."""
    h2 = 2 * d + 1
    k = np.arange(n + 1, dtype=np.float64)
    covariance = ((k + 1) ** h2 - 2 * k**h2 + np.abs(k - 1) ** h2) / 2
    ring = np.concatenate([covariance, covariance[-2:0:-1]])
    power = np.maximum(fft.rfft(ring).real, 0.0)
    size = len(ring)
    spectrum = rng.normal(size=(rows, len(power))) + 1j * rng.normal(size=(rows, len(power)))
    spectrum[:, [0, -1]] = spectrum[:, [0, -1]].real * np.sqrt(2)
    series: Floats = fft.irfft(spectrum * np.sqrt(power * size / 2), size, axis=1)[:, :n]
    return series


def _log_normal(q: float) -> float:
    return exp(0.5 * float(special.ndtri(q)))


def _ordinary() -> Iterator[Cell]:
    for phi, lengths in ((0.0, (50, 2000)), (0.5, (200, 2000)), (0.8, (450, 2000)), (0.95, (2000, 8000))):
        for n in lengths:
            name = f"AR(1) {phi:g}" if phi else "independent"
            make = partial(autoregressive, phi)
            yield Cell("ordinary", name, "mean", n, make, exp(0.125))
            yield Cell("ordinary", name, "p50", n, make, 1.0)
            yield Cell("ordinary", name, "p90", n, make, _log_normal(0.9))
            if n >= 2000:
                yield Cell("ordinary", name, "p99", n, make, _log_normal(0.99))
    for ratio, n in ((0.05, 2000), (0.01, 10_000), (0.001, 20_000)):
        yield Cell("ordinary", f"independent losses {ratio:g}", "loss", n, partial(_lost, ratio), ratio)


def _lost(ratio: float, rng: np.random.Generator, rows: int, n: int) -> Flags:
    return rng.random((rows, n)) < ratio


def _losses() -> Iterator[Cell]:
    """Cells of losses, at lengths with 5, 10 and 25 bursts on average."""
    for ratio, burst, inside in (
        (0.05, 2, 1.0),
        (0.05, 10, 1.0),
        (0.01, 5, 1.0),
        (0.01, 20, 1.0),
        (0.01, 20, 0.5),
        (0.01, 50, 0.3),
        (0.002, 5, 1.0),
    ):
        name = f"{ratio:.1%} lost in bursts of {burst:g}" + (f", {inside:.0%} of each" if inside < 1 else "")
        for bursts in (5, 10, 25):
            n = round(bursts * burst * inside / ratio)
            yield Cell("losses", name, "loss", n, partial(gilbert_elliott, ratio, burst, inside), ratio)


def _queues() -> Iterator[Cell]:
    for load, service, burst, lengths in (
        (0.5, "M", 1, (10_000,)),
        (0.7, "M", 1, (20_000,)),
        (0.8, "M", 1, (50_000,)),
        (0.8, "H", 1, (50_000,)),
        (0.8, "L", 1, (50_000,)),
        (0.8, "P", 1, (50_000,)),
        (0.8, "D", 1, (20_000,)),
        (0.5, "D", 8, (50_000,)),
        (0.7, "D", 8, (50_000,)),
    ):
        truth = log(100) / (1 - load) if (service, burst) == ("M", 1) else None
        name = f"M/{service}/1 at {load:g}" + (f", bursts of {burst}" if burst > 1 else "")
        for n, figure in product(lengths, ("p99", "p90", "mean")):
            exactly = truth if figure == "p99" else truth / 2 if truth and figure == "p90" else None
            yield Cell("queues", name, figure, n, partial(waits, load, service, burst), exactly)


def _on_off() -> Iterator[Cell]:
    """Cells of `on_off`, at lengths with 10, 25 and 50 runs of being on."""
    for duty, stay in ((0.5, 20), (0.5, 200), (0.3, 50), (0.1, 20), (0.1, 100), (0.02, 20)):
        for stretches in (10, 25, 50):
            make, n = partial(on_off, duty, stay), round(stretches * stay / duty)
            yield Cell("on/off", f"on {duty:.0%}, {stay} at a time", "mean", n, make, 110 + 50 * duty)


def _two_levels(duty: float, figure: str) -> float:
    """A percentile of `on_off`."""
    beyond = 1 - float(figure[1:]) / 100
    least_on = duty + (1 - duty) * exp(-5)
    return (
        150 + 10 * log(least_on / beyond)
        if beyond <= least_on
        else 100 + 10 * log((1 - duty) / (beyond - duty))
    )


def _on_off_tails() -> Iterator[Cell]:
    for duty, stay in ((0.3, 50), (0.1, 20), (0.1, 100), (0.02, 20)):
        for stretches, figure in product((10, 50), ("p90", "p99")):
            make, n = partial(on_off, duty, stay), round(stretches * stay / duty)
            yield Cell(
                "on/off", f"on {duty:.0%}, {stay} at a time", figure, n, make, _two_levels(duty, figure)
            )


def _heavy() -> Iterator[Cell]:
    for exponent, n, figure in product((1.2, 1.5, 1.8), (2000, 20_000), ("mean", "p50", "p90")):
        make = partial(heavy_on_off, exponent, 20)
        truth = 135.0 if figure == "mean" else _two_levels(0.5, figure)
        # With 1.2 one run is a tenth to a fifth of the series; a median lies in the gap between two levels.
        promised = exponent > 1.2 and figure != "p50"
        yield Cell("heavy on/off", f"Pareto {exponent:g}, 20 at a time", figure, n, make, truth, promised)


def _long() -> Iterator[Cell]:
    for d, n, figure in product((0.1, 0.2, 0.3, 0.35, 0.4), (2000, 20_000), ("mean", "p50", "p90", "p99")):
        truth = 0.0 if figure == "mean" else float(special.ndtri(float(figure[1:]) / 100))
        # Near d = 0.5 a series no longer has a mean.
        yield Cell("long memory", f"d = {d:g}", figure, n, partial(long_memory, d), truth, d < 0.4)


CELLS: tuple[Cell, ...] = (
    *_ordinary(),
    *_losses(),
    *_queues(),
    *_on_off(),
    *_on_off_tails(),
    *_heavy(),
    *_long(),
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Prints a row per cell."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.coverage", description=__doc__)
    parser.add_argument("--check", action="store_true", help="fail where a promise is not kept")
    parser.add_argument("--series", type=int, default=SERIES)
    parser.add_argument("family", nargs="*", choices=[[], *dict.fromkeys(cell.family for cell in CELLS)])
    options = parser.parse_args(arguments)
    print("| family | series | n | figure | interval, % | covered, % | length |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    broken = []
    for cell in CELLS:
        if options.family and cell.family not in options.family:
            continue
        found = cover(cell, options.series)
        broken += [cell] * (not found.kept)
        print(
            f"| {cell.family} | {cell.name} | {cell.n} | {cell.figure} | {100 * found.printed:.0f} | "
            f"{100 * found.share:.1f} | {found.length:.2f} |" + ("" if found.good else " <--"),
            flush=True,
        )
    if options.check and broken:
        names = "; ".join(f"{cell.name}, n = {cell.n}, {cell.figure}" for cell in broken)
        sys.exit(f"fewer than {LOWEST:.0%} of the intervals hold the truth: {names}")


if __name__ == "__main__":
    main()
