"""The types of `datasheet.json` and `wiregauge switch --json`; the schema is generated from them."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

from wiregauge._version import __version__
from wiregauge.files.typed_json import Count, Positive, filled, json_schema
from wiregauge.switching.catalogue import UNCARRIED
from wiregauge.switching.results import Result
from wiregauge.switching.session import Session

__all__ = ["SwitchShown", "schema_path", "switch_json", "switch_schema"]


class ColumnShown(TypedDict):
    key: str
    title: str
    unit: Annotated[str, Meta(description="empty: text, or a plain number")]


class TestShown(TypedDict):
    name: str
    title: str
    source: Annotated[str, Meta(description="standard and clause")]
    state: Annotated[
        str, Meta(extra_json_schema={"enum": ["measured", "refused", "not carried", "not measured"]})
    ]
    reason: Annotated[str, Meta(description="why it is not measured; empty: it is")]
    conclusion: list[str]
    columns: list[ColumnShown]
    rows: Annotated[
        list[dict[str, str | int | float | None]],
        Meta(description="by the keys of columns; null: not determined"),
    ]
    notes: list[str]


class UncarriedShown(TypedDict):
    test: str
    reason: str


class SwitchShown(TypedDict):
    datasheet: Literal[1]
    device: str
    ports: Count
    rate_bps: Positive
    bench: str
    size: Annotated[str, Meta(extra_json_schema={"enum": ["quick", "standard"]})]
    frame_sizes: list[int]
    state: Annotated[str, Meta(extra_json_schema={"enum": ["complete", "interrupted"]})]
    reason: str
    version: str
    trials: Annotated[int, Meta(ge=0, description="in the directory")]
    seconds: Annotated[float, Meta(ge=0, description="that the trials of this command took")]
    told: Annotated[
        list[str], Meta(description="what of the device's file holds in every trial, and what does not")
    ]
    tests: list[TestShown]
    refused: Annotated[list[str], Meta(description="trials that count for nothing, after one repeat")]
    not_carried: Annotated[list[UncarriedShown], Meta(description="tests that this bench cannot carry")]


def switch_json(
    session: Session, bench: str, results: list[Result], stopped: str, *, between: str = ""
) -> SwitchShown:
    """The data sheet. `between`: what played the device, where the bench has a choice."""
    device = session.device
    return {
        "datasheet": 1,
        "device": device.name,
        "ports": len(device.ports),
        "rate_bps": device.rate_bps,
        "bench": bench,
        "size": "quick" if session.sizes.quick else "standard",
        "frame_sizes": list(session.frames),
        "state": "interrupted" if stopped else "complete",
        "reason": stopped,
        "version": __version__,
        "trials": session.asked if not stopped else max(session.asked - 1, 0),
        "seconds": round(session.spent_s, 3),
        "told": [*device.told, *([f"the device was played by {between}"] if between else [])],
        "tests": [
            filled(TestShown, one, columns=[filled(ColumnShown, column) for column in one.columns])
            for one in results
        ],
        "refused": session.refusals,
        "not_carried": [{"test": test, "reason": reason} for test, reason in UNCARRIED],
    }


def switch_schema() -> dict[str, Any]:
    """The JSON Schema of the data sheet."""
    one = json_schema(SwitchShown, "the data sheet of a device under test", closed=True)
    del one["$schema"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$id": "urn:wiregauge:switch:1",
        "title": "`wiregauge switch --json`, datasheet.json",
        **one,
    }


def schema_path() -> Path:
    """The path of the schema."""
    return Path(str(resources.files("wiregauge").joinpath("switching/switch.schema.json")))
