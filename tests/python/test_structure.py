"""The house keeps its order: who may depend on whom, and where unsafe code may be.

Dependencies point down only. The rules for crates and packages are the table in ARCHITECTURE.md; those inside
`measures` and `runner` are below, as data. The code is read, not trusted.
"""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from pathlib import Path

import pytest

from rust_files import needs_of

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "python" / "wiregauge"


def _rooms() -> tuple[dict[str, set[str]], dict[str, set[str]]]:
    """What the table of ARCHITECTURE.md lets each crate name, dev-dependencies included, and each package import."""
    crates: dict[str, set[str]] = {}
    packages: dict[str, set[str]] = {}
    row = re.compile(r"\| `(crates/|python/wiregauge/|…/)(\w+)` \|.*\| ([^|]*) \|")
    for line in (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8").splitlines():
        if found := row.fullmatch(line):
            place, name, may = found.groups()
            rooms = crates if place == "crates/" else packages
            rooms[name] = set(re.findall(r"\w+", may))
    crates = {name: may | ({"features"} - {name}) for name, may in crates.items()}
    # The top, which may import all.
    assert packages.pop("cli") == {"all"}
    return crates, {"_native": set(), **packages}


CRATES, PACKAGES = _rooms()

# Which rooms of `measures` a room of it may import; what stands above them, `""`, is known to the last two.
ROOMS = {
    "definitions": set(),
    "metrics": {"definitions"},
    "sketched": {"definitions", "metrics"},
    "run_measures": {"definitions", "metrics"},
    "flow_measures": {"definitions", "metrics", "run_measures", "sketched"},
    "validity": {"definitions", "flow_measures", "metrics"},
    "extremes": {"definitions", "metrics"},
    "": {"definitions", "extremes", "flow_measures", "metrics", "run_measures", "sketched", "validity"},
    "comparing": {"", "definitions", "metrics"},
    "explaining": {"", "definitions", "extremes", "metrics", "sketched", "validity"},
}

# Likewise of `runner`: of the files beside them, `""`, the rooms need the vocabulary, and some of these the rooms.
ROOMS_OF_RUNNER = {
    "rpc": set(),
    "clocks": set(),
    "live": {"", "rpc"},
    "agents": {"", "clocks", "live", "rpc"},
    "lab": {"", "agents", "rpc"},
    "benches": {"", "agents", "lab", "live"},
    "": {"agents", "benches", "lab", "live"},
}

NUMERIC = {"numpy", "scipy"}
COMPUTING = {"scipy", "polars"}


def crate_dependencies(name: str) -> set[str]:
    manifest = tomllib.loads((ROOT / "crates" / name / "Cargo.toml").read_text())
    named = {**manifest.get("dependencies", {}), **manifest.get("dev-dependencies", {})}
    return {key.removeprefix("wg-") for key in named if key.startswith("wg-")} - {name}


def imports(path: Path) -> set[str]:
    """Every module the file imports, wherever in it; relative imports resolved."""
    package = path.relative_to(ROOT / "python").with_suffix("").parts[:-1]
    return named_by(import_statements(path), package)


@cache
def import_statements(path: Path) -> list[ast.Import | ast.ImportFrom]:
    """Those of a file, which many tests look at: it is read once."""
    return statements_of(path.read_text(encoding="utf-8"))


def statements_of(source: str) -> list[ast.Import | ast.ImportFrom]:
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Import | ast.ImportFrom)]


def imports_of(source: str, package: tuple[str, ...]) -> set[str]:
    return named_by(statements_of(source), package)


def named_by(statements: list[ast.Import | ast.ImportFrom], package: tuple[str, ...]) -> set[str]:
    found: set[str] = set()
    for node in statements:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        else:
            base = ".".join(package[: len(package) - node.level + 1]) if node.level else ""
            module = ".".join(part for part in (base, node.module or "") if part)
            found.add(module)
            if module == "wiregauge":  # `from wiregauge import stats` names a package as well
                found |= {f"wiregauge.{alias.name}" for alias in node.names}
    return found


def files_of(package: str) -> list[Path]:
    return sorted((PACKAGE / package).rglob("*.py"))


def ours(path: Path) -> set[str]:
    parts = {module.split(".")[1] for module in imports(path) if module.startswith("wiregauge.")}
    return parts - {"_version"}


def test_every_crate_has_a_rule() -> None:
    assert {path.parent.name for path in ROOT.glob("crates/*/Cargo.toml")} == set(CRATES)


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_crates_depend_downwards_only(crate: str) -> None:
    assert crate_dependencies(crate) <= CRATES[crate]


