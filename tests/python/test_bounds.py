"""`wiregauge bounds`: inputs, outputs, exit codes, refusals."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from typer.testing import CliRunner

from simulation import simulate
from wiregauge import bounds
from wiregauge.cli.program import app
from wiregauge.cli.schemas import schema_of

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def ask(file: Path, *options: str, code: int = 0) -> Any:
    done = CliRunner().invoke(app, ["bounds", str(file), *options])
    assert done.exit_code == code, done.output
    return done


def answer(file: Path, *options: str, code: int = 0) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(ask(file, *options, "--json", code=code).stdout)
    Draft202012Validator(json.loads(schema_of("bounds").read_text())).validate(told)
    return told


def delays(told: dict[str, Any]) -> dict[tuple[str, str], float]:
    return {(flow["flow"], end["target"]): end["delay"] for flow in told["flows"] for end in flow["targets"]}


def afdx(place: Path, network: str = "", flow: str = "", rate: str = "100Mbps") -> Path:
    """One virtual link of 1000 B each millisecond from station to station over a switch."""
    file = place / "ese.xml"
    file.write_text(
        f"""<elements>
 <network name="ese" overhead="67" technology="AFDX" transmission-capacity="{rate}" {network}/>
 <station name="a"/>
 <station name="b"/>
 <switch name="s" tech-latency="0"/>
 <link from="a" fromPort="0" to="s" toPort="0"/>
 <link from="b" fromPort="0" to="s" toPort="1"/>
 <flow name="vl" source="a" max-payload="1000" period="1" {flow}>
  <target name="b"><path node="s"/><path node="b"/></target>
 </flow>
