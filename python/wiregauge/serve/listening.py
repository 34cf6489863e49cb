"""The server's port on loopback."""

from __future__ import annotations

import errno
import socket
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wiregauge.serve.application import Server

__all__ = ["PortTakenError", "bound", "listen"]


class PortTakenError(Exception):
    """Another program listens at the port, or this user may not; one sentence with the cure."""


def bound(port: int) -> socket.socket:
    """A socket that listens at a port of loopback; 0: any that is free. Raises PortTakenError."""
    # With the protocol named, asyncio sets TCP_NODELAY: otherwise the second part of an answer waits for 40 ms.
    made = socket.socket(socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        made.bind(("127.0.0.1", port))
        made.listen(128)
    except OSError as error:
        made.close()
        if error.errno == errno.EADDRINUSE:
            raise PortTakenError(
                f"port {port} is taken, perhaps by another `wiregauge serve`; stop that, or name another with --port"
            ) from None
        raise PortTakenError(
            f"port {port} cannot be opened ({error.strerror}); name another with --port"
        ) from None
    return made


def listen(server: Server, at: socket.socket) -> None:
    """Serves until SIGINT or SIGTERM."""
    import uvicorn

    made = uvicorn.Config(
        server.app, log_level="warning", access_log=False, server_header=False, timeout_graceful_shutdown=2
    )
    uvicorn.Server(made).run(sockets=[at])
