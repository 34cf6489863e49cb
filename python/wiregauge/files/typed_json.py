"""JSON objects and their JSON Schemas, both from typed definitions: each key is declared once.

The type of a result, a `msgspec.Struct`, is also the type of its JSON object: a key for each attribute, in their order,
except where `Key` in its annotation says otherwise. A `TypedDict` lists the keys of an object that has another form.
Each is the attribute of its name, with or without the unit at its end, or what `From` says. `filled` reads the object
off a result, and `json_schema` makes the schema of the same type.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from types import GenericAlias, NoneType, UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    NotRequired,
    TypedDict,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
    is_typeddict,
)
from typing import get_type_hints as hints_of

import msgspec
from msgspec import Struct

Json = dict[str, object]
Count = Annotated[int, msgspec.Meta(ge=0)]
Positive = Annotated[float, msgspec.Meta(ge=0)]
Share = Annotated[float, msgspec.Meta(ge=0, le=1)]
Figure = float | None
"""A figure; None: not determined."""
Interval = Annotated[list[float | None], msgspec.Meta(min_length=2, max_length=2)]
"""Ends of an interval; None where it is open."""
Grade = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["VALID", "DEGRADED", "INVALID"]})]
Verdict = Annotated[str, msgspec.Meta(extra_json_schema={"enum": ["PASS", "FAIL", "UNDECIDED", "NONE"]})]

T = TypeVar("T")
Read = Callable[[Any], Any]


class From(Struct, frozen=True):
    """The source of a key's value, in its annotation.

    A path of attributes, `plan.id`, is None from where one of them is None on, and its end is converted to the
    annotated type. A function is given the source and returns the value.
    """

    where: str | Read


class Key(Struct, frozen=True):
    """The key of a result's attribute, in its annotation: `name` where it is not the attribute's, None without a key.

    A property has a key only if its return type has this, and stands `after` another key, or first. `flat` puts the
    keys of the attribute's object in its place, `nullable` gives null for an empty text. `kind` is the JSON type where
    that is not the attribute's, and `read` the source of its value, as in `From`.
    """

    name: str | None = ""
    after: str = ""
    flat: bool = False
    nullable: bool = False
    kind: Any = None
    read: str | Read | None = None


HIDDEN = Key(None)
"""Marks an attribute without a key."""


def filled(kind: type[T], source: object, **given: object) -> T:
    """The object of a `TypedDict`, read off `source`, in the order of the type's keys; `given` are those it has not."""
    made: T = _filled(kind, source, given)
    return made


def as_json(source: object) -> Json:
    """The object of a result whose type is that of its JSON object."""
    made: Json = _filled(type(source), source, {})
    return made


def _filled(kind: Any, source: Any, given: Mapping[str, object]) -> Any:
    of: Any = type(source)
    return _filler(kind, of, tuple(given))(source, given)


@cache
def form_of(kind: Any) -> Any:
    """The `TypedDict` of a result's type, or of another `TypedDict`, with those of its parts in it."""
    hints = hints_of(kind, include_extras=True)
    if is_typeddict(kind):
        keys = {key: _form(hint) for key, hint in hints.items()}
    else:
        keys = {}
        for name in kind.__struct_fields__:
            keys |= _keys(name, hints[name], _mark(hints[name]) or Key())
        for name, made in vars(kind).items():
            if isinstance(made, property):
                hint = hints_of(cast(Any, made.fget), include_extras=True)["return"]
                if (key := _mark(hint)) is not None:
                    place = list(keys).index(key.after) + 1 if key.after else 0
                    before = dict(list(keys.items())[:place])
                    keys = {**before, **_keys(name, hint, key), **keys}
    form = cast(Any, TypedDict)(kind.__name__, keys)
    form.__module__ = kind.__module__
    return form


def _mark(hint: Any) -> Key | None:
    return next((mark for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, Key)), None)


def _keys(name: str, hint: Any, key: Key) -> dict[str, Any]:
    """The keys that an attribute becomes, with their types."""
    if key.name is None:
        return {}
    if key.flat:
        inner = hints_of(form_of(get_args(hint)[0]), include_extras=True)
        return {one: _from(of, lambda where: f"{name}.{where}") for one, of in inner.items()}
    hint, read = _form(hint if key.kind is None else key.kind), key.read or name
    if key.nullable:
        hint, read = hint | None, lambda source: getattr(source, name) or None
    return {key.name or name: Annotated[hint, From(read)]}


