"""A bench in one file: it sends nothing, and writes records of messages that all take five microseconds.

It uses only what a bench may use: its base class, the run directory and its entries.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pyarrow as pa

from wiregauge.plan import Flow, Send
from wiregauge.records import RunDirectory, Traits, process_run
from wiregauge.records.directory import utc_now
from wiregauge.records.entry import new_entry
from wiregauge.records.reported import AgentReport, TaskReport
from wiregauge.runner import Bench, Observer

LATENCY_PS = 5_000_000
POINTS = ((0, 0), (1, 1), (2, 2), (8, 2), (9, 1))
"""Codes of observation points, from the intended send to the receiving application, and of their clocks."""


class Toy(Bench):
    """Every flow is sent by the plan and arrives."""

    name = "toy"
    traits = Traits(virtual_time=True, one_clock=True, driver="a pencil")

    def run(self, directory: RunDirectory, observer: Observer) -> None:
        """See `Bench`."""
        names = directory.plan.network.names
        for position, run in enumerate(directory.plan.runs):
            entry = new_entry(run.index, names, method="same-clock")
            directory.enter(entry)
            place = directory.spool(run.index) / "toy"
            place.mkdir(parents=True)
            (flow,), (send,) = run.flows, run.sends
            cells = list(written(flow, send))
            write(place / "000000.arrows", cells, run.index)
            entry.agents = {
                names[flow.from_]: report("send", flow, send, len(cells) // 2),
                names[flow.to]: report("receive", flow, send, 0),
            }
            process_run(directory, run.index)
            entry.state, entry.finished = "complete", utc_now()
            directory.enter(entry)
            directory.save()
            observer.run_ended(position, entry)


def written(flow: Flow, send: Send) -> Iterator[bytes]:
    """Two cells per record, with the layout of `crates/record/src/segment/row.rs`: time and place, then the rest."""
    for sequence in range(send.count):
        due = send.offset + sequence * send.period
        for point, clock in POINTS:
            arrived = point >= 8
            node = flow.to if arrived else flow.from_
            yield struct.pack("<qQ", due + arrived * LATENCY_PS, node | 1 << 16 | 15 << 55)
            warm_up = sequence < send.warm_up_count
            what = warm_up << 1 | (1 << 2 if point == 9 else 0) | clock << 4 | point << 7
            yield struct.pack("<QQ", sequence << 32, flow.id | 110 << 16 | what << 48)


def write(path: object, cells: list[bytes], run: int) -> None:
    """A segment: one Arrow stream of cells."""
    metadata = {
        "kind": "segment",
        "schema": "2",
        "run": str(run),
        "node": "65535",
        "end_system": "toy",
        "epoch_realtime_ns": "0",
    }
    schema = pa.schema(
        [pa.field("cell", pa.binary(16), nullable=False)],
        metadata={f"wiregauge.{key}": value for key, value in metadata.items()},
    )
    with pa.OSFile(str(path), "wb") as file, pa.ipc.new_stream(file, schema) as stream:
        stream.write_table(pa.table([pa.array(cells, pa.binary(16))], schema=schema))


def report(kind: str, flow: Flow, send: Send, records: int) -> AgentReport:
    """The report that an agent would give."""
    task = TaskReport(kind, flow.id, planned=send.count, done=send.count, failure="")
    return AgentReport(complete=True, tasks=(task,), grants=(), records_written=records)
