"""The MAPS study: the agreement that its quick form promises, and that its machine model is what it was fitted to."""

from __future__ import annotations

import json
import runpy
from pathlib import Path

from lxml import etree
from typer.testing import CliRunner

from wiregauge.cli.program import app

ROOT = Path(__file__).resolve().parents[2]


def test_maps_quick(tmp_path: Path) -> None:
    """The quick form has every cell of Table 3, and as many of them agree as the study promises."""
    out = tmp_path / "maps"
    result = CliRunner().invoke(app, ["study", "maps", "--quick", "--out", str(out), "--json"])
    assert result.exit_code == 0, (result.output, result.exception)
    tree = json.loads(result.stdout)
    assert (tree["state"], tree["verdict"]) == ("complete", "PASS")
    (table,) = (item for item in tree["items"] if item["item"] == "Table 3")
    needs = {need["statistic"]: need for need in table["needs"]}
    assert {name: need["compared"] for name, need in needs.items()} == {"mean": 72, "sd": 72, "lost": 72}
    assert needs["mean"]["holds"] >= 66
    assert needs["sd"]["holds"] >= 52
    assert needs["lost"]["holds"] >= 70
    (regimes,) = (item for item in tree["items"] if item["item"] == "COTS UDP under load")
    means = {
        (cell["series"], cell["x"]): cell["ours"] * (1 if cell["unit"] == "us" else 1e-3)
        for cell in regimes["cells"]
        if cell["statistic"] == "mean"
    }
    for (series, x), after in means.items():
        if series.startswith("after"):
            assert after > 2 * means[series.replace("after a ramp", "lower regime"), x]


def test_the_machine_model_of_maps_is_its_fit() -> None:
    """What `fit.py` gives stands in the host models and tests, rounded to a tenth (slots: to one)."""
    folder = ROOT / "studies" / "maps"
    found = runpy.run_path(str(folder / "fit.py"))
    fitted, (fits, fits_not) = found["fit"](found["published"]()), found["fifo_bracket"]()
    tte, cots, tt, be = (
        etree.parse(folder / name).getroot()
        for name in ("tte-card.host.xml", "cots-card.host.xml", "tte.xml", "be.xml")
    )
    (buffer,) = tte
    written = {
        "card-read-per-byte": tte.get("card-read-per-byte", ""),
        "receive-wake-up of tte-card": tte.get("receive-wake-up", "").removeprefix("0%:0us 100%:"),
        "transmit of tte-card": tte.get("transmit", ""),
        "transmit of tte": str(tt.xpath("string(//*[local-name() = 'host']/@transmit)")),
        "transmit of be": str(be.xpath("string(//*[local-name() = 'host']/@transmit)")),
        "receive-wake-up of cots-card": cots.get("receive-wake-up", "").removeprefix("0%:0us 100%:"),
        "transmit of cots-card": cots.get("transmit", ""),
        "interrupt-latency": cots.get("interrupt-latency", ""),
        "slots": buffer.get("slots", ""),
    }
    assert written.keys() == fitted.keys()
    for name, value in written.items():
        ns = value.endswith("ns")
        expected = round(fitted[name] * 1000 if ns else fitted[name], 0 if name == "slots" else 1)
        assert float(value.removesuffix("ns").removesuffix("us")) == expected, name
    assert fits <= int(buffer.get("fifo", "").removesuffix("B")) < fits_not
    assert cots.get("receive") == f"{found['COTS_RECEIVE']}us"
