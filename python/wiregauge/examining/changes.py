"""Changes of a host by fixes."""

from __future__ import annotations

from typing import Any

from msgspec import Struct, to_builtins

__all__ = ["Change"]


class Change(Struct, frozen=True):
    """A setting of a host that was changed or restored; `refused` has the reason where it was not."""

    host: str
    fix: str
    interface: str
    setting: str
    before: str
    after: str
    refused: str

    def as_json(self) -> dict[str, Any]:
        """The change as printed JSON."""
        made: dict[str, Any] = to_builtins(self)
        return made
