"""Whom an agent obeys over a network: a member of its lab, for one session, with a plan that is signed and allowed."""

from __future__ import annotations

import contextlib
import datetime
import gc
import hashlib
import json
import socket
import struct
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import grpc
import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from msgspec.structs import replace

from wiregauge.config import load
from wiregauge.plan import Campaign, as_json
from wiregauge.runner.agent_program import agent_program
from wiregauge.runner.agents.client import Agent, AgentLostError
from wiregauge.runner.agents.collecting import AlteredError, Collected
from wiregauge.runner.agents.network import AgentPlace
from wiregauge.runner.lab.access import SecureAccess
from wiregauge.runner.lab.authority import Lab, Member
from wiregauge.runner.lab.enrolment import enrol
from wiregauge.runner.lab.errors import LabError
from wiregauge.runner.lab.join_code import JoinCode
from wiregauge.runner.rpc import agent_pb2 as pb

TEST = """<test xmlns="urn:wiregauge:test:2" name="orders" seed="1">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="1" period="{period}" payload="1000B" count="10"/><receive flow="1"/></tasks>
</test>
"""
CONFIG = 'interfaces = ["lo0", "eth7"]\naddresses = ["198.18.0.0/15"]\nrate = "10Mbit/s"\nduration = "1min"\n'
SERVICE = "/wiregauge.agent.v1.Agent/"
GUESS_TAKES_S = 2.0
CAMPAIGN, OTHER = "0" * 32, "1" * 32


class Host:
    """An agent on loopback that has joined a lab."""

    def __init__(self, folder: Path, config: str = CONFIG) -> None:
        self.folder = folder
        self.lab = Lab.create(folder / "lab")
        (folder / "spool").mkdir(mode=0o700)
        (folder / "agent.toml").write_text(config)
        self._process = subprocess.Popen(
            [
                *(
                    str(agent_program()),
                    "serve",
                    "--listen",
                    "tls:127.0.0.1:0",
                    "--announce",
                    "--die-with-parent",
                ),
                *("--state", str(folder / "state"), "--spool", str(folder / "spool")),
                *("--config", str(folder / "agent.toml")),
            ],
            stdout=subprocess.PIPE,
            text=True,
        )
        _, self.address, self.code = self._said("joining ")

    @property
    def process(self) -> int:
        return self._process.pid

    def _said(self, begin: str) -> list[str]:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            if line.startswith(begin):
                return line.replace("tls:", "").split()
        raise AssertionError("the agent has ended")

    def join(self) -> None:
        assert enrol(self.lab, self.address, JoinCode.read(self.code), "host") == "host"
        self.address = self._said("listening ")[1]

    def agent(self, member: Member | None = None, name: str = "host") -> Agent:
        access = SecureAccess(member or self.lab.member(), name)
        return Agent(
            AgentPlace("a", 0, self.address, "eth7", -1, 0, shares_run_directory=False, access=access)
        )

    def audit(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.folder / "state" / "audit.log").read_text().splitlines()]

    def close(self) -> None:
        self._process.terminate()
        self._process.communicate(timeout=10)


@pytest.fixture
def stranger(tmp_path: Path) -> Iterator[Host]:
    made = Host(tmp_path)
    try:
        yield made
    finally:
        made.close()


@pytest.fixture
def host(stranger: Host) -> Host:
    stranger.join()
    return stranger


@pytest.fixture
def campaign(tmp_path: Path) -> Callable[[str], Campaign]:
    def made(period: str = "2ms") -> Campaign:
        (tmp_path / "test.xml").write_text(TEST.format(period=period))
        return load(tmp_path / "test.xml").campaign

    return made


def prepared(agent: Agent, campaign: Campaign) -> str:
    """What an agent answers to a plan."""
    with pytest.raises(AgentLostError) as refused:
        agent.prepare(campaign.network, campaign.runs[0], 1, {})
    return str(refused.value)


def test_the_secret_of_a_join_code_opens_once_and_only_to_its_agent(stranger: Host) -> None:
    wrong = JoinCode.read(stranger.code[:-4] + ("0000" if not stranger.code.endswith("0000") else "1111"))
    for _ in range(2):
        with pytest.raises(LabError, match="not the secret of the join code; compare the code"):
            enrol(stranger.lab, stranger.address, wrong, "host")
    other = JoinCode.read("0000" + stranger.code[4:])
    with pytest.raises(LabError, match="did not print this join code"):
        enrol(stranger.lab, stranger.address, other, "host")
    stranger.join()
    assert [line.get("refused") is not None for line in stranger.audit()] == [True, True, False]
    files = list((stranger.folder / "state").iterdir())
    assert {file.name for file in files} == {"key.pem", "membership.pem", "audit.log"}
    assert all(file.stat().st_mode & 0o077 == 0 for file in files)


