"""Identifies the parameters of a host from the records of a run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from msgspec import Struct, field
from numpy.typing import NDArray

from wiregauge.identify.costs import Cost, Parameter, cost, quantiles
from wiregauge.identify.errors import IdentifyError
from wiregauge.identify.journeys import journeys
from wiregauge.identify.moderation import Moderation, Seen, moderation
from wiregauge.plan import Campaign, Flow, Switch
from wiregauge.plan.ethernet import AROUND_FRAME
from wiregauge.records import RunDirectory

__all__ = ["HostFit", "Parameter", "fit_host", "hosts_of"]

Times = NDArray[np.int64]
Quantiles = tuple[tuple[float, int], ...]

FEWEST = 30
"""The fewest messages for a parameter."""


class HostFit(Struct, frozen=True):
    """The identified model of a host; a part is None where the records do not determine it."""

    name: str
    sent: int
    received: int
    transmit: Cost | None = None
    interface_delay: Parameter | None = None
    send_wake_up: Quantiles | None = None
    moderation: Moderation | None = None
    receive: Cost | None = None
    receive_wake_up: Quantiles | None = None
    relay_wake_up: Quantiles | None = None
    passage: Cost | None = None
    """Cost from the sender's driver to its own, without the network; only without timestamps on the wire."""
    untold: tuple[str, ...] = field(default=())
    """Parameters that the records do not determine, and what was used instead; a sentence each."""


def hosts_of(campaign: Campaign) -> dict[str, int]:
    """Indexes in the plan of end systems that send or receive a measured flow, by name."""
    ends = {end for run in campaign.runs for flow in run.flows for end in flow.ends}
    return {campaign.network.names[node]: node for node in sorted(ends)}


def fit_host(directory: RunDirectory, name: str) -> HostFit:
    """Identifies the host `name` from all runs of a run directory.

    Raises IdentifyError where there is no such host, or no useful record.
    """
    campaign = directory.plan
    known = hosts_of(campaign)
    if name not in known:
        raise IdentifyError(f'"{name}" sends and receives nothing in this test; hosts are {", ".join(known)}')
    tables = _tables(directory, known[name])
    if not tables.sent.height and not tables.received.height:
        raise IdentifyError(
            f'{directory.root}: holds no records of udp, raw or be messages of "{name}"; '
            "its run must keep records (records/) and have such a flow"
        )
    rates = {link.rate_bps for link in campaign.network.links if known[name] in link.nodes}
    untold: list[str] = []
    sending = _sending(tables.sent, min(rates, default=10**9), untold)
    receiving = _receiving(tables, untold)
    relaying = _relaying(tables)
    return HostFit(
        name,
        tables.sent.height,
        tables.received.height,
        untold=tuple(untold),
        **sending,
        **receiving,
        **relaying,
    )


class _Tables(Struct, frozen=True):
    """Messages of a host; `passed` combines those it received with their senders' records, without the network."""

    sent: pl.DataFrame
    received: pl.DataFrame
    passed: pl.DataFrame
    turned: frozenset[int]
    """Flows that a task of the host relays back."""


def _tables(directory: RunDirectory, node: int) -> _Tables:
    campaign = directory.plan
    sent, received, passed = [], [], []
    turned: set[int] = set()
    for run in campaign.runs:
        # A loopback passes no interface, so its cost is not that of a frame.
        flows = {
            flow.id: flow
            for flow in run.flows
            if node in flow.ends and not flow.is_loopback and flow.protocol in ("udp", "raw", "be")
        }
        path = directory.records(run.index)
        if not flows or not path.exists():
            continue
        directory.inventory.check([path])
        own_sent, own_received = (
            side.with_columns(run=pl.lit(run.index)) for side in journeys(path, node, list(flows))
        )
        sent.append(own_sent)
        received.append(own_received)
        turned |= {relay.flow for relay in run.relays if relay.on == node and relay.through == "task"}
        if "wire" in own_received.columns and own_received["wire"].is_null().all():
            at_once = directory.traits.driver == "veth"
            passed.append(_passed(path, campaign, node, flows, own_received, at_once=at_once))
    return _Tables(
        _joined(sent),
        _joined(received),
        _joined(passed),
        frozenset(turned),
    )


def _joined(tables: Sequence[pl.DataFrame]) -> pl.DataFrame:
    return pl.concat(tables) if tables else pl.DataFrame()


