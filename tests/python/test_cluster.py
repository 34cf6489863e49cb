"""The engine `ray`: where the work is done changes nothing in what comes out, whatever dies meanwhile.

One cluster of two nodes with one processor each serves all tests; the embedded engine says what is right.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct

import cluster_process
from simulation import trial
from wiregauge import results, runner
from wiregauge.cluster import (
    EngineError,
    EngineNameError,
    Storage,
    StorageError,
    connected,
    merging,
    read_engine,
    retrack,
    tasks,
)
from wiregauge.config import load
from wiregauge.plan import plain
from wiregauge.records import RunDirectory
from wiregauge.runner.benches.simulation import SimulatedRun, Simulator, Watch, simulate_run

ROOT = Path(__file__).resolve().parents[2]
TABLES = ("messages", "passages", "sketches")
PATIENCE_S = 300.0


def written(count: int, payloads: str) -> str:
    """Four flows over one switch, one of them to two receivers, and links that lose and duplicate."""
    tasks = "".join(
        f'<send flow="{flow}" period="50us" payload="64B" count="{count}"/><receive flow="{flow}"/>'
        for flow in (10, 11, 12, 13)
    )
    links = "".join(f'<link between="{name} s" rate="1Gbit/s"/>' for name in "abc")
    return (
        '<test xmlns="urn:wiregauge:test:2" name="four" seed="3"><network>'
        f'<end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="s"/>{links}</network>'
        '<flows><flow id="10" protocol="udp" from="a" to="b"/><flow id="11" protocol="udp" from="a" to="b c"/>'
        '<flow id="12" protocol="raw" from="b" to="c"/><flow id="13" protocol="udp" from="c" to="a"/></flows>'
        f'<tasks warm-up="10ms">{tasks}<capture on="b" snap="64B"/></tasks>'
        '<faults><loss link="a s" share="1%" sent-by="a"/><duplicate link="b s" share="1%" sent-by="s"/></faults>'
        f'<sweep><axis of="payload" values="{payloads}"/></sweep></test>'
    )


def embedded(place: Path, text: str) -> Path:
    return trial(cluster_process.written(place, text), place, 2).directory


def files(place: Path) -> dict[str, bytes]:
    """What a run left, without the manifest, which tells the time of day, and without the digest of that."""
    found = (path for path in sorted(place.rglob("*")) if path.is_file() and path.name != "manifest.json")
    return {
        str(path.relative_to(place)): figures(path.read_bytes())
        if path.name == "measures.json"
        else path.read_bytes()
        for path in found
    }


def figures(content: bytes) -> bytes:
    """JSON of a run directory without the hashes of what it was made from."""
    tree = json.loads(content)
    for entry in [tree, *tree["runs"]]:
        for key in ("digest", "sources", "files"):
            entry.pop(key, None)
    return json.dumps(tree).encode()


def same_tables(one: Path, other: Path) -> None:
    """The same rows in the same order, of the same types, under the same metadata."""
    names = [f"{table}/{path.name}" for table in TABLES for path in sorted((one / table).iterdir())]
    assert names == [f"{table}/{path.name}" for table in TABLES for path in sorted((other / table).iterdir())]
    for name in names:
        assert pl.read_parquet(one / name).equals(pl.read_parquet(other / name)), name
        a, b = pq.ParquetFile(one / name), pq.ParquetFile(other / name)
        assert a.schema_arrow == b.schema_arrow, name
        told = [{k: v for k, v in f.metadata.metadata.items() if k != b"ARROW:schema"} for f in (a, b)]
        assert told[0] == told[1], name
        assert told[0], name


# -- a cluster of two nodes -----------------------------------------------------------------------------------


class TwoNodes(Struct):
    address: str
    client: str
    home: Path

    def workers(self, task: str) -> dict[int, int]:
        """Processes of this cluster that work on a task whose name begins so, and the node manager of each."""
        found = {}
        for entry in Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError, IndexError):
                if (entry / "cmdline").read_bytes().startswith(f"ray::{task}".encode()):
                    parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                    if str(self.home) in (Path("/proc") / str(parent) / "cmdline").read_text():
                        found[int(entry.name)] = parent
        return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def of(home: Path) -> list[int]:
    """Processes that work below a folder."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and str(home).encode() in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def process(
    what: str, *arguments: object, address: str | None = None, home: Path | None = None
) -> subprocess.Popen[str]:
    # A process of Ray may be slow to start where other work is done beside it.
    environment = {
        **os.environ,
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "100",
    }
    environment |= {"RAY_TMPDIR": str(home)} if home is not None else {}
    environment.pop("RAY_ADDRESS", None)
    return subprocess.Popen(
        [sys.executable, str(Path(__file__).with_name("cluster_process.py")), what, json.dumps(arguments)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=environment | ({"RAY_ADDRESS": address} if address is not None else {}),
    )


def told(what: str, *arguments: object, address: str | None = None) -> Any:
    """What a testmaster prints that has ended."""
    return answer(process(what, *arguments, address=address))


def answer(master: subprocess.Popen[str]) -> Any:
    try:
        out, err = master.communicate(timeout=PATIENCE_S)
    finally:
        master.kill()
    assert master.returncode == 0, err
    return json.loads(out)


@pytest.fixture(scope="module")
def two_nodes(temporary: Path) -> Iterator[TwoNodes]:
    # Short: the names of sockets below it are of bounded length.
    home = Path(tempfile.mkdtemp(prefix="wg-", dir="/tmp"))
    # Beside its sessions Ray writes the address of the latest cluster, which may be a real one of this machine's user.
    (home / "ray").mkdir()
    port = free_port()
    nodes = process("nodes", str(home / "ray"), port, home=home)
    try:
        assert nodes.stdout is not None
        lines = (line.strip() for line in nodes.stdout)
        address = next((line for line in lines if re.fullmatch(r"[\d.]+:\d+", line)), "")
        assert address, nodes.communicate(timeout=PATIENCE_S)[1]
        yield TwoNodes(address, f"ray://127.0.0.1:{port}", home)
    finally:
        with contextlib.suppress(subprocess.TimeoutExpired):
            nodes.communicate(timeout=PATIENCE_S)
        nodes.kill()
        nodes.communicate()
        for each in of(home):
            with contextlib.suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        shutil.rmtree(home, ignore_errors=True)


@contextlib.contextmanager
def killing(cluster: TwoNodes, task: str, victims: int = 1) -> Iterator[dict[int, int]]:
    """Kills that many workers while they are at a task whose name begins so; yields worker → node manager."""
    killed: dict[int, int] = {}
    over = threading.Event()

    def hunt() -> None:
        while not over.is_set() and len(killed) < victims:
            for worker, node in cluster.workers(task).items():
                if worker not in killed and len(killed) < victims:
                    os.kill(worker, signal.SIGKILL)
                    killed[worker] = node
            time.sleep(0.005)

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        yield killed
    finally:
        over.set()
        hunter.join()


@pytest.fixture(scope="module", autouse=True)
def temporary() -> Iterator[Path]:
    """The folder for temporary files of every process of these tests: nobody else's come and go in it."""
    # Short: the names of sockets below it are of bounded length.
    folder = Path(tempfile.mkdtemp(prefix="wg-t-", dir="/tmp"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TMPDIR", str(folder))
        yield folder
    shutil.rmtree(folder, ignore_errors=True)


def left_behind(temporary: Path) -> list[Path]:
    return sorted(temporary.glob("wiregauge-*"))


def local_rays() -> set[Path]:
    """Folders of Rays that a command started for itself."""
    return set(Path("/tmp").glob("wiregauge-ray-*"))


def test_a_sweep_is_the_same_on_a_cluster(two_nodes: TwoNodes, temporary: Path, tmp_path: Path) -> None:
    text = written(1500, "64B 128B 256B")
    right, found = embedded(tmp_path / "right", text), tmp_path / "found"
    ended = told("sweep", str(found), text, two_nodes.client, f"file://{tmp_path}/storage")
    assert ended == {"state": "complete", "reason": None}
    for place in (right, found):
        results.judge(place)
    expected, came = files(right), files(found)
    assert len([name for name in expected if name.endswith((".parquet", ".pcapng"))]) == 6 * 3
    assert "measures.json" in expected
    assert came.keys() == expected.keys()
    for name, content in expected.items():
        assert came[name] == content, name
    assert files(tmp_path / "storage") == {}
    assert left_behind(temporary) == []


@pytest.mark.thorough
def test_killed_workers_change_nothing_in_a_sweep(two_nodes: TwoNodes, tmp_path: Path) -> None:
    text = written(15_000, "64B 256B")
    right, found = embedded(tmp_path / "right", text), tmp_path / "found"
    with killing(two_nodes, "wiregauge-run-", 2) as killed:
        ended = told("sweep", str(found), text, "ray", None, address=two_nodes.address)
    assert len(killed) == 2
    assert len(set(killed.values())) == 2, "both nodes work"
    assert ended == {"state": "complete", "reason": None}
    assert files(found) == files(right)


def test_tracking_by_parts_is_the_same_whoever_is_killed(two_nodes: TwoNodes, tmp_path: Path) -> None:
    right, found = embedded(tmp_path / "right", written(25_000, "64B")), tmp_path / "found"
    shutil.copytree(right, found)
    for table in TABLES:
        shutil.rmtree(found / table)
    (found / "tracking.json").unlink()
    with killing(two_nodes, "wiregauge-track-") as killed:
        ended = told("track", str(found), two_nodes.client, 3, None)
    assert ended == {"stopped": None, "done": [0]}
    assert len(killed) == 1
    same_tables(right, found)
    one, other = (figures((place / "tracking.json").read_bytes()) for place in (found, right))
    assert one == other
    assert sorted(files(found)) == sorted(files(right)), "nothing is left in the run directory"


@pytest.mark.thorough
def test_tracking_by_way_of_a_storage_is_the_same(
    two_nodes: TwoNodes, temporary: Path, tmp_path: Path
) -> None:
    right, found = embedded(tmp_path / "right", written(1500, "64B 256B")), tmp_path / "found"
    (right / "messages" / "run-0001.parquet").write_bytes(b"PAR1")
    # Records in two files, one of which is useless: it is named as it is called here, not on a node.
    folder = right / "records" / "run-0000"
    folder.mkdir()
    (right / "records" / "run-0000.parquet").rename(folder / "0.parquet")
    (folder / "1.parquet").write_bytes(b"PAR1")
    shutil.copytree(right, found)
    retrack(RunDirectory.open(right), [0, 1], "local", adopt=True, tracked=lambda _: None)
    ended = told("track", str(found), two_nodes.client, None, str(tmp_path / "storage"), True)
    assert ended == {"stopped": None, "done": [0, 1]}
    same_tables(right, found)
    told_of, expected = (
        json.loads((place / "tracking.json").read_text())["runs"] for place in (found, right)
    )
    for place, entries in ((found, told_of), (right, expected)):
        (damage,) = entries[0]["damaged_segments"]
        assert damage.pop("file") == str(place / "records" / "run-0000" / "1.parquet")
    for entry in told_of + expected:
        del entry["files"]
    assert told_of == expected
    (judged,) = [check for check in results.judge(found).checks if check.name == "files"]
    assert "put there by hand" in judged.reason
    assert files(tmp_path / "storage") == {}
    assert left_behind(temporary) == []


def spooled(place: Path) -> list[int]:
    """Sizes of the files that nodes at work have below the run directory."""
    sizes = []
    for path in place.glob("spool/cluster-*/*/spool/**/*"):
        with contextlib.suppress(OSError):
            sizes.append(path.stat().st_size if path.is_file() else 0)
    return sizes


@pytest.mark.thorough
def test_a_stopped_sweep_keeps_what_was_simulated(two_nodes: TwoNodes, tmp_path: Path) -> None:
    place, text = tmp_path / "r", written(40_000_000, "64B 128B 256B")
    master = process("sweep", str(place), text, two_nodes.client, None)
    limit = time.monotonic() + PATIENCE_S
    # Until a node has written more than its heads of files: messages that were sent and came.
    while not any(size > 200_000 for size in spooled(place)) and time.monotonic() < limit:
        time.sleep(0.05)
    master.send_signal(signal.SIGINT)
    assert answer(master) == {"state": "interrupted", "reason": "stopped by Ctrl-C"}
    states = [run["state"] for run in RunDirectory.open(place).runs]
    assert set(states) == {"partial"}
    assert len(states) < 3, "a run that waited was never begun"
    tracked = json.loads((place / "tracking.json").read_text())["runs"]
    assert any(flow["delivered"] > 0 for run in tracked for flow in run["flows"])
    assert not (place / "spool").exists()


# -- no cluster -----------------------------------------------------------------------------------------------


def command(*arguments: object, more: dict[str, str] | None = None) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, **(more or {})}
    environment.pop("RAY_ADDRESS", None)
    answer = subprocess.run(
        [sys.executable, "-m", "wiregauge", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        env=environment,
        stdin=subprocess.DEVNULL,
    )
    assert "Traceback" not in answer.stderr, answer.stderr
    return answer


def test_a_ray_of_this_machine_lives_as_long_as_the_command(tmp_path: Path) -> None:
    first, before = ROOT / "examples" / "first.xml", local_rays()
    answer = command("run", first, "--engine", "ray", "--jobs", "1", "--out", tmp_path / "r", "--json")
    assert answer.returncode == 0, answer.stderr
    assert answer.stderr.startswith("run 0")
    ours = ("run 0", "judging", "explaining", "drawing")
    assert all(line.startswith(ours) for line in answer.stderr.splitlines()), "Ray prints nothing"
    assert json.loads(answer.stdout)["verdict"]
    assert local_rays() <= before


def test_without_ray_the_cure_is_named(tmp_path: Path) -> None:
    (tmp_path / "ray.py").write_text("raise ModuleNotFoundError('no ray', name='ray')\n")
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    code = "import sys; from wiregauge.cli import main; sys.argv = ['wiregauge', *sys.argv[1:]]; main()"
    answer = subprocess.run(
        [sys.executable, "-c", code, "run", ROOT / "examples" / "first.xml", "--engine", "ray", "--out", "r"],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert answer.returncode == 3
    assert len(answer.stderr.splitlines()) == 1, answer.stderr
    assert "wiregauge[ray]" in answer.stderr
    assert not (tmp_path / "r").exists()


def test_the_embedded_engine_needs_no_ray(tmp_path: Path) -> None:
    code = (
        "import sys; from wiregauge import cli\n"
        "try: cli.app(sys.argv[1:])\n"
        "except SystemExit as end: code = end.code\n"
        "sys.exit(code or 9 * any(name in sys.modules for name in ('ray', 'fsspec')))"
    )
    for arguments in (["run", str(ROOT / "examples" / "first.xml"), "--out", "r"], ["track", "r"]):
        answer = subprocess.run(
            [sys.executable, "-c", code, *arguments],
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
            cwd=tmp_path,
        )
        assert answer.returncode == 0, answer.stderr


@pytest.mark.parametrize("kind", ["client", "head"])
def test_an_address_nobody_listens_at(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    address = f"127.0.0.1:{free_port()}"
    monkeypatch.setenv("RAY_ADDRESS", address)
    with (
        pytest.raises(EngineError, match=f"{address}: does not answer"),
        connected("ray" if kind == "head" else f"ray://{address}"),
    ):
        pass


def test_an_address_where_no_ray_answers_ends_with_one_line(tmp_path: Path) -> None:
    with socket.socket() as mute:
        mute.bind(("127.0.0.1", 0))
        mute.listen()
        address = f"ray://127.0.0.1:{mute.getsockname()[1]}"
        first = ROOT / "examples" / "first.xml"
        answer = command("run", first, "--engine", address, "--out", tmp_path / "r")
    assert answer.returncode == 3
    assert len(answer.stderr.splitlines()) == 1, answer.stderr
    assert address in answer.stderr
    assert not (tmp_path / "r").exists()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["run", "first.xml", "--engine", "spark"], "no engine"),
        (["run", "first.xml", "--storage", "s3://b/p"], "--engine ray"),
        (["run", "first.xml", "--bench", "netns", "--engine", "ray"], "no effect"),
        (["track", "r", "--parts", "2"], "--engine ray"),
        (["track", "nowhere"], "no such directory"),
    ],
)
def test_what_has_no_effect_is_refused(arguments: list[str], words: str) -> None:
    examples = {"first.xml": str(ROOT / "examples" / "first.xml")}
    answer = command(*(examples.get(argument, argument) for argument in arguments))
    assert answer.returncode == 2
    assert words in answer.stderr


@given(st.text(max_size=30) | st.from_regex(r"ray://[a-z0-9.\-]*:?\d*", fullmatch=True))
def test_engines_are_read_or_refused(name: str) -> None:
    host, _, port = name.removeprefix("ray://").rpartition(":")
    is_address = name.startswith("ray://") and host != "" and re.fullmatch("[0-9]{1,5}", port) is not None
    if name in {"local", "ray"} or (is_address and 0 < int(port) < 1 << 16):
        assert read_engine(name) == name
    else:
        with pytest.raises(EngineNameError, match="ray://HOST:PORT"):
            read_engine(name)


# -- storage --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["memory", "file", "path"])
def test_a_storage_keeps_files(kind: str, tmp_path: Path) -> None:
    root = tmp_path / "there"
    url = {"memory": f"memory://{tmp_path.name}", "file": f"file://{root}", "path": str(root)}[kind]
    storage = Storage(url)
    source, target = tmp_path / "source", tmp_path / "new" / "target"
    source.write_bytes(os.urandom(1 << 20))
    storage.put(source, "a/b/c")
    storage.put(source, "a/d")
    Storage(url + "/").get("a/b/c", target)
    assert target.read_bytes() == source.read_bytes()
    storage.remove("a")
    with pytest.raises(StorageError, match="a/d cannot be read"):
        storage.get("a/d", tmp_path / "other")
    assert [path.name for path in tmp_path.iterdir() if "other" in path.name] == [], "not even a part"
    storage.remove("a")


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("s3://key:secret@bucket/prefix", "credentials do not belong"),
        ("nonsense://x", "nonsense"),
    ],
)
def test_urls_that_are_refused(url: str, words: str) -> None:
    with pytest.raises(StorageError, match=words) as refused:
        Storage(url)
    assert "secret" not in str(refused.value)


