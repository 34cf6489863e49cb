"""The fenced blocks of the documents, and how to follow them: page by page, in order, in one directory per page.

Files that a page assumes (a test file, a run directory, a capture) are made when a line first names them. A block that
must not be run has `<!-- not run: WHY -->` on the line above it.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from msgspec import Struct

ROOT = Path(__file__).resolve().parents[1]
DOCUMENTS = sorted(
    [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("examples/*.md"), *ROOT.glob("fuzz/*.md")]
)
TYPED = re.compile(r"(\$ )?([A-Z_]+=\S+ )*wiregauge(-agent)? ")
RUN = frozenset({"sh", "console", "python", "sql"})
"""Languages of blocks that are run."""
SHOWN = frozenset({"xml", "json", "csv", "text", "pyi", "pycon"})
"""Languages of blocks that are not run; those of `pycon` are docstrings, tested elsewhere."""
JUDGING = frozenset({"run", "import", "show", "compare", "trend", "track"})
"""Commands whose exit code depends on the measurement: 1 and 4 are valid answers."""
_TIME = re.compile(r"(?<![\w.])(\d+(?:\.\d+)?) ([numµ]s)\b")
_ECHO = '<flow id="20" protocol="udp" from="mac" to="sensor"/></flows>'
_ECHOED = '<send flow="20" period="2ms" payload="64B" count="1000"/><relay flow="20"/></tasks>'
Command = Callable[[list[str]], int]


class Block(Struct, frozen=True):
    """A fenced block."""

    page: str
    line: int
    language: str
    text: str
    above: str

    @property
    def reason(self) -> str:
        """The reason why it is not run; empty where it is."""
        found = re.fullmatch(r"\s*<!-- not (?:run|parsed): (\S.*) -->", self.above)
        return found[1] if found else ""

    @property
    def is_run(self) -> bool:
        return self.language in RUN and not self.reason

    @property
    def lines(self) -> list[str]:
        """The lines to type, without comments and prompts."""
        text = self.text.replace("\\\n", " ")
        if self.language == "console":
            text = "\n".join(line[2:] for line in text.splitlines() if line.startswith("$ "))
        return [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]


def blocks(paths: Iterable[Path] = DOCUMENTS) -> Iterator[Block]:
    """All fenced blocks, page by page."""
    for path in paths:
        above, start = "", 0
        inside: list[str] | None = None
        language = mark = ""
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1):
            if line.lstrip().startswith("```"):
                if inside is None:
                    mark, language, start, inside = above, line.strip().strip("`"), number, []
                else:
                    yield Block(str(path.relative_to(ROOT)), start, language, "\n".join(inside), mark)
                    inside = None
            elif inside is not None:
                inside.append(line)
            above = line


_SWITCHED = """<test xmlns="urn:wiregauge:test:2" name="first">
  <network>
    <end-system name="mac"/> <end-system name="sensor"/> <switch name="sw1"/>
    <link between="mac sw1" rate="1Gbit/s"/> <link between="sensor sw1" rate="1Gbit/s"/>
  </network>
  <flows> <flow id="10" protocol="udp" from="mac" to="sensor"/> </flows>
  <tasks> <send flow="10" period="2ms" payload="64B" count="1000"/> <receive flow="10"/> </tasks>
  <limits>
    <limit flow="10" measure="latency.p99" at-most="500us"/> <limit flow="10" measure="lost" at-most="0"/>
  </limits>
