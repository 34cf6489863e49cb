"""Builds the documentation as a site: `make docs`, or `python tools/doc_site.py FOLDER` with the extra `docs`.

Pages stay plain Markdown that a forge shows, at the places where a forge looks for them. The site has them by subject:
they are copied into one tree, with links between them as they are there. What a page with a list of pages links to is
below it in the navigation, in that order; a page that none links to fails the build, as every warning does.
"""

from __future__ import annotations

import json
import posixpath
import re
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent
HOME: Final = "docs/README.md"
MOVED: Final = {
    HOME: "index.md",
    "README.md": "project/overview.md",
    "ARCHITECTURE.md": "project/architecture.md",
    "CONTRIBUTING.md": "project/contributing.md",
    "CHANGELOG.md": "project/changelog.md",
    "SECURITY.md": "project/security.md",
    "fuzz/README.md": "project/fuzzing.md",
    "examples/README.md": "examples/index.md",
    "studies/README.md": "studies/index.md",
}
"""Places in the site of pages that are not named as in the repository, without `docs/`."""
DECISIONS: Final = "docs/decisions"
_LINK: Final = re.compile(r"(\]\()([^)\s]+)(\))")
_FENCE: Final = re.compile(r"(^ *```.*?^ *```$)", re.M | re.S)


def places(root: Path = ROOT) -> dict[str, str]:
    """The place in the site of every page, by its path in the repository."""
    found = dict(MOVED)
    for path in sorted([*root.glob("docs/**/*.md"), *root.glob("docs/**/*.ipynb")]):
        name = path.relative_to(root).as_posix()
        found.setdefault(name, str(Path(name).relative_to("docs").with_suffix(".md")))
    for path in sorted(root.glob("studies/*/README.md")):
        found[path.relative_to(root).as_posix()] = f"studies/{path.parent.name}.md"
    return found


def stage(place: Path, root: Path = ROOT) -> None:
    """Writes the sources of the site into an empty folder."""
    known = places(root)
    below = {name: list(_pages_linked(name, root, known)) for name in known if Path(name).name == "README.md"}
    below[HOME] = [name for name in below[HOME] if name not in (HOME, *below["studies/README.md"])]
    for name, target in known.items():
        path = root / name
        text = path.read_text(encoding="utf-8")
        if path.suffix == ".ipynb":
            text = notebook(json.loads(text), place / "images" / path.stem)
        text = _with_links(text, name, target, place, root, known)
        if name == HOME:
            text += "".join(_navigation(text, target))
        elif target.endswith("/index.md"):
            text += _tree(
                "",
                [known[one] for one in below[name] if known[one].startswith(f"{Path(target).parent}/")],
                target,
            )
        _write(place / target, text)
    decisions = [one for name, one in known.items() if name.startswith(f"{DECISIONS}/")]
    text = "# Decisions\n\nWhat was asked, what was decided, and the roads not taken.\n"
    _write(place / "decisions/index.md", text + _tree("", decisions, "decisions/index.md", hidden=False))


def _pages_linked(name: str, root: Path, known: Mapping[str, str]) -> Iterator[str]:
    """The pages that a page links to, in its order."""
    for found in _LINK.finditer((root / name).read_text(encoding="utf-8")):
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(name), found[2].partition("#")[0]))
        if linked in known:
            yield linked


def _with_links(text: str, name: str, target: str, place: Path, root: Path, known: Mapping[str, str]) -> str:
    """The text of a page with its links as they are in the site; files it links to are copied beside it."""

    def moved(found: re.Match[str]) -> str:
        link, mark, anchor = found[2].partition("#")
        if not link or "://" in link:
            return found[0]
        linked = posixpath.normpath(posixpath.join(posixpath.dirname(name), link))
        if linked == DECISIONS:
            to = "decisions/index.md"
        elif linked in known:
            to = known[linked]
        elif not (root / linked).is_file():
            return found[0]
        else:
            to = f"files/{linked}"
            (place / to).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(root / linked, place / to)
        return f"{found[1]}{posixpath.relpath(to, posixpath.dirname(target) or '.')}{mark}{anchor}{found[3]}"

    parts = _FENCE.split(text)
    return "".join(part if _FENCE.fullmatch(part) else _LINK.sub(moved, part) for part in parts)


