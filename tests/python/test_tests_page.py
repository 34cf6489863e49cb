"""Test files in pages: found, checked while typed, stored without losing anybody's work, started on a bench."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import synthetic
from test_serve import HTML, PORT, TEST
from wiregauge import serve

ORIGIN = {"origin": f"http://127.0.0.1:{PORT}"}
SHORT = TEST.replace('count="40000"', 'count="40"').replace('count="2000"', 'count="20"')


def client_of(place: Path, *, control: bool = True) -> TestClient:
    """A client of a server that may be controlled."""
    server = serve.Server([place], port=PORT, token="t" * 32, control=control)
    base = f"http://127.0.0.1:{PORT}/{'t' * 32}"
    return TestClient(server.app, base_url=base, follow_redirects=False, headers={**HTML, **ORIGIN})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A test in a folder below, beside files that are none."""
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "t.xml").write_text(SHORT)
    (tmp_path / "other.xml").write_text("<other/>")
    (tmp_path / "led.xml").symlink_to(tmp_path / "below" / "t.xml")
    synthetic.make(tmp_path / "run", synthetic.Recipe(payloads=(64,), messages=40))
    (tmp_path / "run" / "test.xml").write_text(SHORT)
    return tmp_path


@pytest.fixture
def client(folder: Path) -> Iterator[TestClient]:
    with client_of(folder) as made:
        yield made


def address_of(client: TestClient) -> str:
    (found,) = re.findall(r"/test/([\w.-]+)\"", client.get("/tests").text)
    return f"/test/{found}"


def seen_in(text: str) -> str:
    found: list[str] = re.findall(r'name="seen" value="(\w{64})"', text)
    return found[0]


def test_tests_are_listed_and_nothing_else(client: TestClient) -> None:
    text = client.get("/tests").text
    assert ">below/t.xml</a>" in text
    assert text.count("/test/") == 1
    assert client.get("/test/made-up").status_code == 404


def test_a_test_is_shown_with_its_network(client: TestClient) -> None:
    text = client.get(address_of(client)).text
    assert "It can be run: 1 run" in text
    assert 'data-node="c"' in text
    assert "&lt;network&gt;" in text


def test_what_is_typed_is_checked_and_written_nowhere(client: TestClient, folder: Path) -> None:
    check = f"{address_of(client)}/check"
    wrong = SHORT.replace('between="b s"', 'between="b <x>"').replace('name="long', 'nam="long')
    assert "line 1" in client.post(check, data={"text": wrong.replace("<x>", "x")}).text
    for text, said in (
        (SHORT.replace('to="c"', 'to="nowhere"'), "nowhere"),
        ("<script>alert(1)</script>", "&lt;script&gt;"),
        ("", "empty"),
        ("\0", "fault"),
        ("<!DOCTYPE t [<!ENTITY e SYSTEM 'file:///etc/passwd'>]><t>&e;</t>", "fault"),
    ):
        answer = client.post(check, data={"text": text})
        assert answer.status_code == 200, text
        assert said in answer.text.lower(), text
        assert "<script" not in answer.text
        assert "root:" not in answer.text
    assert (folder / "below" / "t.xml").read_text() == SHORT
    assert client.post(check, data={"text": "x" * (5 << 20)}).status_code == 413


def test_a_test_is_stored_unless_somebody_else_changed_it(client: TestClient, folder: Path) -> None:
    address, file = address_of(client), folder / "below" / "t.xml"
    file.write_bytes(SHORT.replace("\n", "\r\n\t").encode())
    seen = seen_in(client.get(address).text)
    new = SHORT.replace("long and short", "stored")
    stored = client.post(address, data={"text": new.replace("\n", "\r\n"), "seen": seen, "name": "t.xml"})
    assert stored.status_code == 303
    assert file.read_bytes() == new.replace("\n", "\r\n").encode(), "its line ends are kept"
    again = client.post(address, data={"text": SHORT, "seen": seen, "name": "t.xml"})
    assert (again.status_code, "changed by somebody else" in again.text) == (409, True)
    assert b"stored" in file.read_bytes()


