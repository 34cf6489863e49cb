"""Pages of runs: what is listed, who may look, and that a window drawn is exactly what the records hold."""

from __future__ import annotations

import csv
import errno
import gc
import hashlib
import io
import json
import math
import os
import shutil
import socket
import threading
import time
import tracemalloc
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, cast

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient
from typer.testing import CliRunner

import reference
import synthetic
import wiregauge as wg
from going import Going
from wiregauge import serve
from wiregauge.cli.program import app
from wiregauge.records import read_notes
from wiregauge.serve import access, distributions, index
from wiregauge.serve.opened import Opened
from wiregauge.serve.rendering import STATIC, static_file

if TYPE_CHECKING:
    from wiregauge.measures.metrics.recorded import Recorded

PORT = 8137
VENDORED = {
    "uplot.js": "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    "uplot.css": "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
}
HTML = {"accept": "text/html"}


def client_of(*folders: Path, token: str | None = None) -> TestClient:
    """A client of a server of these folders, which has looked into them once."""
    server = serve.Server(list(folders), port=PORT, token=token)
    server.index.look()
    return TestClient(server.app, base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False, headers=HTML)


def key_of(client: TestClient, name: str) -> str:
    """The key of a listed run, taken from the list as a browser sees it."""
    text = client.get("/").text
    return text[: text.index(f'">{name}</a>')].rpartition("/run/")[2]


TEST = """<test xmlns="urn:wiregauge:test:2" name="long and short" seed="5">
<network><end-system name="a"/><end-system name="b"/><end-system name="c"/><switch name="s"/>
<link between="a s" rate="1Gbit/s"/><link between="b s" rate="1Gbit/s"/><link between="s c" rate="1Gbit/s"/></network>
<flows><flow id="1" protocol="udp" from="a" to="c"/><flow id="2" protocol="udp" from="b" to="c"/></flows>
<tasks><send flow="1" period="50us" payload="64B" count="40000"/><receive flow="1"/>
<send flow="2" period="1ms" payload="900B" count="2000"/><receive flow="2"/></tasks>
<faults><loss link="a s" share="0.02%" sent-by="a"/></faults></test>
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two flows, of which one is so long that its extremes are stored, and loses messages."""
    place = tmp_path_factory.mktemp("runs")
    (place / "test.xml").write_text(TEST)
    wg.simulate(place / "test.xml", place / "long").judgement  # noqa: B018 - judging stores the extremes
    assert list((place / "long" / "extremes").iterdir())
    return place


@pytest.fixture(scope="module")
def client(folder: Path) -> Iterator[TestClient]:
    with client_of(folder) as made:
        yield made


def messages(folder: Path, flow: int) -> pl.DataFrame:
    rows = pl.read_parquet(folder / "long" / "messages" / "run-0000.parquet")
    return rows.filter((pl.col("flow") == flow) & ~pl.col("warm_up"))


# -- the list ---------------------------------------------------------------------------------------------------


def test_each_run_is_listed_and_none_is_hidden(tmp_path: Path) -> None:
    small = synthetic.Recipe(payloads=(64,), messages=40)
    synthetic.make(tmp_path / "good", small)
    synthetic.make(
        tmp_path / "below" / "ended",
        synthetic.Recipe(payloads=(64,), messages=40, state="interrupted", reason="by Ctrl-C"),
    )
    damaged = synthetic.make(tmp_path / "damaged", small) / "manifest.json"
    damaged.write_text(damaged.read_text()[:-40])
    newer = synthetic.make(tmp_path / "newer", small) / "manifest.json"
    newer.write_text(json.dumps(json.loads(newer.read_text()) | {"schema": 99}))
    killed = synthetic.make(tmp_path / "killed", small) / "manifest.json"
    killed.write_text(json.dumps(json.loads(killed.read_text()) | {"state": "running"}))
    elsewhere = tmp_path.parent / f"{tmp_path.name}-elsewhere"
    synthetic.make(elsewhere / "secret", synthetic.Recipe(payloads=(64,), messages=40, name="secret"))
    (tmp_path / "led").symlink_to(elsewhere / "secret")
    with client_of(tmp_path) as made:
        text = made.get("/").text
        for name in ("good", "below/ended", "damaged", "newer", "killed", "led"):
            assert f">{name}</a>" in text, name
        assert "6 runs below" in text
        assert "by Ctrl-C" in text
        assert "is not JSON" in text
        assert "schema 99 is unknown" in text
        assert "its testmaster was killed" in text
        assert "no link is followed" in text
        assert "secret" not in text
        for name in ("damaged", "newer", "killed", "led"):
            answer = made.get(f"/run/{key_of(made, name)}/zoom")
            assert "It cannot be shown" in answer.text, name
        assert made.get(f"/run/{key_of(made, 'below/ended')}").status_code == 200


