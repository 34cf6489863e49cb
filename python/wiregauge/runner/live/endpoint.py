"""Live figures for Prometheus and compatible readers, over HTTP, while a campaign goes on.

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
from collections.abc import Iterator, Mapping
from socketserver import ThreadingMixIn
from typing import Any, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, make_wsgi_app
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from wiregauge.records.live import FlowNow, RunNow
from wiregauge.runner.bench import BenchError

__all__ = ["Endpoint", "EndpointError", "address_of"]

_HANDED_ON: Final = "WIREGAUGE_METRICS_SOCKET"
"""Environment variable for the descriptor of a socket that was opened before the command restarted inside an
enclosure."""
_WRITTEN: Final = re.compile(r"(?:(?P<host>[^:\[\]]+|\[[0-9a-fA-F:.]+\]):)?(?P<port>\d{1,5})")
_PATIENCE_S: Final = 5.0
"""Time limit for a request and its response together, s."""
_MOST_CONNECTIONS: Final = 32
_LABELS: Final = ("run", "flow", "source", "destination")


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
    """Serves the state set by the last `show`."""

    def __init__(self, address: tuple[str, int]) -> None:
        self._address = address
        self._socket: socket.socket | None = None
        self._server: _Server | None = None
        self._collector = _Collector()

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

    def serve(self, facts: Mapping[str, str]) -> None:
        """Starts serving; `facts` identify the test."""
        self.open()
        self._collector.facts = dict(facts)
        if self._server is not None:
            return
        registry = CollectorRegistry()
        registry.register(self._collector)
        assert self._socket is not None
        self._server = _Server(self._socket, make_wsgi_app(registry))
        threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()

    def show(self, now: RunNow, share: float, raised: Mapping[str, int], active: Mapping[str, int]) -> None:
        """Sets the state that is served from now on."""
        self._collector.state = (now, share, dict(raised), dict(active))

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


class _Collector(Collector):
    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        self.state: tuple[RunNow, float, dict[str, int], dict[str, int]] | None = None

    def describe(self) -> list[Metric]:
        """Returns no metrics, so that registration collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of one moment."""
        info = InfoMetricFamily("wiregauge_live_test", "The test that is run.")
        info.add_metric([], self.facts)
        yield info
        state = self.state
        if state is None:
            return
        now, share, raised, active = state
        run = str(now.index)
        for name, text, value in (
            ("run_number", "Runs of the campaign that have begun.", now.position + 1),
            ("run_done_ratio", "Planned time of the run that is over.", share),
            ("run_time_seconds", "Time of the run that the figures extend to.", now.seconds),
            ("flows_left_out", "Flows without live figures.", now.left_out),
        ):
            family = GaugeMetricFamily(f"wiregauge_live_{name}", text, labels=["run"])
            family.add_metric([run], value)
            yield family
        dropped = CounterMetricFamily(
            "wiregauge_live_records_dropped", "Records the instrument lost, in no figure.", labels=["run"]
        )
        dropped.add_metric([run], now.dropped)
        yield dropped
        yield from _counts(now, run)
        yield from _times(now, run)
        yield from _alarms(raised, active)


def _of(flow: FlowNow, run: str) -> list[str]:
    return [run, str(flow.flow), flow.source, flow.destination]


def _counts(now: RunNow, run: str) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for name, text in (
        ("sent", "Messages sent, warm-up excluded."),
        ("received", "Different messages that arrived intact."),
        ("repeats", "Messages that arrived once more."),
    ):
        counter = CounterMetricFamily(
            f"wiregauge_live_{name}_messages", text, labels=_LABELS, unit="messages"
        )
        for flow in now.flows:
            counter.add_metric(_of(flow, run), getattr(flow, name))
        families[name] = counter
    # A gauge, for the value decreases when a message arrives late, which no counter may.
    lost = GaugeMetricFamily(
        "wiregauge_live_lost_messages",
        "Messages that should have arrived and have not.",
        labels=_LABELS,
        unit="messages",
    )
    for flow in now.flows:
        lost.add_metric(_of(flow, run), flow.lost)
    yield from families.values()
    yield lost


def _times(now: RunNow, run: str) -> Iterator[Metric]:
    for measure, text in (
        ("latency", "From the intended send to the receiving application, in the last second."),
        ("rtt", "From the sending application and back, in the last second."),
    ):
        family = GaugeMetricFamily(
            f"wiregauge_live_{measure}_seconds", text, labels=[*_LABELS, "quantile"], unit="seconds"
        )
        for flow in (one for one in now.flows if one.measure == measure):
            for quantile, value in (("0.5", flow.p50_ns), ("0.99", flow.p99_ns), ("1", flow.max_ns)):
                if value is not None:
                    family.add_metric([*_of(flow, run), quantile], value / 1e9)
        if family.samples:
            yield family


def _alarms(raised: Mapping[str, int], active: Mapping[str, int]) -> Iterator[Metric]:
    if not raised:
        return
    total = CounterMetricFamily(
        "wiregauge_alarms_raised", "How often it was raised in this run.", labels=["alarm"]
    )
    going = GaugeMetricFamily(
        "wiregauge_alarm_active_flows", "Flows that are beyond it in the last second.", labels=["alarm"]
    )
    for alarm, count in raised.items():
        total.add_metric([alarm], count)
        going.add_metric([alarm], active.get(alarm, 0))
    yield total
    yield going