def join_code(state: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(agent_program()), "join-code", "--state", str(state)],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_join_code_is_shown_while_it_is_good_for_something(stranger: Host, tmp_path: Path) -> None:
    state = stranger.folder / "state"
    shown = join_code(state)
    assert (shown.returncode, shown.stdout) == (0, f"{stranger.code}\n")
    assert shown.stderr == "good once, for 60 min more\n"
    wrong = JoinCode.read(stranger.code[:-4] + ("0000" if not stranger.code.endswith("0000") else "1111"))
    begun = time.monotonic()
    with ThreadPoolExecutor(8) as pool:
        guesses = [pool.submit(enrol, stranger.lab, stranger.address, wrong, "host") for _ in range(8)]
    assert all("not the secret" in str(guess.exception()) for guess in guesses)
    assert time.monotonic() - begun >= GUESS_TAKES_S, "guessing costs time"
    assert join_code(state).stdout == f"{stranger.code}\n", "and leaves the code as good as it was"
    for place, why in ((tmp_path / "none", "no agent waits"),):
        refused = join_code(place)
        assert (refused.returncode, refused.stdout) == (3, "")
        assert refused.stderr.count("\n") == 1
        assert why in refused.stderr


def test_a_host_that_has_joined_shows_no_code_until_it_has_left(host: Host) -> None:
    state = host.folder / "state"
    refused = join_code(state)
    assert refused.returncode == 3
    assert "this host has joined a lab; `wiregauge-agent leave` takes it out" in refused.stderr
    for said in ("this host has left its lab", "this host is in no lab"):
        left = subprocess.run(
            [str(agent_program()), "leave", "--state", str(state)], capture_output=True, text=True, check=True
        )
        assert left.stdout.startswith(said)
    assert not (state / "membership.pem").exists()


def test_nobody_is_heard_without_a_certificate_of_the_lab(host: Host, tmp_path: Path) -> None:
    foreign = Lab.create(tmp_path / "foreign").member()
    mixed = Member("x", "administrator", foreign.key, foreign.certificate, host.lab.authority())
    expired = _certified(host.lab, role="operator", ends=datetime.timedelta(days=-1))
    roleless = _certified(host.lab, role="king", ends=datetime.timedelta(days=1))
    for member, why in (
        (
            mixed,
            "in no lab yet, or in another one|nobody answers|gone|Socket closed|recvmsg|UNAVAILABLE|handshake",
        ),
        (
            expired,
            "in no lab yet, or in another one|nobody answers|gone|Socket closed|recvmsg|UNAVAILABLE|handshake",
        ),
        (roleless, 'names no role; its organisational unit is "king"'),
        (host.lab.member(), None),
    ):
        agent = host.agent(member)
        if why is None:
            assert agent.describe().agent_version
        else:
            with pytest.raises(AgentLostError, match=why):
                agent.describe()
        agent.close()
    bare = grpc.ssl_channel_credentials(host.lab.authority())
    with grpc.secure_channel(
        host.address, bare, [("grpc.ssl_target_name_override", "host.host.wiregauge")]
    ) as channel:
        call = channel.unary_unary(f"{SERVICE}Describe", request_serializer=None, response_deserializer=None)
        with pytest.raises(grpc.RpcError):
            call(b"", timeout=5)


def test_a_host_answers_to_its_own_name_only(host: Host) -> None:
    agent = host.agent(name="another")
    with pytest.raises(AgentLostError):
        agent.describe()
    agent.close()


def test_plans_count_once_for_one_session_and_as_they_were_signed(
    host: Host, campaign: Callable[[str], Campaign]
) -> None:
    agent, plan = host.agent(), campaign("2ms")
    agent.hello("test", 60_000, CAMPAIGN)
    assert "there is no interface 'eth7'" in prepared(agent, plan) or "eth7" in prepared(agent, plan)
    request = pb.PrepareRequest(
        network_json=as_json(plan.network).encode(),
        run_json=as_json(plan.runs[0]).encode(),
        end_system="a",
        count=9,
    )
    assert "the plan is not signed" in sent(agent, request)
    request.signature = host.lab.member().sign(b"something else")
    assert "the signature is not the caller's of this plan in this session" in sent(agent, request)
    agent._plans = 0
    assert "came before, or one after it did; a plan counts once" in prepared(agent, plan)
    agent.release()
    agent.close()
    names = [line["call"] for line in host.audit() if line.get("refused")]
    assert names.count("Prepare") >= 4


