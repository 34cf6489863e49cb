"""Certificates of bounds: written of every network, checked by code of no analysis, and refused when changed."""

from __future__ import annotations

import ast
import copy
import hashlib
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

import pytest
from jsonschema_rs import Draft202012Validator
from typer.testing import CliRunner

import bound_networks as networks
import mechanism_networks as mechanisms
import wiregauge.certificate
from chosen import also
from test_published_bounds import ports
from wiregauge import bounds
from wiregauge.bounds.certifying import certificate_of, schema_path
from wiregauge.certificate import Checked, UnreadableError, check_bytes
from wiregauge.cli.program import app
from wiregauge.config import TestError

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
WAYS: Final[tuple[tuple[str, dict[str, Any]], ...]] = (
    ("tfa", {}),
    ("tfa", {"grouping": False}),
    ("tfa", {"multiplexing": "arbitrary"}),
    ("tfa", {"arithmetic": "rounded"}),
    ("sfa", {}),
    ("sfa", {"grouping": False}),
    ("sfa", {"grouping": False, "multiplexing": "arbitrary"}),
    ("best", {}),
)
PROVED, REFUTED, NOT_ALL = 0, 1, 4


def certified(file: Path, method: str = "tfa", **question: Any) -> dict[str, Any]:
    source = bounds.read(file)
    return certificate_of(bounds.bound(source, method, **question), source, file.read_bytes())


def checked(certificate: Any, test: Path | None = None) -> Checked:
    return check_bytes(json.dumps(certificate).encode(), None if test is None else test.read_bytes())


def every_way(file: Path) -> Iterator[tuple[dict[str, Any], Checked]]:
    for method, question in WAYS:
        try:
            certificate = certified(file, method, **question)
        except (TestError, bounds.NoAnswerError):
            continue
        yield certificate, checked(certificate, file)


def without_assumptions(certificate: dict[str, Any]) -> bool:
    """Whether nothing in a certificate rests on a theorem that the checker does not know."""
    of_nodes = (node for one in certificate["analyses"] for node in one["nodes"])
    flows = certificate["premises"]["flows"]
    return (
        not any("theorem" in one for one in (*certificate["conclusions"], *flows))
        and not any(node.get("assumed") for node in of_nodes)
        and not any("regulator" in flow for flow in flows)
    )


@pytest.mark.parametrize("example", sorted(EXAMPLES.glob("*.xml")), ids=lambda path: path.stem)
def test_every_example_is_proved_or_says_what_is_not(example: Path) -> None:
    for certificate, found in every_way(example):
        assert found.refuted is None
        if without_assumptions(certificate) and not certificate["limits"]:
            assert found.code == PROVED, found.unchecked
            assert found.proved == found.claimed > 0
        Draft202012Validator(json.loads(schema_path().read_text())).validate(certificate)


MAKERS: Final[dict[str, Callable[[int], str]]] = {
    "plain": lambda seed: networks.network(seed).to_xml(),
    "late": lambda seed: networks.late_hosts(seed).to_xml(),
    "classed": lambda seed: networks.classed(seed).to_xml(),
    "ticking": networks.ticking,
    "converged": networks.converged,
    "phased": networks.phased,
    "scheduled": networks.scheduled_alone,
    "asynchronous": mechanisms.asynchronous,
    "cyclic": mechanisms.cyclic,
    "replicated": mechanisms.replicated,
}


@pytest.mark.parametrize("kind", MAKERS)
@pytest.mark.parametrize("seed", [*range(3), *map(also, range(3, 40))])
def test_random_networks_are_proved(kind: str, seed: int, tmp_path: Path) -> None:
    file = tmp_path / "t.xml"
    file.write_text(MAKERS[kind](seed), encoding="utf-8")
    count = 0
    for certificate, found in every_way(file):
        assert found.refuted is None, (certificate["method"], found.refuted)
        assert found.code == PROVED or found.unchecked
        if without_assumptions(certificate):
            assert found.proved == found.claimed
        count += 1
    assert count or kind in ("classed", "converged")


