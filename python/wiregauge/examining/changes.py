"""Changes of a host by fixes."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

__all__ = ["Change"]


@dataclass(frozen=True, slots=True)
class Change:
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
        return asdict(self)