def sent(agent: Agent, request: pb.PrepareRequest) -> str:
    with pytest.raises(AgentLostError) as refused:
        agent._call("Prepare", request, pb.PrepareReply)
    return str(refused.value)


def test_a_session_is_for_an_interface_that_there_is(tmp_path: Path) -> None:
    """Where the owner names none, any name would else open one more session."""
    made = Host(tmp_path, 'duration = "1min"\n')
    try:
        made.join()
        agent = made.agent()
        for name in ("eth7", "../net/lo", "x" * 40):
            agent.place = replaced(agent.place, name)
            with pytest.raises(AgentLostError, match=f"this host has no interface {name}"):
                agent.hello("test", 60_000, CAMPAIGN)
        assert not agent.describe().in_use
    finally:
        made.close()


def test_a_network_uses_the_interfaces_of_its_session_alone(
    host: Host, campaign: Callable[[str], Campaign]
) -> None:
    agent, plan = host.agent(), campaign("2ms")
    agent.hello("test", 60_000, CAMPAIGN)
    agent.place = replace(agent.place, network_ports=(("a", "eth7"), ("b", "eth3")))
    assert "this session is for eth7, not for eth3" in prepared(agent, plan)
    agent.release()
    with pytest.raises(AgentLostError, match="no test on its interface eth3; it allows interfaces lo0, eth7"):
        agent.hello("test", 60_000, OTHER)
    # With both of those that are allowed it has both, and nobody else has either.
    agent.place = replace(agent.place, network_ports=(("a", "eth7"), ("b", "lo0")))
    agent.hello("test", 60_000, OTHER)
    another = host.agent()
    for interface in ("eth7", "lo0"):
        another.place = replaced(another.place, interface)
        with pytest.raises(AgentLostError, match=f"{interface} of this host is used by"):
            another.hello("test", 60_000, CAMPAIGN)
    agent.release()
    agent.close()
    another.close()


def test_a_plan_stays_within_what_the_host_allows(host: Host, campaign: Callable[[str], Campaign]) -> None:
    agent, plan = host.agent(), campaign("2ms")
    agent.hello("test", 60_000, CAMPAIGN)
    agent.place = replaced(agent.place, "eth3")
    assert "this session is for eth7, not for eth3" in prepared(agent, plan)
    with pytest.raises(AgentLostError, match="this session is for eth7, not for eth3"):
        agent.received_frames()
    with pytest.raises(AgentLostError, match="this session is for eth7, not for eth3"):
        agent.reach(["198.18.0.1"], 46, 10)
    with pytest.raises(AgentLostError, match="no test on its interface eth3; it allows interfaces lo0, eth7"):
        agent.hello("test", 60_000, OTHER)
    agent.place = replaced(agent.place, "eth7")
    with pytest.raises(AgentLostError, match=r"Reach has the address 8\.8\.8\.8; this host allows addresses"):
        agent.reach(["8.8.8.8"], 46, 10)
    away = replace(plan.network.nodes[1], ipv4=(8, 8, 8, 8))
    moved = replace(plan, network=replace(plan.network, nodes=(plan.network.nodes[0], away)))
    assert "b has the address 8.8.8.8; this host allows addresses 198.18.0.0/15" in prepared(agent, moved)
    assert "this host would send" in prepared(agent, campaign("100us"))
    assert "the run takes" in prepared(agent, campaign("20s"))
    agent.release()
    assert [file.name for file in (host.folder / "spool").iterdir()] == ["lock"]
    agent.close()


def replaced(place: AgentPlace, interface: str) -> AgentPlace:
    return AgentPlace(place.end_system, 0, place.address, interface, -1, 0, False, access=place.access)


