"""Differences of two run directories in bench, program, host, network and traffic.

Without them a difference of figures cannot be interpreted, so each is a sentence and none is left out silently.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from wiregauge.measures.definitions.units import count_of, duration, rate
from wiregauge.measures.metrics.judgement import FlowResult, Judgement
from wiregauge.plan import plain

MOST_SETTINGS = 24
"""Settings of the two plans that are listed one by one; the rest are counted."""

_NOT_SETTINGS = frozenset({"name", "mac", "ipv4", "line"})
"""Node attributes that are no settings: the name is the place in the list; addresses follow from it."""

_TIMES = frozenset(
    {
        "at",
        "delay",
        "fixed",
        "granularity",
        "interface_delay",
        "interface_receive_delay",
        "interrupt_latency",
        "interval",
        "mixed_rate_delay",
        "offset",
        "per_byte",
        "period",
        "processing_delay",
        "ramp_to",
        "wait",
    }
)
"""Keys of the plan that hold picoseconds."""


def differences(base: Judgement, new: Judgement) -> tuple[str, ...]:
    """Sentences on differences of the two campaigns; empty when only the figures can differ."""
    first, second = base.manifest, new.manifest
    found = [
        f"{title}: {one} against {other}"
        for title, one, other in (
            ("bench", _text(first, "bench"), _text(second, "bench")),
            ("test", _text(first, "test", "name"), _text(second, "test", "name")),
            ("program version", _text(first, "program", "version"), _text(second, "program", "version")),
            ("seed", _text(first, "seed"), _text(second, "seed")),
            ("repeats", str(base.plan.repeats), str(new.plan.repeats)),
            ("validity", base.validity.word, new.validity.word),
            ("unplanned frames", str(_unplanned(base)), str(_unplanned(new))),
        )
        if one != other
    ]
    apart = base.traits.between, new.traits.between
    if "" not in apart and apart[0] != apart[1]:
        found.append(f"what plays switches and links: {apart[0]} against {apart[1]}")
    if _text(first, "bench") == _text(second, "bench") and not base.traits.virtual_time:
        hosts = [m.get("host") for m in (first, second)]
        keys = sorted({str(key) for host in hosts if isinstance(host, dict) for key in host} - {"load"})
        for key in keys:
            one, other = _text(first, "host", key), _text(second, "host", key)
            if one != other and "load" not in key:
                found.append(f"host, {key}: {one} against {other}")
    if any(_alone(judgement) for judgement in (base, new)):
        found.append(
            "a live side has one run per point, so what changed between the runs (load of the host, placement) "
            "counts as a difference; repeats in the test would tell it apart"
        )
    found += [
        f"{side}: a run too large to be held in memory, so shifts of percentiles and means rest on its sample"
        for side, judgement in (("base", base), ("new", new))
        if any(flow.sampled is not None for point in judgement.points for flow in point.flows)
    ]
    return tuple(found) + _settings(base, new)


def _alone(judgement: Judgement) -> bool:
    """Whether each point of a real bench was run once; a simulated host does not change between runs."""
    return not judgement.traits.virtual_time and judgement.plan.repeats == 1


def _unplanned(judgement: Judgement) -> int:
    """Frames that belong to no sent message, foreign ones left out."""
    return sum(n for run in judgement.runs for kind, n in run.unplanned.items() if kind != "foreign")


def _text(manifest: Mapping[str, object], *keys: str) -> str:
    value: object = manifest
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return "?" if value is None else str(value)


def _settings(base: Judgement, new: Judgement) -> tuple[str, ...]:
    """Differences of the networks of the two plans, by the names in the tests; equal differences share a sentence."""
    trees = [_network(judgement) for judgement in (base, new)]
    changed: dict[tuple[str, str, str], list[str]] = {}
    for owner in [*trees[0], *(owner for owner in trees[1] if owner not in trees[0])]:
        first, second = (tree.get(owner) for tree in trees)
        if first is None or second is None:
            there = _THERE[first is not None], _THERE[second is not None]
            changed.setdefault(("", *there), []).append(owner)
            continue
        for setting in [*first, *(setting for setting in second if setting not in first)]:
            one, other = (side.get(setting, _THERE[False]) for side in (first, second))
            if one != other:
                changed.setdefault((setting, one, other), []).append(owner)
    lines = [
        f"{', '.join(owners)}{', ' + setting if setting else ''}: {one} against {other}"
        for (setting, one, other), owners in changed.items()
    ]
    left = len(lines) - MOST_SETTINGS
    more = [f"{count_of(left, 'further setting')} of the networks differ"] if left > 0 else []
    return (*lines[:MOST_SETTINGS], *more)


_THERE = {False: "not there", True: "there"}

Settings = dict[str, dict[str, str]]
"""Settings by owner (a node, a link, the network) and name, with the value as text."""


def _network(judgement: Judgement) -> Settings:
    network = judgement.plan.network
    found: Settings = {}
    for link in network.links:
        one, other = (network.names[node] for node in link.nodes)
        settings = {key: value for key, value in plain(link).items() if key != "ends"}
        found[f"link {one} to {other}" + (" on B" if link.network == "B" else "")] = _owned(settings)
    return found | {node.name: _owned(plain(node)) for node in network.nodes}


def _owned(settings: Mapping[str, object]) -> dict[str, str]:
    return {name.removeprefix(", "): value for name, value in _leaves("", settings)}


def _leaves(name: str, value: object, key: str = "") -> Iterator[tuple[str, str]]:
    if key == "quantiles" and isinstance(value, list):
        yield name, ", ".join(_quantile(pair) for pair in value)
    elif isinstance(value, dict):
        for inner, inside in value.items():
            # The kind of a node is an object of its settings: its name would only lengthen theirs.
            own = str(inner).removesuffix("_bps").replace("_", " ")
            called = name if inner == "kind" and isinstance(inside, dict) else f"{name}, {own}"
            if inner not in _NOT_SETTINGS:
                yield from _leaves(called, inside, str(inner))
    elif isinstance(value, list):
        for place, inside in enumerate(value):
            yield from _leaves(f"{name} {place}", inside, key)
    else:
        yield name, _with_unit(key, value)


def _quantile(pair: object) -> str:
    if isinstance(pair, list) and len(pair) == 2 and all(isinstance(part, int) for part in pair):
        return f"{pair[0] / 1e4:g} % {duration(pair[1] / 1000)}"
    return str(pair)


def _with_unit(key: str, value: object) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if key in _TIMES:
        return duration(value / 1000)
    if key.endswith("_bps"):
        return rate(value)
    return f"{value} B" if key in ("bytes", "egress_bytes") else str(value)


def flow_differences(base: FlowResult, new: FlowResult) -> tuple[str, ...]:
    """Differences of two paired flows in their plans: `udp against raw`, another route, another period."""
    one, other = base.plan, new.plan

    def text(ns: float | None) -> str:
        return duration(ns) if ns else "none"

    pairs = (
        ("protocol", one.protocol, other.protocol),
        ("number", str(one.id), str(other.id)),
        ("way", " → ".join(one.path), " → ".join(other.path)),
        ("ends", f"{one.source} to {one.destination}", f"{other.source} to {other.destination}"),
        ("kind", "relayed" if one.relayed else "one way", "relayed" if other.relayed else "one way"),
        ("payload", one.size.text, other.size.text),
        ("period", text(one.period_ns), text(other.period_ns)),
        ("deadline", text(one.deadline_ns), text(other.deadline_ns)),
        ("messages", str(base.counts["sent"]), str(new.counts["sent"])),
    )
    return tuple(f"{title} {first} against {second}" for title, first, second in pairs if first != second)
