"""One agent, seen from the testmaster: a typed face over the control plane of `agent.proto`."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, TypeVar

import grpc
from google.protobuf.message import Message
from msgspec import Struct

from wiregauge._version import __version__
from wiregauge.files import printable, printable_lines
from wiregauge.plan import Network, Run, as_json
from wiregauge.runner.agents.collecting import AlteredError, Collected
from wiregauge.runner.agents.network import SILENCE_S, AgentPlace
from wiregauge.runner.agents.reports import FinishedRun, finished_run
from wiregauge.runner.agents.stalling import StalledError, in_time
from wiregauge.runner.agents.versions import OURS
from wiregauge.runner.bench import BenchError
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = [
    "Agent",
    "AgentLostError",
    "ClockRelation",
    "StartMissedError",
]

_SERVICE = "/wiregauge.agent.v1.Agent/"
_PATIENCE_S: Final = 2.0
"""Duration of a call, s, after which a check is made that its agent still exists."""
_CALL_SECONDS: Final = 60.0
"""Time limit of a call to an agent that answers, s."""

_TRANSPORT: Final = {
    "Hostname Verification": "another host of the lab answers there; correct its address in the inventory",
    "OPENSSL_internal": "it is in no lab yet, or in another one: enrol it with its agent's join code",
    "Connection refused": "nobody listens there; start `wiregauge agent serve`",
    "Deadline Exceeded": "nobody answers in time",
}
"""Explanations for the user by fragments of gRPC messages."""
_RECORDS_S: Final = 30.0
"""How long an agent may send no part of records being fetched, s: longer than its own wait for a disk, which it
names."""
_CLOCK_READINGS: Final = 32
_RETRY_S: Final = 0.5
"""Interval between attempts to reach an agent whose connection broke, s."""
_REFUSED: Final = "Connection refused"
"""Part of gRPC's message on a host that is up and runs no agent."""
_NETWORK: Final = (
    # Detects a dead connection and replaces it.
    ("grpc.keepalive_time_ms", 5_000),
    ("grpc.keepalive_timeout_ms", 5_000),
    ("grpc.initial_reconnect_backoff_ms", 250),
    # This is also how long an attempt may take: a connection with certificates needs several ways there and back, and
    # each may take long between distant hosts, and on a busy one.
    ("grpc.min_reconnect_backoff_ms", 5_000),
    ("grpc.max_reconnect_backoff_ms", 1_000),
)
_PLAN: Final = b"wiregauge plan 1\0"
"""Prefix of signed data; see `crates/agent/src/remote/signed_plan.rs`."""

Reply = TypeVar("Reply", bound=Message)


class AgentLostError(BenchError):
    """An agent refused a call or is gone; the text names it and the reason.

    `agent` is its end system; `gone`: its connection ended; `silent`: it gave no sign of life.
    """

    def __init__(self, text: str, agent: str = "", *, gone: bool = False, silent: bool = False) -> None:
        super().__init__(text)
        self.agent = agent
        self.gone = gone
        self.silent = silent


class StartMissedError(AgentLostError):
    """The start time had passed when an agent received it."""


class ClockRelation(Struct, frozen=True):
    """The agent's clock minus this host's clock, and the bound of its error, ns."""

    offset_ns: int
    uncertainty_ns: int


