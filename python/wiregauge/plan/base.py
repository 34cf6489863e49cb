"""Base of all plan structures: frozen, in the form that serde writes."""

from __future__ import annotations

from typing import Annotated, Any, TypeVar

import msgspec

__all__ = ["FlowId", "NodeIndex", "Picoseconds", "Plan", "Variant", "written"]

T = TypeVar("T")
Picoseconds = int
NodeIndex = Annotated[int, msgspec.Meta(ge=0, le=0xFFFF)]
FlowId = Annotated[int, msgspec.Meta(ge=1, le=65_534)]


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