</elements>
"""
    )
    return file


def test_a_published_virtual_link_to_the_last_digit(tmp_path: Path) -> None:
    told = answer(afdx(tmp_path))
    # 8536 bit at 100 Mbit/s, twice, and 8536 bit/ms of the first delay of 85.36 us: 728.63296 bit more.
    assert Fraction(told["flows"][0]["targets"][0]["delay_exact"]) == Fraction("178.0063296") / 10**6
    assert [server["server"] for server in told["servers"]] == ["a-0", "s-1"]
    assert told["time_unit"] == "s"


def test_the_shortest_frame_costs_84_bytes(tmp_path: Path) -> None:
    file = afdx(tmp_path)
    short = file.read_text().replace('max-payload="1000"', 'max-payload="16"')
    file.write_text(short)
    floor = answer(file)["flows"][0]["targets"][0]["delay"]
    file.write_text(short.replace("<network ", '<network minimum-packet-size="0" '))
    without = answer(file)["flows"][0]["targets"][0]["delay"]
    assert floor / without == pytest.approx(84 / 83, rel=1e-3)


def test_a_deadline_is_a_limit(tmp_path: Path) -> None:
    assert answer(afdx(tmp_path, flow='deadline="1"'))["limits"][0]["kept"] is True
    told = answer(afdx(tmp_path, flow='deadline="0.1"'), code=1)
    assert told["limits"][0]["kept"] is False
    assert told["limits"][0]["written"] == "0.1 ms"
    assert "EXCEEDED" in ask(afdx(tmp_path, flow='deadline="0.1"'), code=1).output


def test_a_limit_of_a_test_is_judged(tmp_path: Path) -> None:
    text = (EXAMPLES / "two-switches.xml").read_text()
    for most, code in (("5ms", 0), ("20us", 1)):
        limits = f'<limits><limit measure="latency.max" at-most="{most}"/></limits></test>'
        file = tmp_path / "t.xml"
        file.write_text(text.split("<limits>")[0].replace("</test>", "") + limits)
        told = answer(file, code=code)
        assert told["limits"], told
        assert all(limit["kept"] is (code == 0) for limit in told["limits"])


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('transmission-capacity="100Mbps"', 'transmission-capacity="0"', "rate is not above zero"),
        ('transmission-capacity="100Mbps"', 'transmission-capacity="100ms"', "is no unit of a rate"),
        ('<path node="s"/>', '<path node="t"/>', 'there is no node "t"'),
        ('<path node="s"/>', "", "and no link does"),
        ('source="a"', 'source="x"', 'there is no node "x"'),
        ('period="1"', 'period="0"', "period is not above zero"),
        ('period="1"', "", "it has no period"),
        ('max-payload="1000" period="1"', 'lb-burst="10" lb-rate="1kbps"', "has no unit"),
        ('<station name="b"/>', '<station name="a"/>', "given twice"),
        ("<elements>", "<elements><network/>", "it has 2 <network> elements"),
        ("<elements>", "<other>", None),
    ],
)
def test_broken_networks_are_refused_with_file_and_line(
    tmp_path: Path, old: str, new: str, said: str | None
) -> None:
    file = afdx(tmp_path)
    text = file.read_text()
    if said is None:
        file.write_text("<other/>")
        said = "is no network"
    else:
        assert old in text
        file.write_text(text.replace(old, new))
    told = ask(file, code=2).stderr
    assert said in told
    assert str(file) in told


def test_what_is_no_network_is_refused(tmp_path: Path) -> None:
    for content in (b"", b"\xff\xfe", b"{", b"[1]", b'{"network": {}}', b"<elements/>", b"\x00", b"{\xff}"):
        file = tmp_path / "n"
        file.write_bytes(content)
        assert str(file) in ask(file, code=2).stderr
    assert "no such file" in ask(tmp_path / "none", code=2).stderr


def test_method_and_multiplexing_that_do_not_go_together(tmp_path: Path) -> None:
    file = afdx(tmp_path)
    assert (
        "pmoo does not go with fifo" in ask(file, "--method", "pmoo", "--multiplexing", "fifo", code=2).stderr
    )
    assert (
        "plp does not go with arb"
        in ask(file, "--method", "plp", "--multiplexing", "arbitrary", code=2).stderr
    )
    assert "plp is exact" in ask(file, "--method", "plp", "--arithmetic", "rounded", code=2).stderr


def ring(place: Path, rate: float) -> Path:
    file = place / "ring.json"
    flows = [
        {
            "name": f"f{k}",
            "path": [f"s{(k + i) % 4}" for i in range(4)],
            "arrival_curve": {"bursts": [10], "rates": [rate]},
        }
        for k in range(4)
    ]
    servers = [{"name": f"s{k}", "service_curve": {"latencies": [0], "rates": [10]}} for k in range(4)]
    file.write_text(json.dumps({"network": {"name": "ring"}, "flows": flows, "servers": servers}))
    return file


def test_a_ring_has_bounds_or_none(tmp_path: Path) -> None:
    # d = (4 · 10 + 6 · d) / 10 at rate 1: 10, and four of them.
    told = answer(ring(tmp_path, 1))
    assert told["time_unit"] == "own"
    assert told["flows"][0]["targets"][0]["delay_exact"] == "40"
    assert "proved to be the only one" in " ".join(told["assumptions"])
    assert "depend on one another" in ask(ring(tmp_path, 2), code=4).stderr
    for method in ("sfa", "plp"):
        less = answer(ring(tmp_path, 1), "--method", method)
        assert less["flows"][0]["targets"][0]["delay"] < 40
    assert "depend on one another" in ask(ring(tmp_path, 1), "--method", "pmoo", code=4).stderr


def test_without_a_bound_there_is_no_answer(tmp_path: Path) -> None:
    full = {
        "network": {"name": "full"},
        "flows": [{"name": "f", "path": ["s"], "arrival_curve": {"bursts": [1], "rates": [10]}}],
        "servers": [{"name": "s", "service_curve": {"latencies": [1], "rates": [10]}}],
    }
    file = tmp_path / "full.json"
    file.write_text(json.dumps(full))
    assert answer(file)["flows"][0]["targets"][0]["delay_exact"] == "11/10"
    told = answer(file, "--multiplexing", "arbitrary", code=4)
    assert told["flows"][0]["targets"][0]["delay"] is None
    assert "fully loaded" in " ".join(told["notes"])


def test_a_bound_begins_where_the_latency_does() -> None:
    """Before the application's call a host's wake-up and its work for others move a frame; they delay none after it."""
    # In ns, at 1 bit/ns. A message costs its host 2500 ns and 0.15 ns a byte.
    own, frame, period = Fraction("2720.8"), 12_304, 2_000_000
    # The two flows of mac come that much closer: its wake-up, of up to 20 us and of nothing while it works, and its
    # work for the other.
    jitter = 20_000 + own
    port = 2 * frame * (1 + jitter / period)
    # The interrupt, the reader's wake-up, and reading.
    reading = 1_000 + 40_000 + Fraction("2220.8")
    told = answer(EXAMPLES / "two-switches.xml")["flows"][0]["targets"][0]
    assert Fraction(told["delay_exact"]) * 10**9 == own + 600 + port + 2_000 + frame + reading


def test_programmes_are_at_least_as_tight_and_proved() -> None:
    total = delays(answer(EXAMPLES / "two-switches.xml"))
    told = answer(EXAMPLES / "two-switches.xml", "--method", "plp")
    assert "proved exactly" in told["notes"][-1]
    assert all(delay <= total[key] for key, delay in delays(told).items())


def test_a_solver_that_says_nothing_leaves_total_flow_analysis(monkeypatch: pytest.MonkeyPatch) -> None:
    source = bounds.read(EXAMPLES / "two-switches.xml")
    total = bounds.bound(source).flows
    monkeypatch.setattr("wiregauge.bounds.analysing.solved", lambda *_: None)
    alone = bounds.bound(source, "plp")
    assert [[t.delay for t in f.targets] for f in alone.flows] == [
        [t.delay for t in f.targets] for f in total
    ]
    assert "others are not" in " ".join(alone.notes)


def test_a_solver_that_lies_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The planted fault: multipliers of another programme. No bound may come from them."""
    source = bounds.read(EXAMPLES / "two-switches.xml")
    honest = bounds.bound(source, "plp").flows
    monkeypatch.setattr("wiregauge.bounds.analysing.solved", lambda *parts: [1.0] * len(parts[3]))
    for flow, true in zip(bounds.bound(source, "plp").flows, honest, strict=True):
        for lied, said in zip(flow.targets, true.targets, strict=True):
            assert lied.delay is not None
            assert said.delay is not None
            assert lied.delay >= said.delay


