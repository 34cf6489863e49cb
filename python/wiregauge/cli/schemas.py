"""Which JSON Schema the output of each command with `--json` keeps."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

_SHOW = "results/show.schema.json"
_CALIBRATION = "calibrate/calibration.schema.json"

COMMANDS: dict[str, str] = {
    "check": "config/check.schema.json",
    "new": "config/new.schema.json",
    "run": _SHOW,
    "probe": _SHOW,
    "lab status": "runner/lab/status.schema.json",
    "lab map": "runner/lab/map.schema.json",
    "lab fetch": _SHOW,
    "track": _SHOW,
    "show": _SHOW,
    "import": _SHOW,
    "watch": "watching/watch.schema.json",
    "compare": "results/comparing/compare.schema.json",
    "trend": "results/comparing/trend.schema.json",
    "study": "studies/study.schema.json",
    "switch": "switching/switch.schema.json",
    "bounds": "bounds/bounds.schema.json",
    "identify": "calibrate/switch.schema.json",
    "verify": "records/verify.schema.json",
    "replay": "replay/replay.schema.json",
    "tsn": "plan/tsn.schema.json",
    "schedule": "scheduling/schedule.schema.json",
    "doctor": "examining/doctor.schema.json",
    **{
        f"calibrate {kind}": _CALIBRATION
        for kind in ("clocks", "pacing", "generator", "loop", "cable", "linearity", "show")
    },
    "calibrate host": "calibrate/host.schema.json",
    "calibrate list": "calibrate/list.schema.json",
}
"""Of every command its schema, by its place in the package; `explained` of `show` has one of its own beside."""


def schema_of(command: str) -> Path:
    """The JSON Schema of a command by its name, as in `calibrate list`. Raises KeyError for one without JSON."""
    return Path(str(resources.files("wiregauge").joinpath(COMMANDS[command])))
