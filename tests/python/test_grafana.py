"""The dashboard: every metric in it is published, and Grafana's own model of a dashboard knows all of the file."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

import pytest
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.plugins import register_default_plugins
from grafana_foundation_sdk.models.dashboard import Dashboard
from prometheus_client import CollectorRegistry
from prometheus_client.openmetrics.exposition import generate_latest
from prometheus_client.openmetrics.parser import text_string_to_metric_families

from synthetic import Recipe, make
from test_export import LIMITS
from wiregauge import export, results
from wiregauge.export import Choice
from wiregauge.records.live import FlowNow, RunNow
from wiregauge.runner.live.run_figures import RunFigures

FILE = Path(__file__).resolve().parents[2] / "examples" / "monitoring" / "grafana.json"
METRIC = re.compile(r"\bwiregauge_\w+")
LABEL = re.compile(r"(\w+)\s*=~?\s*\"|\{\{(\w+)\}\}")
Labels = dict[str, set[str]]
MEASURES: tuple[tuple[int, Literal["latency", "rtt"]], ...] = ((10, "latency"), (20, "rtt"))


@pytest.fixture(scope="module")
def dashboard() -> Any:
    return json.loads(FILE.read_text(encoding="utf-8"))


def targets(dashboard: Any) -> list[dict[str, Any]]:
    return [target for panel in dashboard["panels"] for target in panel.get("targets", ())]


def published(text: str) -> Labels:
    """Labels of every sample, by its name."""
    found: Labels = {}
    for family in text_string_to_metric_families(text):  # type: ignore[no-untyped-call]  # the library has no types
        for sample in family.samples:
            found.setdefault(sample.name, set()).update(sample.labels)
    return found


@pytest.fixture(scope="module")
def metrics(tmp_path_factory: pytest.TempPathFactory) -> Labels:
    """All that the endpoint serves of a run with alarms, and that `export` writes of a finished one."""
    flows = [
        FlowNow(number, "a", "b", measure, 9, 8, 1, 0, 1.0, 1, 1e3, 2e3, 3e3, 2e3, 0)
        for number, measure in MEASURES
    ]
    collector = RunFigures()
    collector.facts = {"test": "t", "bench": "netns"}
    collector.state = (RunNow(0, 0, 4.0, tuple(flows), 0, 0), 0.4, {"lost <= 0": 1}, {"lost <= 0": 1})
    registry = CollectorRegistry()
    registry.register(collector)
    found = published(generate_latest(registry).decode())  # type: ignore[no-untyped-call]  # the library has no types
    folder = tmp_path_factory.mktemp("grafana")
    run = make(folder / "r", Recipe(protocols=("udp",), payloads=(64,), messages=1000, limits=LIMITS))
    export.write(run, "openmetrics", folder / "metrics", None, Choice())
    assert results.judge(run).runs
    return found | published((folder / "metrics").read_text(encoding="utf-8"))


def wrong(dashboard: Any, metrics: Labels) -> list[str]:
    """Metrics and labels in queries and legends that nothing publishes; Prometheus itself adds `job`."""
    found = []
    for target in targets(dashboard):
        names = METRIC.findall(target["expr"].partition(" == ")[0].split("{")[0])
        assert names, target["expr"]
        found += [name for name in names if name not in metrics]
        known = set().union(*(metrics.get(name, set()) for name in names)) | {"job"}
        text = f"{target['expr']} {target['legendFormat']}"
        found += [label for pair in LABEL.findall(text) for label in pair if label and label not in known]
    return found


def test_every_metric_and_label_is_published(dashboard: Any, metrics: Labels) -> None:
    assert wrong(dashboard, metrics) == []
    shown = {name for target in targets(dashboard) for name in METRIC.findall(target["expr"])}
    assert {name for name in metrics if name.startswith(("wiregauge_live", "wiregauge_alarm"))} <= shown


def test_what_is_not_published_is_found(dashboard: Any, metrics: Labels) -> None:
    planted = copy.deepcopy(dashboard)
    first, second = targets(planted)[:2]
    first["expr"] = "rate(wiregauge_live_nothing_total[1m])"
    second["legendFormat"] = "{{receiver}}"
    assert {"wiregauge_live_nothing_total", "receiver"} <= set(wrong(planted, metrics))


def dropped(given: Any, known: Any, place: str = "") -> Iterator[str]:
    """What of a file its model has not taken up, or has otherwise."""
    if isinstance(given, dict) and isinstance(known, dict):
        for key, value in given.items():
            yield from dropped(value, known.get(key), f"{place}.{key}")
    elif isinstance(given, list) and isinstance(known, list) and len(given) == len(known):
        for number, value in enumerate(given):
            yield from dropped(value, known[number], f"{place}[{number}]")
    elif given != known:
        yield place


def modelled(dashboard: Any) -> Any:
    register_default_plugins()
    return json.loads(JSONEncoder().encode(Dashboard.from_json(copy.deepcopy(dashboard))))


def test_grafanas_model_knows_all_of_it(dashboard: Any) -> None:
    assert list(dropped(dashboard, modelled(dashboard))) == []
    planted = copy.deepcopy(dashboard)
    planted["colour"] = "red"
    planted["panels"][1]["options"]["colourMode"] = "none"
    planted["panels"][1]["targets"][0]["expresion"] = "x"
    assert list(dropped(planted, modelled(planted))) == [
        ".panels[1].options.colourMode",
        ".panels[1].targets[0].expresion",
        ".colour",
    ]


def test_panels_do_not_overlap(dashboard: Any) -> None:
    taken: set[tuple[int, int]] = set()
    for panel in dashboard["panels"]:
        at = panel["gridPos"]
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken, panel["title"]
        assert at["x"] + at["w"] <= 24
        taken |= cells
    assert len({panel["id"] for panel in dashboard["panels"]}) == len(dashboard["panels"])
