"""Checks of kernel and processors: delays of a thread that should send now."""

from __future__ import annotations

from typing import Final

from wiregauge.examining.checks.base import Check, Verdict, degrades, fine
from wiregauge.examining.facts import Look

__all__ = ["CHECKS"]

_WAKES_IN_US: Final = 10
_LATE_US: Final = 100
"""Tolerated lateness, us: a tenth of a period of 1 ms, common in schedules."""
_TIMING: Final = ("CONFIG_HIGH_RES_TIMERS", "CONFIG_PTP_1588_CLOCK", "CONFIG_NETWORK_PHY_TIMESTAMPING")
_QUEUES: Final = (
    "CONFIG_NET_SCH_TAPRIO",
    "CONFIG_NET_SCH_ETF",
    "CONFIG_NET_SCH_CBS",
    "CONFIG_NET_SCH_MQPRIO",
    "CONFIG_VLAN_8021Q",
    "CONFIG_XDP_SOCKETS",
)


def kernel_preemption(look: Look) -> Verdict:
    """Whether the kernel is preemptible nearly everywhere."""
    seen = look.text("kernel-preemption")
    return fine(seen) if seen == "PREEMPT_RT" else degrades(seen, "apt install linux-image-rt-amd64")


def kernel_timing(look: Look) -> Verdict:
    """Whether the kernel was built with high-resolution timers and interface clocks."""
    return _built_with(look, _TIMING)


def kernel_queues(look: Look) -> Verdict:
    """Whether the kernel was built with the options for time-aware queues and fast senders."""
    return _built_with(look, _QUEUES)


def _built_with(look: Look, wanted: tuple[str, ...]) -> Verdict:
    told = look.texts("kernel-options")
    missing = [name for name in wanted if f"{name}=y" not in told and f"{name}=m" not in told]
    if not missing:
        return fine("all of them")
    lacking = ", ".join(name.removeprefix("CONFIG_") for name in missing)
    return degrades(f"built without {lacking}", "apt install linux-image-amd64")


def cpu_isolation(look: Look) -> Verdict:
    """Whether there are isolated processors, which the scheduler leaves alone."""
    cores, isolated = look.number("cores"), look.text("isolated-cpus")
    if isolated:
        return fine(f"isolated: {isolated}")
    last = max(cores - 1, 1)
    return degrades(f"none of {cores} is isolated", _booted_with(f"isolcpus=managed_irq,domain,{last}"))


def cpu_ticks(look: Look) -> Verdict:
    """Whether there are processors without the scheduler's tick."""
    without = look.text("nohz-full-cpus")
    last = max(look.number("cores") - 1, 1)
    if without:
        return fine(f"without tick: {without}")
    return degrades("all have the tick", _booted_with(f"nohz_full={last} rcu_nocbs={last}"))


def _booted_with(option: str) -> str:
    """The cure: a boot option, effective after the next boot."""
    return f"sed -i 's/^GRUB_CMDLINE_LINUX=\"/&{option} /' /etc/default/grub && update-grub"


def frequency_governor(look: Look) -> Verdict:
    """Whether processors keep their frequency."""
    governors = look.texts("governors")
    seen = ", ".join(governors)
    if set(governors) == {"performance"}:
        return fine(seen)
    return degrades(seen, "cpupower frequency-set -g performance")


def idle_states(look: Look) -> Verdict:
    """The time a processor may need to wake, unless the agent can keep it awake."""
    deepest_us, states = look.number("idle-latency-us"), ", ".join(look.texts("idle-states"))
    if deepest_us <= _WAKES_IN_US:
        return fine(states or "none")
    if look.truth("cpu-dma-latency"):
        return fine(f"{states}; the agent keeps processors awake during runs")
    return degrades(states, f"cpupower idle-set -D {_WAKES_IN_US}")


def rt_throttling(look: Look) -> Verdict:
    """Whether the kernel throttles real-time threads that do not rest."""
    runtime_us, period_us = look.number("rt-runtime-us"), look.number("rt-period-us")
    if runtime_us < 0 or runtime_us >= period_us:
        return fine("off")
    seen = f"real-time threads get {runtime_us} us of {period_us} us"
    return degrades(seen, "sysctl -w kernel.sched_rt_runtime_us=-1")


def wake_ups(look: Look) -> Verdict:
    """The wake-up lateness of a thread that sleeps until an instant, as senders and played networks do."""
    p50, p99, most = (look.number(f"wake-late-{of}-ns") / 1e3 for of in ("p50", "p99", "max"))
    seen = f"late by {p50:.1f} us at p50, {p99:.1f} us at p99, {most:.1f} us at most, n = {look.number('wake-ups')}"
    if p99 <= _LATE_US:
        return fine(seen)
    last = max(look.number("cores") - 1, 1)
    return degrades(seen, _booted_with(f"isolcpus=managed_irq,domain,{last} nohz_full={last} idle=poll"))


CHECKS: Final = (
    Check(
        "kernel-preemption",
        "processors",
        "the kernel may hold up a sender or a timestamp for some hundred microseconds",
        kernel_preemption,
    ),
    Check(
        "kernel-timing",
        "processors",
        "senders wake by ticks, or interfaces have no clocks of their own",
        kernel_timing,
    ),
    Check(
        "kernel-queues",
        "processors",
        "launch times, gates, VLAN devices or the backends xdp and xdp-live cannot be used here",
        kernel_queues,
    ),
    Check(
        "cpu-isolation",
        "processors",
        "other programs run on the core of the servicing thread, and its sends come late",
        cpu_isolation,
    ),
    Check(
        "cpu-ticks",
        "processors",
        "the scheduler's tick interrupts the servicing thread for some microseconds",
        cpu_ticks,
    ),
    Check(
        "frequency-governor",
        "processors",
        "the time that a message takes through the host varies with the frequency",
        frequency_governor,
        fix="governor",
    ),
    Check(
        "idle-states",
        "processors",
        "a frame that comes to a sleeping processor waits until it is awake",
        idle_states,
    ),
    Check(
        "rt-throttling",
        "processors",
        "a servicing thread that spins is stopped for the rest of each period",
        rt_throttling,
    ),
    Check(
        "wake-ups",
        "processors",
        "senders that sleep, and a network that is played, release frames as late as this",
        wake_ups,
    ),
)
