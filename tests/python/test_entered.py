"""Background load is graded by what entered the network, whatever was handed to the host."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from wiregauge.measures.metrics.judgement import Grade
from wiregauge.measures.metrics.load_plan import InjectPlan
from wiregauge.measures.validity.traffic import Entered, _entered, entries, offered_loads
from wiregauge.records.reported import AgentReport, FirstPort, Intake, RunEntry

PLAN: Any = SimpleNamespace(
    injects=[InjectPlan("e2", "e1", 1_000_000, 10**9)],
    warm_up_ns=0,
    duration_ns=1e9,
)


def agents(handed_over: int, arrived: int | None = None, refused: int = 0) -> dict[str, AgentReport]:
    """The reports of a sender of background load and of its receiver; None: nobody counted there."""
    told: dict[str, dict[str, Any]] = {
        "e2": {
            "tasks": [{"kind": "inject", "done": handed_over, "planned": handed_over}],
            "streams": [
                {"kind": "inject", "number": 0, "figures": {"offered": handed_over, "refused": refused}}
            ],
            "access_points": [{"frames_sent": 0}],
        },
        "e1": {"tasks": [], "streams": []},
    }
    if arrived is not None:
        account = {"received": arrived, "distinct": arrived}
        told["e1"]["streams"] = [
            {"kind": "absorb", "number": 0, "backend": "xdp", "figures": {"account": account}}
        ]
    return msgspec.convert(told, dict[str, AgentReport])


def offered(reports: dict[str, AgentReport], entry: RunEntry) -> float | None:
    (load,) = offered_loads(PLAN, reports, entry)
    assert load.intended == 1.0
    return load.offered


def seen(frames: int, taken: int | None = None) -> RunEntry:
    """What the first port saw, and a network that is played took of it."""
    network = AgentReport(intake=Intake(frames=taken)) if taken is not None else None
    return RunEntry(first_ports={"e2": FirstPort(port="sw1:3", received=frames)}, network=network)


def test_a_load_that_never_arrives_is_no_load() -> None:
    assert offered(agents(4_600_000, 0), seen(0)) == 0.0
    assert offered(agents(4_600_000, 0), RunEntry()) == 0.0, "without a port the receiver's account tells"


def test_a_load_that_arrives_in_part_is_graded_by_the_port() -> None:
    assert offered(agents(1000, 100), seen(900)) == pytest.approx(0.9)
    assert offered(agents(1000, 100), seen(1000)) == 1.0, "what the network loses behind the port was offered"
    assert offered(agents(1000, 100), seen(1003)) == 1.0, "a clock's frames make no load of it"


def test_without_a_port_a_loss_may_be_the_networks() -> None:
    assert offered(agents(1000, 100), RunEntry()) == 1.0
    assert offered(agents(1000), RunEntry()) == 1.0


def test_what_a_full_queue_refused_was_not_handed_over() -> None:
    (one,) = entries(agents(1000, refused=400), seen(600))
    assert (one.handed_over, one.share, one.short) == (600, 1.0, False)


def test_the_reason_names_the_port_and_both_counts() -> None:
    (one,) = entries(agents(1000, 0), seen(7))
    assert one.text == "port sw1:3 saw 7 of 1000 frames handed over"
    (one,) = entries(agents(1000, 0), RunEntry())
    assert one.text == "the receiver e1 saw 0 of 1000 frames handed over"


def test_a_network_that_is_played_saw_no_more_than_it_took() -> None:
    for taken, share in ((1000, 1.0), (900, 0.9), (0, 0.0)):
        (one,) = entries(agents(1000), seen(1000, taken))
        assert one.share == pytest.approx(share)
    (one,) = entries(agents(1000), seen(0, 1000))
    assert one.text == "port sw1:3 saw 0 of 1000 frames handed over", "others' frames are none of its own"


def test_a_played_network_that_took_nothing_is_said_to_have_had_no_core() -> None:
    short = [Entered("e0", 1_000, 0, "port network:h0", streams=False)]
    held_up, other = (_entered(short, took_none=took) for took in (True, False))
    assert held_up.grade == other.grade == Grade.INVALID
    assert "took no frame while the run went on" in held_up.reason
    assert "took no frame" not in other.reason