def test_a_search_finds_by_words_and_state(tmp_path: Path) -> None:
    for name in ("alpha", "beta"):
        synthetic.make(tmp_path / name, synthetic.Recipe(payloads=(64,), messages=40, name=f"test of {name}"))
    with client_of(tmp_path) as made:
        assert "1 of 2 runs" in made.get("/?q=of+BETA").text
        assert "No run fits" in made.get("/?q=gamma").text
        assert "No run fits" in made.get("/?state=running").text


def test_the_list_follows_what_happens_in_the_folder(tmp_path: Path) -> None:
    small = synthetic.Recipe(payloads=(64,), messages=40)
    server = serve.Server([tmp_path], port=PORT)
    server.index.look()
    before = server.index.version
    synthetic.make(tmp_path / "one", small)
    server.index.look()
    assert [one.name for one in server.index.listed] == ["one"]
    assert server.index.version > before
    key = server.index.listed[0].key
    shutil.rmtree(tmp_path / "one")
    server.index.look()
    assert server.index.get(key) is None


def test_names_of_files_are_text_everywhere(tmp_path: Path) -> None:
    evil = "<img src=x onerror=alert(1)>\x1b[2J"
    place = synthetic.make(
        tmp_path / "<script>alert(2)<", synthetic.Recipe(payloads=(64,), messages=40, name=evil)
    )
    wg.open(place).judgement  # noqa: B018 - judging stores it
    with client_of(tmp_path) as made:
        key = key_of(made, "&lt;script&gt;alert(2)&lt;")
        pages = ["/", f"/run/{key}", f"/run/{key}/zoom", f"/run/{key}/report"]
        for page in pages:
            text = made.get(page).text
            assert "<img" not in text, page
            assert "<script>alert" not in text, page
            assert "\x1b" not in text, page
        picture = made.get(f"/run/{key}/picture.svg").text
        assert "<img" not in picture


# -- who may look -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({}, 200),
        ({"host": f"localhost:{PORT}"}, 200),
        ({"host": "evil.example"}, 421),
        ({"host": f"evil.example:{PORT}"}, 421),
        ({"host": "127.0.0.1:80"}, 421),
        ({"origin": "http://evil.example"}, 403),
        ({"origin": "null"}, 403),
        ({"origin": f"http://127.0.0.1:{PORT}"}, 200),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors", "sec-fetch-dest": "script"}, 403),
        ({"sec-fetch-site": "same-site", "sec-fetch-mode": "cors", "sec-fetch-dest": "empty"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}, 403),
        ({"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}, 200),
    ],
)
def test_foreign_hosts_and_origins_get_nothing(
    client: TestClient, headers: dict[str, str], status: int
) -> None:
    answer = client.get("/", headers=headers)
    assert answer.status_code == status
    assert ("long" in answer.text) == (status == 200)


def test_whoever_sends_without_an_origin_is_refused(client: TestClient) -> None:
    assert client.post("/").status_code == 403


def test_every_answer_forbids_what_is_not_of_the_server(client: TestClient) -> None:
    key = key_of(client, "long")
    for page in ("/", f"/run/{key}", f"/run/{key}/zoom", "/nowhere", "/static/zoom.js"):
        policy = client.get(page).headers["content-security-policy"]
        assert policy == access.CONTENT_POLICY, page
        assert "unsafe" not in policy


def test_a_report_is_shown_in_a_frame_that_reaches_nothing(client: TestClient) -> None:
    key = key_of(client, "long")
    policy = client.get(f"/run/{key}/report/page", headers={"sec-fetch-dest": "iframe"}).headers
    assert policy["content-security-policy"].startswith(
        "sandbox allow-scripts allow-downloads; default-src 'none';"
    )
    assert "allow-same-origin" not in policy["content-security-policy"]
    alone = client.get(f"/run/{key}/report/page", headers={"sec-fetch-dest": "document"})
    assert alone.status_code == 307
    assert alone.headers["location"].endswith(f"/run/{key}/report")