def test_characters_of_a_file_stay_as_they_are(client: TestClient, folder: Path) -> None:
    (folder / "below" / "t.xml").write_text(SHORT.replace("<network>", "<!-- \u202e -->\t<network>"))
    text = client.get(address_of(client)).text
    assert "&lt;!-- \u202e --&gt;\t&lt;network&gt;" in text


@pytest.mark.parametrize(
    ("name", "status"),
    [("new.xml", 303), ("../up.xml", 400), (".hidden.xml", 400), ("t.txt", 400), ("taken.xml", 409)],
)
def test_another_name_is_a_new_file_beside_it(
    client: TestClient, folder: Path, name: str, status: int
) -> None:
    (folder / "below" / "taken.xml").write_text("mine")
    before = {path.name for path in folder.rglob("*.xml")}
    address = address_of(client)
    seen = seen_in(client.get(address).text)
    answer = client.post(address, data={"text": SHORT, "seen": seen, "name": name})
    assert answer.status_code == status
    assert {path.name for path in folder.rglob("*.xml")} - before == ({"new.xml"} if status == 303 else set())
    assert (folder / "below" / "taken.xml").read_text() == "mine"


def test_a_stored_test_is_started_and_leads_to_its_run(client: TestClient, folder: Path) -> None:
    address = address_of(client)
    seen = seen_in(client.get(address).text)
    assert client.post(f"{address}/run", data={"bench": "sim; ls", "seen": seen}).status_code == 400
    assert client.post(f"{address}/run", data={"bench": "sim", "seen": "0" * 64}).status_code == 409
    (folder / "below" / "t-run").mkdir()
    started = client.post(f"{address}/run", data={"bench": "sim", "seen": seen})
    place = started.headers["location"].partition("t" * 32)[2]
    until = time.monotonic() + 120
    while (answer := client.get(place)).status_code == 200 and time.monotonic() < until:
        assert "It begins" in answer.text
        time.sleep(0.2)
    assert answer.status_code == 303
    assert "/run/t-run-2-" in answer.headers["location"]
    while not (folder / "below" / "t-run-2" / "report.html").exists() and time.monotonic() < until:
        time.sleep(0.2)
    assert client.get("/started/7").status_code == 404


def test_what_did_not_begin_says_why(client: TestClient, folder: Path) -> None:
    (folder / "below" / "t.xml").write_text(SHORT.replace('to="c"', 'to="<b>"'))
    address = address_of(client)
    seen = seen_in(client.get(address).text)
    started = client.post(f"{address}/run", data={"bench": "sim", "seen": seen})
    place = started.headers["location"].partition("t" * 32)[2]
    until = time.monotonic() + 120
    while "It begins" in (answer := client.get(place)).text and time.monotonic() < until:
        time.sleep(0.2)
    assert "It did not begin" in answer.text
    assert "t.xml:" in answer.text


def test_without_control_tests_are_only_shown_and_checked(folder: Path) -> None:
    with client_of(folder, control=False) as client:
        address = address_of(client)
        text = client.get(address).text
        assert "nothing is stored" in text
        for place in (address, f"{address}/run"):
            assert (
                client.post(place, data={"text": "", "seen": seen_in(text), "bench": "sim"}).status_code
                == 403
            )
        assert client.post(f"{address}/check", data={"text": SHORT}).status_code == 200
    assert (folder / "below" / "t.xml").read_text() == SHORT
    assert not list(folder.glob("**/t-run*"))


def test_the_language_is_offered_with_choices(client: TestClient) -> None:
    found = client.get("/tests/language").json()
    assert "send" in found["tasks"]["holds"]
    assert "udp" in found["flow"]["attributes"]["protocol"]["choices"]
    assert found["flow"]["attributes"]["id"]["required"]
