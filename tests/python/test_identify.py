"""Hosts identified from the records of a run: secret ones of the simulator, whose parameters are the judge."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from wiregauge import runner
from wiregauge.calibrate.host_model import beside, predict, write_model
from wiregauge.config import load
from wiregauge.identify import IdentifyError, fit_host
from wiregauge.identify.costs import cost, quantiles, shares_text
from wiregauge.identify.moderation import Seen, coalesced, moderation, polled
from wiregauge.measures import Judgement
from wiregauge.records import RunDirectory

WAKE = 'send-wake-up="0%:1us 50%:3us 90%:8us 100%:60us" receive-wake-up="0%:2us 50%:4us 98%:9us 100%:30us"'
COSTS = (
    'transmit="3us" transmit-per-byte="1ns" receive="1.7us" receive-per-byte="0.7ns" interface-delay="812ns"'
)
HOSTS = {
    "each": f'{COSTS} {WAKE} interrupt-latency="2.9us"',
    "coalesced": f'{COSTS} {WAKE} interrupt-latency="1.9us" interrupts="coalesced" interrupt-frames="6" '
    'interrupt-wait="37us"',
    "polled": f'{COSTS} {WAKE} interrupt-latency="1.9us" interrupts="polled" interrupt-wait="83us"',
    "burst": f'{COSTS} {WAKE} interrupt-latency="1.9us" interrupts="burst"',
    "spaced": f'{COSTS} {WAKE} interrupt-latency="1.9us" interrupts="spaced" interrupt-wait="120us"',
    "adaptive": f'{COSTS} {WAKE} interrupt-latency="1.9us" interrupts="adaptive"',
}
TOLD = {
    "each": ("each", 2_900_000, None, None),
    "coalesced": ("coalesced", 1_900_000, 37_000_000, 6),
    "polled": ("polled", 1_900_000, 83_000_000, None),
    "burst": ("burst", 1_900_000, None, None),
    "spaced": ("spaced", 1_900_000, 120_000_000, None),
    "adaptive": ("adaptive", 1_900_000, None, None),
}


def run_of(place: Path, host: str, payloads: str, send: str, seed: int) -> Judgement:
    """A run of two such hosts over a switch, into `place`/run."""
    place.mkdir()
    (place / "t.xml").write_text(
        f"""<test xmlns="urn:wiregauge:test:2" name="secret" seed="{seed}">
  <network>
    <end-system name="a"><host {host}/></end-system><end-system name="b"><host {host}/></end-system>
    <switch name="s"/><link between="a s" rate="1Gbit/s"/><link between="s b" rate="1Gbit/s"/>
  </network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="1" payload="64B" {send}/><receive flow="1"/></tasks>
  <sweep><axis of="payload" values="{payloads}"/></sweep>
