"""Values of options as their types, without the library that the parser has for it.

What is plainly a number, a path, a choice or a text is made one here. Everything else goes the parser's own way, so
that it decides, and words the error: that imports Pydantic, which takes longer than many a command.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, Final, Literal, get_args, get_origin

import typer

__all__ = ["hasten"]

_INTEGER: Final = re.compile(r"[+-]?[0-9]+", re.ASCII)
_DECIMAL: Final = re.compile(r"[+-]?[0-9]+(\.[0-9]+)?(e[+-]?[0-9]+)?", re.ASCII)
_OF_PATHS: Final = {
    "exists": False,
    "file_okay": True,
    "dir_okay": True,
    "writable": False,
    "resolve_path": False,
}
"""What is not asked of a path here."""


class _NotPlainError(Exception):
    """The parser itself is to look at this value."""


def hasten(parameters: list[Any]) -> list[Any]:
    """The parameters of a command, whose values are read here where they are plain."""
    for parameter in parameters:
        # Only versions of the parser that use Pydantic have it.
        if getattr(parameter, "_runtime_param", parameter) is None:
            parameter._runtime_param = _Plain()
    return parameters


class _Plain:
    """Stands where the parser keeps how it makes values of one parameter."""

    def coerce(self, value: Any, param: Any, ctx: Any) -> Any:
        descriptor = param.type_descriptor
        try:
            return _made(value, descriptor.annotation, descriptor.parameter_info, param)
        except _NotPlainError:
            param._runtime_param = None
            return param.get_runtime_param().coerce(value, param=param, ctx=ctx)


def _made(value: Any, kind: Any, info: Any, param: Any) -> Any:
    if getattr(info, "click_type", None) is not None:
        raise _NotPlainError
    several = param.multiple or param.nargs == -1
    if value is None:
        return () if several else None
    if not several and info.parser is not None:
        return _parsed(value, info.parser)
    if not several:
        return _one(value, kind, info)
    if info.parser is not None or isinstance(value, str) or get_origin(kind) is not list:
        raise _NotPlainError
    return [_one(each, get_args(kind)[0], info) for each in value]


def _parsed(value: Any, parser: Callable[[Any], Any]) -> Any:
    try:
        return parser(value)
    except (ValueError, typer.BadParameter) as error:
        raise _NotPlainError from error


def _one(value: Any, kind: Any, info: Any) -> Any:
    if kind is str and isinstance(value, str):
        return value
    if kind is int or kind is float:
        return _number(value, kind, info)
    if kind is Path and isinstance(value, str | Path):
        return _path(Path(value), info)
    if get_origin(kind) is Literal and value in get_args(kind):
        return value
    if isinstance(kind, type) and issubclass(kind, Enum):
        for each in kind:
            if value is each or value == each.value:
                return each
    raise _NotPlainError


def _number(value: Any, kind: type, info: Any) -> Any:
    if isinstance(value, str):
        if not (_INTEGER if kind is int else _DECIMAL).fullmatch(value):
            raise _NotPlainError
        value = kind(value)
    if type(value) is not kind or info.clamp:
        raise _NotPlainError
    if (info.min is not None and value < info.min) or (info.max is not None and value > info.max):
        raise _NotPlainError
    return value


def _path(path: Path, info: Any) -> Path:
    if any(getattr(info, name) != plain for name, plain in _OF_PATHS.items()):
        raise _NotPlainError
    if info.readable and os.access(path, os.F_OK) and not os.access(path, os.R_OK):
        raise _NotPlainError
    return path
