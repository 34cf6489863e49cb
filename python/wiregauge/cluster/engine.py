"""Engines by name, and the connection to a Ray cluster.

`local` is this process. `ray` is the cluster that RAY_ADDRESS names, or else a Ray of this machine that lasts as long
as the command. `ray://HOST:PORT` is a remote cluster, through its client port. Road not taken: joining any cluster
that runs on this machine, as Ray does by default; users should choose where the work is done.
"""

from __future__ import annotations

import contextlib
import importlib
import logging
import os
import re
import shutil
import socket
import tempfile
import uuid
import warnings
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import wiregauge
from wiregauge.cluster.storage import Storage
from wiregauge.cluster.tasks import Board, Place, Result, look, sweep_away
from wiregauge.files import put_in_place
from wiregauge.records import RunDirectory, RunDirectoryError

__all__ = ["Cluster", "EngineError", "EngineNameError", "connected", "read_engine"]

LOOK_S: Final = 0.2
"""Seconds between two checks of the tasks' progress."""
RETRIES: Final = 5
"""Retries of a task whose worker or node died."""

_ANSWER_S: Final = 5.0
_NODES_S: Final = 120.0
_ATTEMPTS: Final = 3
_FAREWELL_S: Final = 10.0
_OBJECT_STORE: Final = 100 << 20
_QUIET: Final = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_USAGE_STATS_PROMPT_ENABLED": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}


class EngineNameError(Exception):
    """There is no such engine; the text lists those that exist."""


class EngineError(Exception):
    """The engine cannot be used here; the text says why and what to do."""


def read_engine(name: str) -> str:
    """Checks the name of an engine. Raises EngineNameError."""
    if name in {"local", "ray"}:
        return name
    match = re.fullmatch(r"ray://(\[[0-9a-fA-F:.]+\]|[^\s:/@\[\]]+):([0-9]{1,5})", name)
    if match is None or not 0 < int(match[2]) < 1 << 16:
        raise EngineNameError(f'"{name}" is no engine: write local, ray or ray://HOST:PORT')
    return name