def test_who_uses_an_interface_keeps_others_out(host: Host) -> None:
    host.lab.add_member("second", "operator")
    first, second = host.agent(), host.agent(host.lab.member("second"))
    first.hello("test", 60_000, CAMPAIGN)
    with pytest.raises(AgentLostError, match=r"eth7 of this host is used by .* for \d+ s; try again"):
        second.hello("test", 60_000, OTHER)
    assert second.describe().in_use.startswith("eth7 is used by ")
    again = host.agent()
    with pytest.raises(AgentLostError, match="eth7 of this host is used by"):
        again.hello("test", 60_000, OTHER)
    second._session = first._session
    with pytest.raises(AgentLostError, match="this session is somebody else's"):
        second.finish(abort=True, seconds=5)
    first.release()
    second.hello("test", 60_000, OTHER)
    second.release()
    for agent in (first, second, again):
        agent.close()


def test_a_host_has_a_session_for_each_interface(host: Host) -> None:
    host.lab.add_member("second", "operator")
    first, second = host.agent(), host.agent(host.lab.member("second"))
    second.place = replaced(second.place, "lo0")
    first.hello("test", 60_000, CAMPAIGN)
    second.hello("test", 60_000, OTHER)
    used = {one.name: one.in_use for one in first.describe().interfaces if one.in_use}
    assert used == {}, "neither interface exists"
    assert second.describe().in_use.count(" is used by ") == 2
    first.release()
    assert second.describe().in_use.startswith("lo0 is used by second")
    second.release()
    assert second.describe().in_use == ""
    for agent in (first, second):
        agent.close()


def test_a_testmaster_that_begins_again_takes_its_session_over(host: Host) -> None:
    first, again = host.agent(), host.agent()
    first.hello("test", 60_000, CAMPAIGN)
    again.hello("test", 60_000, CAMPAIGN)
    with pytest.raises(AgentLostError, match="there is no such session, or its lease is over"):
        first.received_frames()
    again.release()
    for agent in (first, again):
        agent.close()


def test_a_campaign_and_its_records_are_its_owners(host: Host) -> None:
    host.lab.add_member("second", "operator")
    host.lab.add_member("chief", "administrator")
    first, second = host.agent(host.lab.member("second")), host.agent()
    records = host.folder / "spool" / f"campaign-{CAMPAIGN}" / "run-0003" / "node-0001"
    first.hello("test", 60_000, CAMPAIGN)
    records.mkdir(parents=True, mode=0o700)
    (records / "host-counters.json").write_text("x" * 300_000)
    first.release()
    (kept,) = first.kept()
    assert (kept.campaign, kept.run, kept.node, kept.owner, kept.bytes, kept.active) == (
        *(CAMPAIGN, 3, 1),
        *("second", 300_000, False),
    )
    # The member who made the lab is its administrator, who may have all; another operator may not.
    assert second.kept() == [kept]
    host.lab.add_member("third", "operator")
    third = host.agent(host.lab.member("third"))
    assert third.kept() == []
    third.place = replaced(third.place, "lo0")
    with pytest.raises(AgentLostError, match="the campaign is second's"):
        third.hello("test", 60_000, CAMPAIGN)
    with pytest.raises(AgentLostError, match="these records are second's"):
        third.discard(CAMPAIGN, 3, 1)
    for wrong in ("", "..", f"../campaign-{CAMPAIGN}"):
        with pytest.raises(AgentLostError, match="the name of a campaign is 32 hexadecimal digits"):
            third.discard(wrong, 3, 1)
    with pytest.raises(AgentLostError, match="no records are kept of this run and node"):
        first.discard(CAMPAIGN, 4, 1)
    first.discard(CAMPAIGN, 3, 1)
    assert first.kept() == []
    assert [file.name for file in (host.folder / "spool").iterdir()] == ["lock"]
    for agent in (first, second, third):
        agent.close()


def test_records_are_fetched_from_where_they_ended_and_checked(host: Host, tmp_path: Path) -> None:
    agent = host.agent()
    agent.hello("test", 60_000, CAMPAIGN)
    records = host.folder / "spool" / f"campaign-{CAMPAIGN}" / "run-0000" / "node-0001"
    records.mkdir(parents=True, mode=0o700)
    whole = bytes(range(256)) * 4_000
    (records / "capture.pcapng").write_bytes(whole)
    agent.release()
    (kept,) = agent.kept(CAMPAIGN)
    for there in (None, b"", whole[:300_001], whole, whole + b"more", b"?" * 1_000):
        place = tmp_path / f"to-{len(there or b'x')}-{there is None}"
        if there is not None:
            place.mkdir()
            (place / "capture.pcapng").write_bytes(there)
        agent.collect(Collected(place), kept)
        # Also where what was there is not what the agent has.
        assert (place / "capture.pcapng").read_bytes() == whole
    agent.close()


