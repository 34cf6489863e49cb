"""The report of a run: the file of its directory, or one that is made for the viewer and written nowhere.

A report runs scripts, and a directory may be anybody's. So it is shown in a frame of its own origin, which may load
nothing, send nothing and reach no page of the server; the policy of the page around it keeps the frame on this server.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from starlette.responses import HTMLResponse, Response

from wiregauge.files import read_regular
from wiregauge.records import RunDirectoryError
from wiregauge.records.integrity import sealed_digest

__all__ = ["FRAME_POLICY", "framed", "made_report", "stored_report"]

FRAME_POLICY: Final = (
    "sandbox allow-scripts allow-downloads; default-src 'none'; script-src 'unsafe-inline'; "
    "style-src 'unsafe-inline'; img-src data: blob:; font-src data:; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'self'"
)
_HEAD: Final = 1000
"""Bytes at the beginning of a report in which the digest of its manifest stands."""


def stored_report(path: Path, digest: str) -> bytes | None:
    """The report in a run directory; None where it is missing, damaged, or of another state of the directory."""
    from wiregauge.report.write import REPORT

    try:
        data = read_regular(path / REPORT)
        sealed = sealed_digest(data, path / REPORT)
    except (OSError, RunDirectoryError):
        return None
    return data if sealed is not None and digest.encode() in data[:_HEAD] else None


def made_report(path: Path) -> str:
    """The text of a run's report, judged anew; nothing is stored. Raises RunDirectoryError."""
    from wiregauge import report
    from wiregauge.measures import evaluate
    from wiregauge.measures.metrics.recorded import open_recorded

    return report.rendered(evaluate(open_recorded(path)))


def framed(content: bytes | str) -> Response:
    """A page of the program, to be shown in a frame."""
    return HTMLResponse(content, headers={"content-security-policy": FRAME_POLICY})