class Cluster:
    """A connection to Ray for the work of one command on one run directory."""

    def __init__(self, ray: Any, storage: str | None) -> None:
        self.ray = ray
        self.errors: type[Exception] = ray.exceptions.RayError
        self.storage = Storage(storage) if storage is not None else None
        self._remote: dict[Callable[..., Any], Any] = {}
        self.token = f"wiregauge-{uuid.uuid4().hex[:12]}"
        self.board: Any = None
        self.place = Place(self.token, None, storage)
        self._shared: Path | None = None

    @property
    def processors(self) -> int:
        """The number of tasks that can run at a time, as far as the cluster knows."""
        return max(1, int(self.ray.cluster_resources().get("CPU", 1)))

    @contextlib.contextmanager
    def working_on(self, directory: RunDirectory) -> Iterator[None]:
        """Creates the shared place of the tasks, checks that every node can do the work, and cleans up after the block.

        Raises EngineError or StorageError.
        """
        if self.storage is None:
            spool = directory.root.resolve() / "spool"
            for left_over in spool.glob("cluster-*"):  # left by a testmaster that was killed
                shutil.rmtree(left_over, ignore_errors=True)
            self._shared = spool / f"cluster-{self.token}"
            try:
                self._shared.mkdir(parents=True)
            except OSError as error:
                raise RunDirectoryError(f"{self._shared}: cannot be written: {error.strerror}") from error
            self.place = Place(self.token, str(self._shared), None)
        try:
            self.board = self.ray.remote(num_cpus=0, max_restarts=-1)(Board).remote()
            self._look_at_nodes()
            yield
        finally:
            self._tidy_up()

    def task(self, function: Callable[..., Any], name: str) -> Any:
        """A function as a task that uses one processor and is retried when its worker dies."""
        if function not in self._remote:
            self._remote[function] = self.ray.remote(num_cpus=1, max_retries=RETRIES)(function)
        return self._remote[function].options(name=name)

    def bring(self, result: Result, name: str, target: Path) -> None:
        """Moves a file of an attempt to its place, atomically. Raises RunDirectoryError, StorageError."""
        try:
            target.parent.mkdir(parents=True, exist_ok=True)
            if self._shared is not None:
                put_in_place(self._shared / result.attempt / name, target)
        except OSError as error:
            raise RunDirectoryError(f"{target}: cannot be written: {error.strerror}") from error
        if self.storage is not None:
            self.storage.get(f"{self.token}/{result.attempt}/{name}", target)

    def forget(self, result: Result) -> None:
        """Removes the files of an attempt, once they are in place."""
        if self._shared is not None:
            shutil.rmtree(self._shared / result.attempt, ignore_errors=True)
        if self.storage is not None:
            self.storage.remove(f"{self.token}/{result.attempt}")

    def explained(self, what: str, error: Exception) -> str:
        """One sentence for an error that Ray reports of a task."""
        exceptions = self.ray.exceptions
        cause = getattr(error, "cause", None)
        if isinstance(error, exceptions.RayTaskError) and cause is not None:
            lines = str(cause).strip().splitlines()
            return f"{what}: {lines[0] if lines else type(cause).__name__}"
        if isinstance(error, exceptions.OutOfMemoryError):
            return f"{what}: its node ran out of memory, {RETRIES + 1} times; give the nodes more, or fewer processors"
        if isinstance(error, exceptions.WorkerCrashedError | exceptions.NodeDiedError):
            return f"{what}: its worker died {RETRIES + 1} times; look at the logs of the cluster"
        lines = str(error).strip().splitlines()
        return f"{what}: the cluster gave it up: {lines[0][:300] if lines else type(error).__name__}"

    def _nodes(self) -> list[dict[str, Any]]:
        return [node for node in self.ray.nodes() if node["Alive"]]

    def _on_each_node(self, function: Callable[..., Any], *arguments: object) -> dict[str, Any]:
        """Runs a task without resource demand on every node; results by node name."""
        from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

        task = self.ray.remote(num_cpus=0, max_retries=RETRIES)(function)
        return {
            _name(node): task.options(
                scheduling_strategy=NodeAffinitySchedulingStrategy(node["NodeID"], soft=False)
            ).remote(*arguments)
            for node in self._nodes()
        }

    def _look_at_nodes(self) -> None:
        if self.storage is not None:
            with tempfile.TemporaryDirectory(prefix="wiregauge-") as here:
                seen = Path(here) / "seen"
                seen.write_text(self.token, encoding="utf-8")
                self.storage.put(seen, f"{self.token}/seen")
        for node, ref in self._on_each_node(look, self.place).items():
            try:
                found = self.ray.get(ref, timeout=_NODES_S)
            except self.ray.exceptions.GetTimeoutError as error:
                raise EngineError(
                    f"node {node}: did not answer within {_NODES_S:.0f} s; is it overloaded?"
                ) from error
            except self.errors as error:
                if node not in map(_name, self._nodes()):
                    continue  # it died meanwhile, and gets no work
                if "ModuleNotFoundError" in str(error) or "failed to import" in str(error):
                    raise EngineError(
                        f"node {node}: cannot load wiregauge; install version {wiregauge.__version__} of it there"
                    ) from error
                raise EngineError(self.explained(f"node {node}", error)) from error
            if found["version"] != wiregauge.__version__:
                raise EngineError(
                    f"node {node}: has wiregauge {found['version']}, this is {wiregauge.__version__}; "
                    "install the same version on every node"
                )
            if isinstance(found["seen"], str):
                raise EngineError(f"node {node}: {found['seen']}")
            if not found["seen"]:
                raise EngineError(
                    f"node {node}: does not see {self._shared}; put the run directory where every node has it under "
                    "the same path, or name a storage that all reach with --storage URL"
                )

    def _tidy_up(self) -> None:
        """Removes everything here, in the storage and on the nodes; unreachable nodes are skipped."""
        with contextlib.suppress(Exception):
            refs = (
                list(self._on_each_node(sweep_away, self.token).values()) if self.storage is not None else []
            )
            self.ray.wait(refs, num_returns=len(refs), timeout=_FAREWELL_S) if refs else None
        with contextlib.suppress(Exception):
            self.ray.kill(self.board)
        if self.storage is not None:
            with contextlib.suppress(Exception):
                self.storage.remove(self.token)
        if self._shared is not None:
            shutil.rmtree(self._shared, ignore_errors=True)