class Far:
    """The way to a host that is far away, or busy: whatever is said takes so long, each way."""

    def __init__(self, address: str, seconds: float) -> None:
        self._to, self._seconds = address.rpartition(":"), seconds
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._listening.getsockname()[1]}"
        threading.Thread(target=self._take, daemon=True).start()

    def _take(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listening.accept()
                far = socket.create_connection((self._to[0], int(self._to[2])))
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pass, args=(one, other), daemon=True).start()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while said := one.recv(65_536):
                time.sleep(self._seconds)
                other.sendall(said)
        for side in (one, other):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self._listening.close()


@pytest.mark.parametrize("seconds", [0.1, 0.5])
def test_a_host_that_takes_long_to_greet_is_not_gone(host: Host, seconds: float) -> None:
    """A connection with certificates takes several ways there and back, a second or more on a slow network."""
    far = Far(host.address, seconds)
    agent = host.agent()
    agent.close()
    there = Agent(replace(agent.place, address=far.address))
    try:
        assert there.kept() == []
        assert there.describe().agent_version
    finally:
        there.close()
        far.close()


def test_an_agent_that_resets_the_connection_leaves_no_socket_open(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As one does that begins to serve its lab meanwhile. An open socket that is collected is a warning, and fails."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def reset() -> None:
            one, _ = listening.accept()
            one.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            one.close()

        peer = threading.Thread(target=reset)
        peer.start()
        connect = socket.create_connection

        def connected(*where: Any, **how: Any) -> socket.socket:
            made = connect(*where, **how)
            peer.join()
            return made

        monkeypatch.setattr(socket, "create_connection", connected)
        with pytest.raises(LabError, match="no agent answers"):
            enrol(Lab.create(tmp_path / "lab"), f"127.0.0.1:{listening.getsockname()[1]}", JoinCode(b"", b""))
    gc.collect()


class Hanging:
    """An agent that answers, and sends a chunk, and nothing more."""

    def __init__(self, *, then: threading.Event) -> None:
        self.then = then
        server = grpc.server(ThreadPoolExecutor(4))
        handler = grpc.unary_stream_rpc_method_handler(
            self.collect,
            request_deserializer=pb.CollectRequest.FromString,
            response_serializer=pb.Chunk.SerializeToString,
        )
        service = SERVICE.strip("/")
        server.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(service, {"Collect": handler}),)
        )
        self.address = f"127.0.0.1:{server.add_insecure_port('127.0.0.1:0')}"
        server.start()
        self.server = server

    def collect(self, request: pb.CollectRequest, context: Any) -> Iterator[pb.Chunk]:
        del request, context
        yield pb.Chunk(file="a", data=b"12", offset=0)
        self.then.wait(30)
        yield pb.Chunk(file="a", data=b"", offset=2, sha256=hashlib.sha256(b"12").digest())


class Slow(Collected):
    """A testmaster whose disk takes its time."""

    def take(self, chunk: pb.Chunk) -> None:
        time.sleep(0.8)
        super().take(chunk)


def test_an_agent_that_hangs_while_records_are_fetched_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("wiregauge.runner.agents.client._RECORDS_S", 0.5)
    done = threading.Event()
    hanging = Hanging(then=done)
    place = AgentPlace("far", 1, hanging.address, "eth0", -1, 0, shares_run_directory=False, patience_s=0.1)
    agent = Agent(place)
    try:
        begun = time.monotonic()
        with pytest.raises(
            AgentLostError, match=r"agent of far hangs while its records are fetched: nothing came"
        ):
            agent.collect(Collected(tmp_path))
        assert time.monotonic() - begun < 10
        # What came is not fetched again; and a testmaster that is slow itself blames nobody.
        assert Collected(tmp_path).have() == {"a": 2}
        done.set()
        slow = Slow(tmp_path)
        agent.collect(slow)
        assert slow.whole == 1
    finally:
        done.set()
        agent.close()
        hanging.server.stop(None)


def test_altered_records_are_not_taken(tmp_path: Path) -> None:
    to = Collected(tmp_path)
    to.take(pb.Chunk(file="../a", data=b"12", offset=0))
    with pytest.raises(AlteredError, match="a is not what the agent has"):
        to.take(pb.Chunk(file="a", data=b"3", offset=2, sha256=b"?" * 32))
    assert to.have() == {}
    assert to.whole == 0