@pytest.mark.parametrize(
    ("edit", "status", "says"),
    [
        (("", ""), 200, "Longest latencies and their bounds"),
        (('period="2ms"', 'period="2ms" distribution="exponential"'), 409, "no curve bounds them"),
    ],
)
def test_the_bounds_of_a_run_stand_beside_it_or_why_there_are_none(
    tmp_path: Path, edit: tuple[str, str], status: int, says: str
) -> None:
    text = (Path(__file__).parents[2] / "examples" / "first.xml").read_text(encoding="utf-8")
    test, place = tmp_path / "test.xml", tmp_path / "runs" / "first"
    place.parent.mkdir()
    test.write_text(text.replace(*edit), encoding="utf-8")
    reference.simulate(test, place)
    with client_of(place.parent) as made:
        key = key_of(made, "first")
        answer = made.get(f"/run/{key}/bounds/page", headers={"sec-fetch-dest": "iframe"})
        assert (answer.status_code, says in answer.text) == (status, True), answer.text[:500]
        around = made.get(f"/run/{key}/bounds").text
        assert ("<iframe" in around, "cannot be made" in around) == (status == 200, status != 200)


def test_the_trend_of_a_run_is_that_of_all_runs_of_its_test(tmp_path: Path) -> None:
    def said(place: str) -> tuple[int, str]:
        with client_of(tmp_path) as made:
            key = key_of(made, "one")
            answer = made.get(f"/run/{key}/{place}", headers={"sec-fetch-dest": "iframe"})
            return answer.status_code, answer.text

    synthetic.make(tmp_path / "one", synthetic.Recipe(payloads=(64,), messages=400))
    status, text = said("trend/page")
    assert (status, "no other run of this test" in text) == (409, True)
    synthetic.make(tmp_path / "two", synthetic.Recipe(payloads=(64,), messages=400, seed=3))
    status, text = said("trend/page")
    assert status == 200
    assert text.count("</html>") == 1
    assert {name: name in text for name in ("one", "two")} == {"one": True, "two": True}
    assert "cannot be made" not in said("trend")[1]


def test_without_its_token_an_address_answers_nothing(folder: Path) -> None:
    token = serve.new_token()
    with client_of(folder, token=token) as made:
        for page in ("/", "/static/page.js", "/changes", f"/{token[1:]}/", f"/{token}x/", "/é/"):
            answer = made.get(page)
            assert answer.status_code == 403, page
            assert "long" not in answer.text
        opened = made.get(f"/{token}/")
        assert opened.status_code == 200
        assert f'href="/{token}/static/serve.css"' in opened.text
        assert made.get(f"/{token}/static/serve.css").status_code == 200
        key = opened.text.partition(f'href="/{token}/run/')[2].partition('"')[0]
        assert made.get(f"/{token}/run/{key}/zoom").status_code == 200


@pytest.mark.parametrize(
    "path",
    [
        "/run/../etc/passwd",
        "/run/..%2f..%2fetc%2fpasswd",
        "/run/%00",
        "/static/../application.py",
        "/run/nothing-0/zoom",
    ],
)
def test_no_address_leads_out_of_the_folders(client: TestClient, path: str) -> None:
    answer = client.get(path)
    assert answer.status_code == 404
    assert "root:" not in answer.text


def test_looking_writes_nothing(tmp_path: Path) -> None:
    place = synthetic.make(tmp_path / "one", synthetic.Recipe(payloads=(64,), messages=400))

    def content() -> dict[str, tuple[int, int]]:
        return {
            str(path): (path.stat().st_mtime_ns, path.stat().st_size) for path in sorted(tmp_path.rglob("*"))
        }

    before = content()
    with client_of(tmp_path) as made:
        key = key_of(made, "one")
        for page in (
            "",
            "/zoom",
            "/columns",
            "/picture.svg",
            "/report",
            "/report/page",
            "/bounds",
            "/bounds/page",
        ):
            assert made.get(f"/run/{key}{page}").status_code == 200, page
    assert content() == before
    assert not (place / "report.html").exists()


