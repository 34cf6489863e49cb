"""Chooses the calibrations that a run may use, before it, for its manifest, each with its use or the reason against it.

A run directory then documents by itself what was subtracted and why; judging it elsewhere or later needs no other file.
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any, Final

from wiregauge.calibrate import identity
from wiregauge.calibrate.store import KINDS, Calibration, Store
from wiregauge.calibrate.text import headline
from wiregauge.plan import Campaign
from wiregauge.runner import SimulatorBench

LONGEST: Final = datetime.timedelta(days=30)
"""Age at which a calibration counts as stale: oscillators age, dust gathers, cables are replugged; a month is the usual
interval between comparisons of working standards, and a loop takes less than a minute.
"""


def standing(calibration: Calibration, now: datetime.datetime | None = None) -> list[str]:
    """Reasons why no run on this machine can use a calibration, whatever its link; empty when one can."""
    age = (now or datetime.datetime.now(datetime.UTC)) - calibration.made
    found = []
    if calibration.content["state"] != "complete":
        found.append("not whole: it was stopped early")
    if calibration.content["grade"] == "INVALID":
        reasons = calibration.content["reasons"]
        more = f" (and {len(reasons) - 1} more)" if len(reasons) > 1 else ""
        found.append(
            f"not valid: the runs behind it are INVALID: {reasons[0] if reasons else 'no reason'}{more}"
        )
    if age > LONGEST:
        found.append(f"age: it is stale: {age.days} days old, the limit is {LONGEST.days}; calibrate again")
    if age < -datetime.timedelta(days=1):
        found.append("age: it was made in the future: a clock was wrong then, or is now")
    made = calibration.content["identity"]
    own = identity.here(driver=made.get("driver", ""), link=made.get("link", ""))
    if "scheduling" in made:
        own["scheduling"] = made["scheduling"]
    return found + identity.differences(made, own)


def cite(campaign: Campaign, *, driver: str, realtime: bool, store: Store) -> list[dict[str, Any]]:
    """Calibrations of each kind for the manifest of a run about to begin on this machine (see `_chosen`).

    Simulated calibrations do not apply to this machine and are not cited. `corrections` are constant overheads that may
    be subtracted, empty where there are none or the calibration is not `used`. A file that cannot be read is left out:
    `wiregauge calibrate list` reports its fault.
    """
    found, _ = store.all()
    links = {identity.link_of(campaign.network, run.link_rate_bps) for run in campaign.runs}
    cited = []
    for kind in KINDS:
        each = [
            _citation(one, driver=driver, links=links, realtime=realtime)
            for one in found
            if one.kind == kind and one.content["identity"].get("driver") != SimulatorBench.traits.driver
        ]
        cited += _chosen(each)
    return cited


def _chosen(newest_first: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The newest usable calibration; more where older ones correct what newer ones do not. The newest of all, with its
    reason, where none is usable.
    """
    usable = [one for one in newest_first if one["used"]]
    chosen: list[dict[str, Any]] = []
    covered: set[tuple[Any, ...]] = set()
    for one in usable:
        new = [entry for entry in one["corrections"] if _key(entry) not in covered]
        if new or not chosen:
            chosen.append({**one, "corrections": new})
            covered |= {_key(entry) for entry in new}
    return chosen or newest_first[:1]


def _key(entry: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(entry[name] for name in ("measure", "protocol", "payload_bytes", "load_percent"))


def _citation(calibration: Calibration, *, driver: str, links: set[str], realtime: bool) -> dict[str, Any]:
    made = calibration.content["identity"]
    why = standing(calibration)
    if calibration.kind != "clocks":
        if made.get("driver") != driver:
            why.append(_other_driver(str(made.get("driver")), driver))
        elif links != {made.get("link")}:
            why.append(
                f"another link: its link is {made.get('link')}, this run has {' and '.join(sorted(links))}"
            )
    scheduling = "real-time" if realtime else "ordinary"
    if made.get("scheduling", scheduling) != scheduling:
        why.append(
            f"another scheduling: its scheduling is {made['scheduling']}, that of this run is {scheduling}"
        )
    return {
        "id": calibration.number,
        "calibration": calibration.kind,
        "made": calibration.content["made"],
        "grade": calibration.content["grade"],
        "used": not why,
        "reason": "; ".join(why) or None,
        "headline": headline(calibration),
        "corrections": [] if why else _corrections(calibration),
    }


def _other_driver(its: str, own: str) -> str:
    """Text for a different driver, with its interface where a driver is that of one: `igb eth0`."""
    same = its.split(" ", maxsplit=1)[0] == own.split(" ", maxsplit=1)[0]
    what = "interface" if same else "driver"
    return f"another {what}: its driver is {its}, that of this run is {own}"


def _corrections(calibration: Calibration) -> list[dict[str, Any]]:
    results, settings = calibration.results, calibration.content["settings"]
    if calibration.kind == "loop":
        return [
            {
                "measure": point["measure"],
                "protocol": point["protocol"],
                "payload_bytes": point["payload_bytes"],
                "load_percent": point["load_percent"],
                "overhead_ns": point["systematic_ns"],
                "uncertainty_ns": point["systematic_uncertainty_ns"],
                "error_ns": point["calibration_error_ns"],
            }
            for point in results["points"]
            if point["grade"] != "INVALID"
        ]
    constant = results.get("constant_overhead")
    known = all(key in settings for key in ("measure", "protocol", "payload_bytes"))
    if (
        constant is None
        or constant["half_width_ns"] is None
        or not known
        or not results["plausible"]["holds"]
    ):
        return []
    return [
        {
            "measure": settings["measure"],
            "protocol": settings["protocol"],
            "payload_bytes": settings["payload_bytes"],
            "load_percent": settings["load_percent"],
            "overhead_ns": constant["value_ns"],
            "uncertainty_ns": constant["half_width_ns"],
            "error_ns": None,
        }
    ]
