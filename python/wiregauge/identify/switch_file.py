"""Writes a switch model to a file for tests: `<switch name="sw1" file="sw1.switch.xml"/>`."""

from __future__ import annotations

from typing import Final
from xml.sax.saxutils import quoteattr

from wiregauge.identify.costs import shares_text
from wiregauge.identify.model_file import NAMESPACE
from wiregauge.identify.switches import SwitchFit
from wiregauge.plan.quantity import time_text

__all__ = ["switch_attributes", "switch_remarks", "switch_text"]

_CONSTANT: Final = 0.01
"""Relative variation below which a delay is taken as constant."""
_SMALLEST: Final = 2048
"""Size of the smallest buffer that a test can specify, B."""
_MOST_DRIFT_PPB: Final = 1_000_000


def switch_attributes(fit: SwitchFit, name: str) -> dict[str, str]:
    """The attributes of `<switch>`. Of an interval in the fit, the end that gives larger bounds."""
    said = {"name": name}
    if fit.delay.mode == "cut-through":
        said["forwarding-mode"] = "cut-through"
    seen = fit.delay.quantiles
    least, most = seen[0][1], seen[-1][1]
    said["delay"] = time_text(most) if most - least <= _CONSTANT * most else shares_text(seen)
    if fit.delay.mixed > _CONSTANT * most:
        said["mixed-rate-delay"] = time_text(round(fit.delay.mixed))
    drift = _drift_ppb(fit)
    if drift:
        said["line-drift"] = f"{drift}ppb"
    buffer = fit.buffer
    if buffer.below is not None:
        if buffer.unit == "frames":
            said[
                {"buffer": "buffer-frames", "queue": "queue-frames", "shared": "shared-frames"}[buffer.policy]
            ] = str(buffer.least)
        else:
            kind = {"buffer": "buffer", "queue": "queue-buffer", "shared": "shared-buffer"}[buffer.policy]
            said[kind] = f"{max(buffer.least, _SMALLEST)}B"
    return said


def _drift_ppb(fit: SwitchFit) -> int:
    """Excess of its line rates, ppb, where all known ports agree beyond their intervals."""
    told = [(port.rate, port.planned_bps) for port in fit.ports if port.rate is not None]
    if not told or any(rate.low <= planned <= rate.high for rate, planned in told):
        return 0
    off = [round((rate.value / planned - 1) * 1e9) for rate, planned in told]
    worst = min(off)
    return worst if abs(worst) <= _MOST_DRIFT_PPB and max(off) * worst > 0 else 0


def switch_remarks(fit: SwitchFit, source: str) -> tuple[str, ...]:
    """Remarks for the file: its evidence, and what it leaves open."""
    buffer = fit.buffer
    size = (
        f"at least {buffer.least} {buffer.unit}"
        if buffer.below is None
        else f"{buffer.least} to {buffer.below - 1}"
    )
    ports = (
        f"{port.port}: {port.frames} frames, "
        + (f"rate {port.rate.value:.0f} bit/s (n {port.rate.n})" if port.rate else "rate not told")
        + f"; guaranteed rate latency {port.guaranteed.latency_ps / 1000:.3f} ns"
        for port in fit.ports
    )
    return (
        f"Switch {fit.name} as the records of {source} tell.",
        f"Delay from {fit.delay.delay.n} frames that found their port idle; buffer {size}, {buffer.lost} frames lost.",
        *ports,
        *(f"Not told: {sentence}." for sentence in fit.untold),
    )


def switch_text(said: dict[str, str], remarks: tuple[str, ...]) -> str:
    """The text of the file."""
    lines = "".join(f"  {remark.replace('--', '- -')}\n" for remark in remarks)
    attributes = "\n        ".join(f"{key}={quoteattr(value)}" for key, value in said.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<!--\n{lines}-->\n<switch xmlns="{NAMESPACE}"\n        {attributes}/>\n'
    )
