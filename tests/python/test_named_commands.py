"""Every command and option that a page, a message or a document names exists, and every line to type can be typed.

Lines of fenced blocks are parsed by the real command line. A block whose lines are not to be typed as they stand has
`<!-- not parsed: WHY -->` on the line above it.
"""

from __future__ import annotations

import ast
import functools
import re
import shlex
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main
from shown_commands import DOCUMENTS, ROOT, TYPED, blocks

from wiregauge.cli import app
from wiregauge.runner.agent_program import agent_program

PACKAGE = ROOT / "python" / "wiregauge"
PROGRAM: Any = typer.main.get_command(app)
"""The command object of click, or of the copy of click in newer versions of typer."""
USAGE_ERROR: Any = typer.BadParameter.__base__
OF_OTHERS = {
    "--now": "systemctl",
    "--time-stamp-precision": "tcpdump",
    "--set-eee": "ethtool",
    "--set-mm": "ethtool",
    "--show-mm": "ethtool",
    "--net": "nsenter",
    "--target": "nsenter",
    "--address": "ray start",
    "--head": "ray start",
    "--ray-client-server-port": "ray start",
    "--first": "python -m campaigns.damage",
    "--mutations": "python -m campaigns.damage",
    "--jobs": "python -m campaigns.lab_faults",
    "--faults": "python -m campaigns.lab_faults",
    "--minutes": "python -m campaigns.steady",
    **dict.fromkeys(
        ("--cycle-time", "--base-time", "--shift-time", "--advance-time", "--num-frames", "--frame-size"),
        "isochron send",
    ),
    **dict.fromkeys(("--num", "--size"), "python -m tsnkit.data.generator"),
    **dict.fromkeys(("--mps", "--msg-size", "--burst", "--reply-every", "--full-rtt"), "sockperf"),
}
"""Options of other programs that documents and messages name."""
PLACE = "X"
"""Stands for what is put into a message at run time."""


class NoCommandError(Exception):
    """What is named is not there."""


