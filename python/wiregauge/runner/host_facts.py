"""Facts of the testmaster's host for every result."""

from __future__ import annotations

import os
import platform
from pathlib import Path

__all__ = ["host_facts"]


def host_facts() -> dict[str, str]:
    """Kernel, processor, clock and load, as text; unknown ones are left out."""
    facts = {
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "cores": str(os.cpu_count() or 1),
        "cores usable": str(len(os.sched_getaffinity(0))),
        "python": platform.python_version(),
        "load at start": f"{os.getloadavg()[0]:.2f}",
    }
    cpuinfo = _read("/proc/cpuinfo")
    for line in cpuinfo.splitlines():
        key, _, value = line.partition(":")
        if key.strip() == "model name":
            facts["processor"] = value.strip()
            break
    flags = next((line for line in cpuinfo.splitlines() if line.startswith("flags")), "")
    if " hypervisor" in flags:
        facts["virtualisation"] = "runs under a hypervisor: other guests can take the processor away"
    for name, path in (
        ("clock source", "/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        ("frequency governor", "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"),
        ("idle driver", "/sys/devices/system/cpu/cpuidle/current_driver"),
        ("preemption", "/sys/kernel/realtime"),
    ):
        value = _read(path).strip()
        if value:
            facts[name] = "PREEMPT_RT" if name == "preemption" and value == "1" else value
    memory = next((line for line in _read("/proc/meminfo").splitlines() if line.startswith("MemTotal")), "")
    if memory:
        facts["memory"] = f"{int(memory.split()[1]) / (1 << 20):.1f} GiB"
    return facts


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
