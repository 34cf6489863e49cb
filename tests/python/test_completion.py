"""What the shell offers, as a shell asks for it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from wiregauge.config.template_files import TEMPLATES
from wiregauge.export import FORMATS
from wiregauge.runner import BENCHES
from wiregauge.studies import names

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a run directory, one with another below it, and a folder of neither kind."""
    made = tmp_path_factory.mktemp("place")
    for run in ("first-run", "nightly/monday", "notes"):
        (made / run).mkdir(parents=True)
    test = (EXAMPLES / "first.xml").read_text(encoding="utf-8")
    for run in ("first-run", "nightly/monday"):
        (made / run / "manifest.json").write_text("{}")
        (made / run / "test.xml").write_text(test)
    return made


def offered(place: Path, *words: str) -> set[str]:
    asked = subprocess.run(
        [sys.executable, "-c", "from wiregauge.cli.program import app; app(prog_name='wiregauge')"],
        cwd=place,
        env={
            "COMP_WORDS": " ".join(["wiregauge", *words]),
            "COMP_CWORD": str(len(words)),
            "_WIREGAUGE_COMPLETE": "complete_bash",
        },
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert not asked.stderr, asked.stderr
    return set(asked.stdout.split())


def test_values_are_offered(place: Path) -> None:
    assert offered(place, "run", "--bench", "") == set(BENCHES)
    assert offered(place, "export", "--to", "") == set(FORMATS)
    assert offered(place, "export", "--to", "h") == {"hlog", "hgrm"}
    assert offered(place, "study", "") >= set(names())
    assert offered(place, "new", "") >= set(TEMPLATES)


def test_flows_are_those_of_the_run_directory_on_the_line(place: Path) -> None:
    assert offered(place, "show", "first-run", "--flow", "") == {"10"}
    assert offered(place, "show", "notes", "--flow", "") == set()


@pytest.mark.parametrize("command", ["show", "compare", "verify", "report"])
def test_run_directories_are_offered_and_what_leads_to_one(place: Path, command: str) -> None:
    assert offered(place, command, "") == {"first-run", "nightly/"}
    assert offered(place, command, "nightly/") == {"nightly/monday"}
    assert offered(place, command, "nowhere/") == set()


def test_commands_are_offered_with_nothing_imported(place: Path) -> None:
    assert {"show", "schedule", "serve", "switch", "study"} == {
        name for name in offered(place, "s") if not name.startswith("-")
    }
