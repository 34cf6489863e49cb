"""Writes a host model to a file for tests: `<host-model name="bench-pc" file="bench-pc.host.xml"/>`."""

from __future__ import annotations

from xml.sax.saxutils import quoteattr

from wiregauge.identify.costs import Cost, shares_text
from wiregauge.identify.hosts import HostFit
from wiregauge.plan.quantity import time_text

NAMESPACE = "urn:wiregauge:test:2"


def attributes(fit: HostFit, name: str) -> dict[str, str]:
    """The attributes of `<host-model>`. Unknown parameters take no time, as in the model `ideal`."""
    said = {"name": name, "like": "ideal"}
    _cost(said, "transmit", fit.transmit)
    if fit.interface_delay is not None:
        said["interface-delay"] = time_text(fit.interface_delay.value)
    if fit.send_wake_up is not None:
        said["send-wake-up"] = shares_text(fit.send_wake_up)
    rule = fit.moderation
    if rule is not None:
        said["interrupt-latency"] = time_text(rule.latency)
        if rule.kind != "each":
            said["interrupts"] = rule.kind
        if rule.wait is not None:
            said["interrupt-wait"] = time_text(rule.wait)
        if rule.frames is not None:
            said["interrupt-frames"] = str(rule.frames)
    elif fit.passage is not None:
        said["interrupt-latency"] = time_text(fit.passage.fixed.value)
    # A cost per byte between the drivers arises before the receiver has the frame.
    passed = fit.passage.per_byte if fit.passage is not None else None
    _cost(said, "receive", fit.receive, passed.value if passed is not None else 0)
    if fit.receive_wake_up is not None:
        said["receive-wake-up"] = shares_text(fit.receive_wake_up)
    if fit.relay_wake_up is not None:
        said["relay-wake-up"] = shares_text(fit.relay_wake_up)
    return said


def _cost(said: dict[str, str], name: str, cost: Cost | None, more_per_byte: int = 0) -> None:
    if cost is None:
        return
    per_byte = cost.per_byte.value if cost.per_byte is not None else 0
    said[name] = time_text(cost.fixed.value)
    said[f"{name}-per-byte"] = time_text(per_byte + more_per_byte)


def model_text(said: dict[str, str], remarks: tuple[str, ...]) -> str:
    """The text of the file."""
    lines = "".join(f"  {remark.replace('--', '- -')}\n" for remark in remarks)
    attributes_text = "\n            ".join(f"{key}={quoteattr(value)}" for key, value in said.items())
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f"<!--\n{lines}-->\n"
        f'<host-model xmlns="{NAMESPACE}"\n            {attributes_text}/>\n'
    )