def test_networks_are_written_and_read_again(tmp_path: Path) -> None:
    file = afdx(tmp_path)
    first = delays(answer(file, "--write", str(tmp_path / "out.json")))
    assert delays(answer(tmp_path / "out.json")) == first
    answer(file, "--write", str(tmp_path / "out.xml"))
    assert delays(answer(tmp_path / "out.xml")) == first
    assert "there is no format" in ask(file, "--write", str(tmp_path / "o.txt"), code=2).stderr
    assert (
        "waits between servers"
        in ask(EXAMPLES / "two-switches.xml", "--write", str(tmp_path / "t.json"), code=2).stderr
    )


@pytest.mark.parametrize(
    "example", ["mixed-criticality.xml", "priorities.xml", "two-switches.xml", "afdx.xml"]
)
def test_examples_stay_below_their_bounds(example: str, tmp_path: Path) -> None:
    text = (EXAMPLES / example).read_text()
    told = delays(answer(EXAMPLES / example))
    run = simulate(text, tmp_path)
    compared = 0
    for flow in run.plan.runs[0].flows:
        sent = run.times("application-send", flow.id)
        for receiver in (flow.to, *flow.also_to):
            name = run.plan.network.names[receiver]
            came = run.times("application-receive", flow.id, name)
            bound = max(
                (delay for key, delay in told.items() if key[0] == str(flow.id) and name in key[1]),
                default=None,
            )
            for sequence, time in came.items():
                if bound is not None and sequence in sent:
                    compared += 1
                    assert time - sent[sequence] <= bound * 1e12, f"{example}: flow {flow.id} to {name}"
    assert compared > 50


@pytest.mark.parametrize(
    ("example", "said"),
    [
        ("policing", "its ports have stream gates with internal priorities, which no curve here has"),
        ("hold", "its port 3 has gates that hold the MAC, which no curve here has"),
        ("ladder-frer", "switches on its way join its member streams and part them again"),
        ("ptp", "its messages go out of every port"),
        ("synchronised", "its control frames go before all others"),
    ],
)
def test_what_no_curve_has_is_refused_and_not_left_out(example: str, said: str) -> None:
    """A bound of less than the test says would be too good."""
    told = ask(EXAMPLES / f"{example}.xml", code=2).stderr
    assert said in " ".join(told.split())


@pytest.mark.parametrize(
    "words", ["two-switches.xml", "gates.xml", "afdx.xml --method tfa", "robot.xml --advise"]
)
def test_a_microsecond_is_spelled_in_one_way(words: str) -> None:
    """As everywhere: `us` is how tests write it, and what they wrote is quoted without a space."""
    file, *options = words.split()
    told = CliRunner().invoke(app, ["bounds", str(EXAMPLES / file), *options])
    assert told.exit_code in (0, 1, 4), told.output
    assert re.search(r"[\d.] µs\b", told.output)
    assert not re.search(r"(?<!\w) us\b", told.output)


def test_an_overloaded_port_bounds_what_it_does_not_touch(tmp_path: Path) -> None:
    """Two flows over one port, a third over another, by every method; exit code 4, and a note with port and cure."""
    servers = [
        {"name": name, "service_curve": {"latencies": ["1us"], "rates": ["10Mbps"]}, "capacity": "100Mbps"}
        for name in ("s", "t", "u")
    ]
    ways = {"f": ["s", "t"], "g": ["s"], "h": ["u"]}
    flows = [
        {"name": name, "path": way, "arrival_curve": {"bursts": ["1kB"], "rates": ["6Mbps"]}}
        for name, way in ways.items()
    ]
    file = tmp_path / "n.json"
    file.write_text(json.dumps({"network": {"name": "n"}, "flows": flows, "servers": servers}))
    for method in ("tfa", "sfa", "pmoo", "plp"):
        told = answer(file, "--method", method, code=4)
        found = {flow["flow"]: flow["targets"][0]["delay"] for flow in told["flows"]}
        assert found.pop("h") is not None, method
        assert set(found.values()) == {None}, method
        (note,) = [note for note in told["notes"] if 'server "s": its load is 1.2' in note]
        assert "limit: at most 1" in note
        assert "give the port a faster link" in note
    line = ask(file, code=4).stdout.splitlines()[0]
    assert "1 of 3 targets bounded; OVERLOADED: s" in line