def _navigation(text: str, target: str) -> Iterator[str]:
    """What is below the home page: a tree for each of its sections, of the pages that it links to."""
    seen = {target}
    for section in re.split(r"^## ", text, flags=re.M)[1:]:
        title, _, rest = section.partition("\n")
        pages = [link.partition("#")[0] for _, link, _ in _LINK.findall(rest)]
        pages = [
            one
            for one in dict.fromkeys(pages)
            if one.endswith(".md") and "://" not in one and one not in seen
        ]
        seen.update(pages)
        yield _tree(title, pages, target)


def _tree(caption: str, pages: list[str], target: str, *, hidden: bool = True) -> str:
    """A directive that puts pages below this one."""
    start = posixpath.dirname(target) or "."
    lines = [posixpath.relpath(one, start).removesuffix(".md") for one in pages]
    options = [f":caption: {caption}"] * bool(caption) + [":hidden:"] * hidden + [":maxdepth: 1"]
    return "\n".join(["", "```{toctree}", *options, "", *lines, "```", ""])


def notebook(cells: Mapping[str, Any], images: Path) -> str:
    """A notebook with its outputs as a page; its pictures go into a folder."""
    parts = []
    for cell in cells["cells"]:
        source = "".join(cell["source"])
        parts.append(source if cell["cell_type"] == "markdown" else f"```python\n{source}\n```")
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "image/svg+xml" in data:
                picture = images / f"{len(list(images.glob('*.svg'))) + 1}.svg"
                _write(picture, "".join(data["image/svg+xml"]))
                parts.append(f"![{_caption(source)}](../images/{images.name}/{picture.name})")
            elif "text/html" in data:
                parts.append(f'<div class="output">\n{"".join(data["text/html"]).strip()}\n</div>')
            else:
                shown = "".join(data.get("text/plain", output.get("text", ()))).rstrip()
                parts.append(f"```text\n{shown}\n```")
    return "\n\n".join(parts) + "\n"


def _caption(source: str) -> str:
    return f"The picture that {source.splitlines()[-1]} gives".replace("[", "(").replace("]", ")")


def _write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def settings() -> dict[str, Any]:
    """The configuration of Sphinx."""
    version = tomllib.loads((ROOT / "Cargo.toml").read_text(encoding="utf-8"))["workspace"]["package"][
        "version"
    ]
    asked = ["git", "log", "-1", "--format=%h, %cs"]
    commit = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True, check=False).stdout.strip()
    return {
        "project": "Wiregauge",
        "version": version,
        "release": version,
        "copyright": f"the Wiregauge authors; version {version}{f' ({commit})' if commit else ''}",
        "extensions": ["myst_parser"],
        "html_theme": "furo",
        "html_title": f"Wiregauge {version}",
        "html_show_sphinx": False,
        "html_copy_source": False,
        "myst_heading_anchors": 6,
    }


def build(out: Path, builder: str = "html") -> int:
    """Builds the site into a folder, with its sources beside it; returns the number of warnings, which are printed."""
    from pygments.lexers.special import TextLexer
    from sphinx.application import Sphinx

    source, trees = out.with_name(f"{out.name}-source"), out.with_name(f"{out.name}-trees")
    for folder in (source, out):
        shutil.rmtree(folder, ignore_errors=True)
    stage(source)
    site = Sphinx(source, None, out, trees, builder, confoverrides=settings(), status=None, freshenv=True)
    site.add_lexer("csv", TextLexer)
    site.build(force_all=True)
    return int(site._warncount)


def main() -> None:
    """Builds the site; any warning fails."""
    out = Path(sys.argv[1]).resolve()
    if warnings := build(out):
        sys.exit(f"doc_site: {warnings} warnings, printed above; each of them is an error")
    sys.stdout.write(f"{out / 'index.html'}\n")


if __name__ == "__main__":
    main()
