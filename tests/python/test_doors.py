"""What others wrote is read without waiting, stays where it is, and is shown without being obeyed."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import unicodedata
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lxml import etree
from msgspec import Struct

from wiregauge.cli.program import main
from wiregauge.files import open_regular, printable, printable_content, printable_lines, read_regular
from wiregauge.records import DamagedError, RunDirectory
from wiregauge.records.contained import is_inside
from wiregauge.records.integrity import _UNSEEN, read_json
from wiregauge.records.processing import keep_captures

FAULTS = Path(__file__).resolve().parents[1] / "faults" / "security"
TEST = """<test xmlns="urn:wiregauge:test:2" name="doors" seed="1">
  <network><end-system name="a"/><end-system name="b"/><link between="a b" rate="1Gbit/s"/></network>
  <flows><flow id="1" protocol="udp" from="a" to="b"/></flows>
  <tasks><send flow="1" period="1ms" payload="100B" count="20"/><receive flow="1"/></tasks>
</test>
"""
HOSTILE = "x\x1b[2J\x1b[H\nverdict PASS\r\x07\x7f\x9b31m\u202eevil\u2066\u200b\u2028[red]b[/red][/]"
HOSTILE += "<script>alert(1)</script>--><!--&=cmd\U000e0001"
UNSEEN = {"Cc", "Cf", "Cs", "Co", "Zl", "Zp"}


class Done(Struct, frozen=True):
    """What came of a command."""

    returncode: int
    stdout: str
    stderr: str


def wiregauge(*words: object, cwd: Path | None = None) -> Done:
    """A command as a user has it, in this process; one that waits longer than four minutes fails."""
    out, err = (io.TextIOWrapper(io.BytesIO(), "utf-8", write_through=True) for _ in range(2))

    def overdue(*_: object) -> None:
        raise AssertionError(f"{words} waits")

    before = signal.signal(signal.SIGALRM, overdue)
    signal.setitimer(signal.ITIMER_REAL, 240)
    code: object = None
    try:
        with (
            contextlib.chdir(cwd or Path.cwd()),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            mock.patch.object(sys, "argv", ["wiregauge", *map(str, words)]),
        ):
            try:
                main()
            except SystemExit as end:
                code = end.code
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    printed = [stream.buffer.getvalue().decode("utf-8") for stream in (out, err)]
    return Done(code if isinstance(code, int) else 0, *printed)


def seen(text: str) -> bool:
    """Whether nothing is in a text but lines that can be seen."""
    lines = text.replace("\r\n", "\n").replace("\n", "")  # CSV ends lines as RFC 4180 has it
    return not any(unicodedata.category(c) in UNSEEN for c in lines)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole run directory."""
    place = tmp_path_factory.mktemp("doors")
    (place / "t.xml").write_text(TEST)
    done = wiregauge("run", "t.xml", "--out", "r", cwd=place)
    assert done.returncode == 0, done.stderr
    return place / "r"


# -- texts --------------------------------------------------------------------------------------------------


@given(st.text(st.characters(), max_size=60))
def test_nothing_that_a_terminal_obeys_is_left_of_any_text(text: str) -> None:
    shown = printable(text)
    assert seen(shown)
    assert "\n" not in shown
    assert printable(shown) == shown
    assert printable_lines(text).count("\n") == text.count("\n")
    assert all(c in shown for c in text if unicodedata.category(c) not in UNSEEN)


@given(st.text(st.characters(), max_size=20), st.text(st.characters(), max_size=20))
def test_json_of_others_is_looked_at_wherever_something_may_hide(key: str, value: str) -> None:
    for ascii_ in (True, False):
        data = json.dumps({key: [value]}, ensure_ascii=ascii_).encode("utf-8", "backslashreplace")
        assert _UNSEEN.search(data) or (seen(key + value) and "\n" not in key + value)
    assert printable_content({key: [value]}) == {printable(key): [printable(value)]}


def test_names_of_captures_forge_no_line_and_clear_no_screen(tmp_path: Path) -> None:
    made = wiregauge("import", FAULTS / "fa.pcapng", FAULTS / "fb.pcapng", "--out", "r", cwd=tmp_path)
    answers = [made]
    answers += [
        wiregauge(*words, cwd=tmp_path) for words in (("show", "r", "--explain"), ("show", "r", "--json"))
    ]
    answers += [wiregauge("export", "r", "--to", "junit", "--out", "-", cwd=tmp_path)]
    for answer in answers:
        assert seen(answer.stdout + answer.stderr)
        assert not any(line.startswith("msg2  verdict PASS") for line in answer.stdout.splitlines())
    assert seen((tmp_path / "r" / "report.html").read_text())
    assert seen((tmp_path / "r" / "manifest.json").read_text())