def ring(rate: float, place: Path) -> Path:
    """Four servers in a ring, each flow over three of them: delays depend on one another."""
    flows = [(2, rate, [(k + hop) % 4 for hop in range(3)]) for k in range(4)]
    return ports(place, [(10, 1)] * 4, flows)


def bent(place: Path) -> Path:
    """Two servers with two pieces each, and flows with two buckets."""
    file = ports(place, [(10, 1), (8, 2)], [(9, 1, [0, 1]), (9, 1, [0]), (9, 1, [1])])
    network = json.loads(file.read_text())
    for flow in network["flows"]:
        flow["arrival_curve"] = {"bursts": ["1", "9"], "rates": ["6", "1"]}
    for server in network["servers"]:
        server["service_curve"] = {"latencies": ["0", "2"], "rates": ["4", "9"]}
    file.write_text(json.dumps(network))
    return file


FRACTION: Final = re.compile(r"\d+(/\d+)?")


def fractions_in(part: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The places of all fractions in a part of a certificate."""
    entries = part.items() if isinstance(part, dict) else enumerate(part) if isinstance(part, list) else ()
    for key, value in entries:
        yield from fractions_in(value, (*place, key))
    if isinstance(part, str) and FRACTION.fullmatch(part):
        yield place


def changed(
    certificate: dict[str, Any], place: tuple[Any, ...], change: Callable[[Fraction], Fraction]
) -> Any:
    other = copy.deepcopy(certificate)
    part = other
    for key in place[:-1]:
        part = part[key]
    part[place[-1]] = str(change(Fraction(part[place[-1]])))
    return other


def greater(value: Fraction) -> Fraction:
    return value * Fraction(1001, 1000) + Fraction(1, 10**9)


def far_greater(value: Fraction) -> Fraction:
    """More than any other piece of a service, which might guarantee as much."""
    return value * 1000


def far_less(value: Fraction) -> Fraction:
    """Less than any other piece of a service, likewise."""
    return value / 1000


def lesser(value: Fraction) -> Fraction:
    return value * Fraction(999, 1000)


def dangerous(place: tuple[Any, ...]) -> Callable[[Fraction], Fraction] | None:
    """The change of a step that would make a bound too small, or of a premise that asks more of the network."""
    part, last = place[0], place[-1]
    if part == "premises":
        return dangerous_premise(place)
    if last == "rate" and ("service" in place or "left" in place):
        return far_greater
    return far_less if "left" in place else lesser


def dangerous_premise(place: tuple[Any, ...]) -> Callable[[Fraction], Fraction] | None:
    last = place[-1]
    if "shaped" in place:
        # A lesser slope; a greatest slope for which the line has no room.
        return lesser if last == 1 else far_greater
    if "service" in place:
        return greater if last == "latency" else lesser
    return greater if "flows" in place and last in ("burst", "rate", "wait", "variation") else None


def mutations(certificate: dict[str, Any]) -> Iterator[tuple[tuple[Any, ...], Any]]:
    # What is claimed is what is proved: a claim above it may be lowered.
    for one in certificate["conclusions"]:
        if one.get("proof") is not None:
            one["delay"] = certificate["proofs"][one["proof"]]["delay"]
    claimed = {proof["of"][0] for proof in certificate["proofs"] if proof["delay"] is not None}
    for place in fractions_in(
        {key: certificate[key] for key in ("premises", "analyses", "sets", "proofs", "conclusions")}
    ):
        change = None if place[-1] in ("flow", "target") else dangerous(place)
        if place[-1] == "wait" and place[2] not in claimed:
            continue
        if change is not None and (value := at(certificate, place)) != change(value):
            yield place, changed(certificate, place, change)


def at(certificate: Any, place: tuple[Any, ...]) -> Fraction:
    for key in place:
        certificate = certificate[key]
    return Fraction(certificate)


@pytest.mark.parametrize(
    ("name", "method", "question"),
    [
        ("afdx", "tfa", {}),
        ("two-switches", "sfa", {"grouping": False}),
        ("priorities", "tfa", {"multiplexing": "arbitrary"}),
        ("ring", "tfa", {}),
        ("shapers", "tfa", {}),
        ("priorities", "sfa", {}),
        ("cycle", "tfa", {}),
        ("cycle", "sfa", {}),
        ("bent", "tfa", {"grouping": True}),
        ("bent", "sfa", {"multiplexing": "arbitrary"}),
    ],
)
def test_no_number_can_be_changed_to_flatter(
    name: str, method: str, question: dict[str, Any], tmp_path: Path
) -> None:
    made = {"cycle": lambda: ring(1, tmp_path), "bent": lambda: bent(tmp_path)}
    file = made.get(name, lambda: EXAMPLES / f"{name}.xml")()
    certificate = certified(file, method, **question)
    assert checked(certificate).code == PROVED
    count = 0
    for place, other in mutations(certificate):
        assert checked(other).code == REFUTED, place
        count += 1
    assert count > 40


@pytest.mark.parametrize("name", ["priorities", "shapers"])
def test_frames_of_classes_below_count(name: str) -> None:
    certificate = certified(EXAMPLES / f"{name}.xml")
    below = max(step["class"] for flow in certificate["premises"]["flows"] for step in flow["steps"])
    for place, flow in enumerate(certificate["premises"]["flows"]):
        if any(step["class"] == below for step in flow["steps"]):
            other = changed(certificate, ("premises", "flows", place, "longest_frame"), greater)
            assert checked(other).code == REFUTED


def test_a_slope_for_which_the_line_has_no_room_guarantees_nothing() -> None:
    certificate = certified(EXAMPLES / "shapers.xml")
    shaped = {
        (server["server"], one[0])
        for server in certificate["premises"]["servers"]
        for one in server.get("shaped", ())
    }
    # Without the class below, and what it is left: it has no bound.
    for node in certificate["analyses"][0]["nodes"]:
        node.pop("departure", None)
        if (node["server"], node["class"]) not in shaped and any(node["server"] == one[0] for one in shaped):
            node.update(service=None, delay=None, backlog=None)
    assert checked(certificate).code == PROVED
    for place, server in enumerate(certificate["premises"]["servers"]):
        for number in range(len(server.get("shaped", ()))):
            at_most = ("premises", "servers", place, "shaped", number, 2)
            assert checked(changed(certificate, at_most, far_greater)).code == REFUTED


def test_a_limit_is_kept_only_by_a_bound_below_it() -> None:
    certificate = certified(EXAMPLES / "afdx.xml")
    for place in range(len(certificate["limits"])):
        assert checked(changed(certificate, ("limits", place, "at_most"), far_less)).code == REFUTED
    certificate["conclusions"].clear()
    assert checked(certificate).code == REFUTED


def test_the_slowest_way_is_of_all_ways() -> None:
    certificate = certified(EXAMPLES / "ring-frer.xml")
    assert checked(certificate).code == PROVED
    several = [one for one in certificate["conclusions"] if "slowest_of" in one]
    assert several
    for one in several:
        way = one["slowest_of"].pop()
        assert checked(certificate).code == REFUTED
        one["slowest_of"].append(way)
        one["delay"] = str(lesser(Fraction(one["delay"])))
        assert checked(certificate).code == REFUTED
        one["delay"] = str(greater(Fraction(one["delay"])))


def test_what_finds_no_room_is_told() -> None:
    found = checked(certified(EXAMPLES / "buffers.xml"))
    assert found.code == PROVED
    assert any("find room" in one for one in found.assumptions)


def test_no_flow_of_the_test_may_be_left_out() -> None:
    test = EXAMPLES / "two-switches.xml"
    certificate = certified(test)
    left_out = certificate["premises"]["flows"].pop()["flow"]
    for part in ("conclusions", "proofs", "limits"):
        certificate[part] = [one for one in certificate[part] if one["flow"] != left_out]
    certificate["premises"]["places"] = []
    certificate["analyses"][0]["shifts"].pop()
    assert checked(certificate).code == PROVED
    found = checked(certificate, test)
    assert found.code == REFUTED
    assert f"flow {left_out}" in (found.refuted or "")


def test_a_shaper_does_not_go_with_arbitrary_order() -> None:
    certificate = certified(EXAMPLES / "shapers.xml")
    certificate["analyses"][0]["multiplexing"] = "arbitrary"
    with pytest.raises(UnreadableError, match="shaper"):
        checked(certificate)


def test_a_cycle_needs_its_fixed_point(tmp_path: Path) -> None:
    certificate = certified(ring(1, tmp_path))
    assert any(float(Fraction(s)) > 0 for one in certificate["analyses"][0]["shifts"] for s in one)
    # Without bursts and latencies nothing keeps greater shifts from holding together as well.
    for one in (certificate["premises"]["flows"], certificate["premises"]["servers"]):
        for part in one:
            for line in part.get("arrival", part.get("service")):
                line.update({key: "0" for key in line if key != "rate"})
    found = checked(certificate)
    assert found.code == REFUTED
    assert "greater shifts" in (found.refuted or "")


def test_a_step_that_is_dropped_is_missed() -> None:
    certificate = certified(EXAMPLES / "afdx.xml")
    for part in ("nodes", "shifts"):
        other = copy.deepcopy(certificate)
        other["analyses"][0][part].pop()
        with pytest.raises(UnreadableError):
            checked(other)
    other = copy.deepcopy(certificate)
    other["proofs"][0]["analyses"] = []
    assert checked(other).code == REFUTED


def test_what_is_only_assumed_is_never_called_proved() -> None:
    certificate = certified(EXAMPLES / "gates.xml")
    found = checked(certificate)
    assert found.code == NOT_ALL
    assert any("the bucket of the closed intervals" in one for one in found.unchecked)
    # A class with a rule may not pass for one without.
    for server in certificate["premises"]["servers"]:
        server.pop("ruled", None)
    assert checked(certificate).code == REFUTED


def test_the_certificate_of_another_test_is_refused(tmp_path: Path) -> None:
    certificate = certified(EXAMPLES / "afdx.xml")
    found = checked(certificate, EXAMPLES / "first.xml")
    assert found.code == REFUTED
    assert "another file" in (found.refuted or "")
    assert checked(certificate, EXAMPLES / "afdx.xml").premises


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('flow="10" period="2ms"', 'flow="10" period="1ms"', "rate of flow 10"),
        ('payload="400B"', 'payload="500B"', "longest frame of flow 10"),
        ('rate="100Mbit/s"', 'rate="10Mbit/s"', "rate of 'fms:1'"),
        ('period="40ms"', 'period="50ms"', None),
    ],
)
def test_premises_that_ask_less_than_the_test_are_named(
    old: str, new: str, says: str | None, tmp_path: Path
) -> None:
    text = (
        (EXAMPLES / "afdx.xml")
        .read_text()
        .replace('bag="2ms"', 'bag="1ms"' if "period" in old else 'bag="2ms"')
    )
    certificate = certified(write(text, tmp_path))
    other = write(text.replace(old, new), tmp_path)
    assert other.read_text() != text
    certificate["source"]["sha256"] = hashlib.sha256(other.read_bytes()).hexdigest()
    found = checked(certificate, other)
    assert found.code == (PROVED if says is None else REFUTED)
    assert says is None or says in (found.refuted or "")


def write(text: str, place: Path) -> Path:
    file = place / "t.xml"
    file.write_text(text, encoding="utf-8")
    return file


def hostile() -> dict[str, bytes]:
    good = certified(EXAMPLES / "first.xml")
    text = json.dumps(good)
    burst = good["premises"]["flows"][0]["arrival"][0]["burst"]

    def put(value: str) -> bytes:
        return text.replace(f'"burst": "{burst}"', f'"burst": {value}').encode()

    found = {
        "nothing": b"",
        "list": b"[]",
        "deep": b"[" * 200_000,
        "deep-object": b'{"a":' * 100_000,
        "bytes": bytes(range(256)),
        "nan": put("NaN"),
        "infinity": put("Infinity"),
        "float": put("1.5"),
        "exponent": put('"1e999999999"'),
        "power": put('"9**9**9"'),
        "zero-denominator": put('"1/0"'),
        "negative": put('"-1"'),
        "long": put('"' + "9" * 60_000 + '"'),
        "long-number": put("9" * 60_000),
        "null": put("null"),
        "object": put("{}"),
        "no-schema": text.replace('"schema": 1', '"schema": 2').encode(),
    }
    for key in good:
        part = dict(good)
        del part[key]
        found[f"without-{key}"] = json.dumps(part).encode()
        values: tuple[Any, ...] = (None, 1, "x", [], {}, [None], [[]], [{}])
        for value in values:
            part[key] = value
            found[f"{key}-{value}"] = json.dumps(part).encode()
    for key in ("last", "before"):
        found[f"index-{key}"] = re.sub(rf'"{key}": (null|\d+)', f'"{key}": -1', text).encode()
    return found


HARMLESS_WHOLE: Final = ("conclusions-[]", "limits-[]", "sets-[]", "schema-1")
HARMLESS: Final = (
    "name",
    "program",
    "data_unit",
    "time_unit",
    "method",
    "arithmetic",
    "notes",
    "source",
    "assumptions",
)


def test_hostile_files_end_in_one_line() -> None:
    kept = 0
    for name, data in hostile().items():
        try:
            found = check_bytes(data)
        except UnreadableError as error:
            said = str(error)
        else:
            said = found.verdict
            is_harmless = name.replace("without-", "").partition("-")[0] in HARMLESS or name in HARMLESS_WHOLE
            assert found.code == REFUTED or found.proved == 0 or is_harmless, name
            kept += 1
        assert said.isprintable(), name
        assert len(said) < 300, name
    assert kept


def test_the_command_writes_and_checks(tmp_path: Path) -> None:
    place, runner = tmp_path / "c.json", CliRunner()
    done = runner.invoke(app, ["bounds", str(EXAMPLES / "afdx.xml"), "--certificate", str(place)])
    assert done.exit_code == 0, done.output
    done = runner.invoke(app, ["verify", str(place), "--network", str(EXAMPLES / "afdx.xml")])
    assert done.exit_code == 0, done.output
    assert "15 of 15 bounds proved" in done.output
    done = runner.invoke(app, ["verify", str(place), "--json"])
    told = json.loads(done.stdout)
    schema = Path(wiregauge.certificate.__file__).with_name("checked.schema.json")
    Draft202012Validator(json.loads(schema.read_text())).validate(told)
    assert told["proved"] == 15
    place.write_text(place.read_text().replace('"delay": "', '"delay": "1/', 1))
    assert runner.invoke(app, ["verify", str(place)]).exit_code in (1, 2)
    place.write_text("{}")
    assert runner.invoke(app, ["verify", str(place)]).exit_code == 2
    done = runner.invoke(app, ["bounds", str(EXAMPLES / "demo.xml"), "--certificate", str(place)])
    assert done.exit_code == 2
    assert "--run" in done.output


def test_the_checker_stands_alone(tmp_path: Path) -> None:
    folder = Path(wiregauge.certificate.__file__).parent
    shutil.copytree(folder, tmp_path / "certificate", ignore=shutil.ignore_patterns("__pycache__"))
    place = tmp_path / "c.json"
    place.write_text(json.dumps(certified(EXAMPLES / "afdx.xml")))
    command = [sys.executable, "-I", "-S", "-c"]
    code = (
        "import runpy, sys; sys.path.insert(0, '.'); sys.argv = ['certificate', 'c.json']; "
        "runpy.run_module('certificate', run_name='__main__')"
    )
    done = subprocess.run([*command, code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "15 of 15 bounds proved" in done.stdout
    for file in folder.glob("*.py"):
        for one in ast.walk(ast.parse(file.read_text())):
            if isinstance(one, ast.Import):
                assert {name.name.partition(".")[0] for name in one.names} <= sys.stdlib_module_names
            elif isinstance(one, ast.ImportFrom) and not one.level:
                assert (one.module or "").partition(".")[0] in sys.stdlib_module_names