def _passed(
    path: Path,
    campaign: Campaign,
    node: int,
    flows: Mapping[int, Flow],
    received: pl.DataFrame,
    *,
    at_once: bool,
) -> pl.DataFrame:
    """Messages that `node` received, with `called` (by their sender) and `left` (its driver, plus the network)."""
    found = []
    for source in {flow.from_ for flow in flows.values() if flow.from_ != node}:
        own = [flow for flow in flows.values() if flow.from_ == source]
        theirs, _ = journeys(path, source, [flow.id for flow in own])
        network = pl.lit(0)
        for flow in own if not at_once else ():
            fixed, per_byte = network_time(campaign, flow)
            network = (
                pl.when(pl.col("flow") == flow.id)
                .then(fixed + per_byte * pl.col("length"))
                .otherwise(network)
            )
        theirs = theirs.filter(~pl.col("returning")).select(
            "flow", "sequence", "warm_up", called="application", left=pl.col("driver") + network
        )
        found.append(received.filter(~pl.col("returning")).join(theirs, on=["flow", "sequence", "warm_up"]))
    return pl.concat(found) if found else pl.DataFrame()


def network_time(campaign: Campaign, flow: Flow) -> tuple[int, int]:
    """Time from the first bit out of the sender to the last bit in, over idle links, ps: fixed, and per byte."""
    network = campaign.network
    fixed = per_byte = 0
    for place, hop in enumerate(flow.routes[0].hops):
        link = network.links[hop.link]
        byte = 8_000_000_000_000 // link.rate_bps
        switch = network.nodes[hop.from_]
        cuts = isinstance(switch, Switch) and switch.forwarding_mode == "cut-through"
        if place and cuts:
            fixed += 22 * byte + link.delay
        else:
            fixed += 8 * byte + link.delay
            per_byte += byte
        fixed += switch.processing_delay if isinstance(switch, Switch) else 0
    return fixed, per_byte


def _whole(table: pl.DataFrame, *names: str) -> pl.DataFrame:
    return table.drop_nulls(list(names)) if set(names) <= set(table.columns) else table.head(0)


def _ps(table: pl.DataFrame, name: str) -> Times:
    found: Times = table[name].cast(pl.Int64).to_numpy()
    return found


