"""Who plays what is between the end systems of the bench of namespaces, and what each of the two carries."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from wiregauge.cli.running import run
from wiregauge.config import load
from wiregauge.plan import Campaign, Ptp, decode, plain
from wiregauge.records import Traits, traits_of
from wiregauge.runner import BenchError, BeyondBenchError, NetnsBench, bench_named
from wiregauge.runner.benches.capabilities import MOST_OF_A_KIND, beyond_namespaces, beyond_simulator
from wiregauge.runner.benches.netns.order import SWITCHES, Switches

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def campaign(example: str) -> Campaign:
    return load(EXAMPLES / f"{example}.xml").campaign


def examples() -> list[str]:
    return sorted(path.stem for path in EXAMPLES.glob("*.xml"))


BY_CLOCKS_OF_CARDS = {"on-the-cycle": "by a clock that is its card's"}
"""Examples with programs that go by a clock that no real host has, and what is said of them."""


@pytest.mark.parametrize("example", examples())
def test_the_model_carries_every_example_but_programs_by_the_clock_of_a_card(example: str) -> None:
    refused = beyond_namespaces(campaign(example), "model")
    assert len(refused) == (example in BY_CLOCKS_OF_CARDS)
    assert all(BY_CLOCKS_OF_CARDS[example] in why for why in refused)


def test_bridges_carry_some_examples() -> None:
    carried = {name for name in examples() if not beyond_namespaces(campaign(name), "kernel")}
    assert {"first", "demo", "taps", "clocks", "exchange"} <= carried
    assert not {"multicast", "link-faults", "afdx", "hub", "ring", "vlan-ports", "ptp"} & carried


def changed(example: str, **run: object) -> Campaign:
    told = plain(campaign(example))
    for one in told["runs"]:
        one.update(run)
    return decode(told)


@pytest.mark.parametrize(
    ("incident", "kernel"),
    [
        ({"type": "cut", "link": 0}, "cuts a link"),
        ({"type": "restart", "switch": 2, "until": 9}, "restarts a switch"),
        ({"type": "clock-step", "node": 2, "by": 5}, "steps a clock"),
        ({"type": "clock-step", "node": 0, "by": 5}, ""),
        ({"type": "babble", "flow": 10, "period": 1000, "length": 64, "until": 9}, "lets a sender babble"),
    ],
)
def test_what_befalls_the_network_the_model_plays_and_clocks_of_hosts_are_planted(
    incident: dict[str, object], kernel: str
) -> None:
    given = changed("demo", incidents=[{"at": 1, "kind": incident}])
    assert set(given.network.end_systems) == {0, 1}
    assert beyond_namespaces(given, "model") == []
    said = beyond_namespaces(given, "kernel")
    assert [kernel in line for line in said] == [True] * bool(kernel)


WRONG = {"offset": 1, "drift_ppb": 2, "wander_ppb": 3, "granularity": 8000}


@pytest.mark.parametrize("switches", ["kernel", "model"])
def test_clocks_of_end_systems_are_planted_whoever_plays_the_network(switches: Switches) -> None:
    told = plain(campaign("demo"))
    told["network"]["nodes"][0]["clock"] = {**WRONG, "temperature": [{"at": 5, "drift_ppb": 7}]}
    assert beyond_namespaces(decode(told), switches) == []


@pytest.mark.parametrize(
    "program",
    [{"ptp": plain(Ptp("software", False, 125_000_000_000, 700, 300))}, {"chrony": True}],
    ids=["ptp", "chrony"],
)
def test_programs_that_keep_clocks_have_no_way_through_the_model(program: dict[str, object]) -> None:
    told = plain(campaign("exchange"))
    told["synchronise"].update(program)
    (said,) = beyond_namespaces(decode(told), "model")
    assert "keep the clocks of hosts" in said
    assert said.endswith("use --switches kernel")


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
        bench_named("netns", switches="kernel").adapt(ring)
    model = bench_named("netns", switches="model")
    assert model.adapt(ring) is ring
    assert (model.traits.switches, model.traits.driver) == ("model", "veth to the model")
    assert bench_named("netns").traits.switches == SWITCHES
    assert any("simulator's engine" in fact.value for fact in model.facts(ring))
    with pytest.raises(BenchError, match="plays no switches"):
        NetnsBench(switches="somebody")  # type: ignore[arg-type]
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
    facts = {fact.name: fact.value for fact in NetnsBench(switches="kernel").facts(campaign("first"))}
    assert facts["switch"] == "kernel bridge, one queue per port"
