"""Who plays what is between the end systems of the bench of namespaces, and what each of the two carries."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from wiregauge.benches import SWITCHES, BenchError, NetnsBench, beyond_namespaces, beyond_simulator
from wiregauge.benches.capabilities import MOST_OF_A_KIND
from wiregauge.cli.running import run
from wiregauge.config import load
from wiregauge.plan import Campaign, decode, plain
from wiregauge.records import Traits, traits_of
from wiregauge.runner import BeyondBenchError, Live, bench_named

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"

# By example: words of each thing that the model does not carry. Those that are not here it carries whole.
LEFT = {
    "babbling": {"lets a sender babble"},
    "clocks": {"follows the temperature", "wanders", "has a granularity", "steps a clock"},
    "exchange": {"wanders", "follows the temperature"},
    "hub": {"is a hub"},
    "ptp": {"wanders", "has a granularity", "<ptp-domain>"},
    "ring-tsn": {"has a granularity", "<ptp-domain>"},
    "synchronised": {"wanders"},
    "windows-by-hand": {"has a granularity"},
}


def campaign(example: str) -> Campaign:
    return load(EXAMPLES / f"{example}.xml").campaign


def examples() -> list[str]:
    return sorted(path.stem for path in EXAMPLES.glob("*.xml"))


@pytest.mark.parametrize("example", examples())
def test_the_model_carries_every_example_but_for_what_hosts_cannot(example: str) -> None:
    said = beyond_namespaces(campaign(example), "model")
    words = LEFT.get(example, set())
    assert all(any(word in line for word in words) for line in said), said
    assert all(any(word in line for line in said) for word in words), said


def test_the_model_carries_more_examples_than_bridges_and_none_less() -> None:
    carried = {
        who: {name for name in examples() if not beyond_namespaces(campaign(name), who)}
        for who in ("kernel", "model")
    }
    assert carried["kernel"] < carried["model"]
    assert len(carried["model"]) >= 32


def changed(example: str, **run: object) -> Campaign:
    told = plain(campaign(example))
    for one in told["runs"]:
        one.update(run)
    return decode(told)


@pytest.mark.parametrize(
    ("incident", "refused"),
    [
        ({"type": "cut", "link": 0}, False),
        ({"type": "restart", "switch": 2, "until": 9}, False),
        ({"type": "clock-step", "node": 2, "by": 5}, False),
        ({"type": "clock-step", "node": 0, "by": 5}, True),
        ({"type": "babble", "flow": 10, "period": 1000, "length": 64, "until": 9}, True),
    ],
)
def test_incidents_befall_the_network_and_not_the_hosts(incident: dict[str, object], refused: bool) -> None:
    given = changed("demo", incidents=[{"at": 1, "kind": incident}])
    systems = given.network.end_systems
    assert set(systems) == {0, 1}
    assert bool(beyond_namespaces(given, "model")) == refused


def test_clocks_of_switches_are_the_models_to_play() -> None:
    told = plain(campaign("demo"))
    by_name = {node["name"]: node for node in told["network"]["nodes"]}
    switch = next(node for node in by_name.values() if node["kind"]["type"] == "switch")
    switch["clock"] = {"offset": 1, "wander_ppb": 3, "granularity": 8000}
    assert beyond_namespaces(decode(told), "model") == []
    assert any("only an agent can plant one" in line for line in beyond_namespaces(decode(told), "kernel"))


def test_what_the_simulator_refuses_the_model_refuses() -> None:
    told = plain(campaign("demo"))
    told["network"]["nodes"][0]["tsn"] = {"classes": [], "classify": [{"flow": 10, "priority": 3}]}
    given = decode(told)
    refused = beyond_simulator(given)
    assert refused
    assert set(refused) <= set(beyond_namespaces(given, "model"))


def test_only_end_systems_are_counted_where_the_model_plays() -> None:
    told = plain(campaign("demo"))
    switch = next(node for node in told["network"]["nodes"] if node["kind"]["type"] == "switch")
    told["network"]["nodes"] += [{**switch, "name": f"s{n}"} for n in range(MOST_OF_A_KIND + 1)]
    assert beyond_namespaces(decode(told), "model") == []
    assert any("switches: one machine" in line for line in beyond_namespaces(decode(told), "kernel"))


def test_the_option_chooses_and_the_traits_say_who() -> None:
    ring = campaign("ring")
    with pytest.raises(BeyondBenchError, match="loop"):
        bench_named("netns", switches="kernel").carried(ring)
    model = bench_named("netns", switches="model")
    assert model.carried(ring) is ring
    assert (model.traits.switches, model.traits.driver) == ("model", "veth to the model")
    assert bench_named("netns").traits.switches == SWITCHES
    assert any("simulator's engine" in fact.value for fact in model.facts(ring))
    with pytest.raises(BenchError, match="plays no switches"):
        Live(switches="somebody")  # type: ignore[arg-type]
    with pytest.raises(BenchError, match="no effect with --bench sim"):
        bench_named("sim", switches="model")
    with pytest.raises(BenchError, match="between two interfaces"):
        bench_named("netns", switches="model", interfaces=["eth1", "eth2"])


def test_runs_from_before_there_was_a_choice_had_bridges() -> None:
    assert traits_of({"traits": {"one_clock": True, "driver": "veth"}}).switches == "kernel"
    assert traits_of({"traits": {"driver": "simulated", "virtual_time": True}}).switches == ""
    assert traits_of({"traits": Traits(driver="veth", switches="model").as_json()}).switches == "model"


def test_the_command_names_the_same_default() -> None:
    (option,) = inspect.signature(run, eval_str=True).parameters["switches"].annotation.__metadata__
    assert option.show_default == SWITCHES


def test_bridges_still_say_what_they_are() -> None:
    facts = {fact.name: fact.value for fact in NetnsBench(campaign("first"), switches="kernel").facts()}
    assert facts["switch"] == "kernel bridge, one queue per port"
