"""Calibrations on disk: whole, unaltered, and used only where they belong."""

from __future__ import annotations

import contextlib
import datetime
import json
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wiregauge.calibrate import KINDS, Calibration, CalibrationError, Store, identity, make
from wiregauge.calibrate.cable import Point, cable_results
from wiregauge.calibrate.citing import LONGEST, cite, standing
from wiregauge.calibrate.store import read
from wiregauge.calibrate.summaries import error_of
from wiregauge.config import Test
from wiregauge.files import printable_content
from wiregauge.plan import Campaign

POINT: dict[str, Any] = {
    "protocol": "udp",
    "payload_bytes": 64,
    "load_percent": 0,
    "measure": "latency",
    "sent": 600,
    "lost": 0,
    "grade": "VALID",
    "reasons": [],
    **error_of([np.linspace(7000.0, 8200.0, 301)] * 2, 20.0),
    "systematic_ns": 7600.0,
    "systematic_uncertainty_ns": 150.0,
    "calibration_error_ns": 4700.0,
}


def a_loop(*, link: str = "1 Gbit/s", points: list[dict[str, Any]] | None = None, **more: Any) -> Calibration:
    """A calibration of this very machine; `more` replaces keys of its content or identity."""
    own = identity.here(driver="veth", link=link, realtime=True)
    own |= {key: more.pop(key) for key in list(more) if key in own}
    return make(
        "loop", bench="netns", identity=own, settings={}, results={"points": points or [POINT]}, **more
    )


def of_age(calibration: Calibration, age: datetime.timedelta) -> Calibration:
    made = datetime.datetime.now(datetime.UTC) - age
    return Calibration({**calibration.content, "made": made.isoformat()})


def campaign(rate: str = "1Gbit/s") -> Campaign:
    test = Test("t").end_system("a").end_system("b").link("a", "b", rate=rate)
    test.flow(1, protocol="udp", from_="a", to="b").send(1, period="1ms", payload="64B", count=5).receive(1)
    return test.compile().campaign


def cited(
    *calibrations: Calibration, rate: str = "1Gbit/s", realtime: bool = True, driver: str = "veth"
) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as place:
        store = Store(Path(place))
        for one in calibrations:
            store.save(one)
        return cite(campaign(rate), driver=driver, realtime=realtime, store=store)


json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53), 2**53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(
        st.tuples(st.integers(0, 10_000), st.floats(-1e6, 1e6)),
        min_size=2,
        max_size=9,
        unique_by=lambda p: p[0],
    ),
    st.dictionaries(st.text(), json_values, max_size=5),
)
def test_what_is_saved_is_read_again(points: list[tuple[float, float]], asked: dict[str, Any]) -> None:
    results = cable_results([Point(*point) for point in points])
    with tempfile.TemporaryDirectory() as place:
        made = make("cable", bench="points", identity={"host": "a"}, settings=asked, results=results)
        saved = Store(Path(place)).save(made)
        assert saved.file is not None
        assert read(saved.file).content == printable_content(json.loads(json.dumps(made.content)))
        assert [path.name for path in Path(place).iterdir()] == [saved.file.name], (
            "something was left beside it"
        )


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_another_shape_are_no_calibration(kind: str, tmp_path: Path) -> None:
    saved = Store(tmp_path).save(make(kind, bench="netns", identity={}, settings={}, results={"n": 1}))
    assert saved.file is not None
    with pytest.raises(CalibrationError, match="not as schema 2 says"):
        read(saved.file)


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_no_altered_file_is_believed(data: st.DataObject) -> None:
    with tempfile.TemporaryDirectory() as place:
        saved = Store(Path(place)).save(a_loop())
        assert saved.file is not None
        content = json.loads(saved.file.read_text(encoding="utf-8"))
        key = data.draw(st.sampled_from(sorted(set(content) - {"schema"})))
        value = data.draw(
            json_values.filter(lambda value: value != content[key] or type(value) is not type(content[key]))
        )
        content[key] = value
        saved.file.write_text(json.dumps(content), encoding="utf-8")
        with pytest.raises(CalibrationError):
            read(saved.file)