COMMANDS = (
    ("show", "{}"),
    ("show", "{}", "--json"),
    ("show", "{}", "--explain"),
    ("compare", "{}", "{}"),
    ("report", "{}"),
    ("verify", "{}"),
    *(("export", "{}", "--to", to, "--out", "-") for to in ("csv", "json", "junit", "openmetrics")),
)


def of_others(run: Path, place: Path, *, whole: bool = False) -> Path:
    """A run directory whose names somebody else chose; `whole`: of a run that was complete."""
    shutil.copytree(run, place)
    manifest = json.loads((place / "manifest.json").read_text())
    for key in ("digest", "files"):
        del manifest[key]
    manifest["test"]["name"] = HOSTILE
    manifest["plan"]["name"] = HOSTILE
    if not whole:
        manifest["reason"] = manifest["runs"][0]["reason"] = HOSTILE
        manifest["state"] = "failed"
    manifest["plan"]["network"]["nodes"][0]["name"] = HOSTILE
    (place / "manifest.json").write_text(json.dumps(manifest))
    (place / "tracking.json").write_text(
        json.dumps(
            {k: v for k, v in json.loads((place / "tracking.json").read_text()).items() if k != "digest"}
        )
    )
    for name in ("measures.json", "report.html"):
        (place / name).unlink()
    return place


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_names_of_a_run_directory_of_others_are_shown_and_not_obeyed(
    run: Path, tmp_path: Path, words: tuple[str, ...]
) -> None:
    place = of_others(run, tmp_path / "r\x1b[2J\n\u202ename")
    done = wiregauge(*(word.format(place) for word in words), cwd=tmp_path)
    assert done.returncode in (0, 1, 2, 4), done.stderr
    assert seen(done.stdout + done.stderr), done.stdout + done.stderr
    assert "internal error" not in done.stderr
    assert not any(line.startswith("verdict PASS") for line in done.stdout.splitlines())
    page = place / "report.html"
    if page.exists():
        assert seen(page.read_text())


FILES = {
    "the report": ("report", "{}"),
    "pictures": ("report", "{}", "--svg", "out", "--png", "out"),
    "a comparison": ("compare", "{}", "{run}", "--out", "out/page.html"),
    "a trend": ("trend", "{run}", "{}", "--out", "out/page.html"),
    **{to: ("export", "{}", "--to", to, "--out", f"out/t.{to}") for to in ("csv", "json", "openmetrics")},
    "verdicts": ("export", "{}", "--to", "junit", "--out", "out/t.xml"),
    "columns": ("export", "{}", "--to", "parquet", "--out", "out/t.parquet"),
}
XML = {".svg", ".xml"}


@pytest.mark.parametrize("name", sorted(FILES))
def test_files_that_are_made_of_names_of_others_hold_nothing_to_obey(
    run: Path, tmp_path: Path, name: str
) -> None:
    """Text of every file that a command writes can be seen, XML stays XML, and a page runs nothing of theirs."""
    place = of_others(run, tmp_path / "r\x1b[2J\n\u202ename", whole=True)
    (tmp_path / "out").mkdir()
    done = wiregauge(*(word.format(place, run=run) for word in FILES[name]), cwd=tmp_path)
    assert done.returncode in (0, 4), done.stderr
    assert seen(done.stdout + done.stderr)
    made = [*(tmp_path / "out").iterdir(), *place.glob("*.html")]
    assert made
    for file in made:
        if file.suffix in (".png", ".parquet"):
            continue
        text = file.read_text(encoding="utf-8")
        assert seen(text), file.name
        if file.suffix in XML:
            etree.fromstring(text.encode())
        if file.suffix == ".html":
            assert "<script>alert" not in text, file.name