def test_a_node_that_does_not_see_the_directory_says_so(tmp_path: Path) -> None:
    assert tasks.look(tasks.Place("t", str(tmp_path), None))["seen"] is True
    assert tasks.look(tasks.Place("t", str(tmp_path / "elsewhere"), None))["seen"] is False
    assert "cannot be read" in tasks.look(tasks.Place("t", None, f"memory://{tmp_path.name}"))["seen"]


# -- tasks and what is made of their answers ------------------------------------------------------------------


def test_attempts_never_meet(tmp_path: Path) -> None:
    """Two attempts of one task leave the same, each in a folder of its own; one that fails leaves nothing."""
    file = tmp_path / "t.xml"
    file.write_text(written(50, "64B"), encoding="utf-8")
    manifest = json.dumps({"plan": plain(load(file).campaign), "files": {}})
    shared = tmp_path / "shared"
    shared.mkdir()
    place = tasks.Place("t", str(shared), None)
    one, other = (tasks.simulate(place, manifest, 0, lambda share: False) for _ in range(2))
    assert one.attempt != other.attempt
    assert one.files == other.files
    assert files(shared / one.attempt) == files(shared / other.attempt)

    def fail(share: float) -> bool:
        raise MemoryError

    with pytest.raises(MemoryError):
        tasks.simulate(place, manifest, 0, fail)
    assert {path.name for path in shared.iterdir()} == {one.attempt, other.attempt}