def _sending(table: pl.DataFrame, rate: int, untold: list[str]) -> dict[str, Any]:
    own = _whole(table, "application", "driver")
    if own.height < FEWEST:
        untold.append(
            f"it sent {own.height} messages with timestamps at application and driver: nothing is told of sending"
        )
        return {}
    driver, length, run = _ps(own, "driver"), _ps(own, "length"), _ps(own, "run")
    # A frame whose line was busy waited; one that came within a frame's time of another may have.
    on_wire = (length + AROUND_FRAME) * 8_000_000_000_000 // rate
    after = np.diff(driver, prepend=driver[0]) - np.roll(on_wire, 1)
    idle = (after > on_wire // 20) | (np.diff(run, prepend=-1) != 0)
    chosen = idle if int(idle.sum()) >= FEWEST else np.ones_like(idle)
    spent = driver - _ps(own, "application")
    transmit = cost(length[chosen], spent[chosen])
    if transmit.per_byte is None:
        untold.append("all frames it sent have one length: what a byte costs to send is in the fixed cost")
    found: dict[str, Any] = {"transmit": transmit}
    wired = _whole(own, "wire")
    if wired.height >= FEWEST:
        lead = _ps(wired, "wire") - _ps(wired, "driver")
        found["interface_delay"] = cost(np.zeros_like(lead), lead).fixed
    else:
        untold.append(
            "no timestamps on the wire as it sent: the delay of its interface is in that of the receiver"
        )
    planned = _whole(own, "intended")
    if planned.height >= FEWEST:
        found["send_wake_up"] = _wake_of_sender(planned, transmit)
    else:
        untold.append("no planned times of sending: nothing is told of how its senders wake up")
    return found


def _wake_of_sender(table: pl.DataFrame, transmit: Cost) -> Quantiles:
    table = table.sort("run", "application")
    called, planned = _ps(table, "application"), _ps(table, "intended")
    free = np.roll(called + transmit.of(_ps(table, "length")), 1)
    free[0] = planned[0] - 1
    new = np.diff(_ps(table, "run"), prepend=-1) != 0
    asleep = (planned > free) | new
    late = (called - planned)[asleep]
    return quantiles(late if len(late) >= FEWEST else called - planned)


def _receiving(tables: _Tables, untold: list[str]) -> dict[str, Any]:
    own = _whole(tables.received, "driver", "application").sort("run", "driver", "application")
    if own.height < FEWEST:
        untold.append(
            f"it received {own.height} messages with timestamps at driver and application: nothing is told of that"
        )
        return {}
    found: dict[str, Any] = {}
    wired = _whole(own, "wire").sort("run", "wire", "driver")
    if wired.height >= FEWEST:
        came, seen = _ps(wired, "wire"), _ps(wired, "driver")
        starts = np.flatnonzero(np.diff(_ps(wired, "run"), prepend=-1))
        rule = moderation(Seen(came, seen, starts, 1, _ps(wired, "application"), _ps(wired, "length")))
        found["moderation"] = rule
        if rule.kind == "coalesced" and rule.frames is None:
            untold.append(
                "no batch of frames was full: how many frames raise an interrupt at once is not told (32 by default)"
            )
        if rule.explains < 0.9:
            untold.append(
                f"its interrupts follow none of the known rules: {rule.kind} gives {rule.explains:.0%} of the times "
                "of its driver"
            )
    else:
        untold.append(
            "no timestamps on the wire as it received: each frame is taken to raise an interrupt, and what varies on "
            "the way from the call of the sender on is in the wake-up of the receiver"
        )
    receive, told_apart = _cost_of_receiving(own)
    if not told_apart:
        untold.append(
            "its receiver was never busy when a frame came: the least time from driver to application is taken as the "
            "cost of a frame, which is the pessimistic way"
        )
    if receive.per_byte is None:
        untold.append(
            "all frames it received have one length: what a byte costs to receive is in the fixed cost"
        )
    found["receive"] = receive
    idle = ~_behind(own)
    waited = _ps(own, "application") - _ps(own, "driver") - receive.of(_ps(own, "length"))
    found["receive_wake_up"] = quantiles(waited[idle] if int(idle.sum()) >= FEWEST else waited)
    passed = _whole(tables.passed, "driver", "application", "called", "left")
    if wired.height < FEWEST and passed.height >= FEWEST:
        found |= _over_the_network(passed, receive)
    return found


def _over_the_network(passed: pl.DataFrame, receive: Cost) -> dict[str, Any]:
    """Parameters without timestamps on the wire: cost from driver to driver, and all variation from the call on."""
    length = _ps(passed, "length")
    spent = _ps(passed, "driver") - _ps(passed, "left")
    passage = cost(length, spent)
    handed = cost(length, _ps(passed, "left") - _ps(passed, "called"))
    whole = _ps(passed, "application") - _ps(passed, "called")
    varies = whole - handed.of(length) - passage.of(length) - receive.of(length)
    idle = ~_behind(passed.sort("run", "driver", "application"))
    kept = varies[idle] if int(idle.sum()) >= FEWEST else varies
    return {"passage": passage, "receive_wake_up": quantiles(kept)}


def _relaying(tables: _Tables) -> dict[str, Any]:
    """Time from a message's reception by the application to its return by a task; empty where no task returns any."""
    if not tables.turned or not tables.sent.height or not tables.received.height:
        return {}
    key = ["flow", "sequence", "warm_up", "run"]
    came = tables.received.filter(~pl.col("returning") & pl.col("flow").is_in(list(tables.turned)))
    gone = tables.sent.filter(pl.col("returning")).select(*key, back="application")
    both = came.join(gone, on=key).drop_nulls(["application", "back"])
    if both.height < FEWEST:
        return {}
    return {"relay_wake_up": quantiles(_ps(both, "back") - _ps(both, "application"))}


def _behind(own: pl.DataFrame) -> NDArray[np.bool_]:
    """Flags of frames that the driver saw before the last one had reached the application: the receiver was busy."""
    driver, done = _ps(own, "driver"), _ps(own, "application")
    same = np.diff(_ps(own, "run"), prepend=-1) == 0
    behind: NDArray[np.bool_] = same & (np.roll(done, 1) > driver)
    return behind


def _cost_of_receiving(own: pl.DataFrame) -> tuple[Cost, bool]:
    """The cost of receiving a frame, and whether it could be separated from the wake-up."""
    driver, done, length = (_ps(own, name) for name in ("driver", "application", "length"))
    behind = _behind(own)
    if int(behind.sum()) >= FEWEST:
        spent = (done - np.roll(done, 1))[behind]
        found = cost(length[behind], spent)
        if found.per_byte is not None or len(np.unique(length)) == 1:
            return found, True
        slope = cost(length[~behind], (done - driver)[~behind], 0.1).per_byte
        if slope is not None:
            own_length = int(length[behind][0])
            fixed = max(found.fixed.value - slope.value * own_length, 0)
            return Cost(Parameter(fixed, found.fixed.half, found.fixed.n), slope, found.left), True
        return found, True
    return cost(length, done - driver, 0.0), False
