"""Access to an agent of the lab: TLS with certificates of the lab's authority on both sides, and signed plans."""

from __future__ import annotations

from collections.abc import Sequence

import grpc

from wiregauge.runner.lab.authority import Member, server_name

__all__ = ["SecureAccess"]


class SecureAccess:
    """A member's access to the host of this name."""

    def __init__(self, member: Member, host: str) -> None:
        self._member = member
        self._host = host

    def channel(self, address: str, options: Sequence[tuple[str, object]]) -> grpc.Channel:
        """A channel that only this host can be at the other end of."""
        member = self._member
        credentials = grpc.ssl_channel_credentials(member.authority, member.key, member.certificate)
        named = [("grpc.ssl_target_name_override", server_name(self._host)), *options]
        return grpc.secure_channel(address, credentials, named)

    def sign(self, text: bytes) -> bytes:
        """An ECDSA P-256 signature with SHA-256, DER."""
        return self._member.sign(text)