class Agent:
    """A connection to one agent."""

    def __init__(self, place: AgentPlace) -> None:
        self.place = place
        self.clock = ClockRelation(0, 0)
        self._watched: Any = None
        self._clock_read_ns: int | None = None
        self._session = b""
        self._plans = 0
        # A proxy of the user's environment is never on the way.
        options = [("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 64 << 20)]
        if place.access is None:
            # A socket's path names no authority.
            local = [("grpc.default_authority", "localhost"), *options]
            self._channel = grpc.insecure_channel(place.address, options=local)
        else:
            self._channel = place.access.channel(place.address, [*options, *_NETWORK])

    def describe(self) -> pb.DescribeReply:
        """A description of the host and its equipment. Raises AgentLostError where nobody answers, with the reason."""
        return self._ask("Describe", pb.DescribeRequest(), pb.DescribeReply)

    def examine(self, interface: str = "") -> pb.ExamineReply:
        """Host settings that affect a measurement, for one interface or all usable ones. Raises as `describe`."""
        return self._ask("Examine", pb.ExamineRequest(interface=interface), pb.ExamineReply)

    def mend(self, interface: str, fixes: Sequence[str] = ()) -> Sequence[pb.Change]:
        """Tunes the host for measuring, by named fixes or all there are; the changes made. Raises as `describe`.

        Within a session the changes are undone at its end; otherwise by `restore`.
        """
        request = pb.MendRequest(interface=interface, fixes=fixes)
        return self._ask("Mend", request, pb.MendReply, seconds=_CALL_SECONDS).changes

    def restore(self) -> Sequence[pb.Change]:
        """Undoes all changes to the host; the settings restored. Raises as `describe`."""
        return self._ask("Restore", pb.RestoreRequest(), pb.RestoreReply, seconds=_CALL_SECONDS).changes

    def _ask(self, name: str, request: Message, reply: type[Reply], *, seconds: float = SILENCE_S) -> Reply:
        """A call that is answered at once, even while the agent is in use."""
        try:
            answer: Reply = self._unary(name, partial(_read, reply))(
                request, timeout=seconds, metadata=self._metadata
            )
        except grpc.RpcError as error:
            raise AgentLostError(f"{self.place.address}: {_why(error)}", self.place.end_system) from error
        return answer

    def hello(self, master_version: str, lease_ms: int, campaign: str = "") -> pb.HelloReply:
        """Greets the agent, starts its lease, returns its versions and host facts.

        Over a network the session is of this `campaign` and for the interface of the place.
        """
        request = pb.HelloRequest(
            master_version=master_version, lease_ms=lease_ms, plan_schema=OURS[0], record_schema=OURS[1]
        )
        if self.place.access is not None:
            request.campaign = campaign
            request.interface, *more = self.place.interfaces
            request.more_interfaces.extend(more)
        reply = self._call("Hello", request, pb.HelloReply, wait=True)
        self._session = reply.session
        if self.place.own_clock:
            self.clock = self.relate_clock()
        cost = reply.host.get("clock-read-ns", "")
        self._clock_read_ns = int(cost) if cost.isdecimal() else None
        return reply

    def prepare(
        self,
        network: Network,
        run: Run,
        agents_on_host: int,
        distrusted: Mapping[str, str],
        hold_s: float | None = None,
    ) -> Sequence[pb.StreamChoice]:
        """Has the agent open its access points and allocate memory for the run; the streams it will send, with
        backends.

        `distrusted` are backends not to choose, each with the observation against it. With `hold_s` captures hold
        frames back for so long and write only those that `keep` names by then.
        """
        self._plans += 1
        request = pb.PrepareRequest(
            network_json=as_json(network).encode(),
            run_json=as_json(run).encode(),
            end_system="" if self.place.is_network else self.place.end_system,
            ports=[] if self.place.is_network else [pb.PortInterface(port=1, interface=self.place.interface)],
            servicing_core=self.place.servicing_core,
            fifo_priority=self.place.fifo_priority,
            agents_on_host=agents_on_host,
            distrusted=[pb.Distrust(backend=name, seen=seen) for name, seen in distrusted.items()],
            count=self._plans,
            capture_hold_ms=0 if hold_s is None else round(1000 * hold_s),
            card=self.place.card,
            own_core=self.place.own_core,
            network_ports=[
                pb.NetworkPort(end_system=name, interface=interface)
                for name, interface in self.place.network_ports
            ],
        )
        if self.place.access is not None:
            text = _PLAN + self._session + request.SerializeToString(deterministic=True)
            request.signature = self.place.access.sign(text)
        reply = self._call("Prepare", request, pb.PrepareReply)
        return reply.streams

    def try_stream(self, kind: str, number: int, frames: int) -> int:
        """Has a stream send a few trial frames before the run begins; the number of frames sent."""
        request = pb.TryStreamRequest(kind=kind, number=number, frames=frames)
        return self._call("TryStream", request, pb.TryStreamReply).sent

    def received_frames(self, interface: str = "") -> int:
        """Frames that an interface of its, unless one is named that under test, has received since it was made."""
        request = pb.ReadInterfaceRequest(interface=interface or self.place.interface)
        return self._call("ReadInterface", request, pb.ReadInterfaceReply).received

    def announce(self, epoch_realtime_ns: int) -> None:
        """Proposes a common start time. Raises StartMissedError where it has passed already."""
        self._call("Announce", self._start_request(epoch_realtime_ns), pb.StartReply)

    def start(self, epoch_realtime_ns: int) -> None:
        """Confirms the start at the time announced last, which every agent has accepted.

        Raises StartMissedError where it has passed already: this agent has not begun then.
        """
        self._call("Start", self._start_request(epoch_realtime_ns), pb.StartReply)

    def _start_request(self, epoch_realtime_ns: int) -> pb.StartRequest:
        """An instant of this host's clock, as the agent's shows it."""
        own = epoch_realtime_ns + self.clock.offset_ns
        return pb.StartRequest(
            epoch_realtime_ns=own, common_epoch_ns=epoch_realtime_ns if self.place.own_clock else 0
        )

    def keep(self, from_ns: int, to_ns: int) -> None:
        """Has captures keep frames between two times, ns of this host's clock. Raises as `describe`."""
        offset = self.clock.offset_ns
        request = pb.KeepRequest(from_realtime_ns=from_ns + offset, to_realtime_ns=to_ns + offset)
        self._ask("Keep", request, pb.KeepReply)

    def relate_clock(self) -> ClockRelation:
        """The agent's clock against this host's, by the quickest of some readings over the control connection."""
        call, found = self._unary("ReadClock", pb.ReadClockReply.FromString), []
        try:
            for _ in range(_CLOCK_READINGS):
                begun, asked = time.time_ns(), time.monotonic_ns()
                reply = call(pb.ReadClockRequest(), timeout=SILENCE_S, metadata=self._metadata)
                took = time.monotonic_ns() - asked
                found.append(ClockRelation(reply.realtime_ns - (begun + took // 2), took // 2 + 1))
        except grpc.RpcError as error:
            raise self._lost(error) from error
        return min(found, key=lambda one: one.uncertainty_ns)

    def release(self) -> None:
        """Ends the session, so that others can use the agent; one that is gone needs no release."""
        if self._session:
            with contextlib.suppress(AgentLostError):
                self._call("Release", pb.ReleaseRequest(), pb.ReleaseReply, seconds=_PATIENCE_S)
            self._session = b""

    def watch(self, interval_ms: int, over: threading.Event) -> Iterator[pb.Progress]:
        """Yields counters until the run is finished, or `over` is set and then `unwatch` called.

        Watching also renews the lease.
        """
        ask = self._stream("Watch", pb.Progress.FromString)
        while True:
            stream = ask(pb.WatchRequest(interval_ms=interval_ms, live=True), metadata=self._metadata)
            self._watched = stream
            if over.is_set():
                stream.cancel()
            try:
                yield from stream
            except grpc.RpcError as error:
                if stream.cancelled():
                    return
                if not self._may_return(error):
                    raise self._lost(error) from error
            else:
                return
            finally:
                stream.cancel()
            # The caller counts how long the agent was silent.
            if over.wait(_RETRY_S):
                return

    def unwatch(self) -> None:
        """Ends `watch`, from any thread."""
        if self._watched is not None:
            self._watched.cancel()

    def finish(self, *, abort: bool, seconds: float) -> FinishedRun:
        """Ends the run and returns what the agent says of it, for which it has `seconds`."""
        answer = self._call(
            "Finish", pb.FinishRequest(abort=abort), pb.FinishReply, seconds=seconds, again=True
        )
        return finished_run(answer.report, self._clock_read_ns)

    def collect(self, into: Collected, kept: pb.KeptRecords | None = None) -> None:
        """Fetches the segment files of the last run, or kept records, and checks each against its hash.

        A connection that breaks is made anew, and what came is not fetched twice.

        Raises AgentLostError, also where the agent is there and sends nothing.
        """
        ask = self._stream("Collect", pb.Chunk.FromString)
        request = pb.CollectRequest()
        if kept is not None:
            request.campaign, request.run, request.node = kept.campaign, kept.run, kept.node
        heard, altered = time.monotonic(), 0
        while True:
            del request.have[:]
            request.have.extend(pb.FilePart(file=name, bytes=size) for name, size in into.have().items())
            try:
                stream = ask(request, metadata=self._metadata)
                for chunk in in_time(stream, max(_RECORDS_S, self.place.patience_s)):
                    into.take(chunk)
                    heard = time.monotonic()
            except StalledError as error:
                text = f"{self.place.called} hangs while its records are fetched: {error}"
                raise AgentLostError(text, self.place.end_system) from error
            except AlteredError as error:
                altered += 1
                if altered > 1:
                    text = f"records of {self.place.end_system} were altered on the way: {error}"
                    raise AgentLostError(text, self.place.end_system) from error
            except grpc.RpcError as error:
                patient = time.monotonic() - heard < self.place.patience_s
                if not (patient and self._may_return(error)):
                    raise self._lost(error) from error
                time.sleep(_RETRY_S)
            else:
                into.done()
                return

    def kept(self, campaign: str = "", *, seconds: float | None = None) -> Sequence[pb.KeptRecords]:
        """The records of one campaign, or of all of ours, that the host keeps; answered within `seconds`."""
        request = pb.ListRecordsRequest(campaign=campaign)
        seconds = _CALL_SECONDS if seconds is None else seconds
        return self._call("ListRecords", request, pb.ListRecordsReply, seconds=seconds).kept

    def discard(self, campaign: str, run: int, node: int) -> None:
        """Has the host remove stored records of a run."""
        request = pb.DiscardRecordsRequest(campaign=campaign, run=run, node=node)
        self._call("DiscardRecords", request, pb.DiscardRecordsReply)

    def drain(self, reason: str) -> None:
        """Has the host refuse new sessions."""
        self._call("Drain", pb.DrainRequest(drained=True, reason=reason), pb.DrainReply)

    def revoke(self, name: str, fingerprint: bytes) -> None:
        """Has the host refuse orders under a member's certificate, given by its SHA-256."""
        self._call("Revoke", pb.RevokeRequest(name=name, fingerprint=fingerprint), pb.RevokeReply)

    def undrain(self) -> None:
        """Has the host accept sessions again."""
        self._call("Drain", pb.DrainRequest(drained=False), pb.DrainReply)

    def reach(self, addresses: Sequence[str], bytes_: int, wait_ms: int) -> list[list[tuple[int, ...]]]:
        """For each of `addresses`, the MAC addresses that answer for it on the interface under test."""
        request = pb.ReachRequest(
            interface=self.place.interface, addresses=addresses, bytes=bytes_, wait_ms=wait_ms
        )
        reply = self._call("Reach", request, pb.ReachReply)
        return [[tuple(mac) for mac in one.macs] for one in reply.answers]

    def start_clock_programs(self, request: pb.StartClockProgramsRequest) -> list[str]:
        """Has the host start the programs that keep its clock; the names of those that run."""
        reply = self._call("StartClockPrograms", request, pb.StartClockProgramsReply)
        return list(reply.programs)

    def watch_clock_programs(self) -> Iterator[pb.ClockProgramLine]:
        """The output lines of the clock programs until they stop; broken connections are renewed without repeating a
        line."""
        ask = self._stream("WatchClockPrograms", partial(_read, pb.ClockProgramLine))
        after, broken = 0, 0.0
        while True:
            try:
                for line in ask(pb.WatchClockProgramsRequest(after=after), metadata=self._metadata):
                    after, broken = line.sequence, 0.0
                    yield line
            except grpc.RpcError as error:
                broken = broken or time.monotonic()
                if time.monotonic() - broken > self.place.patience_s or not self._may_return(error):
                    raise self._lost(error) from error
                time.sleep(_RETRY_S)
            else:
                return

    def ask_clock_programs(self, *, ptp: bool, chrony: bool) -> pb.AskClockProgramsReply:
        """The answers of pmc, chronyc and the kernel on the host's clock."""
        request = pb.AskClockProgramsRequest(ptp=ptp, chrony=chrony)
        return self._call("AskClockPrograms", request, pb.AskClockProgramsReply)

    def stop_clock_programs(self) -> None:
        """Has the host end the programs that keep its clock."""
        self._call("StopClockPrograms", pb.StopClockProgramsRequest(), pb.StopClockProgramsReply)

    @property
    def _metadata(self) -> tuple[tuple[str, bytes], ...] | None:
        return (("session-bin", self._session),) if self._session else None

    def close(self) -> None:
        """Drops the connection."""
        self._channel.close()

    def _unary(self, name: str, read: Callable[[bytes], Reply]) -> Any:
        """A call with one answer, and how that is read."""
        return self._channel.unary_unary(_SERVICE + name, _written, read)

    def _stream(self, name: str, read: Callable[[bytes], Reply]) -> Any:
        """A call with many answers, and how each is read."""
        return self._channel.unary_stream(_SERVICE + name, _written, read)

    def _call(
        self,
        name: str,
        request: Message,
        reply: type[Reply],
        *,
        seconds: float = _CALL_SECONDS,
        wait: bool = False,
        again: bool = False,
    ) -> Reply:
        """Calls the agent; with `again` until its connection is back, if it comes back in time."""
        end = time.monotonic() + min(seconds, self.place.patience_s)
        while True:
            try:
                return self._call_once(name, request, reply, seconds=seconds, wait=wait)
            except AgentLostError as error:
                cause = error.__cause__
                back = again and isinstance(cause, grpc.RpcError) and self._may_return(cause)
                if not back or time.monotonic() > end:
                    raise
            time.sleep(_RETRY_S)

    def _call_once(
        self, name: str, request: Message, reply: type[Reply], *, seconds: float, wait: bool
    ) -> Reply:
        call, end = self._unary(name, partial(_read, reply)), time.monotonic() + seconds
        try:
            pending = call.future(request, timeout=seconds, wait_for_ready=wait, metadata=self._metadata)
            while True:
                try:
                    answer: Reply = pending.result(timeout=_PATIENCE_S)
                except grpc.FutureTimeoutError:
                    self._there(min(self.place.patience_s - _PATIENCE_S, end - time.monotonic()))
                else:
                    return answer
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                text = f"{self.place.called} needs more than {seconds:.0f} s for {name}"
                raise AgentLostError(text, self.place.end_system, silent=True) from error
            raise self._lost(error) from error
        except grpc.FutureCancelledError as error:
            raise self._is_gone() from error

    def _there(self, seconds: float) -> None:
        """Requests a sign of life, even while the agent is busy. Raises AgentLostError without one."""
        call, left = self._unary("ReadClock", pb.ReadClockReply.FromString), max(seconds, 0.0)
        try:
            call(pb.ReadClockRequest(), timeout=left, wait_for_ready=True, metadata=self._metadata)
        except grpc.RpcError as error:
            if error.code() is grpc.StatusCode.DEADLINE_EXCEEDED:
                raise self.is_silent(_PATIENCE_S + seconds) from error
            raise self._lost(error) from error

    def touch(self) -> None:
        """Sends a sign of life to the agent. Raises AgentLostError where it gives none."""
        self._there(SILENCE_S)

    def is_silent(self, seconds: float | None = None) -> AgentLostError:
        """The error of an agent that gave no sign of life for so long."""
        seconds = self.place.patience_s if seconds is None else seconds
        text = f"{self.place.called} gave no sign of life for {seconds:.0f} s"
        return AgentLostError(text, self.place.end_system, silent=True)

    def _is_gone(self) -> AgentLostError:
        return AgentLostError(f"{self.place.called} is gone", self.place.end_system, gone=True)

    def _may_return(self, error: grpc.RpcError) -> bool:
        """Whether only the network failed, so that the agent may still be there."""
        gone = error.code() is grpc.StatusCode.UNAVAILABLE
        return gone and self.place.access is not None and _REFUSED not in str(error.details())

    def _lost(self, error: grpc.RpcError) -> AgentLostError:
        code, name = error.code(), self.place.end_system
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return self._is_gone()
        kind = StartMissedError if code is grpc.StatusCode.OUT_OF_RANGE else AgentLostError
        return kind(printable(f"{self.place.called}: {_unknown(error) or error.details()}"), name)


def _written(request: Message) -> bytes:
    return request.SerializeToString()


def _read(kind: type[Reply], data: bytes) -> Reply:
    """A reply whose texts can be shown, whatever a host calls itself, its interfaces and its files."""
    reply = kind.FromString(data)
    _make_printable(reply)
    return reply


def _shown(text: str) -> str:
    """Makes text printable except for lines and tabs, which parsers of program output need; a name is printed as one
    line."""
    return "\t".join(map(printable_lines, text.split("\t")))


def _make_printable(message: Message) -> None:
    for field, value in message.ListFields():
        if field.type == field.TYPE_STRING:
            if not field.is_repeated:
                setattr(message, field.name, _shown(value))
            elif field.message_type is None:
                value[:] = map(_shown, value)
        elif field.type == field.TYPE_MESSAGE:
            for one in value if field.is_repeated else [value]:
                if isinstance(one, Message):
                    _make_printable(one)


def _unknown(error: grpc.RpcError) -> str:
    """A sentence that the agent's version does not know a call; empty for other errors."""
    if error.code() is not grpc.StatusCode.UNIMPLEMENTED:
        return ""
    return f"it is of another version and does not know this call; install {__version__} on its host"


def _why(error: grpc.RpcError) -> str:
    """The agent's answer or the cause of its absence, without gRPC's own wording."""
    details = _unknown(error) or str(error.details() or error.code().name)
    for sign, meaning in _TRANSPORT.items():
        if sign in details:
            return meaning
    return details
