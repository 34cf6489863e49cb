"""JSON Schemas made from the types of what is printed: a key that is printed is typed, and so it is in the schema."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

__all__ = ["Count", "Figure", "Grade", "Interval", "Json", "Positive", "Share", "Verdict", "json_schema"]

Json = dict[str, object]
Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Figure = float | None
"""None: not determined."""
Interval = Annotated[list[float | None], msgspec.Meta(min_length=2, max_length=2)]
"""None where it is open."""
Grade = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["VALID", "DEGRADED", "INVALID"]})]
Verdict = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["PASS", "FAIL", "UNDECIDED", "NONE"]})]


def json_schema(document: type, title: str, *, closed: bool = False, **rest: str) -> dict[str, Any]:
    """The schema of a `TypedDict`; `closed` where a key that is not typed is a mistake."""
    (root,), parts = msgspec.json.schema_components([document], ref_template="#/$defs/{name}")
    name = root["$ref"].rpartition("/")[2]
    for part in parts.values():
        del part["title"]
        part.pop("description", None)
        if closed:
            part["additionalProperties"] = False
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **rest}
    return {**made, **parts.pop(name), "$defs": parts}
