"""Judges facts: runs every check of the registry, on one host or on many."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from msgspec import Struct, to_builtins

from wiregauge.examining.checks import CHECKS, Check, Severity, Verdict
from wiregauge.examining.facts import Fact, Look, NotKnownError, interfaces_in

__all__ = ["DUPLICATE", "DUPLICATE_EFFECT", "Finding", "judge", "judge_together"]

DUPLICATE: Final = "duplicate-addresses"
DUPLICATE_EFFECT: Final = "frames go to whichever host was heard last, and messages are lost or misdirected"
_CURES: Final = {
    "mac": "ip link set dev {interface} address 02:00:00:00:00:01",
    "ipv4": "ip addr del {value} dev {interface}",
}


class Finding(Struct, frozen=True):
    """The finding of a check. `interface` is empty for the whole host, `cure` if fine or unknown."""

    name: str
    interface: str
    severity: Severity
    seen: str
    effect: str
    cure: str
    fix: str
    """The fix that cures it; empty: none does."""

    def as_json(self) -> dict[str, Any]:
        """The finding as printed JSON."""
        return {**to_builtins(self), "severity": str(self.severity)}


def judge(facts: Sequence[Fact]) -> list[Finding]:
    """The findings of every check for a host and for each of its interfaces with facts."""
    interfaces = interfaces_in(facts)
    return [
        _judged(check, Look(facts, interface))
        for check in CHECKS
        for interface in (interfaces if check.of_interface else [""])
    ]


def _judged(check: Check, look: Look) -> Finding:
    try:
        verdict = check.judge(look)
    except NotKnownError as error:
        verdict = Verdict(Severity.UNKNOWN, f"not known here: {error}")
    ails = verdict.severity in (Severity.PREVENTS, Severity.DEGRADES)
    fix = check.fix if ails and verdict.fixable else ""
    return Finding(
        check.name, look.interface, verdict.severity, verdict.seen, check.effect, verdict.cure, fix
    )


def judge_together(hosts: Mapping[str, Sequence[Fact]]) -> list[tuple[str, Finding]]:
    """Findings that need the facts of several interfaces: duplicate addresses, with the host of each.

    On one host a bridge or VLAN device may share the MAC address of the interface below it.
    """
    found = []
    for kind in _CURES:
        holders: dict[str, list[tuple[str, str]]] = {}
        for host, facts in hosts.items():
            for fact in facts:
                if fact.name != kind:
                    continue
                if fact.value is None:
                    found.append(
                        (
                            host,
                            _duplicate(
                                fact.interface, Severity.UNKNOWN, f"not known here: {fact.unreadable}"
                            ),
                        )
                    )
                    continue
                values = fact.value if isinstance(fact.value, tuple) else (str(fact.value),)
                for value in values:
                    holders.setdefault(value, []).append((host, fact.interface))
        for value, places in holders.items():
            several = len(places) > 1 if kind == "ipv4" else len({host for host, _ in places}) > 1
            if several and not value.startswith("00:00:00:00:00:00"):
                found += [_shared(kind, value, place, places) for place in places[1:]]
    return found


def _shared(
    kind: str, value: str, place: tuple[str, str], places: Sequence[tuple[str, str]]
) -> tuple[str, Finding]:
    host, interface = place
    others = ", ".join(f"{other} {one}" for other, one in places if (other, one) != place)
    cure = _CURES[kind].format(interface=interface, value=value)
    return host, _duplicate(interface, Severity.PREVENTS, f"{value} is also that of {others}", cure)


def _duplicate(interface: str, severity: Severity, seen: str, cure: str = "") -> Finding:
    return Finding(DUPLICATE, interface, severity, seen, DUPLICATE_EFFECT, cure, "")
