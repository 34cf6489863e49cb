"""`docs`: the pages of this version, in the terminal."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import nullcontext
from itertools import groupby
from pathlib import Path
from typing import Annotated

import typer
from msgspec import Struct

from wiregauge.files import nearest, shipped
from wiregauge.terminal import BAD_INPUT, fail, make_console, put, put_lines

__all__ = ["Page", "docs", "pages"]

_DECISIONS = "decisions"
_EXAMPLES = "examples"
"""The page of the examples, which lies with them."""
_FOLDERS = ("", "guide", "how-to", "reference", "explanation", _DECISIONS)


class Page(Struct, frozen=True):
    """A page by its place below `docs`, as in `how-to/bounds`."""

    name: str
    path: Path

    @property
    def folder(self) -> str:
        """Empty for a page of none."""
        return self.name.rpartition("/")[0]

    @property
    def text(self) -> str:
        """As it is written, without what is for tests: comments."""
        return re.sub(r"<!--.*?-->\n?", "", self.path.read_text(encoding="utf-8"), flags=re.DOTALL)

    @property
    def title(self) -> str:
        """Its first heading."""
        return self.text.partition("# ")[2].partition("\n")[0]


def docs(
    page: Annotated[
        str | None,
        typer.Argument(
            metavar="[PAGE]", help="Name of the page, or its last part.", show_default="lists them"
        ),
    ] = None,
) -> None:
    """The pages are those of this version; none is fetched."""
    if page is None:
        _list()
        return
    if page == _DECISIONS:
        _list_folder(page, [one for one in pages() if one.folder == page])
        return
    from rich.markdown import Markdown

    text, console = linked(_found(page).text), make_console()
    long = console.is_terminal and text.count("\n") > console.height
    with console.pager(styles=True) if long else nullcontext():
        console.print(Markdown(text, hyperlinks=False))


def pages() -> list[Page]:
    """All of them, in the order in which one would read their folders."""
    folder = shipped("docs")
    paths = sorted(folder.rglob("*.md"))
    found = [Page(path.relative_to(folder).with_suffix("").as_posix(), path) for path in paths]
    found.sort(key=lambda one: _FOLDERS.index(one.folder))
    return [Page(_EXAMPLES, shipped("examples") / "README.md"), *found]


def _list() -> None:
    for folder, some in groupby(pages(), lambda one: one.folder):
        if folder == _DECISIONS:
            put()
            put(f"{folder}, {len(list(some))} of them: `wiregauge docs {folder}` lists them")
        else:
            _list_folder(folder, some)
    put()
    put("`wiregauge docs PAGE` prints one: `wiregauge docs first-steps`, `wiregauge docs reference/bounds`")


def _list_folder(folder: str, some: Iterable[Page]) -> None:
    put_lines(["", folder] if folder else [])
    for one in some:
        put(f"  {one.name.removeprefix(f'{folder}/'):<24} {one.title}", indent=27)


def linked(text: str) -> str:
    """A page whose links to others name them as `wiregauge docs` does; other places of the repository are left out."""

    def named(link: re.Match[str]) -> str:
        words, target = link.groups()
        if "://" in target:
            return link[0]
        place = Path(target.partition("#")[0])
        name = _EXAMPLES if place.parts[-2:] == ("examples", "README.md") else place.stem
        return f"{words} (page {name})" if place.suffix == ".md" else words

    return re.sub(r"(?<!!)\[([^\]]+)\]\(([^)\s]+)\)", named, text)


def _found(written: str) -> Page:
    """The page that is meant, also as a link of another page names it; else the command ends."""
    known = {one.name: one for one in pages()}
    name = re.sub(r"^(?:\.\./|docs/)+", "", written.partition("#")[0]).removesuffix(".md")
    last = [name] if name in known else [one for one in known if one.rpartition("/")[2] == name]
    if len(last) > 1:
        fail(f'several pages are called "{written}": {", ".join(last)}; name one of them', BAD_INPUT)
    if not last:
        near = nearest(name, (*known, *(one.rpartition("/")[2] for one in known)))
        fail(f'there is no page "{written}"{near}; `wiregauge docs` lists them', BAD_INPUT)
    return known[last[0]]
