"""What the pages show works: tests are accepted, code runs, files they point to exist."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from test_named_commands import code_of, pages
from wiregauge.cli.program import INTERNAL
from wiregauge.config import load
from wiregauge.config.schema import declarations, value_types
from wiregauge.records.directory import SCHEMA
from wiregauge.terminal import exits

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
    assert load(tmp_path / "second.xml").campaign.name == "second"


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
    missing = [message for message in quoted if not any(says(text, message.split("…")) for text in known)]
    assert not missing, "\n".join(missing)


def says(text: str, parts: list[str]) -> bool:
    """Whether the parts are in the text, one after the other."""
    at = 0
    for part in parts:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return True


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


# -- what pages name is there; commands: test_named_commands, the language: test_named_elements ----------------


MEASURE = re.compile(
    r"(?<![\w./-])([a-z][a-z_]*(?:\.[a-z][a-z0-9_-]*)*\.(?:min|mean|sd|mad|max|p\d+(?:\.\d+)*))(?![\w/-]|\.\w)"
)
NAMED_MEASURE = re.compile(r'measure="([^"…{]+)"|[Mm]easures? `([a-z_.-]+)`')
EXIT_CODES = re.compile(
    r"[Ee]xit codes?:? ((?:`?\d+`?(?:, | and | or )?)+)|\bends? with (?:code )?`?(\d+)`?\b"
)
COMPOUND = re.compile(r"(?<![\w./-])[a-z][a-z0-9]*(?:[_-][a-z0-9]+)+(?![\w./-])")
OF_OTHERS = {
    **dict.fromkeys(("build-essential", "python3-venv"), "Debian"),
    **dict.fromkeys(("if_speed", "if_tsoffset", "isb_osdrop"), "pcapng"),
    **dict.fromkeys(("simulated-afdx", "worst-two-switches", "tap-in", "tap-out"), "a reader"),
    **dict.fromkeys(("probe-robot", "probe-robot-2", "trial-0001", "trial-0002"), "numbered as they come"),
    "aarch64-unknown-linux-gnu": "Rust",
    "fallback_scrape_protocol": "Prometheus",
    "ping-pong": "sockperf",
    "r_h": "network calculus",
    "b_h": "network calculus",
}
"""Names in inline code that are not the program's, and whose they are."""


def measures() -> set[str]:
    """The names that limits may give, with `p*` for any percentile."""
    text = (ROOT / "crates" / "plan" / "src" / "measures.txt").read_text(encoding="utf-8")
    return {line.split()[0] for line in text.splitlines() if line[:1] not in ("", "#")}


def wrong_measures(text: str) -> list[str]:
    known = measures()
    roots = {name.partition(".")[0] for name in known}
    full = [name for code in code_of(text) for name in MEASURE.findall(code)]
    wrong = [name for name in full if not {name, re.sub(r"p[\d.]+$", "p*", name)} & known]
    named = [one or other for one, other in NAMED_MEASURE.findall(text)]
    return wrong + [name for name in named if name.partition(".")[0] not in roots]


def exit_codes(text: str) -> set[int]:
    return {int(code) for found in EXIT_CODES.findall(text) for code in re.findall(r"\d+", " ".join(found))}