LAB = """[[host]]
name = "h"
address = {text}
interface = {text}
end-systems = [{text}]
"""
OF_HOSTS = {
    "status": ("lab", "status", "--lab", "lab"),
    "status as JSON": ("lab", "status", "--lab", "lab", "--json"),
    "map": ("lab", "map", "t.xml", "--lab", "lab"),
    "drain": ("lab", "drain", "h", "--lab", "lab"),
    "clean": ("lab", "clean", "--lab", "lab"),
    "revoke": ("lab", "revoke", HOSTILE, "--lab", "lab"),
    "member": ("lab", "member", HOSTILE, "--lab", "lab"),
    "enrol": ("lab", "enrol", HOSTILE, HOSTILE, "--lab", "lab"),
    "doctor": ("doctor", "--lab", "lab"),
    "doctor of a host": ("doctor", HOSTILE, "--lab", "lab"),
    "doctor of an interface": ("doctor", "--interface", HOSTILE),
    "switch": ("switch", HOSTILE),
    "services": ("switch", "--services", "services.toml", "--tests", "service-steps", "--out", "out"),
    "switch again": ("switch", "--resume", "other"),
}


@pytest.mark.parametrize("name", sorted(OF_HOSTS))
def test_names_of_hosts_and_devices_are_shown_and_not_obeyed(tmp_path: Path, name: str) -> None:
    wiregauge("lab", "init", "lab", cwd=tmp_path)
    (tmp_path / "lab" / "lab.toml").write_text(LAB.format(text=json.dumps(HOSTILE[:-1])))
    (tmp_path / "services.toml").write_text(f"[[service]]\nname = {json.dumps(HOSTILE[:-1])}\ncir = 1\n")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "plan.json").write_text(json.dumps({"name": HOSTILE, "device": HOSTILE}))
    (tmp_path / "t.xml").write_text(TEST)
    done = wiregauge(*OF_HOSTS[name], cwd=tmp_path)
    assert seen(done.stdout + done.stderr), done.stdout + done.stderr
    assert "internal error" not in done.stderr
    assert done.returncode in (0, 1, 2, 3, 4)
    assert not any(line.startswith("verdict PASS") for line in (done.stdout + done.stderr).splitlines())


def test_no_path_is_taken_for_a_pattern() -> None:
    """Polars takes brackets and stars in a path for one of many, unless it is told not to."""
    package = Path(sys.modules["wiregauge"].__path__[0])
    for path in package.rglob("*.py"):
        for found in re.finditer(
            r"pl\.(?:scan|read)_(?:parquet|ipc)\((?:[^()]|\([^()]*\))*\)", path.read_text()
        ):
            assert "glob=False" in found[0], f"{path.relative_to(package)}: {found[0]}"