def test_a_drained_host_takes_no_sessions_until_it_is_told_to(host: Host) -> None:
    agent = host.agent()
    agent.hello("test", 60_000, CAMPAIGN)
    agent.drain("its fan is changed")
    assert agent.describe().drained.endswith(": its fan is changed")
    with pytest.raises(AgentLostError, match="eth7"):
        agent.received_frames()
    other = host.agent()
    other.place = replaced(other.place, "lo0")
    with pytest.raises(AgentLostError, match=r"this host is drained by .*: its fan is changed"):
        other.hello("test", 60_000, OTHER)
    agent.undrain()
    other.hello("test", 60_000, OTHER)
    for one in (agent, other):
        one.release()
        one.close()


def test_two_agents_do_not_share_a_folder_of_records(host: Host) -> None:
    done = subprocess.run(
        [
            *(str(agent_program()), "serve", "--listen", "tls:127.0.0.1:0"),
            *("--state", str(host.folder / "state"), "--spool", str(host.folder / "spool")),
        ],
        capture_output=True,
        text=True,
        timeout=20,
        check=False,
    )
    assert done.returncode == 3
    assert "another agent has its records in" in done.stderr


def test_who_only_looks_does_not_keep_somebody_elses_session_alive(host: Host) -> None:
    host.lab.add_member("second", "observer")
    first, second = host.agent(), host.agent(host.lab.member("second"))
    first.hello("test", 700, CAMPAIGN)
    end = time.monotonic() + 20
    while second.describe().in_use:
        second.relate_clock()
        assert time.monotonic() < end, "the lease lasts as long as somebody looks"
    for agent in (first, second):
        agent.close()


def test_a_call_that_is_too_large_is_refused(host: Host) -> None:
    agent = host.agent()
    agent.hello("test", 60_000, CAMPAIGN)
    huge = pb.PrepareRequest(run_json=bytes((128 << 20) + 1))
    assert "128" in sent(agent, huge) or "too large" in sent(agent, huge)
    assert agent.describe().agent_version
    agent.close()


def _certified(lab: Lab, *, role: str, ends: datetime.timedelta) -> Member:
    """A certificate of the lab's authority that its commands would not make."""
    signer = serialization.load_pem_private_key((lab.folder / "keys" / "authority.pem").read_bytes(), None)
    assert isinstance(signer, ec.EllipticCurvePrivateKey)
    authority = x509.load_pem_x509_certificate(lab.authority())
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    names = [
        x509.NameAttribute(NameOID.COMMON_NAME, "x"),
        x509.NameAttribute(NameOID.ORGANIZATIONAL_UNIT_NAME, role),
    ]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(x509.Name(names))
        .issuer_name(authority.subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=9))
        .not_valid_after(now + ends)
        .sign(signer, hashes.SHA256())
    )
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return Member("x", role, pem, certificate.public_bytes(serialization.Encoding.PEM), lab.authority())


CALLS = {
    "observer": {"Describe", "ReadClock", "Examine"},
    "operator": {
        *(
            "Hello",
            "Prepare",
            "TryStream",
            "ReadInterface",
            "Announce",
            "Start",
            "Watch",
            "Keep",
            "Finish",
            "Collect",
        ),
        *("Release", "ListRecords", "DiscardRecords", "Drain", "Reach"),
        *("StartClockPrograms", "WatchClockPrograms", "AskClockPrograms", "StopClockPrograms"),
    },
    "administrator": {"Mend", "Restore", "Revoke", "Shutdown"},
}
"""The calls of each role, which lower roles may not make."""


def test_every_call_has_a_role_and_is_refused_to_those_below_it(host: Host) -> None:
    """A call that is added without a role here, or answered to the wrong people, fails this."""
    methods = {method.name: method for method in pb.DESCRIPTOR.services_by_name["Agent"].methods}
    assert set(methods) == set().union(*CALLS.values())
    host.lab.add_member("eve", "observer")
    host.lab.add_member("otto", "operator")
    ranks = ["observer", "operator", "administrator"]
    foreign = Lab.create(host.folder / "foreign").member()
    callers = {
        "eve": (host.lab.member("eve"), 0),
        "otto": (host.lab.member("otto"), 1),
        "nobody": (Member("x", "administrator", foreign.key, foreign.certificate, host.lab.authority()), -1),
        "expired": (_certified(host.lab, role="administrator", ends=datetime.timedelta(days=-1)), -1),
    }
    before = sorted(path.name for path in (host.folder / "spool").rglob("*"))
    for who, (member, rank) in callers.items():
        agent = host.agent(member)
        for needed, names in enumerate(CALLS[role] for role in ranks):
            if needed <= rank:
                continue
            for name in names:
                with pytest.raises(grpc.RpcError) as refused:
                    called(agent, methods[name])
                if rank >= 0:
                    assert f"{name} needs the role {ranks[needed]}" in str(refused.value.details()), who
                else:
                    assert refused.value.code() is grpc.StatusCode.UNAVAILABLE, (who, name)
        agent.close()
    assert sorted(path.name for path in (host.folder / "spool").rglob("*")) == before
    refusals = [line for line in host.audit() if "needs the role" in line.get("refused", "")]
    assert len(refusals) == len(CALLS["operator"]) + 2 * len(CALLS["administrator"])