# -- the zoom ---------------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_any_window_holds_exactly_the_values_of_the_records(
    client: TestClient, folder: Path, data: st.DataObject
) -> None:
    flow = data.draw(st.sampled_from([1, 2]))
    rows = messages(folder, flow).select(
        t=pl.coalesce("tx_app", "intended", "tx_drv", "rx_app"), value=pl.col("rx_app") - pl.col("tx_app"),
        lost=pl.col("outcome").cast(pl.String) == "lost",
    ).sort("t")  # fmt: skip
    low, high = rows["t"][0], rows["t"][-1]
    begin = data.draw(st.integers(low - 10**9, high))
    width = data.draw(st.sampled_from([10**5, 10**8, 10**9, 10**10, 10**11, 10**12, 10**13]))
    columns = data.draw(st.sampled_from([1, 7, 300, 1000]))
    span = begin / 1e12, (begin + width) / 1e12
    key = key_of(client, "long")
    answer = client.get(
        f"/run/{key}/columns",
        params={"f": str(flow), "m": "latency", "t": f"{span[0]!r},{span[1]!r}", "columns": str(columns)},
    )
    assert answer.status_code == 200, answer.text
    drawn = answer.json()["flows"][str(flow)]
    inside = rows.filter((pl.col("t") >= round(span[0] * 1e12)) & (pl.col("t") < round(span[1] * 1e12)))
    assert sum(drawn["messages"]) == inside.height
    assert sum(drawn["n"]) == inside["value"].drop_nulls().len()
    assert sum(drawn["lost"]) == int(inside["lost"].sum())
    least = [value for value in drawn["least"] if value is not None]
    assert (min(least) if least else None) == (inside["value"].min() / 1e3 if least else None)  # type: ignore[operator]
    for k, n in enumerate(drawn["n"]):
        own = inside.filter(
            (pl.col("t") >= round(drawn["begin"][k] * 1e12) - 1)
            & (pl.col("t") <= round(drawn["end"][k] * 1e12) + 1)
        )["value"].drop_nulls()
        assert own.len() == n
        if n:
            assert drawn["least"][k] == own.min() / 1e3  # type: ignore[operator]
            assert drawn["greatest"][k] == own.max() / 1e3  # type: ignore[operator]


@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_the_percentiles_of_any_window_are_those_of_the_records(
    client: TestClient, folder: Path, data: st.DataObject
) -> None:
    flow = data.draw(st.sampled_from([1, 2]))
    rows = messages(folder, flow).select(
        t=pl.coalesce("tx_app", "intended", "tx_drv", "rx_app"), value=pl.col("rx_app") - pl.col("tx_app"),
        lost=pl.col("outcome").cast(pl.String) == "lost",
    )  # fmt: skip
    begin = data.draw(st.floats(-0.01, 1.0))
    end = begin + data.draw(st.sampled_from([1e-5, 1e-3, 0.02, 0.3, 5.0]))
    query = {"f": str(flow), "m": "latency", "t": f"{begin!r},{end!r}"}
    told = client.get(f"/run/{key_of(client, 'long')}/distribution", params=query).json()
    inside = rows.filter((pl.col("t") >= round(begin * 1e12)) & (pl.col("t") < round(end * 1e12)))
    values = [value / 1e3 for value in inside["value"].drop_nulls().sort()]
    if not values:
        assert told["flows"] == {}
        assert told["note"] == "No message of these flows has a value in the window."
        return
    found, n = told["flows"][str(flow)], len(values)
    assert (found["n"], found["least"], found["greatest"]) == (n, values[0], values[-1])
    assert found["mean"][0] == pytest.approx(sum(values) / n)
    assert found["lost"] == inside.filter(pl.col("lost")).height
    assert sum(found["counts"]) == n
    for name, (value, low, high) in found["percentiles"].items():
        at = math.ceil(Fraction(name[1:]) / 100 * n)
        assert n >= 299 or name not in ("p99", "p99.9", "p99.99")
        assert value == values[max(at, 1) - 1]
        assert low is None or low <= value
        assert high is None or value <= high
    assert found["value"][-min(n, 20) :] == values[-20:]
    assert found["value"][0] == values[0]
    for above, value in zip(found["above"], found["value"], strict=True):
        assert value == values[round(n + 0.5 - above * n) - 1]


@pytest.mark.parametrize("measure", ["residence", "receive_period", "send_error", "delay_variation"])
def test_other_measures_have_percentiles_of_a_window_too(client: TestClient, measure: str) -> None:
    key = key_of(client, "long")
    query = f"f=2&m={measure}&t=0.2,0.3"
    drawn = client.get(f"/run/{key}/columns?{query}&columns=100").json()["flows"]["2"]
    told = client.get(f"/run/{key}/distribution?{query}").json()["flows"]["2"]
    assert told["n"] == sum(drawn["n"]) > 0
    assert told["least"] == min(value for value in drawn["least"] if value is not None)
    assert told["greatest"] == max(value for value in drawn["greatest"] if value is not None)


