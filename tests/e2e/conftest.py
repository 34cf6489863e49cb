"""End-to-end tests run the installed command as a user would, on real frames between namespaces."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support import COMMAND, SECONDS, Done, Runner


@pytest.fixture
def wiregauge(tmp_path: Path) -> Runner:
    """Runs `wiregauge ARGS`; no command ever shows a traceback."""

    def run(*args: object, timeout: float = SECONDS, prefix: tuple[str, ...] = ()) -> Done:
        answer = subprocess.run(
            [*prefix, str(COMMAND), *map(str, args)],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
            stdin=subprocess.DEVNULL,
        )
        done = Done(answer.returncode, answer.stdout, answer.stderr)
        assert "Traceback" not in done.out + done.err, done.err
        return done

    return run
