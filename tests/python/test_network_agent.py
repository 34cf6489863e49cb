"""The agent that is the network between the end systems: how it is told so, and what its report comes to."""

from __future__ import annotations

from wiregauge.master.client import report_as_dict
from wiregauge.master.rpc import agent_pb2 as pb


def test_a_report_says_of_the_network_what_only_the_network_has() -> None:
    release = pb.PortRelease(end_system="a", frames=3, p999_ns=4000, max_ns=5000)
    report = report_as_dict(pb.AgentReport(releases=[release], intake=pb.ArrivalIntake(frames=4, moved=1)))
    assert report["intake"] == {"frames": 4, "moved": 1, "most_moved_ns": 0, "lost": 0}
    assert report["releases"] == [
        {
            "end_system": "a",
            "frames": 3,
            "p50_ns": 0,
            "p99_ns": 0,
            "p999_ns": 4000,
            "max_ns": 5000,
            "undelivered": 0,
        }
    ]
    assert not {"releases", "intake"} & report_as_dict(pb.AgentReport()).keys()