def called(agent: Agent, method: Any) -> None:
    """Makes a call with an empty request."""
    path = f"/{method.containing_service.full_name}/{method.name}"
    make = agent._channel.unary_stream if method.server_streaming else agent._channel.unary_unary
    answer = make(path, request_serializer=lambda text: text, response_deserializer=lambda text: text)(
        b"", timeout=10
    )
    if method.server_streaming:
        list(answer)


def test_frames_are_kept_of_a_run_that_goes_on(host: Host) -> None:
    agent = host.agent()
    agent.hello("test", 60_000, CAMPAIGN)
    with pytest.raises(AgentLostError, match="there is no run; call Prepare first"):
        agent.keep(1, 2)
    with pytest.raises(AgentLostError, match="from_realtime_ns is 2, after 1, the end"):
        agent.keep(2, 1)
    agent.release()
    with pytest.raises(AgentLostError, match="there is no such session"):
        agent.keep(1, 2)
    agent.close()


def test_a_call_without_a_session_or_with_somebody_elses_is_refused(host: Host) -> None:
    """Every call that needs a session is refused."""
    agent = host.agent()
    for session in (b"", b"0" * 32):
        agent._session = session
        for name, request, reply in (
            ("Prepare", pb.PrepareRequest(), pb.PrepareReply),
            ("TryStream", pb.TryStreamRequest(), pb.TryStreamReply),
            ("ReadInterface", pb.ReadInterfaceRequest(interface="eth7"), pb.ReadInterfaceReply),
            ("Announce", pb.StartRequest(), pb.StartReply),
            ("Start", pb.StartRequest(), pb.StartReply),
            ("Finish", pb.FinishRequest(), pb.FinishReply),
            ("Reach", pb.ReachRequest(interface="eth7"), pb.ReachReply),
            ("Release", pb.ReleaseRequest(), pb.ReleaseReply),
        ):
            with pytest.raises(AgentLostError, match="there is no such session, or its lease is over"):
                agent._call(name, request, reply)
    agent.close()


def test_a_revoked_member_is_heard_no_more(host: Host) -> None:
    host.lab.add_member("eve", "administrator")
    eve, own = host.agent(host.lab.member("eve")), host.agent()
    eve.hello("test", 60_000, CAMPAIGN)
    own.revoke("eve", host.lab.fingerprint("eve"))
    for call in (eve.received_frames, eve.kept):
        with pytest.raises(AgentLostError, match="the certificate of eve was revoked"):
            call()
    assert own.describe().agent_version
    with pytest.raises(AgentLostError, match="a fingerprint has 32 bytes, not 3"):
        own.revoke("eve", b"abc")
    (host.lab.folder / "keys" / "eve.pem").unlink()
    host.lab.add_member("eve", "observer")
    again = host.agent(host.lab.member("eve"))
    assert again.describe().agent_version
    with pytest.raises(LabError, match="there is no certificate of nobody to revoke"):
        host.lab.fingerprint("nobody")
    for agent in (eve, own, again):
        agent.close()


