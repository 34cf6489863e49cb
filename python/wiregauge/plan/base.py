"""Base of all plan structures: frozen, in the form that serde writes."""

from __future__ import annotations

import threading
from typing import Annotated, Any, Final, Literal, TypeVar

import msgspec

__all__ = ["FlowId", "NodeIndex", "Picoseconds", "Plan", "Protocol", "Variant", "convert", "written"]

T = TypeVar("T")
Picoseconds = int
NodeIndex = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
FlowId = Annotated[int, msgspec.Meta(ge=1, le=65_534)]
Protocol = Literal["udp", "raw", "be", "rc", "tt"]


class Plan(msgspec.Struct, frozen=True, omit_defaults=True):
    """A part of the plan. What has its default is not written."""


class Variant(Plan, frozen=True, tag_field="type"):
    """A variant of a union, identified by `type`."""

    @property
    def type(self) -> str:
        """The variant's name, as the plan writes it."""
        return str(self.__struct_config__.tag)


def written(default: T) -> Any:
    """A field whose default is written as well."""
    return msgspec.field(default_factory=lambda: default)


_FIRST_USE: Final = threading.RLock()
_USED: Final[set[Any]] = set()


def convert(raw: object, kind: type[T], *, str_keys: bool = False, strict: bool = True) -> T:
    """`msgspec.convert` for types that several threads use. Raises msgspec.ValidationError.

    msgspec (0.22) collects the fields of a type when it is first used, and the process crashes if a second thread uses
    the type meanwhile. So one thread at a time uses a type for the first time. Without `strict` numbers may be text, as
    protocol buffers write those of 64 bits.
    """
    if kind in _USED:
        return msgspec.convert(raw, kind, str_keys=str_keys, strict=strict)
    with _FIRST_USE:
        try:
            return msgspec.convert(raw, kind, str_keys=str_keys, strict=strict)
        finally:
            _USED.add(kind)
