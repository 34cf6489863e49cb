"""Traits of a bench that judging depends on, whatever the bench is called.

A bench states its traits in the manifest and its name is not looked at, so a new one is judged like the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from msgspec import Struct, to_builtins

__all__ = ["Traits", "traits_of"]


class Traits(Struct, frozen=True):
    """The traits of a bench; defaults are those of real end systems without further information."""

    virtual_time: bool = False
    """Time is computed: nothing else that a host does can disturb a run, and a run repeated is the same run."""
    one_clock: bool = False
    """End systems read one clock, but for those that the test gives a clock of their own."""
    tapped: bool = False
    """Records are from taps, not from end systems: without a tap the actions of an end system are unknown."""
    driver: str = "not known"
    """The interface drivers that frames pass, as calibrations name them."""
    switches: str = ""
    """The network between the end systems of a bench on one machine: `kernel` for its bridges, `model` for the
    simulator's engine in real time. Empty: none on this machine, or not recorded."""

    @property
    def between(self) -> str:
        """The players of switches and links, in words; empty where there is no choice."""
        return {"kernel": "bridges of the kernel", "model": "the model, in real time"}.get(self.switches, "")

    def as_json(self) -> dict[str, Any]:
        """The traits as stored in the manifest."""
        made: dict[str, Any] = to_builtins(self)
        return made


def traits_of(manifest: Mapping[str, object]) -> Traits:
    """The traits of the bench of a run directory. What a later version may add to them is left out."""
    found = manifest.get("traits")
    stated = found if isinstance(found, dict) else {}
    driver = str(stated.get("driver", Traits().driver))
    # The only network before the trait was recorded.
    switches = "kernel" if driver == "veth" else ""
    return Traits(
        virtual_time=stated.get("virtual_time") is True,
        one_clock=stated.get("one_clock") is True,
        tapped=stated.get("tapped") is True,
        driver=driver,
        switches=str(stated.get("switches", switches)),
    )