</test>
""",
        encoding="utf-8",
    )
    with runner.open("sim") as trials:
        return trials.run(load(place / "t.xml"), place / "run")


@pytest.fixture(scope="module", params=HOSTS)
def secret(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path]:
    """The kind of a secret host, and a run of it in bursts of several lengths."""
    place = tmp_path_factory.mktemp("secret") / "seen"
    send = 'period="200us" burst="8" spacing="3us" count="16000"'
    run_of(place, HOSTS[request.param], "18B 200B 700B 1472B", send, 1)
    return request.param, place / "run"


def test_every_parameter_of_a_secret_host_is_told(secret: tuple[str, Path]) -> None:
    kind, place = secret
    directory = RunDirectory.open(place)
    a, b = (fit_host(directory, name) for name in "ab")
    assert a.transmit is not None
    assert a.transmit.per_byte is not None
    assert a.interface_delay is not None
    assert (a.transmit.fixed.value, a.transmit.per_byte.value) == (3_000_000, 1_000)
    assert a.interface_delay.value == 812_000
    assert b.receive is not None
    assert b.receive.per_byte is not None
    assert b.moderation is not None
    assert (b.receive.fixed.value, b.receive.per_byte.value) == (1_700_000, 700)
    rule = b.moderation
    assert (rule.kind, rule.latency, rule.wait, rule.frames) == TOLD[kind]
    assert rule.explains == 1
    for found, p50, most in ((a.send_wake_up, 3e6, 60e6), (b.receive_wake_up, 4e6, 30e6)):
        assert found is not None
        assert dict(found)[50.0] == pytest.approx(p50, rel=0.1)
        assert found[-1][1] <= most
    assert any("nothing is told of sending" in sentence for sentence in b.untold)


def test_what_a_model_predicts_of_fresh_traffic_comes_about(secret: tuple[str, Path], tmp_path: Path) -> None:
    """Other payloads, another rate, another seed: p50 within 1 %, p99 within 5 %."""
    kind, place = secret
    files = {name: tmp_path / f"{name}.host.xml" for name in "ab"}
    for name, file in files.items():
        write_model(file, fit_host(RunDirectory.open(place), name), name, "the run")
    fresh = run_of(tmp_path / "fresh", HOSTS[kind], "100B 1000B", 'period="70us" count="30000"', 9)
    with runner.open("sim") as trials:
        simulated = predict(RunDirectory.open(tmp_path / "fresh" / "run"), files, trials, tmp_path / "p")
    found = beside(fresh, simulated)
    assert len(found) == 4
    for one in found:
        assert one.ratio == pytest.approx(1, abs=0.01 if one.statistic == "p50" else 0.05), one


def test_a_model_is_written_once(secret: tuple[str, Path], tmp_path: Path) -> None:
    fit = fit_host(RunDirectory.open(secret[1]), "a")
    write_model(tmp_path / "a.xml", fit, "a", "--x--")
    with pytest.raises(Exception, match="is there already"):
        write_model(tmp_path / "a.xml", fit, "a", "x")


def test_who_is_not_there_is_named(secret: tuple[str, Path]) -> None:
    with pytest.raises(IdentifyError, match='"c" sends and receives nothing in this test; hosts are a, b'):
        fit_host(RunDirectory.open(secret[1]), "c")


def test_what_cannot_be_told_apart_is_said(tmp_path: Path) -> None:
    """One length, and messages so far apart that the receiver sleeps every time."""
    run_of(tmp_path / "s", HOSTS["each"], "64B", 'period="1ms" count="500"', 1)
    fit = fit_host(RunDirectory.open(tmp_path / "s" / "run"), "b")
    assert [sentence.split(":")[0] for sentence in fit.untold[1:]] == [
        "its receiver was never busy when a frame came",
        "all frames it received have one length",
    ]
    assert fit.receive is not None
    assert fit.receive_wake_up is not None
    least = 1_700_000 + 700 * 110 + 2_000_000
    assert least <= fit.receive.fixed.value < least + 200_000, "the least time seen"
    assert fit.receive_wake_up[0][1] == 0


def arrivals(seed: int, n: int = 3_000) -> np.ndarray:
    rng = np.random.default_rng(seed)
    gaps = np.where(rng.random(n) < 0.5, rng.integers(1_000, 9_000, n), rng.integers(50_000, 400_000, n))
    return np.cumsum(gaps * 1_000)


def seen(came: np.ndarray, told: np.ndarray, latency: int = 0) -> Seen:
    return Seen(came, told + latency, np.array([0]), 1)


@given(st.integers(0, 1_000), st.integers(2, 9), st.integers(5, 90), st.integers(0, 5_000_000))
def test_the_replay_of_coalescing_is_that_of_a_queue(
    seed: int, frames: int, wait_us: int, latency: int
) -> None:
    came, wait = arrivals(seed, 300), wait_us * 1_000_000
    batch: list[int] = []
    told: list[int] = []
    for at in came:
        if batch and batch[0] + wait < at:
            told += [batch[0] + wait] * len(batch)
            batch = []
        batch.append(int(at))
        if len(batch) == frames:
            told += [int(at)] * frames
            batch = []
    told += [batch[0] + wait] * len(batch) if batch else []
    assert coalesced(came, wait, frames).tolist() == told


@pytest.mark.parametrize("grain", [0, 8_000])
def test_rules_are_told_through_rounded_timestamps(grain: int) -> None:
    came = arrivals(3)

    def rounded(times: np.ndarray) -> np.ndarray:
        return times // grain * grain if grain else times

    for told, kind in ((polled(came, 83_000_000), "polled"), (coalesced(came, 37_000_000, 6), "coalesced")):
        frames = Seen(rounded(came), rounded(told + 1_900_000), np.array([0]), max(2 * grain, 1))
        found = moderation(frames)
        assert found.kind == kind
        assert found.wait == pytest.approx(83e6 if kind == "polled" else 37e6, abs=2 * grain + 1)
        assert found.explains > 0.98


def test_a_rule_that_none_is_explains_little() -> None:
    came = arrivals(4)
    found = moderation(seen(came, came + np.random.default_rng(1).integers(0, 90_000_000, len(came))))
    assert found.explains < 0.5


def test_a_cost_is_a_line_through_medians() -> None:
    lengths = np.repeat([64, 512, 1518], 200)
    spent = 5_000_000 + 900 * lengths
    spent[::50] += 80_000_000
    found = cost(lengths, spent)
    assert (found.fixed.value, found.per_byte and found.per_byte.value) == (5_000_000, 900)


def test_a_distribution_is_of_the_language() -> None:
    assert shares_text(quantiles(np.array([5_000] * 40))) == "5ns"
    text = shares_text(quantiles(np.arange(1_000, 101_000)))
    assert text.startswith("0%:1ns 1%:")
    assert text.endswith(" 100%:100.999ns")
    assert len(text.split()) <= 64