@contextlib.contextmanager
def connected(engine: str, *, storage: str | None = None, jobs: int | None = None) -> Iterator[Cluster]:
    """Connects to the engine `ray` or `ray://…`. A Ray of this machine has `jobs` processors, by default all.

    Output to standard output is held back inside the block. Raises EngineError or StorageError.
    """
    ray = _ray()
    address = engine if engine != "ray" else os.environ.get("RAY_ADDRESS", "")
    home: str | None = None
    options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
    if address in {"", "local"}:
        # Names of its sockets have bounded length: so not below an arbitrary TMPDIR.
        home = tempfile.mkdtemp(prefix="wiregauge-ray-", dir="/tmp")
        options |= {
            "address": "local",
            "num_cpus": jobs or len(os.sched_getaffinity(0)),
            "object_store_memory": _OBJECT_STORE,
            "include_dashboard": False,
            "_temp_dir": home,
        }
    else:
        if address != "auto":
            _await_answer(address)
        options["address"] = address
    with contextlib.ExitStack() as ending:
        if home is not None:
            ending.callback(shutil.rmtree, home, ignore_errors=True)
        # Ray prints notices of workers to standard output, whatever its settings.
        ending.enter_context(contextlib.redirect_stdout(ending.enter_context(Path(os.devnull).open("w"))))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                _init(ray, options)
            except (SystemExit, Exception) as error:
                where = "Ray of this machine: it did not start" if home else f"{address}: cannot be used"
                raise EngineError(f"{where}: {_line(error)}") from error
        try:
            yield Cluster(ray, storage)
        except BrokenPipeError:
            raise
        except ConnectionError as error:
            raise EngineError(
                f"{address or 'Ray of this machine'}: the connection was lost: {_line(error)}"
            ) from error
        finally:
            with warnings.catch_warnings(), contextlib.suppress(Exception):
                warnings.simplefilter("ignore")
                ray.shutdown()


def _init(ray: Any, options: dict[str, Any]) -> None:
    """`ray.init`, retried where a cluster did not start the process for this client: a busy head is slow."""
    for left in reversed(range(_ATTEMPTS)):
        try:
            ray.init(**options)
        except ConnectionAbortedError:
            if not left:
                raise
            with contextlib.suppress(Exception):
                ray.shutdown()
        else:
            return


def _ray() -> Any:
    """The ray module with its logging silenced."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    try:
        return importlib.import_module("ray")
    except ImportError as error:
        raise EngineError(
            "this engine needs Ray, which is not installed here; install it with pip install 'wiregauge[ray]', "
            "or leave --engine out"
        ) from error


def _await_answer(address: str) -> None:
    """Checks within seconds that a Ray may listen at the address: Ray itself tries for minutes."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    cure = "is the cluster running, and is this the address of its head?"
    if not port.isdigit() or not host:
        raise EngineError(f"{address}: is no address of a cluster; write HOST:PORT")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=_ANSWER_S).close()
    except OSError as error:
        raise EngineError(f"{address}: does not answer ({error.strerror or error}); {cure}") from error
    if os.environ.get("RAY_USE_TLS", "0") not in {"", "0"}:
        return
    import grpc

    with grpc.insecure_channel(f"{host}:{port}") as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_ANSWER_S)
        except grpc.FutureTimeoutError as error:
            raise EngineError(
                f"{address}: something answers there, but not as a Ray does, within {_ANSWER_S:.0f} s; {cure}"
            ) from error


def _name(node: dict[str, Any]) -> str:
    return f"{node['NodeManagerHostname']} {node['NodeID'][:6]}"


def _line(error: BaseException) -> str:
    lines: Sequence[str] = str(error).strip().splitlines()
    return lines[0][:300] if lines else type(error).__name__
