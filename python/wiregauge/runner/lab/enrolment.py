"""Enrols a host in the lab by the join code that its agent printed."""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from typing import Final, TypeVar

import grpc
from google.protobuf.message import Message

from wiregauge.files import printable
from wiregauge.runner.lab.authority import Lab
from wiregauge.runner.lab.errors import LabError
from wiregauge.runner.lab.inventory import check_name, target_of
from wiregauge.runner.lab.join_code import JoinCode
from wiregauge.runner.rpc import agent_pb2 as pb

__all__ = ["enrol"]

_SERVICE: Final = "/wiregauge.agent.v1.Enrolment/"
_SECONDS: Final = 10.0
Reply = TypeVar("Reply", bound=Message)
_BETWEEN_LOOKS: Final = 0.05
_READ_BYTES: Final = 1 << 14
_STRANGER: Final = "wiregauge-agent"
"""The name in certificates that agents make for themselves."""


def enrol(lab: Lab, address: str, code: JoinCode, name: str | None = None) -> str:
    """Has the host at an address join the lab under `name`, or its own name; returns the name.

    Raises LabError where no agent answers, another one than that which printed the code, or it refuses.
    """
    target = target_of(address)
    certificate = _certificate_of(target)
    if not code.is_of(certificate):
        raise LabError(
            f"the agent at {target} did not print this join code: it has joined a lab already, was started again, or "
            "somebody stands between; compare the code with what is on that host's screen"
        )
    credentials = grpc.ssl_channel_credentials(ssl.DER_cert_to_PEM_cert(certificate).encode())
    options = [("grpc.ssl_target_name_override", _STRANGER), ("grpc.enable_http_proxy", 0)]
    with grpc.secure_channel(target, credentials, options) as channel:
        introduced = _call(channel, target, "Introduce", pb.IntroduceRequest(), pb.IntroduceReply)
        chosen = name if name is not None else introduced.host_name.split(".")[0]
        check_name(chosen)
        granted = lab.certify_host(chosen, introduced.certificate_request)
        request = pb.JoinRequest(
            secret=code.secret, authority=lab.authority().decode(), certificate=granted.decode()
        )
        _call(channel, target, "Join", request, pb.JoinReply)
    _await_member(target, certificate)
    return chosen


def _await_member(target: str, before: bytes) -> None:
    """Waits until the agent shows another certificate than its own: it needs a moment to serve the lab."""
    end = time.monotonic() + _SECONDS
    while time.monotonic() < end:
        with contextlib.suppress(LabError):
            if _certificate_of(target) != before:
                return
        time.sleep(_BETWEEN_LOOKS)
    raise LabError(f"the agent at {target} took the code, and does not serve the lab; look at its screen")


def _certificate_of(target: str) -> bytes:
    """The certificate that the agent shows, DER; not yet trusted."""
    host, _, port = target.rpartition(":")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    # Not `wrap_socket`: it leaves the socket open if the agent resets the connection as it starts to serve the lab.
    come, to_go = ssl.MemoryBIO(), ssl.MemoryBIO()
    secured = context.wrap_bio(come, to_go, server_hostname=_STRANGER)
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=_SECONDS) as plain:
            while not _shook_hands(secured):
                plain.sendall(to_go.read())
                received = plain.recv(_READ_BYTES)
                if received:
                    come.write(received)
                else:
                    come.write_eof()
            plain.sendall(to_go.read())
            shown = secured.getpeercert(binary_form=True)
    except (OSError, ValueError) as error:
        raise LabError(
            f"no agent answers at {target} ({error}); start one there with `wiregauge agent serve`"
        ) from error
    if not shown:
        raise LabError(f"{target} shows no certificate; it is no agent of wiregauge")
    return shown


def _shook_hands(secured: ssl.SSLObject) -> bool:
    """Whether the handshake is complete; False while it waits for the other side."""
    try:
        secured.do_handshake()
    except ssl.SSLWantReadError:
        return False
    return True


def _call(channel: grpc.Channel, target: str, name: str, request: Message, reply: type[Reply]) -> Reply:
    call = channel.unary_unary(
        _SERVICE + name,
        request_serializer=type(request).SerializeToString,
        response_deserializer=reply.FromString,
    )
    try:
        answer: Reply = call(request, timeout=_SECONDS)
    except grpc.RpcError as error:
        raise LabError(printable(f"the agent at {target}: {error.details()}")) from error
    return answer