def test_no_run_begins_once_all_were_asked_to_stop(tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(written(50, "64B"), encoding="utf-8")
    place, board = tasks.Place("t", str(tmp_path), None), tasks.Board()
    board.note(0, 0.0)
    board.stop()
    manifest = json.dumps({"plan": plain(load(file).campaign), "files": {}})
    result = tasks.simulate(place, manifest, 1, lambda share: board.note(1, share))
    assert (result.told["entry"], result.files) == (None, ())
    assert board.note(0, 0.5)
    assert board.read() == {0: 0.5}


def test_progress_is_noted_without_waiting_and_a_stop_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr(tasks, "time", SimpleNamespace(monotonic=lambda: now))
    asked: list[float] = []
    answers: Iterator[bool | None] = iter([False, None, True])

    def answered(_ticket: Any, seconds: float) -> bool | None:
        asked.append(seconds)
        return next(answers)

    note = tasks.noting(lambda share: len(asked), answered)
    assert [note(0.0), note(0.1)] == [False, False]
    assert asked == [10.0], "only the first call waits, and calls that follow at once ask nobody"
    now += 0.21
    assert note(0.2) is False
    now += 0.21
    assert note(0.3) is True
    assert asked == [10.0, 0.0, 0.0]
    assert note(0.4) is True


def flow_entry(flow: int) -> dict[str, Any]:
    return {"flow": flow, "sent": flow + 1}


@given(st.lists(st.integers(0, 3), min_size=1, max_size=12), st.data())
def test_shares_merge_to_the_whole(owners: list[int], data: st.DataObject) -> None:
    numbers = st.integers(0, 1000)
    shares: list[dict[str, Any]] = [
        {
            "index": 7,
            "records": data.draw(numbers),
            "window": 4096,
            "flows": [flow_entry(flow) for flow, owner in enumerate(owners) if owner == part],
            "unplanned": {"foreign": data.draw(numbers), "damaged": 1},
            "out_of_order": data.draw(numbers),
            "clock_jumps": [],
            "damaged_segments": [{"file": "f"}] if part == 0 else [],
        }
        for part in range(4)
    ]
    whole = merging.merge_entries(shares)
    assert list(whole) == list(shares[0])
    assert whole["flows"] == [flow_entry(flow) for flow in range(len(owners))]
    for key in ("records", "out_of_order"):
        assert whole[key] == sum(share[key] for share in shares)
    assert whole["unplanned"]["damaged"] == 4
    assert whole["damaged_segments"] == [{"file": "f"}]
    assert whole["window"] == 4096


def test_tables_too_big_to_sort_keep_the_order_within_a_flow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    parts = []
    for part, flows in enumerate(([1, 3], [2])):
        parts.append(tmp_path / f"{part}.parquet")
        frame = pl.DataFrame({"flow": [flow for _ in range(1000) for flow in flows], "sequence": 0})
        frame.with_columns(sequence=pl.int_range(pl.len()).over("flow")).write_parquet(
            parts[-1], row_group_size=300
        )
    merging.merge_tables(parts, tmp_path / "sorted.parquet")
    monkeypatch.setattr(merging, "SORTED_UP_TO", 100)
    merging.merge_tables(parts, tmp_path / "big.parquet")
    merged = pl.read_parquet(tmp_path / "sorted.parquet")
    assert merged["flow"].is_sorted()
    assert merged.equals(pl.read_parquet(tmp_path / "big.parquet").sort("flow", maintain_order=True))
    assert merged.group_by("flow").agg(pl.col("sequence").is_sorted())["sequence"].to_list() == [True] * 3


def test_a_simulator_that_fails_leaves_a_reason(tmp_path: Path) -> None:
    from wiregauge.runner.benches.simulation import SimulationFailed

    class Failing:
        def __call__(self, directory: RunDirectory, position: int, watch: Watch) -> SimulatedRun | None:
            if position == 0:
                return simulate_run(directory, position, watch)
            watch(0.5)
            raise SimulationFailed("run 1: its worker died 6 times")

    simulator: Simulator = Failing()
    test = cluster_process.written(tmp_path / "r", written(50, "64B 256B"))
    with runner.open(runner.SimulatorBench(jobs=1, simulator=simulator)) as trials:
        judgement = trials.run(test, tmp_path / "r")
    assert judgement.state == "failed"
    assert "died 6 times" in str(judgement.reason)
    assert [run.state for run in judgement.runs] == ["complete", "partial"]


def test_two_do_not_write_one_directory(tmp_path: Path) -> None:
    embedded(tmp_path / "r", written(50, "64B"))
    one, other = RunDirectory.open(tmp_path / "r"), RunDirectory.open(tmp_path / "r")
    one.hold()
    assert other.is_being_written()
    with pytest.raises(Exception, match="another process is working on it"):
        retrack(other, [0], "local", tracked=lambda index: None)
    one.close()
    assert retrack(other, [0], "local", tracked=lambda index: None) is None