def test_a_window_has_the_stays_in_its_switches(client: TestClient, folder: Path) -> None:
    told = client.get(f"/run/{key_of(client, 'long')}/distribution?f=2&m=latency&t=0.2,0.3").json()
    (hop,) = told["hops"]["2"]
    left = pl.col("left")
    own = pl.read_parquet(folder / "long" / "passages" / "run-0000.parquet").filter(
        (pl.col("flow") == 2) & (left >= 200_000_000_000) & (left < 300_000_000_000)
    )
    stays = (own["left"] - own["came"]).to_numpy()
    assert (hop["node"], hop["port"], hop["returning"]) == ("s", own["port"][0], False)
    assert (hop["n"], hop["greatest"]) == (len(stays), stays.max() / 1e3)
    assert hop["mean"] == pytest.approx(stays.mean() / 1e3)


def test_a_window_of_too_many_values_says_so(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(distributions, "MOST_VALUES", 100)
    told = client.get(f"/run/{key_of(client, 'long')}/distribution?f=1&m=latency").json()
    assert told["flows"] == {}
    assert "at most 100: zoom in" in told["note"]


def test_a_picture_says_how_many_messages_it_shows(client: TestClient) -> None:
    key = key_of(client, "long")
    whole = client.get(f"/run/{key}/columns?f=1&m=latency&columns=500").json()
    assert whole["note"].startswith("All ")
    assert "messages are in the picture: of each of" in whole["note"]
    few = client.get(f"/run/{key}/columns?f=1&m=latency&columns=500&t=0.5,0.501").json()
    assert few["note"] == "All 20 messages are in the picture: each is a mark. Drawn: 1 of the run's 2 flows."
    none = client.get(f"/run/{key}/columns?f=1&m=latency&t=500,501").json()
    assert none["note"] == "There are no messages of these flows in the window."


def test_a_click_on_a_mark_tells_its_message(client: TestClient, folder: Path) -> None:
    key = key_of(client, "long")
    slowest = (
        messages(folder, 1)
        .with_columns(took=pl.col("rx_app") - pl.col("tx_app"))
        .sort("took")
        .drop_nulls("took")[-1]
    )
    drawn = client.get(f"/run/{key}/columns?f=1&m=latency&columns=300").json()["flows"]["1"]
    at = max(
        (value, -at)
        for value, at in zip(drawn["greatest"], drawn["greatest_at"], strict=True)
        if value is not None
    )
    answer = client.get(f"/run/{key}/message", params={"of": "1", "by": "latency", "at": repr(-at[1])})
    assert f"Message {slowest['sequence'].item()} of flow 1" in answer.text
    assert "Where its time went" in answer.text


@pytest.mark.parametrize("measure", ["residence", "receive_period", "send_error", "period"])
def test_stories_of_other_measures_are_found_too(client: TestClient, measure: str) -> None:
    key = key_of(client, "long")
    drawn = client.get(f"/run/{key}/columns?f=2&m={measure}&columns=100&t=0.2,0.3").json()["flows"]["2"]
    at = next(at for at in drawn["greatest_at"] if at is not None)
    answer = client.get(f"/run/{key}/message", params={"of": "2", "by": measure, "at": repr(at)})
    assert "of flow 2</h2>" in answer.text, answer.text


def test_the_story_of_a_lost_message_says_where_it_was_last_seen(client: TestClient, folder: Path) -> None:
    key = key_of(client, "long")
    lost = messages(folder, 1).filter(pl.col("outcome").cast(pl.String) == "lost")
    assert lost.height, "the link loses some"
    answer = client.get(
        f"/run/{key}/message", params={"of": "1", "by": "send_error", "at": repr(lost["tx_app"][0] / 1e12)}
    )
    assert f"Message {lost['sequence'][0]} of flow 1" in answer.text
    assert "It did not arrive" in answer.text


@pytest.mark.parametrize(
    ("query", "status"),
    [
        ("t=1", 400), ("t=nan,2", 400), ("t=2,1", 400), ("t=0,1e300", 400), ("columns=0", 400), ("columns=99999", 400),
        ("columns=x", 400), ("f=99", 404), ("m=<b>", 404), ("run=7", 404), ("run=-1", 404),
    ],
)  # fmt: skip
def test_a_view_that_is_none_is_refused_in_a_sentence(client: TestClient, query: str, status: int) -> None:
    answer = client.get(f"/run/{key_of(client, 'long')}/columns?{query}", headers={"accept": "*/*"})
    assert answer.status_code == status
    assert answer.json()["error"]


def test_pictures_are_files_with_the_same_columns(client: TestClient) -> None:
    key = key_of(client, "long")
    query = "f=1,2&m=latency,send_error&t=0.1,0.9"
    for kind, head in (("svg", b"<?xml"), ("png", b"\x89PNG")):
        answer = client.get(f"/run/{key}/picture.{kind}?{query}")
        assert answer.content.startswith(head)
        assert answer.headers["content-disposition"].endswith(f'.{kind}"')
    rows = list(csv.DictReader(io.StringIO(client.get(f"/run/{key}/picture.csv?{query}").text)))
    drawn = client.get(f"/run/{key}/columns?f=1&m=latency&t=0.1,0.9&columns=1000").json()["flows"]["1"]
    own = [row for row in rows if (row["flow"], row["measure"]) == ("1", "latency")]
    assert [float(row["greatest_ns"]) for row in own if row["greatest_ns"]] == [
        v for v in drawn["greatest"] if v is not None
    ]
    assert client.get(f"/run/{key}/picture.exe").status_code == 404


# -- the command ------------------------------------------------------------------------------------------------


def test_a_taken_port_is_one_clear_line(tmp_path: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        done = CliRunner().invoke(app, ["serve", str(tmp_path), "--port", str(port)])
    assert done.exit_code == 3
    assert done.output.count("\n") == 1
    assert f"port {port} is taken" in done.output


def test_a_folder_that_is_none_is_refused(tmp_path: Path) -> None:
    done = CliRunner().invoke(app, ["serve", str(tmp_path / "nowhere")])
    assert done.exit_code == 2
    assert "no such folder" in done.output


def test_other_accounts_of_people_make_a_machine_shared(monkeypatch: pytest.MonkeyPatch) -> None:
    def account(uid: int, shell: str) -> object:
        return type("Account", (), {"pw_uid": uid, "pw_shell": shell})()

    own = os.getuid()
    for accounts, shared in (
        ([account(own, "/bin/bash")], False),
        ([account(own, "/bin/bash"), account(33, "/bin/sh")], False),
        ([account(own, "/bin/bash"), account(own + 1001, "/usr/sbin/nologin")], False),
        ([account(own, "/bin/bash"), account(own + 1001, "/bin/bash")], True),
    ):
        monkeypatch.setattr("pwd.getpwall", lambda accounts=accounts: accounts)
        assert access.is_shared() == shared


def test_a_port_is_on_loopback_only() -> None:
    with serve.bound(0) as at:
        # Without it asyncio leaves Nagle's algorithm on, and the second part of each answer comes 40 ms late.
        assert at.proto == socket.IPPROTO_TCP
        assert at.getsockname()[0] == "127.0.0.1"
        with pytest.raises(serve.PortTakenError), serve.bound(at.getsockname()[1]):
            pass


@pytest.mark.parametrize("name", sorted(VENDORED))
def test_the_vendored_files_are_as_they_were_published(name: str) -> None:
    assert hashlib.sha256(static_file(name)).hexdigest() == VENDORED[name]


def test_every_static_file_is_there() -> None:
    assert all(static_file(name) for name in STATIC)


def test_a_full_disk_is_told_and_the_note_before_stays(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synthetic.make(tmp_path / "one", synthetic.Recipe(payloads=(64,), messages=40))
    server = serve.Server([tmp_path], port=PORT, token="t", control=True)
    server.index.look()
    own = {**HTML, "origin": f"http://127.0.0.1:{PORT}"}

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with TestClient(
        server.app, base_url=f"http://127.0.0.1:{PORT}", follow_redirects=False, headers=own
    ) as made:
        place = f"/t/run/{server.index.listed[0].key}"
        form = {"do": "add", "text": "the first"}
        assert made.post(f"{place}/notes", data=form).status_code == 303
        monkeypatch.setattr("wiregauge.records.notes.write_whole", full)
        answer = made.post(f"{place}/notes", data=form | {"text": "the second"})
        assert (answer.status_code, "No space left" in answer.text) == (409, True)
        monkeypatch.setattr("wiregauge.figures.printed.save", full)
        answer = made.get(f"{place}/picture.svg?m=latency")
        assert (answer.status_code, "make room" in answer.text) == (507, True)
        assert "the first" in made.get(place).text
    assert [note.text for note in read_notes(tmp_path / "one").notes] == ["the first"]


def test_a_page_that_is_open_for_long_costs_no_memory(tmp_path: Path) -> None:
    going = Going(tmp_path / "going")
    going.second()
    with client_of(tmp_path) as made:
        place = f"/run/{key_of(made, 'going')}/live"

        def asked(times: int) -> int:
            for _ in range(times):
                assert made.get(place).json()["live"]["now"]["seconds"] >= 1
                made.get("/changes")
            gc.collect()
            return tracemalloc.get_traced_memory()[0]

        tracemalloc.start()
        try:
            begin = asked(50)
            assert asked(250) - begin < 100_000
        finally:
            tracemalloc.stop()
            going.release()


# -- two runs ---------------------------------------------------------------------------------------------------


def test_two_runs_are_compared_in_a_frame_and_nothing_is_written(tmp_path: Path) -> None:
    for name, seed in (("before", 1), ("after", 2)):
        synthetic.make(tmp_path / name, synthetic.Recipe(payloads=(64,), messages=400, seed=seed))
    before = sorted(str(path) for path in tmp_path.rglob("*"))
    with client_of(tmp_path) as made:
        query = f"base={key_of(made, 'before')}&new={key_of(made, 'after')}&threshold=latency.p50%3D5us"
        answer = made.get(f"/compare/page?{query}", headers={"sec-fetch-dest": "iframe"})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-security-policy"].startswith("sandbox allow-scripts")
        assert "latency.p50" in answer.text
        page = made.get(f"/compare?{query}").text
        assert "<iframe" in page
        assert page.count(" selected") == 2
    assert sorted(str(path) for path in tmp_path.rglob("*")) == before


@pytest.mark.parametrize(
    ("query", "status", "said"),
    [
        ("base=x-0&new=x-0", 404, "no such run"),
        ("base={0}&new={0}&threshold=latency", 400, "threshold"),
        ("base={0}", 200, "Choose two runs"),
    ],
)
def test_what_cannot_be_compared_is_told(tmp_path: Path, query: str, status: int, said: str) -> None:
    synthetic.make(tmp_path / "one", synthetic.Recipe(payloads=(64,), messages=40))
    with client_of(tmp_path) as made:
        answer = made.get(f"/compare?{query.format(key_of(made, 'one'))}")
    assert answer.status_code == status
    assert said in answer.text


def test_a_limit_that_failed_is_shown_however_many_runs_and_limits_held(tmp_path: Path) -> None:
    """The page has the first 20 runs and 50 limits; what made the verdict is above them."""
    held = {"measure": "lost", "result": "pass"}
    runs = [{"index": index, "flows": [], "limits": [held] * 60} for index in range(40)]
    runs[-1]["limits"] = [
        held,
        {"measure": "late", "result": "undecided"},
        {"measure": "loss", "result": "fail"},
    ]
    opened = Opened(cast("Recorded", None), {"runs": runs})
    assert [(index, limit["measure"]) for index, limit in opened.not_kept] == [(39, "loss"), (39, "late")]


def test_the_list_is_looked_at_again_soon_after_a_long_first_pass(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("a", "b"):
        shutil.copytree(folder / "long", tmp_path / name)
    read = index._read

    def slow(key: str, path: Path, name: str) -> index.Listed:
        time.sleep(0.05)
        found = read(key, path, name)
        if name == "b":
            shutil.rmtree(tmp_path / "a")
        return found

    monkeypatch.setattr(index, "_read", slow)
    monkeypatch.setattr(index, "PAUSE_S", 0.01)
    monkeypatch.setattr(index, "SHARE", 10_000)
    runs = index.Index([tmp_path])
    watching = threading.Thread(target=runs.watch, daemon=True)
    watching.start()
    until = time.monotonic() + 60
    while [one.name for one in runs.listed] != ["b"] and time.monotonic() < until:
        time.sleep(0.02)
    runs.close()
    watching.join()
    assert [one.name for one in runs.listed] == ["b"]
