"""Makes the manual pages out of `docs/reference/command-line.md`, which `make reference` makes out of the program.

    python3 tools/man_pages.py FOLDER

They go into the wheel and the Debian package, and are nowhere else: `wiregauge.1`, a page for each command
(`man wiregauge run`), and `wiregauge-agent.8`, whose other sections are in `packaging`.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct, field

ROOT: Final = Path(__file__).resolve().parent.parent
REFERENCE: Final = ROOT / "docs" / "reference"
AGENT: Final = "wiregauge-agent"
AGENT_PAGE: Final = ROOT / "packaging" / f"{AGENT}.8"
_PLACE: Final = '.\\" COMMANDS\n'
"""The line of the agent's page that its commands replace."""
_INLINE: Final = re.compile(r"`([^`]+)`|\*\*([^*]+)\*\*|\[([^\]]+)\]\([^)]*\)")
_OPTION: Final = re.compile(r"^ {2,6}((?:-\w, )?--[\w-]+(?: \S+)?(?:\.\.\.)?)(?: {2,}(.*))?$")


class Section(Struct):
    """A heading of the reference page, and what is below it."""

    title: str
    depth: int
    body: str
    within: list[Section] = field(default_factory=list)

    @property
    def text(self) -> str:
        """Its first paragraph."""
        return self.body.strip().partition("\n\n")[0]

    @property
    def blocks(self) -> list[str]:
        """Its fenced blocks."""
        return re.findall(r"^```text\n(.*?)\n```$", self.body, re.M | re.S)

    @property
    def usage(self) -> str:
        """The words to type, empty for a group of commands."""
        found = re.search(r"Usage: (.*(?:\n +\S.*)*)", "\n".join(self.blocks))
        return " ".join(found[1].split()) if found else ""


def sections(text: str) -> list[Section]:
    """The sections of the reference page, those of subcommands within those of their groups."""
    found: list[Section] = []
    for part in re.split(r"^(?=##+ )", text, flags=re.M)[1:]:
        heading, _, body = part.partition("\n")
        marks, _, title = heading.partition(" ")
        one = Section(title, len(marks), body)
        (found[-1].within if one.depth > 2 else found).append(one)
    return found


def pages() -> dict[str, str]:
    """The text of every manual page, by its name as in `wiregauge-run.1`."""
    text = (REFERENCE / "command-line.md").read_text(encoding="utf-8")
    *commands, agent = sections(text)
    made = {"wiregauge.1": _overview(text, commands), f"{AGENT}.8": _agent(agent)}
    for one in commands:
        name = one.title.replace(" ", "-")
        if name != AGENT:
            made[f"{name}.1"] = _command(name, one)
    return made


def _overview(text: str, commands: list[Section]) -> str:
    intro = text.partition("-->")[2].partition("\n## ")[0].strip().split("\n\n")
    lines = [
        *_head("wiregauge", "tell how deterministic an Ethernet network is"),
        *_section("synopsis", ".B wiregauge", ".I COMMAND", "[OPTIONS]"),
        *_section("description", *_paragraphs(intro)),
        *_section("commands"),
    ]
    for one in commands:
        name = one.title.replace(" ", "-")
        lines += [".TP", f".BR {_plain(name)} ({8 if name == AGENT else 1})", _running(one.text)]
    see = [
        ".BR wiregauge\\-agent (8)",
        ".PP",
        _running("`wiregauge docs` prints the other pages of the documentation."),
    ]
    return _joined([*lines, *_exit_status(), *_section("see also", *see)])


def _command(name: str, one: Section) -> str:
    first, _, rest = one.text.partition(". ")
    lines = _head(name, first.rstrip("."))
    usages = [rf".B {_plain(each.usage)}" for each in (one, *one.within) if each.usage]
    lines += _section("synopsis", "\n.br\n".join(usages))
    lines += _section("description", _running(one.text if rest or one.within else f"{first.rstrip('.')}."))
    if one.within:
        lines += _section("commands")
        for each in one.within:
            lines += [f".SS {_plain(each.title)}", _running(each.text), *_parameters(each)]
    else:
        lines += _section("options", *_parameters(one))
    return _joined([*lines, *_exit_status(), *_section("see also", ".BR wiregauge (1)")])