def test_values_are_of_one_kind() -> None:
    """A dataclass takes forty times as long to make as a `msgspec.Struct`, and a command makes hundreds of types."""
    package = Path(sys.modules["wiregauge"].__path__[0])
    # Abstract classes, a secret that is not shown, and a program by itself, of the standard library only.
    allowed = {
        "certificate/checking.py",
        "certificate/network.py",
        "measures/run_measures/base.py",
        "measures/run_measures/synchronisation.py",
        "runner/lab/join_code.py",
    }
    project = Path(__file__).parents[2]
    found = {
        path
        for folder in (package, *(project / name for name in ("benchmarks", "tools", "tests")))
        for path in folder.rglob("*.py")
        if re.search(r"^from dataclasses|^import dataclasses", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert found == {package / name for name in allowed}


def test_only_one_place_prints() -> None:
    package = Path(sys.modules["wiregauge"].__path__[0])
    allowed = {
        "terminal/output.py",
        "terminal/exits.py",
        "cli/progress.py",
        "runner/benches/netns/enclosure.py",
        "runner/benches/netns/network.py",
    }
    for path in package.rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        name = path.relative_to(package).as_posix()
        if name in allowed or name.startswith("studies/papers"):
            continue
        assert " Console(" not in text, f"{name}: take terminal.make_console"
        for line in text.splitlines():
            bare = line.strip().startswith("print(") and "json.dumps" not in line and line.strip() != "print("
            assert not bare, f"{name}: {line.strip()}: take terminal.put"


# -- files that are none ------------------------------------------------------------------------------------


def odd_files(folder: Path) -> Iterator[tuple[str, Path]]:
    os.mkfifo(folder / "fifo")
    yield "fifo", folder / "fifo"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(folder / "socket"))
    yield "socket", folder / "socket"
    (folder / "loop").symlink_to("loop")
    yield "loop", folder / "loop"
    (folder / "folder").mkdir()
    yield "folder", folder / "folder"
    (folder / "empty").touch()
    yield "empty", folder / "empty"
    yield "zero", Path("/dev/zero")
    yield "none", folder / "none"


def test_only_regular_files_are_opened(tmp_path: Path) -> None:
    for name, path in odd_files(tmp_path):
        if name == "empty":
            assert read_regular(path) == b""
            continue
        with pytest.raises(OSError, match=r".+"):
            open_regular(path)
    with (tmp_path / "huge").open("wb") as file:
        file.truncate(64 << 30)
    with pytest.raises(OSError, match="too large"):
        read_regular(tmp_path / "huge")


READERS: dict[str, Callable[[Path], tuple[object, ...]]] = {
    "check": lambda odd: ("check", odd),
    "run": lambda odd: ("run", odd),
    "import": lambda odd: ("import", odd, FAULTS / "fb.pcapng", "--out", "r"),
    "import --test": lambda odd: ("import", FAULTS / "fb.pcapng", "--test", odd, "--out", "r"),
    "show": lambda odd: ("show", odd),
    "verify": lambda odd: ("verify", odd),
    "track": lambda odd: ("track", odd),
    "bounds": lambda odd: ("bounds", odd),
    "schedule --check": lambda odd: ("schedule", odd, "--check"),
    "calibrate cable": lambda odd: ("calibrate", "cable", odd),
}


@pytest.mark.parametrize("reader", READERS)
def test_no_command_waits_for_what_is_no_file(tmp_path: Path, reader: str) -> None:
    for name, path in odd_files(tmp_path):
        done = wiregauge(*READERS[reader](path), cwd=tmp_path)
        assert done.returncode in (2, 3, 4), (name, done)
        assert "internal error" not in done.stderr, (name, done.stderr)
        assert done.stderr, name


PARTS = (
    "manifest.json",
    "tracking.json",
    "messages/run-0000.parquet",
    "records/run-0000.parquet",
    "test.xml",
)


@pytest.mark.parametrize("command", ["show", "verify", "track", "report", "compare", "export"])
def test_nothing_outside_a_run_directory_is_touched(run: Path, tmp_path: Path, command: str) -> None:
    outside = tmp_path / "outside"
    more = {"compare": (run,), "export": ("--to", "csv", "--out", "-")}.get(command, ())
    for k, part in enumerate((*PARTS, "messages", "records", ".lock")):
        for kind in ("link", "fifo"):
            place = tmp_path / f"r{k}{kind}"
            shutil.copytree(run, place)
            here = place / part
            if kind == "fifo" and (here.is_dir() or part == ".lock"):
                continue
            if here.exists():
                shutil.copytree(here, outside, dirs_exist_ok=True) if here.is_dir() else shutil.copy(
                    here, outside
                )
                shutil.rmtree(here) if here.is_dir() else here.unlink()
            here.symlink_to(outside) if kind == "link" else os.mkfifo(here)
            before = contents(outside)
            with pytest.raises(DamagedError):
                RunDirectory.open(place)
            if k in (
                0,
                2,
                5,
            ):  # one of each kind as a command, the others by the way that every command takes
                done = wiregauge(command, place, *more, cwd=tmp_path)
                assert done.returncode in (2, 4), done
                assert "internal error" not in done.stderr
                said = done.stdout if command == "verify" else done.stderr
                assert part in said, said
            assert contents(outside) == before
            if outside.exists():
                shutil.rmtree(outside) if outside.is_dir() else outside.unlink()


def contents(path: Path) -> dict[str, bytes]:
    if path.is_file():
        return {"": path.read_bytes()}
    return {str(one): one.read_bytes() for one in path.rglob("*") if one.is_file()}


@pytest.mark.parametrize("name", ["../secret", "/etc/passwd", "records/../../secret", "..", ""])
def test_paths_of_a_manifest_stay_inside(run: Path, tmp_path: Path, name: str) -> None:
    assert not is_inside(name)
    place = tmp_path / "r"
    shutil.copytree(run, place)
    manifest, _ = read_json(place / "manifest.json")
    directory = RunDirectory.open(place)
    directory.manifest["files"][name] = manifest["files"]["test.xml"]
    directory.save()
    with pytest.raises(DamagedError, match="no path within the run directory"):
        RunDirectory.open(place)
    done = wiregauge("verify", place)
    assert (done.returncode, "no path within" in done.stdout) == (4, True), done


def test_a_manifest_that_is_huge_is_not_read(run: Path, tmp_path: Path) -> None:
    shutil.copytree(run, tmp_path / "r")
    with (tmp_path / "r" / "manifest.json").open("r+b") as file:
        file.truncate(64 << 30)
    done = wiregauge("show", "r", cwd=tmp_path)
    assert (done.returncode, "too large" in done.stderr) == (4, True), done


# -- very many faults ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "flaw",
    [
        '<flow id="{}" protocol="udp" from="a" to="b" bogus="1"/>',
        '<flow id="{}" protocol="udpp" from="a" to="b"/>',
        "<flaw{}/>",
    ],
)
def test_of_very_many_faults_the_first_are_told_and_all_are_counted(tmp_path: Path, flaw: str) -> None:
    many = 6_000
    # Of a flow whose protocol is none, it is also told that nobody sends it.
    faults = 2 * many if "udpp" in flaw else many
    flows = "\n".join(flaw.format(number + 2) for number in range(many))
    (tmp_path / "t.xml").write_text(TEST.replace("</flows>", f"{flows}</flows>"))
    done = wiregauge("check", "t.xml", cwd=tmp_path)
    lines = done.stderr.splitlines()
    assert (done.returncode, len(lines)) == (2, 51)
    assert lines[-1] == f"t.xml: {faults} faults in all, of which these are the first 50"
    (told,) = json.loads(wiregauge("check", "t.xml", "--json", cwd=tmp_path).stdout)["tests"]
    assert (told["faults"], len(told["diagnostics"])) == (faults, 50)


