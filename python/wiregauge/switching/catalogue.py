"""The catalogue of tests in their order, and the execution of all of them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from wiregauge.switching.activation import service_performance, service_steps
from wiregauge.switching.addresses import capacity, learning_rate
from wiregauge.switching.congestion import back_to_back, buffer
from wiregauge.switching.contention import head_of_line, priorities
from wiregauge.switching.errored import errored_frames
from wiregauge.switching.errors import BeyondError, StopError
from wiregauge.switching.evidence import EVIDENCE
from wiregauge.switching.forwarding import latency, loss, reconciled, throughput
from wiregauge.switching.meshes import broadcast, full_mesh, many_to_one, one_to_many
from wiregauge.switching.overload import congestion, incast
from wiregauge.switching.pressure import forward_pressure
from wiregauge.switching.results import Result
from wiregauge.switching.session import Session
from wiregauge.switching.traversal import traversal

__all__ = ["TESTS", "UNCARRIED", "Kind", "carry_out", "chosen"]


class Kind(Struct, frozen=True):
    """A test in the catalogue."""

    name: str
    title: str
    run: Callable[[Session, dict[str, Result]], Result]
    trials: int
    """The estimated number of trials for each frame size."""
    needs: tuple[str, ...] = ()
    """Tests whose results it needs."""
    ports: int = 2
    sizes: bool = True
    """Whether it is executed for each frame size, or once."""


TESTS: Final = (
    Kind("throughput", "Throughput", throughput, 12),
    Kind("latency", "Latency at throughput", latency, 1, ("throughput",)),
    Kind("loss", "Frame loss rate", loss, 2, ("throughput",)),
    Kind("back-to-back", "Back-to-back frames", back_to_back, 1, ("throughput",)),
    Kind("buffer", "Buffer size", buffer, 3, ("throughput",), ports=3),
    Kind("priorities", "Behaviour of priorities", priorities, 2, ("throughput",), ports=3, sizes=False),
    Kind("head-of-line", "Head-of-line blocking", head_of_line, 2, ("throughput",), ports=4, sizes=False),
    Kind("full-mesh", "Fully meshed traffic", full_mesh, 6, ports=3),
    Kind("one-to-many", "Partially meshed: one to many", one_to_many, 6, ports=3),
    Kind("many-to-one", "Partially meshed: many to one", many_to_one, 6, ports=3),
    Kind("broadcast", "Broadcast forwarding and latency", broadcast, 7, ports=3),
    Kind("congestion", "Congestion control", congestion, 2, ("throughput",), ports=4),
    Kind("incast", "Incast", incast, 24, ("throughput",), ports=3, sizes=False),
    Kind(
        "forward-pressure",
        "Forward pressure and maximum forwarding rate",
        forward_pressure,
        5,
        ("throughput",),
    ),
    Kind("traversal", "Traversal under cross traffic", traversal, 9, ("throughput",), ports=4, sizes=False),
    Kind("address-capacity", "Address caching capacity", capacity, 18, ports=3, sizes=False),
    Kind(
        "learning-rate",
        "Address learning rate",
        learning_rate,
        16,
        ("address-capacity",),
        ports=3,
        sizes=False,
    ),
    Kind("errored-frames", "Errored frames filtering", errored_frames, 3),
    Kind("service-steps", "Service configuration", service_steps, 6, sizes=False),
    Kind("service-performance", "Service performance", service_performance, 1, sizes=False),
)

UNCARRIED: Final = (
    (
        "alignment errors and dribble bits (RFC 2889, 5.9)",
        "interfaces and drivers send whole octets, and so does the simulator",
    ),
)
"""What no bench can test, with the reason."""


def chosen(names: Sequence[str]) -> list[Kind]:
    """The tests of these names, with those they need before them. Raises KeyError with an unknown name."""
    known = {one.name: one for one in TESTS}
    wanted: set[str] = set()

    def add(name: str) -> None:
        for other in known[name].needs:
            add(other)
        wanted.add(name)

    for name in names:
        add(name)
    return [one for one in TESTS if one.name in wanted]


def carry_out(session: Session, kinds: Sequence[Kind]) -> tuple[list[Result], str]:
    """The results of all tests, and the reason for an early end; empty where there was none."""
    session.planned = {one.name: one.trials * (len(session.frames) if one.sizes else 1) for one in kinds}
    for line in session.announcement():
        session.told(line)
    known: dict[str, Result] = {}
    stopped = ""
    for kind in kinds:
        if stopped:
            known[kind.name] = _none(kind, "not measured", stopped)
            continue
        if len(session.device.ports) < kind.ports:
            ports = len(session.device.ports)
            known[kind.name] = _none(
                kind, "not carried", f"it needs {kind.ports} ports, the device has {ports}"
            )
            session.ended(kind.name)
            continue
        missing = [name for name in kind.needs if known[name].state != "measured"]
        if missing:
            before = known[missing[0]]
            state = "not carried" if before.state == "not carried" else "refused"
            reason = f"it builds on {before.name}, which has no result"
            if state == "not carried":
                reason = f"it builds on {before.name}: {before.reason}"
            known[kind.name] = _none(kind, state, reason)
            session.ended(kind.name)
            continue
        session.begin(kind.name)
        try:
            found = known[kind.name] = kind.run(session, known)
            _without_latency(found, session.untold)
            found.columns = (*found.columns, *EVIDENCE) if found.rows else found.columns
        except StopError as error:
            stopped = str(error)
            known[kind.name] = _none(kind, "not measured", stopped)
        except BeyondError as error:
            known[kind.name] = _none(kind, "not carried", f"--bench {session.bench}: {error}")
        session.ended(kind.name)
    if "throughput" in known:
        reconciled(session, known["throughput"])
    return list(known.values()), stopped


def _without_latency(result: Result, untold: Sequence[str]) -> None:
    """Notes where a bench does not delay frames as its links do, so that its latencies are not those of the device."""
    if untold:
        more = f" (and so in {len(untold) - 1} more of its trials)" if len(untold) > 1 else ""
        result.conclusion.append(
            f"no latency of the device is told where one is missing: {untold[0]}{more}; measure on a bench whose links "
            "keep their rate"
        )


def _none(kind: Kind, state: str, reason: str) -> Result:
    return Result(kind.name, kind.title, "", state, reason)