def _agent(agent: Section) -> str:
    """The page of the agent: its commands are from the program, the rest is written by hand."""
    (overview,) = agent.blocks
    known = {one.title.rpartition(" ")[2]: one for one in agent.within}
    lines: list[str] = []
    listed = re.search(r"^Commands:\n((?: .*\n?)+)", overview, re.M)
    assert listed is not None, "the reference page lists no commands of the agent"
    for entry in re.split(r"\n(?=  \S)", listed[1].rstrip()):
        name, _, meaning = " ".join(entry.split()).partition(" ")
        if name == "help":
            continue
        lines += [f".SS {_plain(name)}"]
        if name in known:
            whole = known[name].blocks[0]
            lines += [_running(" ".join(whole.partition("\n\n")[0].split()) + "."), *_options(whole)]
        else:
            lines += [_running(f"{meaning}.")]
    text = AGENT_PAGE.read_text(encoding="utf-8")
    assert text.count(_PLACE) == 1, f"{AGENT_PAGE.name} has no one place for its commands"
    return text.replace(_PLACE, _joined(lines))


def _options(text: str) -> Iterator[str]:
    """The options in the help of a command of the agent."""
    meaning: list[str] = []
    for line in text.partition("Options:\n")[2].splitlines():
        found = _OPTION.match(line)
        if found is None:
            meaning.append(line.strip())
            continue
        if meaning:
            yield _running(" ".join(meaning))
        yield from (".TP", f".B {_plain(found[1])}")
        meaning = [found[2]] if found[2] else []
    yield _running(" ".join(meaning))


def _parameters(one: Section) -> Iterator[str]:
    """The table of arguments and options as a list."""
    for row in one.body.splitlines():
        if not row.startswith("| `"):
            continue
        name, default, meaning = (cell.strip() for cell in re.split(r"(?<!\\)\|", row)[1:4])
        words = [_plain(word.replace("\\|", "|")) for word in re.findall(r"`([^`]+)`", name)]
        shown = [rf"\fB{word}\fP" if word.startswith("\\-") else rf"\fI{word}\fP" for word in words]
        options = [word for word in shown if word.startswith(r"\fB")]
        yield from (".TP", " ".join(filter(None, [", ".join(options), *shown[len(options) :]])))
        more = {"": "", "required": " Required."}.get(default, f" Default: {default}.")
        yield _running(f"{meaning}{more}".replace("\\|", "|"))


def _exit_status() -> Iterator[str]:
    yield from _section("exit status")
    for row in (REFERENCE / "exit-codes.md").read_text(encoding="utf-8").splitlines():
        cells = [cell.strip() for cell in row.split("|")]
        if len(cells) > 3 and cells[1].isdigit():
            yield from (".TP", f".B {cells[1]}", _running(f"{cells[2]}."))


def _head(name: str, what: str) -> list[str]:
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"][
        "version"
    ]
    title = f'.TH {_plain(name).upper()} 1 "" "Wiregauge {version}" "Wiregauge"'
    return [title, *_section("name", rf"{_plain(name)} \- {_running(what[:1].lower() + what[1:])}")]


def _section(name: str, *lines: str) -> list[str]:
    return [f".SH {name.upper()}", *lines]


def _paragraphs(texts: list[str]) -> Iterator[str]:
    for number, text in enumerate(texts):
        yield from ([".PP"] if number else [])
        yield _running(text)


def _plain(text: str) -> str:
    """Text in which troff sees nothing but text, and hyphens that can be copied."""
    return text.replace("\\", r"\e").replace("-", r"\-").replace("'", r"\(aq").replace("`", r"\(ga")


def _running(text: str) -> str:
    """Markdown of a paragraph as troff."""
    text = " ".join(text.split())
    parts, end = [], 0
    for found in _INLINE.finditer(text):
        parts += [_escaped(text[end : found.start()])]
        code, bold, link = found.groups()
        parts += [rf"\fB{_plain(code or bold)}\fP" if code or bold else _running(link)]
        end = found.end()
    line = "".join([*parts, _escaped(text[end:])])
    return rf"\&{line}" if line.startswith((".", "'")) else line


def _escaped(text: str) -> str:
    return re.sub(r"(?<![\w-])(--?[\w-]+)", lambda found: _plain(found[0]), text.replace("\\", r"\e"))


def _joined(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def write(folder: Path) -> list[Path]:
    """Writes the pages below `man1` and `man8` of a folder; returns their paths."""
    written = []
    for name, text in pages().items():
        path = folder / f"man{name[-1]}" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1])):
        sys.stdout.write(f"{path}\n")
