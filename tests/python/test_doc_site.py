"""The documentation as a site (`make docs`): every page is in its navigation, every link leads on, no warning."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOOLS = ROOT / "tools"
sys.path.insert(0, str(TOOLS))

import doc_site  # noqa: E402 - the folder of tools is no package


@pytest.fixture(scope="module")
def staged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = tmp_path_factory.mktemp("site") / "source"
    doc_site.stage(place)
    return place


def below(page: Path) -> list[Path]:
    """The pages that the navigation has below this one."""
    trees = re.findall(r"^```\{toctree\}\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)
    lines = [line for tree in trees for line in tree.splitlines() if line and not line.startswith(":")]
    return [(page.parent / f"{line}.md").resolve() for line in lines]


def test_every_page_is_once_in_the_navigation(staged: Path) -> None:
    waiting, seen = [staged / "index.md"], [staged / "index.md"]
    while waiting:
        found = below(waiting.pop())
        seen += found
        waiting += found
    assert len(seen) == len(set(seen))
    assert set(seen) == set(staged.rglob("*.md"))
    assert len(seen) > 80


def test_every_link_of_the_site_leads_to_a_page_or_a_file(staged: Path) -> None:
    checked = 0
    for page in staged.rglob("*.md"):
        text = re.sub(r"^ *```.*?^ *```", "", page.read_text(encoding="utf-8"), flags=re.M | re.S)
        for target in re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", text):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.relative_to(staged)} points to {target}"
                checked += 1
    assert checked > 300


def test_links_are_moved_and_what_is_shown_stays(tmp_path: Path) -> None:
    """Of pages, files and folders, with their anchors; a link in a fenced block is text."""
    root = tmp_path / "root"
    for name in ("docs/README.md", "docs/how-to/a.md", "examples/README.md", "studies/README.md"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("# Title\n\n## Section\n")
    for name in set(doc_site.MOVED) - {"docs/README.md", "examples/README.md", "studies/README.md"}:
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("# Title\n")
    (root / "examples/first.xml").write_text("<test/>\n")
    (root / "docs/how-to/a.md").write_text(
        "[e](../../examples/README.md#x) [f](../../examples/first.xml) [d](../decisions/) [h](../README.md)\n"
        "[o](https://x.example/a.md) [s](#here)\n\n```text\n[e](../../examples/README.md)\n```\n"
    )
    doc_site.stage(tmp_path / "site", root)
    assert (tmp_path / "site/how-to/a.md").read_text() == (
        "[e](../examples/index.md#x) [f](../files/examples/first.xml) [d](../decisions/index.md) [h](../index.md)\n"
        "[o](https://x.example/a.md) [s](#here)\n\n```text\n[e](../../examples/README.md)\n```\n"
    )
    assert (tmp_path / "site/files/examples/first.xml").read_text() == "<test/>\n"


def test_a_notebook_is_a_page_with_its_pictures(tmp_path: Path) -> None:
    cells = [
        {"cell_type": "markdown", "source": ["# Title"]},
        {"cell_type": "code", "source": ["a = 1\n", "a"], "outputs": [{"data": {"text/plain": ["1"]}}]},
        {"cell_type": "code", "source": ["b[0]"], "outputs": [{"data": {"image/svg+xml": ["<svg/>"]}}]},
        {"cell_type": "code", "source": ["print(2)"], "outputs": [{"text": ["2\n"]}]},
    ]
    page = doc_site.notebook({"cells": cells}, tmp_path / "images" / "n")
    assert page.startswith("# Title\n\n```python\na = 1\na\n```\n\n```text\n1\n```\n")
    assert "![The picture that b(0) gives](../images/n/1.svg)" in page
    assert page.endswith("```text\n2\n```\n")
    assert (tmp_path / "images/n/1.svg").read_text() == "<svg/>"


def built(place: Path, builder: str, staging: str = "") -> subprocess.CompletedProcess[str]:
    """Builds in a process of its own: Sphinx builds once in one."""
    lines = (
        "import doc_site, pathlib",
        staging,
        f"raise SystemExit(doc_site.build(pathlib.Path('site'), {builder!r}))",
    )
    return subprocess.run(
        [sys.executable, "-c", "\n".join(lines)],
        cwd=place,
        env=os.environ | {"PYTHONPATH": str(TOOLS)},
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_site_builds_without_a_warning(tmp_path: Path) -> None:
    """Read and resolved, not written: a third of the time, and every warning but those of the theme."""
    done = built(tmp_path, "dummy")
    assert (done.returncode, done.stderr) == (0, "")


def test_a_warning_is_counted(tmp_path: Path) -> None:
    page = "# Title\n\n[nowhere](nothing.md)\n"
    staging = f"doc_site.stage = lambda place: doc_site._write(place / 'index.md', {page!r})"
    done = built(tmp_path, "dummy", staging)
    assert done.returncode == 1
    assert "nothing.md" in done.stderr


@pytest.mark.thorough
def test_the_site_is_whole_and_loads_nothing_from_outside(tmp_path: Path) -> None:
    assert built(tmp_path, "html").returncode == 0
    pages = list((tmp_path / "site").rglob("*.html"))
    assert len(pages) > 80
    loads = re.compile(r'<(?:script|img|link|iframe)[^>]*(?:src|href)="((?:https?:)?//[^"]*)"')
    assert [found for page in pages for found in loads.findall(page.read_text(encoding="utf-8"))] == []
    assert (tmp_path / "site/searchindex.js").stat().st_size > 100_000
    version = re.search(r'^version = "(.*)"', (ROOT / "Cargo.toml").read_text(), re.M)
    assert version is not None
    assert f"Wiregauge {version[1]}" in (tmp_path / "site/index.html").read_text(encoding="utf-8")
