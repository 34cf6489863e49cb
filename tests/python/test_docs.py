"""What the pages show works: tests are accepted, code runs, files they point to exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from wiregauge.config import load

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted(
    [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/*.md"),
        *ROOT.glob("studies/README.md"),
        *ROOT.glob("studies/*/README.md"),
    ]
)


def blocks(language: str) -> list[tuple[str, str]]:
    found = []
    for page in (ROOT / "README.md", ROOT / "docs" / "guide" / "first-steps.md"):
        for number, text in enumerate(
            re.findall(rf"^```{language}\n(.*?)^```", page.read_text(), re.M | re.S)
        ):
            found.append((f"{page.name}-{number}", text))
    return found


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in blocks("xml")])
def test_shown_tests_are_good(text: str, tmp_path: Path) -> None:
    (tmp_path / "shown.xml").write_text(text)
    assert load(tmp_path / "shown.xml").campaign.runs


@pytest.mark.parametrize("text", [pytest.param(text, id=name) for name, text in blocks("python")])
def test_shown_code_runs(text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    exec(compile(text, "shown.py", "exec"), {})
    assert load(tmp_path / "first.xml").campaign.name == "first"


def test_something_is_shown() -> None:
    assert blocks("xml")
    assert blocks("python")


def anchors(page: Path) -> set[str]:
    """The names that GitHub gives the headings of a page."""
    found: dict[str, int] = {}
    for heading in re.findall(
        r"^#+ (.*)$", re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S), re.M
    ):
        name = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
        found[name] = found.get(name, -1) + 1
    return {f"{name}-{k}" if k else name for name, last in found.items() for k in range(last + 1)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page: Path) -> None:
    for target, anchor in re.findall(r"\]\(([^)#]*)(?:#([^)]*))?\)", page.read_text()):
        if "://" not in target:
            there = page.parent / target if target else page
            assert there.exists(), f"{page.name} points to {target}"
            assert not anchor or anchor in anchors(there), f"{page.name} points to {target}#{anchor}"


def test_messages_to_look_up_are_those_of_the_program() -> None:
    """`…` stands for what is put in at run time."""
    page = (ROOT / "docs" / "how-to" / "troubleshoot.md").read_text(encoding="utf-8")
    rows = [line.split(" | ")[0] for line in page.splitlines() if line.startswith("| `")]
    quoted = [message for row in rows for message in re.findall(r"`([^`]+)`", row)]
    assert len(quoted) > 50
    known = list(messages())
    missing = [
        message
        for message in quoted
        if not any(re.search(".*".join(map(re.escape, message.split("…"))), text, re.S) for text in known)
    ]
    assert not missing, "\n".join(missing)


def messages() -> Iterator[str]:
    """Every string of the program."""
    for path in sorted((ROOT / "python" / "wiregauge").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.JoinedStr):
                parts = node.values
                yield "".join(str(part.value) if isinstance(part, ast.Constant) else "X" for part in parts)
            elif isinstance(node, ast.Constant) and isinstance(node.value, str):
                yield node.value
    for path in sorted(ROOT.glob("crates/*/src/**/*.rs")):
        source = re.sub(r"\\\n\s*", "", path.read_text(encoding="utf-8"))
        yield from (text.replace('\\"', '"') for text in re.findall(r'"((?:[^"\\]|\\.)*)"', source))
