"""Notes and tags beside a run: whole, known to `verify`, searched, in the report, written only with leave."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import synthetic
from test_serve import HTML, PORT, key_of
from wiregauge import report, results, serve
from wiregauge.records import NOTES, DamagedError, Notes, change_notes, read_notes
from wiregauge.records.verifying import State, verify

ORIGIN = {"origin": f"http://127.0.0.1:{PORT}"}
EVIL = '<img src=x onerror="alert(1)">'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return synthetic.make(tmp_path / "one", synthetic.Recipe(payloads=(64,), messages=60))


def controlled(folder: Path) -> tuple[TestClient, str]:
    """A client of a server that may be controlled, whose address begins with its token."""
    token = serve.new_token()
    server = serve.Server([folder], port=PORT, token=token, control=True)
    server.index.look()
    base = f"http://127.0.0.1:{PORT}/{token}"
    return TestClient(server.app, base_url=base, follow_redirects=False, headers=HTML), token


def test_notes_are_kept_as_they_were_written(run: Path) -> None:
    assert read_notes(run) == Notes()
    change_notes(run, lambda notes: notes.tagged("lab, nightly lab"))
    change_notes(run, lambda notes: notes.added("route changed here\nthen back", run=0, flow=10, at_s=0.25))
    found = read_notes(run)
    assert found.tags == ("lab", "nightly")
    (note,) = found.notes
    assert (note.text, note.run, note.flow, note.to, note.at_s) == (
        "route changed here then back",
        0,
        10,
        None,
        0.25,
    )
    assert change_notes(run, lambda notes: notes.without(0, note.written)).notes == ()


@pytest.mark.parametrize("text", ["", "  \n ", "x" * 2001])
def test_a_note_has_some_characters_and_not_too_many(text: str) -> None:
    with pytest.raises(ValueError, match="1 to 2000 characters"):
        Notes().added(text)


def test_a_note_that_another_took_the_place_of_is_not_removed(run: Path) -> None:
    written = change_notes(run, lambda notes: notes.added("one")).notes[0].written
    with pytest.raises(ValueError, match="changed meanwhile"):
        change_notes(run, lambda notes: notes.without(0, written + "x"))
    assert len(read_notes(run).notes) == 1


def test_no_note_is_lost_where_several_write(run: Path) -> None:
    writers = [
        threading.Thread(target=change_notes, args=(run, lambda notes, k=k: notes.added(f"note {k}")))
        for k in range(12)
    ]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join()
    assert sorted(note.text for note in read_notes(run).notes) == sorted(f"note {k}" for k in range(12))


def test_verify_knows_the_notes_and_sees_their_damage(run: Path) -> None:
    change_notes(run, lambda notes: notes.added("seen"))
    assert [one.file for one in verify(run).findings if one.file == NOTES] == []
    path = run / NOTES
    path.write_text(path.read_text().replace("seen", "sEen"))
    (found,) = [one for one in verify(run).findings if one.file == NOTES]
    assert found.state is State.DAMAGED
    with pytest.raises(DamagedError, match=r"notes\.json"):
        read_notes(run)


def test_the_report_shows_notes_as_text(run: Path) -> None:
    judgement = results.judge(run)
    assert 'id="notes"' not in report.rendered(judgement)
    change_notes(run, lambda notes: notes.tagged("nightly").added(EVIL, run=0, flow=10, at_s=0.5))
    text = report.rendered(judgement)
    assert "Tags: nightly" in text
    assert "&lt;img src=x" in text
    assert "<img" not in text


def test_notes_are_written_listed_and_searched(run: Path) -> None:
    client, token = controlled(run.parent)
    with client:
        key = key_of(client, "one")
        place = f"run/{key}/notes"
        said = {"do": "add", "text": EVIL, "run": "0", "flow": "10", "at": "0.5", "view": "?run=0&t=0.4,0.6"}
        answer = client.post(place, data=said, headers=ORIGIN)
        assert answer.status_code == 303
        assert answer.headers["location"] == f"/{token}/run/{key}/zoom?run=0&t=0.4,0.6#notes"
        assert client.post(place, data={"do": "tags", "tags": "nightly"}, headers=ORIGIN).status_code == 303
        assert [note.at_s for note in read_notes(run).notes] == [0.5]
        for words in ("nightly", "onerror"):
            text = client.get("", params={"q": words}).text
            assert ">one</a>" in text, words
            assert "<img" not in text
        for page in (f"run/{key}", f"run/{key}/zoom"):
            assert "<img" not in client.get(page).text, page
        assert "&lt;img" in client.get(f"run/{key}").text


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ({"do": "add", "text": ""}, 400),
        ({"do": "add", "text": "x", "run": "0", "flow": "99"}, 400),
        ({"do": "add", "text": "x", "at": "0.5"}, 400),
        ({"do": "add", "text": "x", "run": "0", "at": "nan"}, 400),
        ({"do": "remove", "place": "0", "written": "never"}, 400),
        ({"do": "burn"}, 400),
        ({"do": "add", "text": "x" * 70_000}, 413),
    ],
)
def test_what_cannot_be_noted_is_refused_in_a_sentence(run: Path, said: dict[str, str], status: int) -> None:
    client, _ = controlled(run.parent)
    with client:
        answer = client.post(
            f"run/{key_of(client, 'one')}/notes", data=said, headers={**ORIGIN, "accept": "*/*"}
        )
    assert answer.status_code == status
    assert answer.json()["error"]
    assert not (run / NOTES).exists()


def test_a_server_that_only_shows_writes_no_note(run: Path) -> None:
    server = serve.Server([run.parent], port=PORT)
    server.index.look()
    with TestClient(server.app, base_url=f"http://127.0.0.1:{PORT}", headers=HTML) as client:
        key = key_of(client, "one")
        answer = client.post(f"/run/{key}/notes", data={"do": "add", "text": "x"}, headers=ORIGIN)
        assert answer.status_code == 403
        assert "--control" in answer.text
        assert 'action="/run' not in client.get(f"/run/{key}").text
    assert not (run / NOTES).exists()


def test_a_page_of_another_origin_writes_no_note(run: Path) -> None:
    client, _ = controlled(run.parent)
    with client:
        place = f"run/{key_of(client, 'one')}/notes"
        for origin in ({}, {"origin": "http://evil.example"}, {"origin": "null"}):
            assert client.post(place, data={"do": "add", "text": "x"}, headers=origin).status_code == 403
    assert not (run / NOTES).exists()


def test_control_without_a_token_is_refused(run: Path) -> None:
    with pytest.raises(ValueError, match="needs a token"):
        serve.Server([run.parent], port=PORT, control=True)


def test_damaged_notes_are_told_where_they_would_stand(run: Path) -> None:
    (run / NOTES).write_text("{}")
    server = serve.Server([run.parent], port=PORT)
    server.index.look()
    with TestClient(server.app, base_url=f"http://127.0.0.1:{PORT}", headers=HTML) as client:
        text = client.get(f"/run/{key_of(client, 'one')}").text
    assert "The notes cannot be shown" in text