</test>
"""


def is_live(line: str) -> bool:
    """Whether a line sends real frames, or needs their results."""
    return "--bench netns" in line or "wiregauge replay " in line


class Stock:
    """Files that pages assume, made once by simulation and copied where needed."""

    def __init__(self, place: Path, command: Command) -> None:
        self._place, self._command = place, command
        self._tests = {
            "first.xml": next(one.text for one in blocks([ROOT / "README.md"]) if one.language == "xml"),
            "test.xml": _xml().replace("</flows>", _ECHO).replace("</tasks>", _ECHOED),
            **dict.fromkeys(("bench.xml", "cable.xml"), _xml()),
            "load.xml": _xml(
                '<inject on="sensor" to="mac" load="0%"/>', '<axis of="load" values="0% 100%"/>'
            ),
            "sweep.xml": _xml(sweep='<axis of="payload" values="64B 512B"/>'),
            "tapped.xml": _xml('<capture on="sw1"/>'),
        }
        self._runs = {
            **dict.fromkeys(("r", "run"), "sweep.xml"),
            **dict.fromkeys(("sim", "live", "single"), "first.xml"),
            **dict.fromkeys(("nightly-1", "nightly-2", "nightly-3"), "first.xml"),
            "load": "load.xml",
            "sweep": "sweep.xml",
        }

    def provide(self, text: str, place: Path) -> None:
        """Creates the files that the text names but does not make."""
        made = set(re.findall(r"(?:--out|-o) (\S+)", text))
        for name in re.findall(r"[\w.*-]+", text):
            for each in self._matching(name):
                if each not in made and not (place / each).exists():
                    self._copy(self._made(each), place / each)

    def _matching(self, name: str) -> list[str]:
        known = [*self._tests, *self._runs, "points.csv", "tap.pcapng", "taps.pcapng", "examples"]
        pattern = re.compile(re.escape(name).replace(r"\*", ".*"))
        return [one for one in known if pattern.fullmatch(one)]

    def _copy(self, origin: Path, target: Path) -> None:
        if origin.is_dir():
            shutil.copytree(origin, target)
        else:
            shutil.copy(origin, target)

    def _made(self, name: str) -> Path:
        target = self._place / name
        if target.exists():
            return target
        if name == "examples":
            return ROOT / "examples"
        if name in self._tests:
            target.write_text(self._tests[name], encoding="utf-8")
        elif name == "points.csv":
            page = ROOT / "docs" / "how-to" / "calibrate.md"
            (points,) = (block.text for block in blocks([page]) if block.language == "csv")
            target.write_text(points + "\n", encoding="utf-8")
        elif name.endswith(".pcapng"):
            run = self._place / "tapped"
            if not run.exists():
                self._make(run, "tapped.xml")
            captured = (run / "captures" / "run-0000" / "sw1.pcapng").read_bytes()
            # A foreign capture has other interface names.
            target.write_bytes(captured.replace(b"sw1:", b"tap-"))
        else:
            self._make(target, self._runs[name])
        return target

    def _make(self, target: Path, test: str) -> None:
        code = self._command(["run", str(self._made(test)), "--bench", "sim", "--out", str(target)])
        assert code in (0, 1), f"{test}: exit code {code}"


def _xml(task: str = "", sweep: str = "") -> str:
    """A test over a switch, with something added."""
    text = _SWITCHED.replace("</tasks>", f"{task}</tasks>")
    return text.replace("<limits>", f"<sweep>{sweep}</sweep>\n  <limits>") if sweep else text


def follow(shown: Iterable[Block], place: Path, stock: Stock, command: Command, *, live: bool) -> None:
    """Runs blocks in order in the current directory, `place`. Lines with real frames run only if `live`."""
    for block in shown:
        where = f"{block.page}:{block.line}"
        if block.language == "python":
            stock.provide(block.text, place)
            exec(compile(block.text, where, "exec"), {})
        elif block.language == "sql":
            _query(block.text)
        else:
            lines = [line for line in block.lines if live or not is_live(line)]
            if all(re.match(r"wiregauge [^|;&<>$`]*$", _bare(line)) for line in lines):
                for line in lines:
                    stock.provide(line, place)
                    _typed(line, where, command)
            else:
                text = "\n".join(lines)
                stock.provide(text, place)
                _by_shell(text, where)


def _bare(line: str) -> str:
    return line.split(" #", maxsplit=1)[0].rstrip()


def _typed(line: str, where: str, command: Command) -> None:
    words = shlex.split(line, comments=True)[1:]
    words = [
        name for word in words for name in (sorted(map(str, Path().glob(word))) if "*" in word else [word])
    ]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        code = command(words)
    answers = words[0] in JUDGING
    assert code in ((0, 1, 4) if answers else (0,)), f"{where}: {line}: exit code {code}"
    missing = not_printed(line, printed.getvalue())
    assert not missing, f"{where}: {line}: it prints no {', no '.join(missing)}"


def not_printed(line: str, output: str) -> list[str]:
    """Times in a line's comment that are missing in its output, rounded to as many digits."""
    shown = [(float(value), _unit(unit)) for value, unit in _TIME.findall(output)]
    return [
        f"{value} {unit}"
        for value, unit in _TIME.findall(line.partition(" #")[2])
        if not any(
            f"{one:.{len(value.partition('.')[2])}f}" == value and of == _unit(unit) for one, of in shown
        )
    ]


def _unit(written: str) -> str:
    return written.replace("µ", "u")


def _by_shell(text: str, where: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-eu", "-c", text],
        env=os.environ | {"PATH": path},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode in (0, 1, 4), f"{where}: {done.stderr}"
    assert "Traceback" not in done.stderr, f"{where}: {done.stderr}"


def _query(text: str) -> None:
    import duckdb

    for query in filter(str.strip, text.split(";")):
        found = duckdb.sql(query)
        assert found is not None, query
        assert found.fetchall(), query
