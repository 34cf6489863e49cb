"""Facts that a host's agent has found: each with a value, or the reason why there is none."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

__all__ = ["Fact", "Look", "NotKnownError", "Value", "facts_of_json"]

Value = bool | int | str | tuple[str, ...]


class NotKnownError(Exception):
    """A fact that cannot be read here; the text says why."""


class Fact(Struct, frozen=True):
    """A fact; if unreadable `value` is None and `unreadable` says why."""

    name: str
    interface: str = ""
    """The interface; empty for a fact of the whole host."""
    value: Value | None = None
    unreadable: str = ""
    note: str = ""


def facts_of_json(told: Iterable[Mapping[str, Any]]) -> list[Fact]:
    """The facts in the output of `wiregauge-agent doctor --json`."""
    return [
        Fact(
            one["name"],
            one["interface"],
            tuple(one["value"]) if isinstance(one["value"], list) else one["value"],
            one["unreadable"],
            one["note"],
        )
        for one in told
    ]


class Look:
    """The facts for a check: those of the host, and of one interface where the check is about interfaces.

    Every method raises NotKnownError, with the reason, where the fact is unknown.
    """

    def __init__(self, facts: Sequence[Fact], interface: str = "") -> None:
        self.interface = interface
        self._facts = {fact.name: fact for fact in facts if fact.interface in ("", interface)}

    def _value(self, name: str) -> Value:
        fact = self._facts.get(name)
        if fact is None:
            raise NotKnownError(f"the agent does not tell of {name}; it may be of another version")
        if fact.value is None:
            raise NotKnownError(fact.unreadable)
        return fact.value

    def truth(self, name: str) -> bool:
        """A boolean fact."""
        value = self._value(name)
        if not isinstance(value, bool):
            raise NotKnownError(f"the agent says {value} of {name}, which is neither yes nor no")
        return value

    def number(self, name: str) -> int:
        """A numeric fact, in the unit at the end of its name."""
        value = self._value(name)
        if isinstance(value, bool) or not isinstance(value, int):
            raise NotKnownError(f"the agent says {value} of {name}, which is no number")
        return value

    def text(self, name: str) -> str:
        """A fact that is a word or a line."""
        value = self._value(name)
        if not isinstance(value, str):
            raise NotKnownError(f"the agent says {value} of {name}, which is no text")
        return value

    def texts(self, name: str) -> tuple[str, ...]:
        """A fact that is several words or lines."""
        value = self._value(name)
        if not isinstance(value, tuple):
            raise NotKnownError(f"the agent says {value} of {name}, which is no list")
        return value

    def note(self, name: str) -> str:
        """The agent's note on a fact."""
        fact = self._facts.get(name)
        return fact.note if fact is not None else ""


def interfaces_in(facts: Sequence[Fact]) -> list[str]:
    """The interfaces that facts belong to, in their order."""
    return list(dict.fromkeys(fact.interface for fact in facts if fact.interface))