# -- spreadsheets -------------------------------------------------------------------------------------------


def test_cells_that_a_spreadsheet_would_compute_are_texts_by_option() -> None:
    import polars as pl

    from wiregauge.export.write import _without_formulas

    texts = ["=1+1", "+x", "-x", "@sum", "\tx", "\rx", "-5.2", "+3", "plain", "a=b", None]
    made = _without_formulas(pl.DataFrame({"text": texts, "number": [-5.2] * len(texts)}))
    assert made["text"].to_list() == ["'=1+1", "'+x", "'-x", "'@sum", "'\tx", "'\rx", *texts[6:]]
    assert made["number"].to_list() == [-5.2] * len(texts)


# -- full disks ---------------------------------------------------------------------------------------------


@pytest.mark.skipif(os.geteuid() != 0, reason="no mounts of one's own here")
def test_show_answers_on_a_full_disk(run: Path, tmp_path: Path) -> None:
    """A whole run, and one that was left without its tables: both are shown where not a byte can be written."""
    script = (
        "mkdir small && mount -t tmpfs -o size=4m none small && cp -r $1 small/whole && cp -r $1 small/left && "
        'rm small/left/messages/* small/left/tracking.json && python3 -c "'
        "import json, pathlib; p = pathlib.Path('small/left/manifest.json'); m = json.loads(p.read_text()); "
        "del m['digest'], m['files']; p.write_text(json.dumps(m))\" && "
        "{ cat /dev/zero >small/fill; true; } 2>/dev/null; "
        'for r in whole left; do "$2" -c "from wiregauge.cli import main; main()" show small/$r --json >$r.json '
        "|| exit; done"
    )
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script, "sh", str(run), sys.executable],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "which is not kept" in done.stderr
    for name in ("whole", "left"):
        (flow,) = json.loads((tmp_path / f"{name}.json").read_text())["runs"][0]["flows"]
        assert flow["delivered"] == 20


def test_captures_of_a_node_that_is_named_as_a_path_stay_where_they_are(run: Path, tmp_path: Path) -> None:
    place = tmp_path / "r"
    shutil.copytree(run, place)
    spooled = place / "spool" / "run-0000" / "node-0"
    spooled.mkdir(parents=True)
    (spooled / "capture.pcapng").write_bytes(b"capture")
    directory = RunDirectory.open(place)
    with (
        mock.patch.object(RunDirectory, "spooled_by", return_value="../../outside"),
        mock.patch.object(RunDirectory, "spool", return_value=spooled.parent),
        pytest.raises(DamagedError, match=r"lists \.\./\.\./outside\.pcapng"),
    ):
        keep_captures(directory, 0)
    assert (spooled / "capture.pcapng").exists()
    assert not list(tmp_path.rglob("outside*"))
