"""Calibrations as tables, one function per kind; rows of text, so that pages and terminals show the same."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from wiregauge.calibrate.store import Calibration
from wiregauge.measures.definitions.units import duration, rate, share, significant

PM = "±"


class Grid(Struct, frozen=True):
    """A table of text; `notes` are sentences below it, including formulas. The first `leading` columns identify a
    row.
    """

    title: str
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    leading: int = 1


def headline(calibration: Calibration) -> str:
    """The result in one sentence."""
    return _HEADLINES[calibration.kind](calibration.results)


def grids(calibration: Calibration) -> list[Grid]:
    """Every table of a calibration."""
    return _GRIDS[calibration.kind](calibration.results)


def _pm(value: float | None, half: float | None, unit: str = "", least: int = 1) -> str:
    """A value and its half-width with the same number of decimals, at least `least`."""
    if value is None:
        return "-"
    if half is None:
        return f"{significant(value)}{unit} {PM} ?"
    decimals = max(least, 4 if half < 0.01 else 2 if half < 1 else 1)
    return f"{value:.{decimals}f} {PM} {half:.{decimals}f}{unit}"


def _ns(value: float | None) -> str:
    return duration(value, 3)


# -- clocks -------------------------------------------------------------------------------------------------------


def _clocks_line(results: Mapping[str, Any]) -> str:
    costs = [c for c in results["clocks"] if c["cost"] is not None]
    timestamping = next((c for c in costs if c["clock"] == "CLOCK_REALTIME"), None)
    if timestamping is None:
        return f"{len(costs)} of {len(results['clocks'])} clocks measured"
    cost = timestamping["cost"]
    return (
        f"reading CLOCK_REALTIME, the clock of timestamps, costs {_ns(cost['mean_ns'])} on average "
        f"({PM} {_ns(cost['uncertainty_ns'])}, n = {cost['n']}), {_ns(cost['max_ns'])} at worst"
    )


def _clocks(results: Mapping[str, Any]) -> list[Grid]:
    cost_rows, step_rows, drift_rows = [], [], []
    for entry in results["clocks"]:
        cost, step, drift = entry["cost"], entry["step"], entry["drift"]
        if cost is not None:
            keys = ("mean_ns", "median_ns", "sd_ns", "min_ns", "max_ns", "uncertainty_ns")
            cost_rows.append([entry["clock"], str(cost["n"]), *(_ns(cost[key]) for key in keys)])
        if step is not None:
            of_step = ("least_ns", "median_ns", "divisor_ns", "stated_ns")
            step_rows.append(
                [
                    entry["clock"],
                    str(step["readings"]),
                    str(step["steps"]),
                    *(_ns(step[key]) for key in of_step),
                    str(step["backwards"]),
                ]
            )
        if drift is not None:
            drift_rows.append(
                [
                    entry["clock"],
                    f"{drift['n']} ({drift['n_independent']:.0f})",
                    f"{drift['seconds']:.1f} s",
                    _ppm(drift["ppm"], drift["half_width_ppm"]),
                    _ns(drift["residual_max_ns"]),
                    _ns(drift["bracket_median_ns"]),
                ]
            )
    ruler, reference = results["ruler"], results["reference"]
    found = [
        Grid(
            "Cost of a reading",
            ["clock", "n", "mean", "median", "sd", "min", "max", "±"],
            cost_rows,
            [
                f"cost = time between two readings of {ruler} with one of the clock between "
                "them, less the median of two "
                f"with none ({_ns(results['ruler_cost_ns'])}); {ruler} itself: time between two readings. "
                "±: readings overlap in the processor, so up to the cost of the ruler may be hidden in each.",
                *(f"refused: {text}" for text in results["refused"]),
            ],
        ),
        Grid(
            "Steps",
            ["clock", "readings", "steps", "least", "median", "divisor", "stated", "backwards"],
            step_rows,
            [
                "step = difference of two successive readings that differ; divisor: largest "
                "time that divides every step; "
                "stated: by clock_getres. A clock that is read more slowly than it moves shows "
                "the cost of reading here."
            ],
        ),
    ]
    if drift_rows:
        found.append(
            Grid(
                f"Drift against {reference}",
                ["clock", "n (independent)", "over", "drift", "greatest residual", "bracket"],
                drift_rows,
                [
                    "drift = slope of (clock - reference) over reference, least squares; ±: 95 "
                    "%, widened for residuals that "
                    "resemble their neighbours, plus what half a bracket and a step of the "
                    "clock at each reading can add."
                ],
            )
        )
    return found


def _ppm(value: float, half: float | None) -> str:
    if half is None:
        return f"{value:.4f} ppm"
    decimals = 1 if half >= 1 else 3 if half >= 0.01 else 5
    return f"{round(value, decimals) + 0.0:+.{decimals}f} {PM} {half:.{decimals}f} ppm"


# -- cable --------------------------------------------------------------------------------------------------------


def _cable_line(results: Mapping[str, Any]) -> str:
    constant, slope, speed = results["constant_overhead"], results["per_metre"], results["fraction_of_c"]
    fraction = f", {speed['value']:.3f} c" if speed["value"] is not None else ""
    return (
        f"constant overhead {_pm(constant['value_ns'], constant['half_width_ns'], ' ns')}, "
        f"{_pm(slope['value_ns'], slope['half_width_ns'], ' ns', 3)} per metre{fraction}; "
        f"residuals at most {results['residual_max_ns']:.2f} ns (n = {results['n']})"
    )


def _cable(results: Mapping[str, Any]) -> list[Grid]:
    rows = [
        [
            f"{point['length_m']:g} m",
            f"{point['time_ns']:.2f} ns",
            f"{point['time_ns'] - point['residual_ns']:.2f} ns",
            f"{point['residual_ns']:+.2f} ns",
            "-" if point["min_ns"] is None else f"{point['min_ns']:g} to {point['max_ns']:g} ns",
            "-" if point["uncertainty_ns"] is None else f"{PM} {point['uncertainty_ns']:g} ns",
            "-" if point["n"] is None else str(point["n"]),
        ]
        for point in results["points"]
    ]
    constant, slope, speed = results["constant_overhead"], results["per_metre"], results["fraction_of_c"]
    ends = [f"{end:.3f} c" if end is not None else "any" for end in (speed["low"], speed["high"])]
    fit = [
        ["constant overhead", _pm(constant["value_ns"], constant["half_width_ns"], " ns"), _parts(constant)],
        ["per metre", _pm(slope["value_ns"], slope["half_width_ns"], " ns", 3), _parts(slope)],
        [
            "speed",
            "-" if speed["value"] is None else f"{speed['value']:.3f} c",
            f"{ends[0]} to {ends[1]}" if speed["low"] is not None or speed["high"] is not None else "-",
        ],
        ["a cable's speed", "yes" if results["plausible"]["holds"] else "NO", results["plausible"]["text"]],
    ]
    return [
        Grid("Points", ["length", "measured", "line", "residual", "frames", "stated", "n"], rows),
        Grid(
            "Line",
            ["figure", "value", "of which"],
            fit,
            [
                "t(l) = k + s l, ordinary least squares; ±: 95 % Student interval with n - 2 "
                "degrees of freedom, plus what the "
                "stated errors of the points can add, sum |c_i| u_i.",
            ],
        ),
    ]


def _parts(one: Mapping[str, Any]) -> str:
    if one["sampling_ns"] is None:
        return "two points leave no scatter to judge by"
    return f"scatter {one['sampling_ns']:.3g} ns, stated errors {one['bound_ns']:.3g} ns"


# -- loop ---------------------------------------------------------------------------------------------------------


def _loop_line(results: Mapping[str, Any]) -> str:
    idle = min(results["points"], key=lambda p: (p["measure"] != "latency", p["load_percent"]))
    return (
        f"back to back at {idle['load_percent']} % load a message of {idle['payload_bytes']} B takes "
        f"{_ns(idle['systematic_ns'])} {PM} {_ns(idle['systematic_uncertainty_ns'])} (median), 95 % within "
        f"{PM} {_ns(idle['calibration_error_ns'])}, at worst {_ns(idle['max_deviation_ns'])} off (n = {idle['n']})"
    )


def _loop(results: Mapping[str, Any]) -> list[Grid]:
    found = []
    notes = [
        "systematic = median m of all repeats; random = 2.5 % and 97.5 % quantiles of x - m; error = greater of the "
        "two + error of the timestamps; max dev. = max |x - m| (RFC 7679, 3.7.3); half range = (max - min) / 2. "
        "Systematic ±: its 95 % interval or the farthest median of a repeat, whichever is greater, + error of the "
        "timestamps."
    ]
    for measure, title in (
        ("latency", "Application to application"),
        ("driver_latency", "Driver to driver (kernel timestamps)"),
    ):
        rows = [
            [
                f"{point['protocol']} {point['payload_bytes']} B",
                f"{point['load_percent']} %",
                f"{point['n']} in {len(point['repeats'])}",
                str(point["lost"]),
                f"{_ns(point['systematic_ns'])} {PM} {_ns(point['systematic_uncertainty_ns'])}",
                f"{_ns(point['random_low_ns'])} to +{_ns(point['random_high_ns'])}",
                f"{PM} {_ns(point['calibration_error_ns'])}",
                _ns(point["max_deviation_ns"]),
                f"{PM} {_ns(point['half_range_ns'])}",
                point["grade"],
            ]
            for point in results["points"]
            if point["measure"] == measure
        ]
        heads = [
            "message",
            "load",
            "n",
            "lost",
            "systematic",
            "random 95 %",
            "error 95 %",
            "max dev.",
            "half range",
            "grade",
        ]
        found.append(Grid(title, heads, rows, notes, leading=2))
        notes = []
    return [grid for grid in found if grid.rows]


# -- generator ----------------------------------------------------------------------------------------------------


def _generator_line(results: Mapping[str, Any]) -> str:
    texts = []
    for case in results["cases"]:
        name, timestamp = list(case["timestamps"].items())[-1]
        texts.append(
            f"{case['case']}: {rate(timestamp['mean_bps'])} of {rate(case['intended_bps'])}, "
            f"gaps at most {_ns(timestamp['max_deviation_ns'])} off ({name}, n = {timestamp['n']})"
        )
    return "; ".join(texts)


def _generator(results: Mapping[str, Any]) -> list[Grid]:
    rows = []
    for case in results["cases"]:
        for name, timestamp in case["timestamps"].items():
            within = {entry["ns"]: entry["share"] for entry in timestamp["within"]}
            burst = timestamp["burst"]
            rows.append(
                [
                    f"{case['case']}, {case['frame_bytes']} B" + _sent_by(case),
                    name,
                    str(timestamp["n"]),
                    f"{case['gap_ns']:g} ns",
                    f"{rate(timestamp['mean_bps'])} of {rate(case['intended_bps'])}",
                    _ns(timestamp["p99_deviation_ns"]),
                    _ns(timestamp["max_deviation_ns"]),
                    " / ".join(share(within[width]) for width in (1_000, 5_000, 50_000)),
                    "-" if burst is None else f"{share(burst['share'])} (to {share(burst['high'])})",
                    _ppm(timestamp["drift_ppm"], timestamp["drift_half_width_ppm"]),
                    case["grade"],
                ]
            )
    heads = [
        "case",
        "timestamp",
        "n",
        "gap",
        "mean bandwidth",
        "p99 dev.",
        "max dev.",
        "±1/5/50 µs",
        "bursts",
        "drift",
        "grade",
    ]
    return [
        Grid(
            "Frame generation",
            heads,
            rows,
            [
                "deviation = |gap - ideal gap|, start to start; mean bandwidth = frame with FCS "
                "* 8 (n - 1) / (last - first); "
                "bursts: share of frames that follow within 1.5 times their own time on the line where that was not "
                "asked for, and its 95 % upper bound; drift: slope of (timestamp - due) over due."
            ],
            leading=2,
        )
    ]


def _sent_by(case: Mapping[str, Any]) -> str:
    return f" ({case['backend']}, keeps the {case['pacing']})" if case["backend"] else ""


# -- pacing -------------------------------------------------------------------------------------------------------


def _pacing_line(results: Mapping[str, Any]) -> str:
    ours, ratio = results["wiregauge"], results["p99_ratio"]
    if ours is None or ours.get("p99_ns") is None:
        return "too few ticks for a p99"
    beside = "" if ratio is None else f", {significant(ratio, 2)} times that of a plain timer loop"
    most = _ns(ours["max_deviation_ns"])
    return f"a send leaves {_ns(ours['p99_ns'])} late at p99{beside}; {most} off at worst (n = {ours['n']})"


def _pacing(results: Mapping[str, Any]) -> list[Grid]:
    rows = []
    for key, name in (("wiregauge", "sender"), ("timer_loop", "timer loop")):
        one = results[key]
        if one is not None:
            keys = ("min_ns", "p50_ns", "p90_ns", "p99_ns", "p99.9_ns", "max_ns")
            rows.append([name, str(one["n"]), _pm_ns(one), *(_ns(one[k]) for k in keys)])
    return [
        Grid(
            f"Lateness against a tick of {_ns(results['period_ns'])}",
            ["schedule", "n", "mean", "min", "p50", "p90", "p99", "p99.9", "max"],
            rows,
            [
                "lateness = timestamp - ideal tick. The timer loop sleeps until an absolute instant "
                "and looks at the clock, as "
                "cyclictest does; it ran before and after the sender, on the same core with the same priority."
            ],
        )
    ]


def _pm_ns(one: Mapping[str, Any]) -> str:
    half = one["mean_half_width_ns"]
    return _ns(one["mean_ns"]) + (f" {PM} {_ns(half)}" if half is not None else "")


# -- linearity ----------------------------------------------------------------------------------------------------


def _linearity_line(results: Mapping[str, Any]) -> str:
    slope, bias = results["slope"], results["bias"]
    word = {True: "linear", False: "NOT linear", None: "not decided"}[results["linear"]]
    off = _pm(bias["value_ns"], bias["half_width_ns"], " ns")
    return f"{word}: slope {_six(slope)}, bias {off} (n = {results['n']})"


def _six(slope: Mapping[str, Any]) -> str:
    half = slope["half_width"]
    return f"{slope['value']:.6f}" + (f" {PM} {half:.6f}" if half is not None else "")


def _linearity(results: Mapping[str, Any]) -> list[Grid]:
    rows = [
        [_ns(p["known_ns"]), _pm(p["measured_ns"], p["half_width_ns"], " ns"), str(p["n"])]
        for p in results["points"]
    ]
    bias = results["bias"]
    fit = [
        ["slope", _six(results["slope"])],
        ["bias", _pm(bias["value_ns"], bias["half_width_ns"], " ns")],
        ["greatest residual", f"{results['residual_max_ns']:.3g} ns"],
        ["linear", {True: "yes", False: "NO", None: "not decided"}[results["linear"]]],
    ]
    return [
        Grid("Points", ["known delay", "measured mean", "n"], rows),
        Grid(
            "Line",
            ["figure", "value"],
            fit,
            [
                "(measured - measured at the first delay) over (known - first delay), least "
                "squares; ±: 95 % Student and a step of the clocks; that of "
                "the bias with the half-width of the first mean, which moves all points together. Linear: 1 lies in "
                "the interval of the slope, 0 in that of the bias."
            ],
        ),
    ]


_HEADLINES = {
    "clocks": _clocks_line,
    "cable": _cable_line,
    "loop": _loop_line,
    "generator": _generator_line,
    "pacing": _pacing_line,
    "linearity": _linearity_line,
}
_GRIDS = {
    "clocks": _clocks,
    "cable": _cable,
    "loop": _loop,
    "generator": _generator,
    "pacing": _pacing,
    "linearity": _linearity,
}
