"""Where all programs are installed a test that is skipped is a failure, but for the reasons on a short list."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

TESTS = Path(__file__).resolve().parents[1]
KINDS = {
    "mark": "@pytest.mark.skipif(True, reason={reason!r})\ndef test_it(): pass",
    "call": "def test_it(): pytest.skip({reason!r})",
    "fixture": "@pytest.fixture\ndef it(): pytest.skip({reason!r})\ndef test_it(it): pass",
    "module": "pytest.skip({reason!r}, allow_module_level=True)",
}
MISSING, ALLOWED = "tshark is not installed", "BPF programmes and AF_XDP need root"


def end(folder: Path, kind: str, reason: str, skips: str) -> tuple[int, str]:
    """Exit code and output of pytest on one test that is skipped, beside one that passes."""
    (folder / "conftest.py").write_text((TESTS / "conftest.py").read_text())
    (folder / "test_skipped.py").write_text("import pytest\n" + KINDS[kind].format(reason=reason))
    (folder / "test_passed.py").write_text("def test_that(): pass")
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(folder)],
        cwd=folder,
        capture_output=True,
        text=True,
        env={**os.environ, "WIREGAUGE_SKIPS": skips},
        timeout=120,
        check=False,
    )
    return done.returncode, done.stdout


@pytest.mark.parametrize("kind", KINDS)
def test_a_skip_fails_where_skips_are_refused_and_nowhere_else(kind: str, tmp_path: Path) -> None:
    code, out = end(tmp_path, kind, MISSING, "refused")
    assert code != 0, out
    assert f"a check that cannot run fails: {MISSING}" in out
    code, out = end(tmp_path, kind, MISSING, "")
    assert (code, "1 skipped" in out) == (0, True), out


def test_what_is_on_the_list_may_be_skipped(tmp_path: Path) -> None:
    code, out = end(tmp_path, "mark", ALLOWED, "refused")
    assert (code, "1 passed, 1 skipped" in out) == (0, True), out


def test_the_list_names_skips_that_there_are(pytestconfig: pytest.Config) -> None:
    (conftest,) = {
        plugin for plugin in pytestconfig.pluginmanager.get_plugins() if hasattr(plugin, "MAY_BE_SKIPPED")
    }
    texts = [path.read_text() for path in TESTS.rglob("test_*.py") if path != Path(__file__).resolve()]
    for reason in conftest.MAY_BE_SKIPPED:
        assert any(reason in text for text in texts), reason
