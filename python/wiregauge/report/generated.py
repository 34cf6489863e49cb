"""Tables of traffic generation: backends, send times, and the accounting of background load."""

from __future__ import annotations

from wiregauge.measures.definitions.units import share, significant
from wiregauge.measures.metrics.judgement import Judgement, RunResult
from wiregauge.measures.validity.streams import (
    LoadAccount,
    dropped_text,
    load_accounts,
    share_bounds,
    streams_of,
)
from wiregauge.records.counters import known
from wiregauge.records.reported import Gaps, StreamReport
from wiregauge.report.tables import NONE, Cell, Head, Section, Table, micro, place_cell, text_heads


def stream_table(judgement: Judgement) -> Table:
    """A row per run and stream: its backend, the reason for it, and the accuracy of its send times."""
    heads = [
        *text_heads("point", "stream", "backend", "pacing"),
        Head("frames"),
        Head("refused or given up"),
        Head("rate", unit="1/s"),
        Head("send error p99", unit="µs"),
        *(Head(f"gaps within ±{us} µs") for us in (1, 5, 50)),
        Head("why this backend", kind="text"),
    ]
    rows = [_stream_row(run, stream) for run in judgement.runs for stream in streams_of(run.agents)]
    return Table("How traffic was generated", heads, [Section("", rows)], lead=2)


def _stream_row(run: RunResult, sent: tuple[str, StreamReport]) -> list[Cell]:
    end_system, stream = sent
    figures, kept = stream.figures, stream.figures.gaps or Gaps()
    name = f"flow {stream.number}" if stream.kind == "send" else f"background load of {end_system}"
    shares = (kept.within_1us, kept.within_5us, kept.within_50us)
    error, n = figures.send_error_ns.p99, f"n = {known(figures.offered)}"
    path = (
        "bypassing the queue of the interface" if stream.past_queue else "through the queue of the interface"
    )
    refused, given_up = known(figures.refused), known(figures.given_up)
    return [
        place_cell(run.plan.point),
        Cell(name, kind="text short"),
        Cell(stream.backend, path, "text short"),
        Cell(stream.pacing, kind="text short"),
        Cell(str(known(figures.offered)), "handed to the kernel"),
        Cell(
            str(refused + given_up),
            f"{refused} refused, {given_up} given up",
            "bad" if refused + given_up else "",
        ),
        Cell(significant(figures.rate or 0.0, 5), f"(frames - 1) / time from first to last; {n}"),
        Cell(NONE if error is None else micro(error), n),
        *(_gap_share(part, known(kept.n)) for part in shares),
        Cell(stream.why, kind="text"),
    ]


def _gap_share(part: float | None, n: int) -> Cell:
    if part is None:
        return Cell(NONE)
    low, high = share_bounds(part, n)
    return Cell(share(part), f"of {n} gaps; 95 % {share(low)} to {share(high)}")


def account_table(judgement: Judgement) -> Table:
    """A row per run and background load: the outcomes of its frames, counted one by one on arrival."""
    heads = [
        *text_heads("point", "background load", "counted by"),
        Head("sent"),
        Head("arrived"),
        Head("lost"),
        Head("never came"),
        Head("dropped, by reason", kind="text"),
        Head("repeated"),
        Head("out of order"),
        Head("damaged"),
        Head("receiver too slow"),
        Head("latency p50", unit="µs"),
        Head("latency p99", unit="µs"),
    ]
    rows = [
        _account_row(run, account)
        for run in judgement.runs
        for account in load_accounts(run.plan.injects, run.agents)
    ]
    return Table("Account of background load", heads, [Section("", rows)], lead=2)


def _account_row(run: RunResult, account: LoadAccount) -> list[Cell]:
    where = [place_cell(run.plan.point), Cell(f"{account.on} to {account.to}", kind="text short")]
    if not account.receiver:
        return [*where, Cell("nobody", account.why, "text short"), *([Cell(NONE)] * 11)]
    lost = account.lost
    latency = f"n = {account.distinct}; transmit time in the frame to the kernel's timestamp on arrival"
    return [
        *where,
        Cell(account.receiver, account.why, "text short"),
        Cell(NONE if account.sent is None else str(account.sent)),
        Cell(str(account.distinct), "different numbers"),
        Cell(NONE if lost is None else str(lost), "sent - arrived"),
        Cell(
            NONE if account.never_came is None else str(account.never_came),
            "of those lost: reached neither their end nor a full queue",
            "bad" if account.never_came else "",
        ),
        Cell(
            NONE if account.dropped is None else dropped_text(account.dropped) or "nothing",
            "the bench does not see it" if account.dropped is None else "copies that went astray included",
            "text",
        ),
        Cell(str(account.duplicates)),
        Cell(str(account.reordered)),
        Cell(str(account.corrupted), "wrong CRC-32", "bad" if account.corrupted else ""),
        Cell(str(account.missed), "frames for which its ring had no room", "bad" if account.missed else ""),
        Cell(NONE if account.latency_p50_ns is None else micro(account.latency_p50_ns), latency),
        Cell(NONE if account.latency_p99_ns is None else micro(account.latency_p99_ns), latency),
    ]
