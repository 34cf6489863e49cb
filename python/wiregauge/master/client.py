"""One agent, seen from the testmaster: a typed face over the control plane of `agent.proto`."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import grpc
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

from wiregauge.benches.base import AgentPlace
from wiregauge.master.rpc import agent_pb2 as pb

__all__ = ["Agent", "AgentLostError", "report_as_dict"]

_SERVICE = "/wiregauge.agent.v1.Agent/"
_CALL_SECONDS = 10.0
_LEASE_MS = 5_000

Reply = TypeVar("Reply", bound=Message)


class AgentLostError(Exception):
    """An agent refused a call or is gone; the text names it and says why."""

    def __init__(self, text: str, *, gone: bool = False) -> None:
        super().__init__(text)
        self.gone = gone


class Agent:
    """A connection to one agent."""

    def __init__(self, place: AgentPlace) -> None:
        self.place = place
        self._watched: Any = None
        self._channel = grpc.insecure_channel(
            place.address,
            # The back-end network is the bench's own: a proxy of the user's environment is never on it.
            options=[("grpc.enable_http_proxy", 0), ("grpc.max_receive_message_length", 64 << 20)],
        )

    def hello(self, master_version: str) -> dict[str, Any]:
        """Greets the agent, starts its lease, returns its versions and host facts."""
        reply = self._call(
            "Hello",
            pb.HelloRequest(master_version=master_version, lease_ms=_LEASE_MS),
            pb.HelloReply,
            wait=True,
        )
        return {
            "agent_version": reply.agent_version,
            "plan_schema": reply.plan_schema,
            "record_schema": reply.record_schema,
            "host": dict(reply.host),
        }

    def prepare(self, network: dict[str, Any], run: dict[str, Any], spool: str) -> None:
        """Has the agent open its access points and allocate what the run needs."""
        self._call(
            "Prepare",
            pb.PrepareRequest(
                network_json=json.dumps(network).encode(),
                run_json=json.dumps(run).encode(),
                end_system=self.place.end_system,
                interface=self.place.interface,
                spool=spool,
                servicing_core=self.place.servicing_core,
                fifo_priority=self.place.fifo_priority,
            ),
            pb.PrepareReply,
        )

    def start(self, epoch_realtime_ns: int) -> None:
        """Announces the common start time."""
        self._call("Start", pb.StartRequest(epoch_realtime_ns=epoch_realtime_ns), pb.StartReply)

    def watch(self, interval_ms: int, over: threading.Event) -> Iterator[pb.Progress]:
        """Counters until the run is finished, or `over` is set and then `unwatch` called.

        Looking on is also the sign of life that the lease asks for.
        """
        stream = self._channel.unary_stream(
            f"{_SERVICE}Watch",
            request_serializer=pb.WatchRequest.SerializeToString,
            response_deserializer=pb.Progress.FromString,
        )(pb.WatchRequest(interval_ms=interval_ms))
        self._watched = stream
        if over.is_set():
            stream.cancel()
        try:
            yield from stream
        except grpc.RpcError as error:
            if not stream.cancelled():
                raise self._lost(error) from error
        finally:
            stream.cancel()

    def unwatch(self) -> None:
        """Ends `watch`, from any thread."""
        if self._watched is not None:
            self._watched.cancel()

    def finish(self, *, abort: bool) -> dict[str, Any]:
        """Ends the run and returns the agent's report."""
        return report_as_dict(
            self._call("Finish", pb.FinishRequest(abort=abort), pb.FinishReply, seconds=60).report
        )

    def collect(self, store: Callable[[str, bytes], None]) -> None:
        """Hands the run's segment files over, chunk by chunk, in order."""
        stream = self._channel.unary_stream(
            f"{_SERVICE}Collect",
            request_serializer=pb.CollectRequest.SerializeToString,
            response_deserializer=pb.Chunk.FromString,
        )(pb.CollectRequest())
        try:
            for chunk in stream:
                store(chunk.file, chunk.data)
        except grpc.RpcError as error:
            raise self._lost(error) from error

    def close(self) -> None:
        """Drops the connection."""
        self._channel.close()

    def _call(
        self,
        name: str,
        request: Message,
        reply: type[Reply],
        *,
        seconds: float = _CALL_SECONDS,
        wait: bool = False,
    ) -> Reply:
        call = self._channel.unary_unary(
            _SERVICE + name,
            request_serializer=type(request).SerializeToString,
            response_deserializer=reply.FromString,
        )
        try:
            answer: Reply = call(request, timeout=seconds, wait_for_ready=wait)
        except grpc.RpcError as error:
            raise self._lost(error) from error
        return answer

    def _lost(self, error: grpc.RpcError) -> AgentLostError:
        code = error.code()
        if code in (grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.CANCELLED):
            return AgentLostError(f"the agent of {self.place.end_system} is gone", gone=True)
        if code is grpc.StatusCode.DEADLINE_EXCEEDED:
            return AgentLostError(f"the agent of {self.place.end_system} does not answer")
        return AgentLostError(f"the agent of {self.place.end_system}: {error.details()}")


def report_as_dict(report: pb.AgentReport) -> dict[str, Any]:
    """The report as the manifest keeps it: snake_case names, every field present, 64-bit numbers as numbers."""
    loose = MessageToDict(report, preserving_proto_field_name=True, always_print_fields_with_no_presence=True)
    numbered = _numbers(report, loose)
    assert isinstance(numbered, dict)
    for told in (*numbered["streams"], *numbered["stamps"]):
        figures = told.pop("figures_json")
        told["figures"] = json.loads(figures) if figures else {}
    return numbered


def _numbers(message: Message, loose: dict[str, Any]) -> dict[str, Any]:
    """The JSON form of protocol buffers writes 64-bit numbers as strings; a manifest should not."""
    result: dict[str, Any] = {}
    for field in message.DESCRIPTOR.fields:
        value = loose[field.name]
        if field.cpp_type in (field.CPPTYPE_INT64, field.CPPTYPE_UINT64):
            result[field.name] = int(value)
        elif field.message_type is not None:
            result[field.name] = [
                _numbers(part, loose_part)
                for part, loose_part in zip(getattr(message, field.name), value, strict=True)
            ]
        else:
            result[field.name] = value
    return result