def _from(hint: Any, moved: Callable[[str], str]) -> Any:
    """The type with the path of its value changed."""
    plain, *marks = get_args(hint)
    rest = [mark if not isinstance(mark, From) else From(moved(cast(str, mark.where))) for mark in marks]
    return Annotated[plain, *rest]


def _form(hint: Any) -> Any:
    """The JSON form of a type: results and what holds them as objects and arrays."""
    origin, inner = get_origin(hint), get_args(hint)
    if is_typeddict(hint) or hasattr(hint, "__struct_fields__"):
        return form_of(hint)
    if origin is NotRequired:
        return NotRequired[_form(inner[0])]
    if origin is Annotated:
        return Annotated[_form(inner[0]), *inner[1:]]
    if origin in (Union, UnionType):
        return Union[tuple(_form(one) for one in inner)]  # noqa: UP007 - of types known at run time only
    if origin in (dict, Mapping):
        return GenericAlias(dict, (inner[0], _form(inner[1])))
    if origin in (list, Sequence) or (origin is tuple and inner[1:] == (...,)):
        return GenericAlias(list, (_form(inner[0]),))
    return hint


@cache
def _filler(kind: type, of: type, given: tuple[str, ...]) -> Callable[[Any, Mapping[str, object]], Any]:
    """A constructor of such objects, as an expression compiled once; a run of many flows has millions of them."""
    hints = hints_of(form_of(kind), include_extras=True)
    known: dict[str, Read] = {"_str": str, "_list": list}
    values = {key: f"given[{key!r}]" for key in (*hints, *given) if key in given or key not in hints}
    for number, (key, hint) in enumerate(hints.items()):
        if key not in given:
            values[key] = _value(key, hint, of, known, f"_{number}")
    ordered = (f"{key!r}: {values[key]}" for key in dict.fromkeys((*hints, *given)))
    made: Callable[[Any, Mapping[str, object]], Any] = eval(
        f"lambda source, given: {{{', '.join(ordered)}}}", dict(known)
    )
    return made


def _value(key: str, hint: Any, of: type, known: dict[str, Read], name: str) -> str:
    """The source text of a value's expression; functions it calls are added to `known` under `name`."""
    if get_origin(hint) is NotRequired:
        (hint,) = get_args(hint)
    where = next((mark.where for mark in getattr(hint, "__metadata__", ()) if isinstance(mark, From)), None)
    if callable(where):
        known[name] = where
        return f"{name}(source)"
    if where is None:
        if get_origin(hint) is Literal and len(get_args(hint)) == 1:
            return repr(get_args(hint)[0])
        where = key if hasattr(of, key) else re.sub(r"_(ns|s|ppm|bps)$", "", key)
    first, *others = where.split(".")
    value = f"source.{first}"
    for other in others:
        value = f"(None if (v := {value}) is None else v.{other})"
    return _made(hint, value, known, name)


def _made(hint: Any, value: str, known: dict[str, Read], name: str) -> str:
    """The expression that makes a `value` of this type."""
    origin, inner = get_origin(hint), get_args(hint)
    if is_typeddict(hint):
        known[name] = lambda source: _filled(hint, source, {})
        return f"{name}({value})"
    if origin is Annotated:
        return _made(inner[0], value, known, name)
    if origin in (Union, UnionType):
        each = (_made(one, "w", known, name) for one in inner if one is not NoneType)
        made = next((one for one in each if one != "w"), None)
        return value if made is None else f"(None if (w := {value}) is None else {made})"
    if origin is list:
        one = _made(inner[0], "x", known, name)
        return f"_list({value})" if one == "x" else f"(lambda all: [{one} for x in all])({value})"
    if origin is tuple:
        return f"_list({value})"
    if origin is dict:
        one = _made(inner[1], "y", known, name)
        return f"(lambda all: {{_str(k): {one} for k, y in all.items()}})({value})"
    return value


def json_schema(document: type, title: str, *, closed: bool = False, **rest: str) -> dict[str, Any]:
    """The schema of such a type; `closed` where a key that is not typed is a mistake."""
    (root,), parts = msgspec.json.schema_components([form_of(document)], ref_template="#/$defs/{name}")
    name = root["$ref"].rpartition("/")[2]
    for part in parts.values():
        del part["title"]
        part.pop("description", None)
        if closed:
            part["additionalProperties"] = False
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **rest}
    return {**made, **parts.pop(name), "$defs": parts}