@settings(max_examples=60, deadline=None)
@given(st.binary(max_size=300) | json_values.map(lambda value: json.dumps(value).encode()))
def test_no_file_is_worse_than_a_sentence(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as place:
        (Path(place) / "x.json").write_bytes(content)
        with contextlib.suppress(CalibrationError):
            read(Path(place) / "x.json")
        found, wrong = Store(Path(place)).all()
        assert (found, len(wrong)) == ([], 1)


def test_names_find_what_they_name(tmp_path: Path) -> None:
    store = Store(tmp_path)
    old = store.save(of_made(a_loop(), "2026-01-01T00:00:00+00:00"))
    new = store.save(of_made(a_loop(), "2026-02-01T00:00:00+00:00"))
    assert store.find("loop").number == new.number
    assert store.find(old.number).number == old.number
    assert store.find(str(new.file)).number == new.number
    with pytest.raises(CalibrationError, match="begin so"):
        store.find("loop-")
    with pytest.raises(CalibrationError, match="no such calibration"):
        store.find("cable")


def of_made(calibration: Calibration, made: str) -> Calibration:
    """The same of another date, with the number that belongs to it."""
    from wiregauge.calibrate import store

    content = {**calibration.content, "made": made}
    return Calibration({**content, "id": store._number(content)})


def test_a_fresh_one_of_this_machine_is_used() -> None:
    (one,) = cited(a_loop())
    assert (one["used"], one["reason"]) == (True, None)
    assert one["corrections"] == [
        {
            "measure": "latency",
            "protocol": "udp",
            "payload_bytes": 64,
            "load_percent": 0,
            "overhead_ns": 7600.0,
            "uncertainty_ns": 150.0,
            "error_ns": 4700.0,
        }
    ]


@pytest.mark.parametrize(
    ("change", "part"),
    [
        ({"host": "another (0123456789ab)"}, "another host: its host is another"),
        ({"kernel": "Linux 2.6"}, "its kernel is Linux 2.6, here it is"),
        ({"processor": "Z80"}, "its processor is Z80"),
        ({"clock source": "sundial"}, "its clock source is sundial"),
        ({"program": "wiregauge 0.0.1"}, "its program is wiregauge 0.0.1"),
        ({"driver": "igb"}, "another driver: its driver is igb, that of this run is veth"),
        ({"link": "100 Mbit/s"}, "another link: its link is 100 Mbit/s, this run has 1 Gbit/s"),
        ({"scheduling": "ordinary"}, "its scheduling is ordinary"),
        ({"state": "interrupted"}, "not whole: it was stopped early"),
        (
            {"grade": "INVALID", "reasons": ["a", "b"]},
            "not valid: the runs behind it are INVALID: a (and 1 more)",
        ),
    ],
)
def test_one_of_another_instrument_is_refused_with_the_reason(change: dict[str, Any], part: str) -> None:
    (one,) = cited(a_loop(**change))
    assert not one["used"]
    assert one["corrections"] == []
    assert part in one["reason"]


def test_a_stale_one_is_refused_on_the_day() -> None:
    assert standing(of_age(a_loop(), LONGEST - datetime.timedelta(hours=1))) == []
    (why,) = standing(of_age(a_loop(), LONGEST + datetime.timedelta(hours=1)))
    assert why.startswith("age: it is stale")
    (why,) = standing(of_age(a_loop(), -datetime.timedelta(days=2)))
    assert "future" in why


def test_another_interface_of_the_same_driver_is_named_as_that() -> None:
    found = cited(a_loop(driver="igb eth0"), driver="igb eth1")
    assert found[0]["reason"] == "another interface: its driver is igb eth0, that of this run is igb eth1"


def test_another_link_or_scheduling_of_the_run_refuses_it() -> None:
    assert "its link is 1 Gbit/s, this run has 100 Mbit/s" in cited(a_loop(), rate="100Mbit/s")[0]["reason"]
    assert "that of this run is ordinary" in cited(a_loop(), realtime=False)[0]["reason"]


def test_a_newer_one_that_cannot_be_used_hides_no_older_one() -> None:
    good = of_made(a_loop(), (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)).isoformat())
    (one,) = cited(good, a_loop(link="10 Gbit/s"))
    assert one["id"] == good.number
    assert one["used"]


def test_older_ones_correct_what_newer_ones_do_not() -> None:
    before = (datetime.datetime.now(datetime.UTC) - datetime.timedelta(days=1)).isoformat()
    both = [{**POINT, "payload_bytes": 256}, {**POINT, "systematic_ns": 9999.0}]
    found = cited(of_made(a_loop(points=both), before), a_loop())
    pairs = [(entry["payload_bytes"], entry["overhead_ns"]) for one in found for entry in one["corrections"]]
    assert pairs == [(64, 7600.0), (256, 7600.0)]


def test_points_of_invalid_runs_correct_nothing() -> None:
    (one,) = cited(a_loop(points=[{**POINT, "grade": "INVALID"}]))
    assert (one["used"], one["corrections"]) == (True, [])


def test_a_folder_that_is_none_holds_nothing(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    assert Store(tmp_path / "file").all() == ([], [])
    assert Store(tmp_path / "missing").all() == ([], [])
    with pytest.raises(CalibrationError, match="cannot be written"):
        Store(tmp_path / "file").save(a_loop())
