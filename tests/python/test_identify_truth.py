"""Secret switches of every kind: an interval of `identify` covers the truth, each word is true, or it is not told."""

from __future__ import annotations

import random
import re
from itertools import product
from pathlib import Path

import pytest

from simulation import trial
from wiregauge.identify.passed import passed_by
from wiregauge.identify.switch_file import switch_attributes
from wiregauge.identify.switches import BufferFit, SwitchFit, fit_switch
from wiregauge.records import RunDirectory

MODES = ("store-and-forward", "cut-through")
KINDS = list(
    product(MODES, ("one length", "several"), ("same", "slower", "faster"), ("idle", "busy"), (True, False))
)


def secret(kind: tuple[str, str, str, str, bool], chance: random.Random) -> tuple[str, int, int]:
    """A test, its switch's delay in ps and its buffer in frames (0: never filled)."""
    mode, lengths, rates, load, filled = kind
    delay, frames = chance.randrange(500, 20_000), chance.randrange(4, 12) if filled else 0
    fast, slow = "1Gbit/s", "100Mbit/s"
    into, out = {"same": (fast, fast), "slower": (fast, slow), "faster": (slow, fast)}[rates]
    buffer = f'buffer-frames="{frames}"' if filled else ""
    first, second = chance.sample(range(60, 1400), 2)
    more = f'<send flow="11" period="1.731ms" payload="{second}B" count="150" offset="331us"/><receive flow="11"/>'
    inject = '<inject on="b" to="c" load="1%" frame="300B"/>' if load == "busy" else ""
    own = chance.randrange(60, 1400)
    burst = f'burst="{chance.randrange(20, 40)}" spacing="1us"' if filled else ""
    return (
        f"""<test xmlns="urn:wiregauge:test:2" name="secret" seed="{chance.randrange(1, 999)}" bench="sim">
  <network host="ideal"><end-system name="a"/><end-system name="b"/><end-system name="c"/><end-system name="d"/>
    <switch name="sw" delay="{delay}ns" forwarding-mode="{mode}" {buffer}/>
    <link between="a sw" rate="{into}"/><link between="b sw" rate="{fast}"/><link between="d sw" rate="{fast}"/>
    <link between="sw c" rate="{out}"/></network>
  <flows><flow id="10" protocol="udp" from="a" to="c"/><flow id="11" protocol="udp" from="a" to="c"/>
    <flow id="20" protocol="udp" from="b" to="c"/><flow id="30" protocol="udp" from="d" to="c"/></flows>
  <tasks warm-up="0s" drain="200ms">
    <send flow="10" period="1.37ms" payload="{first}B" count="150"/><receive flow="10"/>
    {more if lengths == "several" else '<send flow="11" period="5s" payload="60B" count="1"/><receive flow="11"/>'}
    <send flow="20" period="6ms" payload="{own}B" count="300" {burst}/><receive flow="20"/>
    <send flow="30" period="7ms" payload="{own}B" count="300" {burst}/><receive flow="30"/>
    {inject}</tasks></test>""",
        delay * 1000,
        frames,
    )


def identified(place: Path, text: str) -> SwitchFit:
    place.mkdir(exist_ok=True)
    (place / "t.xml").write_text(text, encoding="utf-8")
    trial(place / "t.xml", place / "r")
    return fit_switch(passed_by(RunDirectory.open(place / "r")))


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: ", ".join(map(str, kind)))
def test_nothing_is_said_that_is_not_so(kind: tuple[str, str, str, str, bool], tmp_path: Path) -> None:
    mode, _, rates, load, _ = kind
    text, delay, frames = secret(kind, random.Random(repr(kind)))
    fit = identified(tmp_path, text)
    assert fit.delay.mode in (mode, None)
    assert (fit.delay.mode is None) == any("stores frames or cuts" in one for one in fit.untold)
    assert fit.delay.delay.low <= delay <= fit.delay.delay.high
    assert fit.delay.delay.low < fit.delay.delay.high
    if fit.delay.slope is not None:
        truth = 0 if mode == "cut-through" else {"faster": 10_000}.get(rates, 1000)
        assert fit.delay.slope.low <= truth <= fit.delay.slope.high
    if load == "idle":
        assert "line-drift" not in switch_attributes(fit, "sw")
    for port in fit.ports:
        assert port.rate is None or port.rate.low <= port.planned_bps <= port.rate.high
        assert (port.rate is None) == any(port.port in one for one in fit.untold)
    assert "line-drift" not in switch_attributes(fit, "sw")
    told = [spelled(fit.buffer), *fit.buffer.also]
    if fit.buffer.below is None:
        assert fit.buffer.least <= (frames if frames and fit.buffer.unit == "frames" else 512 * 1024)
    elif frames:
        ranges = [re.fullmatch(r"buffer in frames: (\d+) to (\d+)", one) for one in told]
        assert any(one and int(one[1]) <= frames <= int(one[2]) for one in ranges), told
    else:
        assert not fit.buffer.lost


def spelled(held: BufferFit) -> str:
    """As `also` writes it."""
    return f"{held.policy} in {held.unit}: {held.least} to {(held.below or 0) - 1}"


@pytest.mark.parametrize("mode", MODES)
def test_frames_of_several_lengths_from_one_port_tell_the_mode(mode: str, tmp_path: Path) -> None:
    text, _, _ = secret((mode, "several", "same", "idle", False), random.Random(3))
    assert identified(tmp_path, text).delay.mode == mode


@pytest.mark.parametrize("mode", MODES)
def test_ports_of_one_length_each_tell_no_mode(mode: str, tmp_path: Path) -> None:
    """Two lengths, each by a port of its own, were called store-and-forward with an interval of width 0."""
    text, delay, _ = secret((mode, "one length", "same", "idle", False), random.Random(4))
    fit = identified(tmp_path, text)
    assert fit.delay.mode is None
    assert fit.delay.slope is None
    assert fit.delay.delay.low <= delay <= fit.delay.delay.high
