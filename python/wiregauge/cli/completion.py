"""What the shell offers for a value: benches, formats, studies, templates, pages, flows of a file, run directories.

Values that the name of an option spells out (`sim|netns|lab`) are offered as they stand there. Nothing is offered that
takes a mistake to find: a file that cannot be read has no flows, and the shell goes on with names of files.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, Final, NamedTuple

__all__ = ["Suggested", "offer"]


class Suggested(NamedTuple):
    """What the shell is offered, as the parser's own class has it; that one is elsewhere in each of its versions."""

    value: str
    help: str = ""
    type: str = "plain"


_SPELT_OUT: Final = re.compile(r"\[?[a-z]+(?:\|[a-z]+)+\]?")
_FLOW: Final = re.compile(rb"<flow\s(?:[^>]*\s)?id=[\"'](\d+)[\"']")
_MOST_READ: Final = 1 << 20
"""Octets of a test that are looked at for its flows."""
_RUNS: Final = ("DIR", "DIR...", "DIR DIR...", "PLACE", "BASE", "NEW")
_MADE: Final = ("out", "png", "svg", "runs", "store")
"""Parameters that name a folder which is no run directory, or is none yet."""


def offer(parameter: Any) -> Any:
    """The parameter, for which the shell is offered values."""
    if getattr(parameter, "_custom_shell_complete", parameter) is None:
        found = _source(parameter)
        if found is not None:

            def complete(ctx: Any, _parameter: Any, incomplete: str) -> list[Suggested]:
                try:
                    return [one for one in found(ctx, incomplete) if one.value.startswith(incomplete)]
                except (OSError, ValueError):
                    return []

            parameter._custom_shell_complete = complete
    return parameter


def _source(parameter: Any) -> Callable[[Any, str], Iterable[Suggested]] | None:
    metavar = parameter.metavar or ""
    if _SPELT_OUT.fullmatch(metavar):
        return lambda _ctx, _incomplete: map(Suggested, metavar.strip("[]").split("|"))
    if metavar in _RUNS and parameter.name not in _MADE:
        return _run_directories
    return _BY_NAME.get((metavar, parameter.name))


def _run_directories(_ctx: Any, incomplete: str) -> Iterable[Suggested]:
    """Run directories, and folders that have some below; nothing where there are none, so that the shell goes on."""
    head = incomplete[: incomplete.rfind("/") + 1]
    for path in sorted(Path(head or ".").iterdir()):
        if path.name.startswith(".") or not path.is_dir():
            continue
        if (path / "manifest.json").is_file():
            yield Suggested(f"{head}{path.name}")
        elif any(path.glob("*/manifest.json")):
            yield Suggested(f"{head}{path.name}/")


def _flows(ctx: Any, _incomplete: str) -> Iterable[Suggested]:
    """Flows of the test or the run directory that the line names."""
    # Where the option that is completed ends the line, the parser leaves all before it unread.
    for value in (*ctx.params.values(), *ctx.args):
        place = Path(value) if isinstance(value, str | Path) else None
        if place is None:
            continue
        test = place / "test.xml" if place.is_dir() else place
        if test.is_file():
            with test.open("rb") as file:
                return [Suggested(number.decode()) for number in _FLOW.findall(file.read(_MOST_READ))]
    return []


def _formats(_ctx: Any, _incomplete: str) -> Iterable[Suggested]:
    from wiregauge.export import FORMATS

    return [Suggested(name, form.title) for name, form in FORMATS.items()]


def _studies(_ctx: Any, _incomplete: str) -> Iterable[Suggested]:
    from wiregauge.studies.known import names

    return map(Suggested, names())


def _templates(_ctx: Any, _incomplete: str) -> Iterable[Suggested]:
    from wiregauge.config.template_files import examples, templates

    return [Suggested(one.name, one.summary) for one in (*templates(), *examples())]


def _pages(_ctx: Any, _incomplete: str) -> Iterable[Suggested]:
    from wiregauge.cli.docs import pages

    return [Suggested(one.name, one.title) for one in pages()]


_BY_NAME: Final[dict[tuple[str, str], Callable[[Any, str], Iterable[Suggested]]]] = {
    ("FORMAT", "to"): _formats,
    ("[NAME]", "name"): _studies,
    ("[TEMPLATE]", "template"): _templates,
    ("[PAGE]", "page"): _pages,
    ("N", "flows"): _flows,
    ("N", "flow"): _flows,
    ("ID", "flow"): _flows,
}
"""By what help calls a value, and the name of the parameter."""
