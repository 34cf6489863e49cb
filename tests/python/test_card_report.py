"""`doctor --report`: what a card can do, as it was found, and nothing that names the host."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import typer
from typer.testing import CliRunner

from command_json import asked, held
from synthetic import Recipe, make
from test_examining import HOST, INTERFACE
from wiregauge.cli import app
from wiregauge.cli.card_report import COLUMNS, cells, measured_in, report_text
from wiregauge.examining import Fact
from wiregauge.examining.card import CardReport, _named, card_report

FOUND = {"kernel": "6.12.1-rt", "cpu": "Some CPU", "boot-id": "d3b07384", "user": "root"}
CLOCKS = [{"name": "eth7", "cross_timestamp_uncertainty_ns": 40}]


def facts(*interfaces: str, **changed: Any) -> list[Fact]:
    of_host = [Fact(name, value=value) for name, value in HOST.items()]
    return of_host + [
        Fact(name, interface, changed.get(name, value))
        for interface in interfaces
        for name, value in INTERFACE.items()
    ]


def report(found: list[Fact]) -> CardReport:
    made = card_report("0.1.0", FOUND, CLOCKS, found, [])
    held("doctor", json.dumps(made))
    return made


def test_what_a_card_can_do_is_reported_as_found() -> None:
    made = report(facts("eth7"))
    (card,) = made["cards"]
    assert card["timestamps"] == {
        "transmit": "hardware",
        "receive": "hardware",
        "filters": ["all"],
        "clock": True,
        "clock_uncertainty_ns": 40,
    }
    assert (card["xdp"], card["receive_queues"], card["ports"]) == ("driver, zero copy", 1, 1)
    assert made["wake_ups"] == {"n": 400, "p50_ns": 3_000, "p99_ns": 9_000, "max_ns": 40_000}
    (row,) = cells(made)
    assert len(row) == len(COLUMNS)
    assert row[1] == "6.12.1-rt (PREEMPT_RT)"
    assert "its clock is read within 40" in row[2]


def test_nothing_in_it_names_the_host() -> None:
    text = report_text(report(facts("eth7", "eth8")))
    addresses = [str(INTERFACE["mac"]), *INTERFACE["ipv4"]]
    assert not [name for name in ("eth7", "eth8", "d3b07384", *addresses) if name in text]


def test_ports_that_are_alike_are_one_row_and_others_are_not() -> None:
    two = report(facts("eth8", "eth9"))
    assert [card["ports"] for card in two["cards"]] == [2]
    assert "2 ports alike" in next(iter(cells(two)))[0]
    other = [
        Fact("xdp-by-driver", "eth9", False)
        if (one.name, one.interface) == ("xdp-by-driver", "eth9")
        else one
        for one in facts("eth8", "eth9")
    ]
    assert [card["xdp"] for card in report(other)["cards"]] == ["driver, zero copy", "generic"]


def test_what_could_not_be_read_is_not_known_rather_than_none() -> None:
    unread = [Fact(one.name, one.interface, unreadable="no right") for one in facts("eth7")]
    made = report(unread)
    assert made["wake_ups"] is None
    assert made["cards"][0]["timestamps"]["transmit"] is None
    (row,) = cells(made)
    assert row[2:5] == ("send not known, receive not known", "not known", "not known")


def test_a_card_has_its_names_of_the_pci_list() -> None:
    names = "# comment\n8086  Intel\n\t1533  I210\n\t\t8086 0001  Board\n10ec  Realtek\n\t1533  Another\n"
    assert _named(names, "8086", "1533") == "Intel I210"
    assert _named(names, "10ec", "1533") == "Realtek Another"
    assert _named(names, "8086", "0001") == ""
    assert _named("", "8086", "1533") == ""


def test_the_command_prints_a_table_and_the_same_as_json() -> None:
    printed = CliRunner().invoke(app, ["doctor", "--report"])
    assert printed.exit_code == 0
    assert "| card, driver, firmware |" in printed.stdout
    held("doctor", printed.stdout.partition("```json\n")[2].partition("```")[0])
    assert asked("doctor", "--report", codes=(0,))["measured"] == []


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (("--measured", "r"), "--measured has an effect with --report only"),
        (("--report", "--fix"), "--report is of this machine"),
        (("--report", "somebody"), "--report is of this machine"),
        (("--report", "--fine"), "--report is of this machine"),
    ],
)
def test_options_that_go_with_others_are_refused(words: tuple[str, ...], why: str) -> None:
    done = CliRunner().invoke(app, ["doctor", *words])
    assert done.exit_code == 2
    assert why in done.stderr


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make(
        tmp_path_factory.mktemp("card") / "r", Recipe(protocols=("udp",), payloads=(64,), messages=300)
    )


def altered(place: Path, recorded: Path, **of: Any) -> Path:
    """A copy of the run directory with other facts in its manifest, and without hashes that would show it."""
    shutil.copytree(recorded, place)
    manifest = json.loads((place / "manifest.json").read_text())
    manifest = {key: value for key, value in manifest.items() if key not in ("digest", "files")}
    (place / "manifest.json").write_text(json.dumps(manifest | of))
    return place


def test_flows_of_a_run_are_measured(recorded: Path, tmp_path: Path) -> None:
    traits = {"virtual_time": False, "one_clock": True, "driver": "veth"}
    place = altered(tmp_path / "r", recorded, host={"kernel": "Linux 6.12.1-rt"}, traits=traits)
    found = measured_in([place], "6.12.1-rt")
    assert [one["measure"] for one in found] == ["latency", "rtt"]
    assert {(one["protocol"], one["payload_bytes"], one["between"]) for one in found} == {("udp", 64, "veth")}
    assert all(one["sent"] > 0 and one["p50_ns"] is not None for one in found)
    held("doctor", json.dumps(card_report("0.1.0", FOUND, CLOCKS, facts("eth7"), found)))


@pytest.mark.parametrize(
    ("of", "why"),
    [
        (
            {"host": {"kernel": "Linux 5.10"}, "traits": {"one_clock": True}},
            "it ran on 5.10, this is 6.12.1-rt",
        ),
        ({"traits": {"virtual_time": True, "one_clock": True}}, "it was simulated"),
    ],
)
def test_a_run_that_says_nothing_about_the_card_is_refused(
    of: dict[str, Any], why: str, recorded: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(typer.Exit) as ended:
        measured_in([altered(tmp_path / "r", recorded, **of)], "6.12.1-rt")
    assert ended.value.exit_code == 2
    assert why in capsys.readouterr().err
