"""Live figures for Prometheus and compatible readers, over HTTP, while a campaign or a watch goes on.

Any client that reaches the address can read them: it is a loopback address unless another one is given in full.
"""

from __future__ import annotations

import contextlib
import ipaddress
import os
import re
import socket
import threading
from collections import deque
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.registry import Collector

from wiregauge.runner.bench import BenchError

__all__ = ["Endpoint", "EndpointError", "address_of"]

_HANDED_ON: Final = "WIREGAUGE_METRICS_SOCKET"
"""Environment variable for the descriptor of a socket that was opened before the command restarted inside an
enclosure."""
_WRITTEN: Final = re.compile(r"(?:(?P<host>[^:\[\]]+|\[[0-9a-fA-F:.]+\]):)?(?P<port>\d{1,5})")
_PATIENCE_S: Final = 5.0
"""Time limit for a request and its response together, s."""
_MOST_CONNECTIONS: Final = 32


class EndpointError(ValueError):
    """The text is no address to serve at; the message says what to write."""


def address_of(text: str) -> tuple[str, int]:
    """Parses `9464`, `127.0.0.1:9464` or `[::1]:9464` into host and port. Raises EndpointError."""
    found = _WRITTEN.fullmatch(text.strip())
    if found is None or not 0 < int(found["port"]) < 65_536:
        raise EndpointError(f'"{text}" is no address; write ADDRESS:PORT, for example 127.0.0.1:9464')
    host = (found["host"] or "127.0.0.1").strip("[]")
    if host == "localhost":
        host = "127.0.0.1"
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        raise EndpointError(f'"{text}": {host} is no IP address; write one, for example 127.0.0.1') from None
    if address.is_unspecified:
        raise EndpointError(
            f'"{text}" would let every network of this host read the figures; write the one address to serve at'
        )
    return str(address), int(found["port"])


class Endpoint:
    """Serves what a collector has to say at each request."""

    def __init__(self, address: tuple[str, int], collector: Collector) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._collector = collector

    def open(self) -> None:
        """Opens the address, or takes over the socket opened before the restart. Raises BenchError."""
        if self._socket is not None:
            return
        handed_on = os.environ.pop(_HANDED_ON, None)
        if handed_on is not None:
            self._socket = socket.socket(fileno=int(handed_on))
            self._socket.set_inheritable(False)
            return
        host, port = self._address
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            self._socket.bind((host, port))
            self._socket.listen(16)
        except OSError as error:
            self._socket.close()
            self._socket = None
            raise BenchError(f"--metrics: cannot serve at {host} port {port}: {error.strerror}") from error

    def hand_on(self) -> None:
        """Leaves the socket to the process that this one is about to become: inside there is another network."""
        if self._socket is not None:
            self._socket.set_inheritable(True)
            os.environ[_HANDED_ON] = str(self._socket.fileno())

    def serve(self) -> None:
        """Starts serving."""
        self.open()
        if self._server is not None:
            return
        registry = CollectorRegistry()
        registry.register(self._collector)
        assert self._socket is not None
        self._server = _Server(self._socket, make_wsgi_app(registry))
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def close(self) -> None:
        """Stops the server."""
        if self._server is not None:
            self._server.shutdown()
            self._server = None
        if self._socket is not None:
            self._socket.close()
            self._socket = None


class _Quiet(WSGIRequestHandler):
    timeout = _PATIENCE_S

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name the library gives it
        """Nobody wants to know of every request."""
        del format, args


class _Server(ThreadingMixIn, WSGIServer):
    """On a socket that listens already."""

    daemon_threads = True
    request_queue_size = 16

    def __init__(self, listening: socket.socket, application: Any) -> None:
        host, port = listening.getsockname()[:2]
        super().__init__((host, port), _Quiet, bind_and_activate=False)
        self.socket.close()
        self.socket = listening
        self.server_name, self.server_port = host, port
        self.setup_environ()
        self.set_app(application)
        self._held: deque[socket.socket] = deque()
        self._holding = threading.Lock()

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answers in a thread of its own. Where too many wait the oldest gives way: an answer takes milliseconds."""
        with self._holding:
            self._held.append(request)
            oldest = self._held.popleft() if len(self._held) > _MOST_CONNECTIONS else None
        if oldest is not None:
            _hang_up(oldest)
        super().process_request(request, client_address)

    def process_request_thread(self, request: Any, client_address: Any) -> None:
        """Answers one request, until its deadline, however slowly the client writes or reads."""
        deadline = threading.Timer(_PATIENCE_S, _hang_up, [request])
        deadline.daemon = True
        deadline.start()
        try:
            super().process_request_thread(request, client_address)
        finally:
            deadline.cancel()
            with self._holding, contextlib.suppress(ValueError):
                self._held.remove(request)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """The client disconnected before the answer."""
        del request, client_address


def _hang_up(request: socket.socket) -> None:
    """Shuts the connection down, so that pending reads and writes end with an error."""
    with contextlib.suppress(OSError):
        request.shutdown(socket.SHUT_RDWR)
