"""Tests as simulations of INET: the grammar of both files, gates instant by instant, frames, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.config import load
from wiregauge.inet import InetError, inet_files
from wiregauge.inet.writing import _gate
from wiregauge.plan.tsn import GateEntry, PortSchedule

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
TOKEN = re.compile(r"\s*(//[^\n]*|<-->|\+\+|[A-Za-z_]\w*|\d+[a-z]+|[{}:;=.])")
NAME = r"[A-Za-z_]\w*"
QUANTITY = r"\d+(ps|ns|us|ms|s|bps|B)"
TEXT = r'"[^"\\]*"'
ROW = r"\[\d+(, \d+){7}\]"
FILTER = rf"\{{stream: {TEXT}, packetFilter: expr\(has\(udp\) && udp\.destPort == \d+\)\}}"
TAGS = rf"\{{stream: {TEXT}, pcp: [0-7]\}}"
VALUES = (
    *(TEXT, QUANTITY, r"\d+", "true|false", NAME),
    rf"exponential\({QUANTITY}\)",
    rf"simTime\(\) < {QUANTITY} \? {QUANTITY} : {QUANTITY}",
    *(rf"\[{one}(, {one})*\]" for one in (QUANTITY, ROW, FILTER, TAGS)),
)
PATH = re.compile(rf"\*\.(\*|({NAME}))((\.[A-Za-z][A-Za-z0-9-]*(\[\d+\])?)+)")


class Ned:
    """A reader of what the export may write: the grammar of NED (OMNeT++ manual, appendix B) as far as it goes."""

    def __init__(self, text: str) -> None:
        self.tokens: list[str] = []
        at = 0
        while text[at:].strip():
            found = TOKEN.match(text, at)
            assert found is not None, f"no token of NED: {text[at : at + 20]!r}"
            self.tokens += [] if found[1].startswith("//") else [found[1]]
            at = found.end()
        self.nodes: dict[str, str] = {}
        self.links: list[tuple[str, str]] = []
        while self.peek() == "import":
            self.take("import")
            self.dotted()
            self.take(";")
        self.take("network", NAME, "extends", NAME, r"\{", "submodules", ":")
        while self.peek() != "connections":
            name, _, kind, _ = self.take(NAME, ":", NAME, ";")
            assert name not in self.nodes
            self.nodes[name] = kind
        self.take("connections", ":")
        while self.peek() != "}":
            one = self.end()
            self.take("<-->", "EthernetLink", r"\{", "datarate", "=", r"\d+bps", ";")
            self.take("delay", "=", r"\d+(ps|ns|us|ms|s)", ";", r"\}", "<-->")
            self.links.append((one, self.end()))
            self.take(";")
        self.take(r"\}")
        assert not self.tokens

    def peek(self) -> str:
        return self.tokens[0]

    def take(self, *patterns: str) -> list[str]:
        taken = [self.tokens.pop(0) for _ in patterns]
        for token, pattern in zip(taken, patterns, strict=True):
            assert re.fullmatch(pattern, token), f"{token} where {pattern} belongs"
        return taken

    def dotted(self) -> None:
        self.take(NAME)
        while self.peek() == ".":
            self.take(r"\.", NAME)

    def end(self) -> str:
        name, *_ = self.take(NAME, r"\.", "ethg", r"\+\+")
        assert name in self.nodes
        return name


def settings_of(text: str, ned: Ned) -> dict[str, str]:
    """The settings of an ini file, each of a form that OMNeT++ reads, on nodes of the network."""
    found: dict[str, str] = {}
    for line in text.splitlines():
        if not line or line.startswith("#") or line == "[General]":
            continue
        key, equals, value = line.partition(" = ")
        assert equals
        assert key not in found
        assert any(re.fullmatch(one, value) for one in VALUES), line
        path = PATH.fullmatch(key)
        assert path is not None or re.fullmatch(r"[a-z-]+", key), key
        assert path is None or path[2] is None or path[2] in ned.nodes
        found[key] = value
    return found


def exported(name: str, number: int = 0) -> tuple[Ned, dict[str, str]]:
    texts = inet_files(load(EXAMPLES / name).campaign, number)
    ned = Ned(next(text for file, text in texts.items() if file.endswith(".ned")))
    return ned, settings_of(texts["omnetpp.ini"], ned)


@pytest.mark.parametrize("name", ["gates.xml", "cut-through.xml"])
def test_both_files_keep_their_grammar(name: str) -> None:
    ned, settings = exported(name)
    assert {"TsnDevice", "TsnSwitch"} == set(ned.nodes.values())
    sources = [key for key, value in settings.items() if value == '"UdpSourceApp"']
    sinks = [key for key, value in settings.items() if value == '"UdpSinkApp"']
    assert len(sources) == len(sinks) > 0


def test_a_raw_frame_has_its_length_and_its_priority() -> None:
    _, settings = exported("gates.xml")
    # 100 B in a raw frame are 72 B in a datagram: 28 B of headers go before them.
    assert settings["*.controller.app[0].source.packetLength"] == "72B"
    assert settings["*.controller.app[0].source.initialProductionOffset"] == "10us"
    assert settings["*.controller.bridging.streamCoder.encoder.mapping"] == '[{stream: "flow 1", pcp: 7}]'
    # 2000 messages, the last at 10 us + 1999 periods; half a period before it, one more is due.
    assert (
        settings["*.controller.app[0].source.productionInterval"] == "simTime() < 999260us ? 500us : 1000000s"
    )
    assert settings["*.sw1.bridging.directionReverser.delayer.delay"] == "5us"


@given(
    st.lists(st.tuples(st.booleans(), st.integers(1, 9)), min_size=1, max_size=8),
    st.integers(0, 100),
)
def test_a_gate_is_open_when_that_of_the_test_is(entries: list[tuple[bool, int]], base: int) -> None:
    us = 10**6
    listed = tuple(GateEntry((1,) if is_open else (0,), length * us) for is_open, length in entries)
    schedule = PortSchedule(base_time=base * us, entries=listed)
    said = dict(line.removeprefix("g.").split(" = ") for line in _gate("g", schedule, 1))
    cycle = sum(length for _, length in entries)

    def ours(at: float) -> bool:
        place = (at - base) % cycle
        for is_open, length in entries:
            if place < length:
                return is_open
            place -= length
        raise AssertionError

    def theirs(at: float) -> bool:
        is_open = said["initiallyOpen"] == "true"
        if "durations" not in said:
            return is_open
        durations = [int(one) for one in re.findall(r"(\d+)us", said["durations"])]
        assert len(durations) % 2 == 0
        assert sum(durations) == cycle
        place = (at + int(re.findall(r"\d+", said["offset"])[0])) % cycle
        for length in durations:
            if place < length:
                return is_open
            place -= length
            is_open = not is_open
        raise AssertionError

    for at in range(2 * cycle):
        assert ours(at + 0.5) == theirs(at + 0.5)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("afdx.xml", "protocol rc"),
        ("hub.xml", "is a hub"),
        ("preemption.xml", "frame preemption"),
        ("policing.xml", "stream filters (802.1Qci)"),
        ("asynchronous.xml", "asynchronous shaping"),
        ("ring-frer.xml", "replication (802.1CB)"),
        ("synchronised.xml", "a clock of its own"),
        ("cyclic.xml", "cyclic queuing"),
        ("first.xml", 'write host="ideal" at <network>'),
    ],
)
def test_what_is_not_carried_is_refused_by_name(name: str, reason: str) -> None:
    with pytest.raises(InetError) as refused:
        inet_files(load(EXAMPLES / name).campaign)
    assert any(reason in one for one in refused.value.reasons)


def test_a_swept_setting_is_that_of_its_run() -> None:
    campaign = load(EXAMPLES / "cut-through.xml").campaign
    modes = [run.switches.forwarding_mode for run in campaign.runs]
    with pytest.raises(InetError, match="cut-through forwarding"):
        inet_files(campaign, modes.index("cut-through"))


def test_the_command_writes_a_folder_or_says_why_not(tmp_path: Path) -> None:
    def run(*arguments: object) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["export", *map(str, arguments)])
        return result.exit_code, result.output

    out = tmp_path / "o"
    assert run(EXAMPLES / "gates.xml", "--to", "inet", "--out", out)[0] == 0
    assert sorted(file.name for file in out.iterdir()) == ["gates.ned", "omnetpp.ini"]
    assert run(EXAMPLES / "gates.xml", "--to", "inet", "--out", out)[0] == 2
    assert run(EXAMPLES / "gates.xml", "--to", "inet", "--out", tmp_path / "p", "--run", "7")[0] == 2
    code, shown = run(EXAMPLES / "hub.xml", "--to", "inet", "--out", tmp_path / "p")
    assert (code, "which the export to INET does not carry" in shown) == (2, True)
    assert not (tmp_path / "p").exists()