def test_every_package_has_a_rule() -> None:
    packages = {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    assert packages == set(PACKAGES) - {"_native"} | {"cli"}


@pytest.mark.parametrize("package", sorted(set(PACKAGES) - {"_native"}))
def test_packages_depend_downwards_only(package: str) -> None:
    for path in files_of(package):
        allowed = PACKAGES[package] | {package}
        assert ours(path) <= allowed, f"{path.relative_to(ROOT)} imports {sorted(ours(path) - allowed)}"


def test_stats_knows_arrays_only() -> None:
    for path in files_of("stats"):
        third_party = {module.split(".")[0] for module in imports(path)} & {
            "polars", "plotly", "matplotlib", "lxml", "grpc", "rich", "typer", "jinja2", "pyroute2", "pandas",
        }  # fmt: skip
        assert not third_party, (
            f"{path.name} imports {third_party}; stats takes arrays and knows {NUMERIC} only"
        )


def test_figures_compute_no_statistic() -> None:
    for path in files_of("figures"):
        found = {module.split(".")[0] for module in imports(path)} & COMPUTING
        assert not found, f"{path.name} imports {found}: a figure shows numbers, it does not make them"


def moves(source: str) -> set[str]:
    """Calls that put a file in the place of another: `path.replace(other)`, `os.rename(one, other)` and the like."""
    found = set()
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        name, of = node.func.attr, node.func.value
        if isinstance(of, ast.Name) and (of.id, name) in {
            ("os", "replace"), ("os", "rename"), ("os", "renames"), ("shutil", "move"), ("os", "link"),
        }:  # fmt: skip
            found.add(f"{of.id}.{name}")
        # Two arguments are those of a text, a mapping those of a table.
        elif name in ("replace", "rename") and len(node.args) == 1 and not isinstance(node.args[0], ast.Dict):
            found.add(name)
    return found


def test_one_file_replaces_files() -> None:
    for path in PACKAGE.rglob("*.py"):
        if path == PACKAGE / "files" / "whole.py":
            assert moves(path.read_text(encoding="utf-8")) == {"replace", "os.link"}
        elif path == PACKAGE / "captures" / "importing.py":  # folders, into one that was made for them
            assert moves(path.read_text(encoding="utf-8")) == {"rename"}
        else:
            found = moves(path.read_text(encoding="utf-8"))
            assert not found, f"{path.relative_to(ROOT)}: {found}; wiregauge.files puts files in their place"


def test_nobody_indexes_the_json_of_the_plan() -> None:
    """`wiregauge.plan` decodes and upgrades it; a manifest keeps it, the native side gets it back, as a whole."""
    raw = re.compile(r"""\b(?:plan|campaign|network)\[["']\w+["']\]|\["plan"\]\[""")
    for path in set(PACKAGE.rglob("*.py")) - set(files_of("plan")):
        found = raw.findall(path.read_text(encoding="utf-8"))
        assert not found, f"{path.relative_to(ROOT)}: {found}; wiregauge.plan has structures"


def test_one_parser_knows_units() -> None:
    """That of the test language; Python has units to write them, and none to read them but those of OMNeT++.

    The checker of certificates is a judge of its own, and reads the plain ones by itself.
    """
    others = {PACKAGE / "inet" / "values.py", PACKAGE / "certificate" / "numbers_of_test.py"}
    factors = re.compile(r"""["'](?:us|µs|ms|kbit/s|Mbit/s|KiB)["']: """)
    expression = re.compile(r"""re\.\w+\(\s*[rf]*["'][^"'\n]*(?:\[a-z[^\]]*%|\[a-zA-Z/\]|\bms\b|bit/s)""")
    for path in set(PACKAGE.rglob("*.py")) - others:
        text = path.read_text(encoding="utf-8")
        found = [*factors.findall(text), *expression.findall(text)]
        assert not found, f"{path.relative_to(ROOT)}: {found}; wiregauge.plan.quantity reads quantities"


def test_only_agents_wait_for_their_control_plane() -> None:
    """A command that reads a run directory, or simulates, does not load gRPC."""
    code = (
        "import sys, wiregauge.runner; from wiregauge.cli.program import app; sys.exit('grpc' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_only_the_cluster_knows_ray() -> None:
    for path in PACKAGE.rglob("*.py"):
        found = {module.split(".")[0] for module in imports(path)} & {"ray", "fsspec"}
        assert not found or path.is_relative_to(PACKAGE / "cluster"), f"{path} imports {found}: an extra"


def test_only_the_command_line_shows_progress() -> None:
    """Whoever runs a test tells an observer how it goes on, and the terminal's view is one."""
    for path in PACKAGE.rglob("*.py"):
        assert "rich.progress" not in imports(path) or path.is_relative_to(PACKAGE / "cli"), path


def test_unsafe_code_lives_in_one_crate() -> None:
    for path in ROOT.glob("crates/*/src/**/*.rs"):
        if path.relative_to(ROOT).parts[1] == "net":
            continue
        assert not re.search(r"\bunsafe\s*(\{|fn|impl)", path.read_text()), (
            f"{path}: unsafe code outside crates/net"
        )
    for name in set(CRATES) - {"net", "py"}:
        roots = [ROOT / "crates" / name / "src" / file for file in ("lib.rs", "main.rs")]
        for path in (root for root in roots if root.exists()):
            assert "#![forbid(unsafe_code)]" in path.read_text(), f"{path} does not forbid unsafe code"


def test_cores_are_no_std() -> None:
    for crate in ("frame", "core"):
        assert "#![no_std]" in (ROOT / "crates" / crate / "src" / "lib.rs").read_text(), crate


def doctests(text: str) -> list[str]:
    """Opening lines of the blocks of documentation that `cargo test` would compile."""
    opened = re.findall(r"^\s*//[/!] *```(.*)$", text, re.M)[::2]
    return [line for line in opened if not {"text", "toml", "ignore"} & set(re.split(r"[,\s]+", line))]


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_doctests_are_run_wherever_there_are_some(crate: str) -> None:
    folder = ROOT / "crates" / crate
    library = tomllib.loads((folder / "Cargo.toml").read_text()).get("lib", {})
    run = library.get("doctest", True) and "cdylib" not in library.get("crate-type", [])
    some = [path for path in folder.glob("src/**/*.rs") if doctests(path.read_text())]
    assert run == bool(some), f"{crate}: doctest = {str(bool(some)).lower()} belongs into its [lib]: {some}"


def test_blocks_that_are_compiled_are_told_from_those_that_show() -> None:
    block = "/// ```{}\n/// x\n/// ```\n"
    assert not doctests("".join(block.format(kind) for kind in ("text", "toml", "ignore")))
    assert doctests("    " + block.format("")) == [""]
    assert doctests("//! ```compile_fail\n//! x\n//! ```\n") == ["compile_fail"]


def test_files_that_are_begun_first_are_there() -> None:
    source = (ROOT / "tests" / "conftest.py").read_text(encoding="utf-8")
    (named,) = re.findall(r"^LONGEST: Final = (\(.*?^\))", source, re.M | re.S)
    files = ast.literal_eval(named)
    assert len(files) == len(set(files)) > 1
    assert [file for file in files if not (ROOT / "tests" / file).exists()] == []


@pytest.mark.parametrize(
    "source",
    [
        "def f():\n    from wiregauge import stats",
        "import wiregauge.stats",
        "from wiregauge.stats import x",
        "from .. import stats",
        "from ..stats import x",
    ],
)
def test_no_way_of_importing_escapes_the_rules(source: str) -> None:
    assert any(name.startswith("wiregauge.stats") for name in imports_of(source, ("wiregauge", "figures")))


def test_generated_rpc_is_up_to_date(tmp_path: Path) -> None:
    """Compares what the two files declare, not their text: that changes with the generator's version."""
    code = (
        "import sys, pathlib; sys.path.insert(0, sys.argv[1]); "
        "import generate_rpc; generate_rpc.generate(pathlib.Path(sys.argv[2]))"
    )
    command = [sys.executable, "-c", code, str(ROOT / "tools"), str(tmp_path)]
    subprocess.run(command, check=True, capture_output=True)
    fresh = (tmp_path / "wiregauge" / "runner" / "rpc" / "agent_pb2.py").read_text()
    kept = (PACKAGE / "runner" / "rpc" / "agent_pb2.py").read_text()
    assert declared(fresh) == declared(kept), "agent.proto has changed: run `make proto`"


def declared(source: str) -> bytes:
    """The serialised file descriptor in a generated module."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and getattr(node.func, "attr", "") == "AddSerializedFile":
            return bytes(ast.literal_eval(node.args[0]))
    raise AssertionError("no descriptor in the generated module")


@pytest.mark.parametrize(("package", "rules"), [("measures", ROOMS), ("runner", ROOMS_OF_RUNNER)])
def test_rooms_of_packages_know_only_those_below_them(package: str, rules: dict[str, set[str]]) -> None:
    below = f"wiregauge.{package}."
    for path in files_of(package):
        place = path.relative_to(PACKAGE / package)
        own = place.parts[0] if len(place.parts) > 1 else ""
        names = {name.removeprefix(below).split(".")[0] for name in imports(path) if name.startswith(below)}
        known = {name if name in rules else "" for name in names} - {own}
        if place.name == "__init__.py" and own == "":
            continue
        assert known <= rules[own], f"{place}: {known - rules[own]}"


def test_no_two_files_need_each_other() -> None:
    """Imports inside functions and those for types only included; what a package re-exports is no file's."""
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name != "__init__.py" and not path.name.endswith("_pb2.py"):
            modules[".".join(path.relative_to(ROOT / "python").with_suffix("").parts)] = path
    needs = {name: named_modules(path) & set(modules) - {name} for name, path in modules.items()}
    assert circles(needs) == []


def named_modules(path: Path) -> set[str]:
    """What the file imports, and the names it takes from there: one of them may be a module."""
    found = imports(path)
    for node in import_statements(path):
        if isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def circles(needs: dict[str, set[str]]) -> list[list[str]]:
    """What is left when who needs nobody that is left has gone, again and again; then who is needed by nobody."""
    left = {name: set(others) for name, others in needs.items()}
    for _ in range(2):
        while gone := {name for name, others in left.items() if not others & set(left)}:
            left = {name: others for name, others in left.items() if name not in gone}
        back: dict[str, set[str]] = {name: set() for name in left}
        for name, others in left.items():
            for other in others & set(left):
                back[other].add(name)
        left = back
    return [sorted(left)] if left else []


@pytest.mark.parametrize("crate", sorted(CRATES))
def test_no_two_files_of_a_crate_need_each_other(crate: str) -> None:
    """A name that a module hands on is of the file in which it is written."""
    assert circles(needs_of(ROOT / "crates" / crate / "src")) == []


def test_files_of_a_crate_need_what_they_name(tmp_path: Path) -> None:
    """Names count by `use`, by a path in the code, by a re-export; not in comments, strings and tests."""
    for name, text in {
        "lib.rs": "mod a; mod b; mod inner; pub use inner::{Deep, deeper::Deepest as Last};",
        "a.rs": "use crate::b::{self, Thing}; fn f() { b::g(); inner() }\n"
        "#[cfg(test)] mod tests { use crate::inner::Deep; }",
        "b.rs": 'pub struct Thing; // crate::a::f\nconst C: &str = "crate::a::f"; fn g(d: crate::Deep) {}',
        "inner/mod.rs": "mod deep; pub mod deeper; pub use deep::Deep; use super::Last;",
        "inner/deep.rs": "pub struct Deep; fn h() { super::super::b::g(crate::Last) }",
        "inner/deeper.rs": "pub struct Deepest; pub use elsewhere::Foreign;",
        "c.rs": "use crate::inner::deeper::Foreign;",
    }.items():
        file = tmp_path / name
        file.parent.mkdir(exist_ok=True)
        file.write_text(text)
    needs = needs_of(tmp_path)
    assert needs["a.rs"] == {"b.rs"}
    assert needs["b.rs"] == {"inner/deep.rs"}
    assert needs["inner/mod.rs"] == {"inner/deeper.rs"}
    assert needs["c.rs"] == set()
    assert needs["inner/deep.rs"] == {"b.rs", "inner/deeper.rs"}
    assert circles(needs) == [["b.rs", "inner/deep.rs"]]


def test_a_circle_is_found() -> None:
    assert circles({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert circles({"a": {"b"}, "b": {"c"}, "c": {"b"}, "d": {"a"}}) == [["b", "c"]]


def test_tables_are_read_by_their_names_and_not_as_patterns() -> None:
    """Polars takes `[` and `*` of a path for a pattern, and a user's folder may be called so."""
    calls = re.compile(r"pl\.(?:scan|read)_(?:parquet|csv|ipc)\(")
    found = [
        f"{path.relative_to(ROOT)}:{number}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if calls.search(line) and "glob=False" not in line
    ]
    assert found == []


def test_what_is_published_is_optimised_throughout() -> None:
    """A profile inherits the settings of single packages: what `release` optimises less, `dist` must name again."""
    profiles = tomllib.loads((ROOT / "Cargo.toml").read_text())["profile"]
    release, dist = profiles["release"]["package"], profiles["dist"]["package"]
    less = {name for name, of in release.items() if of.get("opt-level", 3) < 3}
    assert less
    assert profiles["dist"]["opt-level"] == 3
    assert {name for name in less if dist.get(name, {}).get("opt-level") != 3} == set()
