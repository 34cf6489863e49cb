"""The benches by name."""

from __future__ import annotations

import inspect

from wiregauge.runner.bench import Bench, BenchError
from wiregauge.runner.benches.lab import LabBench
from wiregauge.runner.benches.netns.bench import NetnsBench
from wiregauge.runner.benches.simulator import SimulatorBench

__all__ = ["BENCHES", "OptionError", "bench_named", "options_of"]

BENCHES: dict[str, type[Bench]] = {
    SimulatorBench.name: SimulatorBench,
    NetnsBench.name: NetnsBench,
    LabBench.name: LabBench,
}


class OptionError(BenchError):
    """An option that has no effect on the bench; `option` names it."""

    def __init__(self, option: str, bench: str) -> None:
        others = [name for name in BENCHES if option in options_of(name)]
        elsewhere = f" or run with --bench {' or '.join(others)}" if others else ""
        super().__init__(f"has no effect with --bench {bench}; leave it out{elsewhere}")
        self.option = option


def bench_named(name: str, **options: object) -> Bench:
    """A bench with the options that are not None. Raises BenchError; OptionError for one without effect."""
    kind = BENCHES.get(name)
    if kind is None:
        raise BenchError(f'there is no bench "{name}"; there are {", ".join(BENCHES)}')
    given = {option: value for option, value in options.items() if value is not None}
    for option in given:
        if option not in options_of(name):
            raise OptionError(option, name)
    return kind(**given)


def options_of(name: str) -> frozenset[str]:
    """The options that a bench takes."""
    return frozenset(inspect.signature(BENCHES[name]).parameters)
