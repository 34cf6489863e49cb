"""Options that several commands have, told once: a group of them is a type, and a parameter of each command."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import Any, get_type_hints


def in_groups(command: Callable[..., None]) -> Callable[..., None]:
    """The command as the command line takes it, with an option for every field of its groups, in their order."""
    hints = get_type_hints(command, include_extras=True)
    groups: dict[str, Any] = {
        name: hint for name, hint in hints.items() if hasattr(hint, "__struct_fields__")
    }
    parameters = []
    for name, parameter in signature(command).parameters.items():
        if name in groups:
            own = get_type_hints(groups[name], include_extras=True)
            for option, field in signature(groups[name]).parameters.items():
                parameters.append(field.replace(annotation=own[option], kind=field.KEYWORD_ONLY))
        else:
            parameters.append(parameter.replace(annotation=hints[name], kind=parameter.KEYWORD_ONLY))

    @wraps(command)
    def taken(**given: Any) -> None:
        for name, group in groups.items():
            given[name] = group(**{option: given.pop(option) for option in group.__struct_fields__})
        command(**given)

    # Whoever unwraps it would find the groups again.
    del taken.__wrapped__
    return presented(taken, parameters)


def presented(taken: Callable[..., None], parameters: Sequence[Parameter]) -> Callable[..., None]:
    """`taken`, which the parser sees with these parameters."""
    taken.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
    # inspect looks for it there; types of functions know no such attribute.
    taken.__signature__ = Signature(parameters)  # type: ignore[attr-defined]
    return taken