def test_programs_run_where_the_host_allows_it_on_the_session_s_interface(host: Host) -> None:
    """The configuration of this host lists no programs; nothing a caller says makes it start one."""
    agent = host.agent()
    start = partial(pb.StartClockProgramsRequest, interface="eth7")

    def refused(request: pb.StartClockProgramsRequest) -> str:
        with pytest.raises(AgentLostError) as error:
            agent.start_clock_programs(request)
        return str(error.value)

    assert "call Hello first" in refused(start())
    agent.hello("test", 60_000, CAMPAIGN)
    assert 'this host starts no ptp4l for tests; write programs = ["ptp4l"] into its agent.toml' in refused(
        start()
    )
    assert "this session is for eth7, not for lo0" in refused(start(interface="lo0"))
    assert "domain is 128; it must be from 0 to 127" in refused(start(domain=128))
    with pytest.raises(AgentLostError, match="this host starts no chronyc for tests"):
        agent.ask_clock_programs(ptp=False, chrony=True)
    told = agent.ask_clock_programs(ptp=True, chrony=False)
    assert (told.pmc, told.kernel.leap in (-1, 0, 1)) == ("", True)
    with pytest.raises(AgentLostError, match="no program runs for this session"):
        list(agent.watch_clock_programs())
    agent.stop_clock_programs()
    agent.release()
    agent.close()
    host.lab.add_member("second", "observer")
    looking = host.agent(host.lab.member("second"))
    with pytest.raises(AgentLostError, match="StartClockPrograms needs the role operator"):
        looking.start_clock_programs(start())
    looking.close()
    calls = [line["call"] for line in host.audit() if line.get("refused")]
    assert calls.count("StartClockPrograms") == 5


def test_a_session_ends_although_who_ended_it_waits_no_longer(host: Host) -> None:
    agent, looking = host.agent(), host.agent()
    agent.hello("test", 60_000, CAMPAIGN)
    call = agent._channel.unary_unary(
        f"{SERVICE}Release",
        request_serializer=pb.ReleaseRequest.SerializeToString,
        response_deserializer=pb.ReleaseReply.FromString,
    )
    pending = call.future(pb.ReleaseRequest(), timeout=10, metadata=agent._metadata)
    time.sleep(0.002)
    pending.cancel()
    end = time.monotonic() + 20
    while looking.describe().in_use and time.monotonic() < end:
        # Where the call was cancelled before it came, it comes again.
        agent.release()
    assert looking.describe().in_use == ""
    for one in (agent, looking):
        one.close()


def test_who_has_a_session_changes_the_settings_of_its_interface_alone(host: Host) -> None:
    host.lab.add_member("chief", "administrator")
    first, second = host.agent(), host.agent(host.lab.member("chief"))
    first.hello("test", 60_000, CAMPAIGN)
    with pytest.raises(AgentLostError, match="this session is for eth7, not for lo0"):
        first.mend("lo0")
    second.place = replaced(second.place, "lo0")
    second.hello("test", 60_000, OTHER)
    for agent, interface, other in ((first, "eth7", "lo0"), (second, "lo0", "eth7")):
        with pytest.raises(AgentLostError, match=f"{other} of this host is used by .*; try again"):
            agent.mend(interface)
    second.release()
    # A session that is over is none, and no call is made as if there had never been one.
    second._session = b"0" * 32
    with pytest.raises(AgentLostError, match="there is no such session, or its lease is over"):
        second.mend("lo0")
    first.release()
    for agent in (first, second):
        agent.close()


def held(address: str, bytes_: bytes = b"") -> socket.socket:
    """A connection of somebody who is nobody."""
    host, _, port = address.rpartition(":")
    made = socket.create_connection((host, int(port)), timeout=10)
    if bytes_:
        made.sendall(bytes_)
    return made


HELLO = bytes.fromhex("160301020001000100")
"""How a handshake of TLS begins."""


@pytest.mark.parametrize("said", [b"", b"GET / HTTP/1.1\r\n\r\n", HELLO, b"\x00" * 4096], ids=repr)
def test_a_flood_of_connections_keeps_no_member_out(tmp_path: Path, said: bytes) -> None:
    flooded = Host(tmp_path, CONFIG + 'connections = 24\nconnections-per-address = 16\nhandshake = "1s"\n')
    held_open: list[socket.socket] = []
    try:
        held_open += [held(flooded.address, said) for _ in range(60)]
        flooded.join()
        held_open += [held(flooded.address, said) for _ in range(60)]
        agent = flooded.agent()
        assert agent.describe().agent_version
        held_open += [held(flooded.address, said) for _ in range(60)]
        assert agent.describe().agent_version, "whoever was admitted stays"
        agent.close()
        assert len(list(Path(f"/proc/{flooded.process}/fd").iterdir())) < 60
        # None of them outlives its deadline.
        for one in held_open:
            one.settimeout(10)
            with contextlib.suppress(ConnectionError):
                while one.recv(1 << 12):
                    pass
    finally:
        for one in held_open:
            one.close()
        flooded.close()
