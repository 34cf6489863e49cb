"""An option that several commands have means the same in each: one name, one type, one sentence."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
import typer.main

from wiregauge.cli import app
from wiregauge.cli.options import MEANINGS

PROGRAM: Any = typer.main.get_command(app)
KINDS_DIFFER = {
    "--flow": "`export` also takes a receiver of a multicast flow",
    "--protocol": "`probe` has none but those that both hosts know",
}
SHORT = {"-o": "--out", "-j": "--jobs", "-t": "--threshold", "-q": "--quiet", "-v": "--verbose"}
SCOPE = re.compile(r"[-\w]+( (or )?[-\w]+)*: ")


def commands(command: Any = PROGRAM, name: str = "wiregauge") -> Iterator[tuple[str, Any]]:
    below = getattr(command, "commands", None)
    if below is None:
        yield name, command
        return
    for part, one in below.items():
        yield from commands(one, f"{name} {part}")


def options() -> dict[str, list[tuple[str, Any]]]:
    """Every option by name, with its commands and its declaration in each."""
    found = defaultdict(list)
    for name, command in commands():
        for parameter in command.params:
            if parameter.param_type_name == "option":
                found[parameter.opts[0]].append((name, parameter))
    return found


OPTIONS = options()


def kind(parameter: Any) -> Any:
    """The type of a single value of an option."""
    found = parameter.type_descriptor.annotation
    return get_args(found)[0] if get_origin(found) is list else found


def stated(parameter: Any) -> str:
    """Its help without what it has an effect with."""
    text = SCOPE.sub("", parameter.help, count=1) if not_plain(parameter.help) else parameter.help
    return str(text[0].upper() + text[1:])


def not_plain(text: str) -> bool:
    """Whether it begins with a bench, an engine or another option, and not with its meaning."""
    return not any(text.startswith(meaning) for meaning in MEANINGS.values())


@pytest.mark.parametrize("option", sorted(name for name, found in OPTIONS.items() if len(found) > 1))
def test_an_option_means_one_thing_in_every_command(option: str) -> None:
    texts = {name: stated(parameter) for name, parameter in OPTIONS[option]}
    if option in MEANINGS:
        assert {name: text for name, text in texts.items() if not text.startswith(MEANINGS[option])} == {}
    else:
        assert len(set(texts.values())) == 1, f"{texts}: give it one meaning in wiregauge.cli.options"
    if option not in KINDS_DIFFER:
        assert len({kind(parameter) for _, parameter in OPTIONS[option]}) == 1
    assert len({tuple(parameter.opts[1:]) for _, parameter in OPTIONS[option]}) == 1


def test_no_meaning_is_left_over_and_no_two_options_share_one() -> None:
    assert [option for option in MEANINGS if len(OPTIONS.get(option, ())) < 2] == []
    assert len(set(MEANINGS.values())) == len(MEANINGS)


def test_a_letter_stands_for_one_option() -> None:
    found = {
        letter: name
        for name, uses in OPTIONS.items()
        for _, parameter in uses
        for letter in parameter.opts[1:]
    }
    assert found == SHORT


def test_every_file_or_folder_to_go_on_with_is_named_by_the_option_itself() -> None:
    assert {parameter.metavar for _, parameter in OPTIONS["--resume"]} == {"DIR"}
    assert {parameter.metavar for _, parameter in OPTIONS["--out"]} <= {"DIR", "FILE"}
