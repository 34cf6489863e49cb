"""Checks that the run cites an instrument with known error. A note at most: raw figures stand without it."""

from __future__ import annotations

from collections.abc import Iterator

from wiregauge.measures.definitions.units import count_of
from wiregauge.measures.metrics.judgement import Check, Grade
from wiregauge.measures.validity.calibration import corrections, run_load
from wiregauge.measures.validity.evidence import Evidence, check

_CURE = "`wiregauge calibrate loop` measures what is the instrument's own"


def calibrated(run: Evidence) -> Iterator[Check]:
    """Calibrations that were cited or refused, with reasons, and whether anything could be subtracted."""
    limit = "noted: none cited, or one refused (stale, or of another host, driver or link)"
    if run.virtual_time or run.calibrations is None:
        why = "virtual time" if run.virtual_time else "was not asked when this was run"
        yield check("calibration", "Instrument calibrated", limit, "", Grade.OK, "", nothing=why)
        return
    used = [citation for citation in run.calibrations if citation.used]
    refused = [citation for citation in run.calibrations if not citation.used]
    load = run_load(run.plan)
    bare = [flow for flow in run.flows if next(corrections(flow, load, used), None) is None]
    said = ", ".join(citation.number for citation in used) or "none used"
    if used and run.flows:
        corrected = len(run.flows) - len(bare)
        said += f"; {corrected} of {count_of(len(run.flows), 'flow')} corrected"
    reasons = [f"{citation.number} is not used: {citation.reason}" for citation in refused]
    if not run.calibrations:
        reasons.append(f"no calibration of this instrument was at hand; {_CURE}")
    elif used and len(bare) == len(run.flows):
        reasons.append(f"no flow has a calibrated protocol, payload and load; {_CURE}")
    yield check(
        "calibration",
        "Instrument calibrated",
        limit,
        said,
        Grade.NOTE if reasons else Grade.OK,
        "; ".join(reasons),
        nothing="" if run.flows else "no messages are known",
    )
