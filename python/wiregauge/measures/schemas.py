"""Objects of JSON made from the types of what is printed, and their JSON Schemas: a key is told in one place.

A `TypedDict` lists the keys of an object. Each is the attribute of its name, with or without the unit at its end, or
what `From` says; `filled` reads them off the results, and `json_schema` makes the schema of the same type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, partial
from operator import attrgetter
from types import NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
)
from typing import get_type_hints as hints_of

import msgspec

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

T = TypeVar("T")
Read = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class From:
    """In the annotation of a key: where its value is.

    A path of attributes, `plan.id`, is None from where one of them is None on, and its end is made what the type
    says. A function is given the source and returns what is printed.
    """

    where: str | Read


def filled(kind: type[T], source: object, **given: object) -> T:
    """The object of a `TypedDict`, read off `source`, in the order of the type's keys; `given` are those it has not."""
    made = _filler(cast(Any, kind), cast(Any, type(source)), tuple(given))(source)
    if given:
        made.update(given)
    return cast(T, made)


@cache
def _filler(kind: type, of: type, given: tuple[str, ...]) -> Read:
    """What makes such an object. A run of many flows has millions: plain attributes are read in one call."""
    hints = hints_of(kind, include_extras=True)
    readers = {key: _reader(key, hint, of) for key, hint in hints.items() if key not in given}
    # An attribute that is there for sure stands in for what is computed, so that keys keep their order.
    plain = {key: where for key, (where, _) in readers.items() if where is not None}
    computed = [(key, read) for key, (where, read) in readers.items() if where is None]
    if not plain:
        return lambda source: {**dict.fromkeys(hints), **{key: read(source) for key, read in computed}}
    filler = next(iter(plain.values()))
    keys = tuple(hints)
    if len(keys) == 1:
        (key,), get = keys, attrgetter(filler)
        return lambda source: {key: get(source)}
    get = attrgetter(*(plain.get(key, filler) for key in keys))

    def fill(source: Any) -> dict[str, Any]:
        made = dict(zip(keys, get(source), strict=True))
        for key, read in computed:
            made[key] = read(source)
        return made

    return fill


def _reader(key: str, hint: Any, of: type) -> tuple[str | None, Read]:
    """The attribute that is the value as it is, or None; and what reads the value in any case."""
    if get_origin(hint) is NotRequired:
        (hint,) = get_args(hint)
    where = next((mark.where for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, From)), None)
    if callable(where):
        return None, where
    if where is None:
        if get_origin(hint) is Literal and len(get_args(hint)) == 1:
            return None, lambda _: get_args(hint)[0]
        where = key if hasattr(of, key) else re.sub(r"_(ns|s|ppm|bps)$", "", key)
    made = _made(hint)
    if "." not in where:
        read: Read = attrgetter(where)
        if made is None:
            return where, read
    else:
        read = partial(_along, tuple(where.split(".")))
        if made is None:
            return None, read
    return None, lambda source: made(read(source))


def _along(path: tuple[str, ...], source: Any) -> Any:
    for name in path:
        if source is None:
            return None
        source = getattr(source, name)
    return source


def _made(hint: Any) -> Read | None:
    """What makes a value of this type; None where it is taken as it is."""
    if is_typeddict(hint):
        return partial(filled, hint)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _made(inner[0])
    if origin in (Union, UnionType):
        made = next(filter(None, (_made(one) for one in inner if one is not NoneType)), None)
        return None if made is None else lambda value: None if value is None else made(value)
    if origin is list:
        each = _made(inner[0])
        return list if each is None else partial(_list_of, each)
    if origin is dict:
        return partial(_dict_of, _made(inner[1]))
    return None


def _list_of(made: Read, values: Iterable[Any]) -> list[Any]:
    return [made(value) for value in values]


def _dict_of(made: Read | None, values: Mapping[Any, Any]) -> dict[str, Any]:
    return {str(name): value if made is None else made(value) for name, value in values.items()}


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