def words() -> set[str]:
    """Whatever stands in the program, its languages and what comes with it."""
    places = ("python/**/*.py", "python/**/*.xsd", "python/**/*.lua", "python/**/*.json", "crates/**/*.rs")
    more = ("crates/**/*.txt", "packaging/*", "examples/**/*.xml", "pyproject.toml")
    paths = (path for place in (*places, *more) for path in ROOT.glob(place) if path.is_file())
    return {word for path in paths for word in re.findall(r"[\w-]+", path.read_text(encoding="utf-8"))}


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_measures_and_exit_codes_that_a_page_names_are_there(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert not wrong_measures(text)
    known = {exits.WITHIN, exits.FAILED, exits.BAD_INPUT, exits.NO_ENVIRONMENT, exits.INCOMPLETE, INTERNAL}
    assert exit_codes(text) <= known


def test_every_compound_name_in_a_page_is_somewhere_in_the_program() -> None:
    """Keys of JSON, columns, checks, outcomes: `rx_app`, `clock-kept`. Units and prefixes are put on at run time."""
    known = words() | set(OF_OTHERS)
    wrong = [
        f"{page.relative_to(ROOT)}: {name}"
        for page in pages()
        for code in re.findall(
            r"`([^`]+)`", re.sub(r"^ *```.*?^ *```", "", page.read_text(), flags=re.M | re.S)
        )
        for name in COMPOUND.findall(code)
        if name not in known and name.removesuffix("_ps") not in known and not name.startswith("wiregauge_")
    ]
    assert not wrong, "\n".join(wrong)


NOTHING = "\N{EN DASH}"
"""In the glossary: there is no word of ours."""
GLOSSARY = ROOT / "docs" / "reference" / "glossary.md"
STANDARD = re.compile(r"IEEE|802\.\d|1588|AS6802|ARINC|RFC")


def absent(glossary: str) -> list[str]:
    """Terms of which the glossary says that there is nothing: without a word of ours, or not modelled."""
    known, _, missing = glossary.partition("\n## Not modelled\n")
    rows = [line.split(" | ") for line in known.splitlines() if re.match(rf"\| .* \| {NOTHING} \|", line)]
    rows += [
        line.split(" | ") for line in missing.splitlines() if line.startswith("| ") and "---" not in line
    ][1:]
    cells = [re.sub(r"\(.*?\)|[`|]", "", row[0]) for row in rows]
    return [term.strip() for cell in cells for term in cell.split(",")]


def spellings(term: str) -> set[str]:
    """How the language, or a measure, would call it."""
    words = term.lower().lstrip("-").replace("-", " ").split()
    singular = [word.removesuffix("s") for word in words]
    return {join.join(some) for join in "-_" for some in (words, singular)}


def language() -> set[str]:
    """The names of elements and attributes, and the values that can be chosen."""
    elements = declarations().values()
    names = {element.name for element in elements} | {name for one in elements for name in one.attributes}
    return names | {choice for kind in value_types().values() for choice in kind.choices}


def test_what_the_glossary_has_nothing_for_is_not_in_the_language() -> None:
    terms = absent(GLOSSARY.read_text(encoding="utf-8"))
    there = language() | {name.partition(".")[0] for name in measures()}
    assert {"pause frame", "TCP", "throughput"} <= set(terms)
    assert not [term for term in terms if spellings(term) & there]
    # A row that has become false is seen.
    planted = f"| credit, cyclic queuing | {NOTHING} | |\n\n## Not modelled\n\n"
    planted += "| a | b |\n| --- | --- |\n| ATS, hubs | 802.1Qcr |\n"
    assert [term for term in absent(planted) if spellings(term) & there] == [
        "credit",
        "cyclic queuing",
        "ATS",
        "hubs",
    ]


def test_what_the_language_has_of_a_standard_is_in_the_glossary() -> None:
    text = GLOSSARY.read_text(encoding="utf-8")
    named = set(re.findall(r"`<([a-z][\w-]*)/?>`", text.partition("\n## Not modelled\n")[0]))
    of_standards = {one.name for one in declarations().values() if STANDARD.search(one.documentation)}
    assert {"cbs", "as6802", "frer"} <= of_standards
    assert not of_standards - named
    assert not re.findall(r".*not (?:modelled|searched for).*", text.partition("\n## Not modelled\n")[0])


def test_the_page_of_the_run_directory_has_the_version_of_its_manifest() -> None:
    page = (ROOT / "docs" / "reference" / "run-directory.md").read_text(encoding="utf-8")
    section = page.partition("## manifest.json, schema ")[2]
    assert section.partition("\n")[0] == str(SCHEMA)
    assert re.search(rf"^\| `schema` \| {SCHEMA} \|", section, re.M)


def test_the_page_of_schedules_says_for_which_switches() -> None:
    begin = (ROOT / "docs" / "how-to" / "schedule.md").read_text(encoding="utf-8").partition("```")[0]
    assert "SAE AS6802" in begin
    assert "IEEE 802.1Q" in begin


def test_names_that_are_wrong_are_found() -> None:
    page = 'The measure `latencyy`, `rtt.p98.5`, `rtt.middle.max`; `measure="loss.p99"`. '
    page += "Exit codes 2 and 9; it ends with 5."
    assert wrong_measures(page) == ["rtt.middle.max", "loss.p99", "latencyy"]
    assert exit_codes(page) == {2, 9, 5}
    assert not {"tx_aap", "clock-keept"} & words()
    assert sum(len(exit_codes(page.read_text(encoding="utf-8"))) for page in pages()) > 20