@functools.cache
def agent_options(command: str) -> frozenset[str]:
    """The options of a command of the agent program, from its own help. Raises NoCommandError."""
    done = subprocess.run(
        [str(agent_program()), *command.split(), "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if done.returncode:
        raise NoCommandError(f"wiregauge-agent has no command {command}")
    return frozenset(re.findall(r"^ +(?:-\w, )?(--[\w-]+)", done.stdout, re.M))


def agent_commands() -> list[str]:
    done = subprocess.run([str(agent_program()), "--help"], capture_output=True, text=True, check=True)
    return [name for name in re.findall(r"^  ([\w-]+)  ", done.stdout, re.M) if name != "help"]


def options_of(command: Any) -> set[str]:
    return {option for one in command.params for option in (*one.opts, *one.secondary_opts)} | {
        "--help",
        "-h",
    }


def every_option() -> set[str]:
    """The options of all commands together."""
    found = set(options_of(PROGRAM)) | set().union(*map(agent_options, ["", *agent_commands()]))
    waiting: list[Any] = [PROGRAM]
    while waiting:
        command = waiting.pop()
        found |= options_of(command)
        if hasattr(command, "commands"):
            waiting += command.commands.values()
    return found


def named(text: str) -> str:
    """Follows `wiregauge a b --c` or `wiregauge-agent a --c` as far as it names anything; returns the command.

    Raises NoCommandError for a command or option that there is not. Values of options, places and dots are let be.
    """
    program, *words = text.replace("=", " ").split()
    options = [found[0] for word in words if (found := re.match(r"--?[\w-]*", word))]
    if program == "wiregauge-agent" or words[:1] == ["agent"]:
        words = words[1:] if words[:1] == ["agent"] else words
        own = words[0] if words and re.fullmatch(r"[a-z][a-z-]*", words[0]) else ""
        missing = set(options) - agent_options(own) - {"-h", "-"}
        if missing:
            raise NoCommandError(f"wiregauge-agent {own} has no option {min(missing)}")
        return f"agent {own}"
    command: Any = PROGRAM
    path: list[str] = []
    for word in words:
        if not hasattr(command, "commands") or not re.fullmatch(r"[a-z][a-z-]*", word):
            break
        if word not in command.commands:
            raise NoCommandError(f"there is no command {' '.join(['wiregauge', *path, word])}")
        command = command.commands[word]
        path.append(word)
    allowed = options_of(command)
    if hasattr(command, "commands") and path:  # `wiregauge calibrate KIND --json`: of any of them
        allowed |= set().union(*map(options_of, command.commands.values()))
    missing = set(options) - allowed - {"-"}
    if missing:
        raise NoCommandError(f"wiregauge {' '.join(path)} has no option {min(missing)}")
    return " ".join(path)


def typed(line: str) -> None:
    """Parses a line of a shell as the program would, without doing anything. Raises NoCommandError."""
    lexer = shlex.shlex(line.removeprefix("$ "), posix=True, punctuation_chars=True)
    lexer.commenters = "#"
    lexer.whitespace_split = True
    words = list(lexer)
    while words and re.match(r"[A-Z_]+=", words[0]):
        words.pop(0)
    if not words or words[0] not in ("wiregauge", "wiregauge-agent"):
        return
    end = next((k for k, word in enumerate(words) if set(word) <= set("|&;<>")), len(words))
    words = words[:end]
    if words[0] == "wiregauge-agent" or words[1:2] == ["agent"]:
        named(" ".join(words))
        return
    command, rest = PROGRAM, words[1:]
    if len(rest) == 1 and rest[0] in options_of(command):
        return
    while hasattr(command, "commands"):
        if not rest or rest[0] not in command.commands:
            raise NoCommandError(f"{line}: there is no command {' '.join(rest[:1])}")
        command = command.commands[rest.pop(0)]
    try:
        command.make_context(command.name, rest)
    except USAGE_ERROR as error:
        raise NoCommandError(f"{line}: {error.format_message()}") from None


def lines_to_type() -> list[tuple[str, str]]:
    return [
        (block.page, line)
        for block in blocks()
        if "not parsed" not in block.above
        for line in block.text.replace("\\\n", " ").splitlines()
        if TYPED.match(line)
    ]


def strings_of(path: Path) -> Iterator[str]:
    """All strings of a Python file, with a word for what is put in at run time, and its comments."""
    source = path.read_text(encoding="utf-8")
    tree = ast.parse(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(
                str(part.value) if isinstance(part, ast.Constant) else PLACE for part in node.values
            )
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value
    yield from re.findall(r"#(.*)$", source, re.M)


def texts() -> Iterator[tuple[str, str]]:
    """Whatever a reader meets, file by file: documents, messages, pages, the test language."""
    for path in DOCUMENTS:
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")
    for path in sorted(PACKAGE.rglob("*.py")):
        for text in strings_of(path):
            yield str(path.relative_to(ROOT)), text
    for path in sorted([*PACKAGE.rglob("*.j2"), *PACKAGE.rglob("*.xsd"), *PACKAGE.glob("report/*.js")]):
        text = re.sub(r"{{.*?}}", PLACE, path.read_text(encoding="utf-8"))
        yield str(path.relative_to(ROOT)), re.sub(r"{%.*?%}", "", text)
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        text = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
        yield str(path.relative_to(ROOT)), re.sub(r"{[\w.:?]*}", PLACE, text)


CODE = re.compile(
    r"`(?:[A-Z_]+=\S+ )*(wiregauge(?:-agent)?(?: [^`]*)?)`|<code>(wiregauge(?:-agent)?(?: [^<]*)?)</code>"
)


def mentions() -> list[tuple[str, str]]:
    return [
        (where, re.sub(r"\s+", " ", found[1] or found[2]))
        for where, text in texts()
        for found in CODE.finditer(text)
    ]


def refused(check: Callable[[str], object], found: list[tuple[str, str]]) -> str:
    """What the check says of the texts that it refuses, a line each, with the places where they stand."""
    wrong = []
    for where, text in found:
        try:
            check(text)
        except NoCommandError as error:
            wrong.append(f"{where}: `{text}`: {error}")
    return "\n".join(wrong)


def test_every_line_to_type_is_accepted_by_the_command_line() -> None:
    found = lines_to_type()
    assert len(found) > 30
    assert any("wiregauge-agent" in line for _, line in found)
    assert not refused(typed, found)


def test_every_command_that_is_named_is_there_with_its_options() -> None:
    found = mentions()
    for kind in (".md", ".py", ".j2"):
        assert sum(where.endswith(kind) for where, _ in found) > 1, kind
    assert not refused(named, found)


def test_a_page_without_its_script_sends_readers_to_the_command_that_draws() -> None:
    page = (PACKAGE / "report" / "report.html.j2").read_text(encoding="utf-8")
    (said,) = re.findall(r"<noscript>.*<code>(.*?)</code>", page)
    assert named(said) == "report"
    assert {"--png", "--svg"} <= set(said.split())


def test_a_command_is_marked_as_code_wherever_it_is_named() -> None:
    """Else nothing above looks at it."""
    commands = [name for name in PROGRAM.commands if name != "agent"]
    bare = re.compile(rf"(?<![`\w./-])wiregauge (?:{'|'.join(commands)})\b")
    wrong = []
    for where, text in texts():
        if where.endswith((".md", ".rs")):
            marked = re.compile(r"```.*?```|^#.*?$|`[^`]*`", re.M | re.S)
        else:
            marked = re.compile(r"<code>.*?</code>|`[^`]*`")
        wrong += [f"{where}: {found[0]}" for found in bare.finditer(marked.sub("", text))]
    assert not wrong, "\n".join(wrong)


def custom_properties() -> set[str]:
    """Names in style sheets that look like options; scripts of pages read their values."""
    sheets = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("report/*.css"))
    return set(re.findall(r"(--[a-z-]+):", sheets))


def test_every_option_that_is_named_is_there() -> None:
    known = every_option() | set(OF_OTHERS) | custom_properties()
    option = re.compile(r"(?<![\w-])--[a-z][a-z-]*[a-z]")
    wrong = []
    for where, text in texts():
        spans = (
            [found[1] for found in re.finditer(r"`([^`]+)`", text)]
            if where.endswith((".md", ".rs"))
            else [text]
        )
        wrong += [f"{where}: {name}" for span in spans for name in option.findall(span) if name not in known]
    assert not wrong, "\n".join(wrong)


def pages() -> list[Path]:
    """What users read: no decisions, no changelog, nothing for contributors."""
    found = [
        path for path in DOCUMENTS if path.is_relative_to(ROOT / "docs") or path.parent.name == "examples"
    ]
    return [ROOT / "README.md", *(path for path in found if path.parent.name != "decisions")]


def code_of(text: str) -> list[str]:
    """Inline code of a page, and every line of its fenced blocks."""
    fenced = re.findall(r"^ *```.*?\n(.*?)^ *```", text, re.M | re.S)
    rest = re.sub(r"^ *```.*?^ *```", "", text, flags=re.M | re.S)
    lines = [line for block in fenced for line in block.replace("\\\n", " ").splitlines()]
    return [re.sub(r"\s+", " ", span) for span in re.findall(r"`([^`]+)`", rest)] + lines


def options_named_with(span: str) -> set[str]:
    """The options of every command that begins somewhere in some code, also without the name of the program."""
    found: set[str] = set()
    starts = [found[1] for found in re.finditer(r"(?<![\w/-])wiregauge((?:-agent)? [^|;&]*)", span)]
    for start in starts or [f" {span}"]:
        words = start.split()
        if words[:1] == ["-agent"] or words[:1] == ["agent"]:
            own = next(iter(words[1:]), "")
            found |= agent_options(own if own in agent_commands() else "")
            continue
        command: Any = PROGRAM
        for word in words:
            if word not in getattr(command, "commands", ()):
                break
            command = command.commands[word]
        if command is not PROGRAM or starts:
            found |= options_of(command)
            found |= (
                set().union(*map(options_of, getattr(command, "commands", {}).values())) if words else set()
            )
    return found


def foreign_options(text: str) -> Iterator[str]:
    """Options that a page names by themselves and that no command has which it names."""
    spans = code_of(text)
    known = set().union(*map(options_named_with, spans)) | options_of(PROGRAM)
    for span in spans:
        if span.startswith("--"):
            yield from (one for one in re.findall(r"(?<![\w-])--[a-z][a-z-]*", span) if one not in known)


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_an_option_that_a_page_names_is_of_a_command_that_it_names(page: Path) -> None:
    """That some command has it is not enough: `import` takes its files without `--from`."""
    found = set(foreign_options(page.read_text(encoding="utf-8"))) - set(OF_OTHERS)
    assert not found, f"{page.name} names {', '.join(sorted(found))}, and no command that has it"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("`wiregauge import a.pcapng` reads several (`--from`)", ["--from"]),
        ("`wiregauge run t.xml`, with `--out DIR`", []),
        ("`show`, with `--json`", []),
        ("```sh\nwiregauge agent serve\n```\nwith `--stat` and `--state`", ["--stat"]),
    ],
)
def test_options_of_other_commands_are_found(text: str, found: list[str]) -> None:
    assert list(foreign_options(text)) == found


@pytest.mark.parametrize(
    "line",
    [
        "wiregauge exprot r --to csv --out t",
        "wiregauge export r --png t",
        "$ wiregauge run t.xml --bench elsewhere",
        "wiregauge compare r",
        "wiregauge run t.xml --jobs many | cat",
        "wiregauge calibrate show",
        "wiregauge calibrate nothing",
        "A=b wiregauge show r --picture",
        "wiregauge-agent generate --nothing",
        "wiregauge agent nothing",
    ],
)
def test_lines_that_are_wrong_are_found(line: str) -> None:
    with pytest.raises(NoCommandError):
        typed(line)


@pytest.mark.parametrize(
    "text",
    ["wiregauge draw", "wiregauge export --png DIR", "wiregauge calibrate draw", "wiregauge agent serve --x"],
)
def test_mentions_that_are_wrong_are_found(text: str) -> None:
    with pytest.raises(NoCommandError):
        named(text)
