"""Writes docs/guide/gallery.md and its pictures: every figure of the registry, and the papers' figures by our tests.

`make gallery` runs it. Everything is simulated with fixed seeds, so the same version writes the same bytes.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from wiregauge import results
from wiregauge.figures import FIGURES, draw, printed
from wiregauge.figures.styles import STYLES
from wiregauge.results.shapes import Side

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "guide" / "gallery.md"
PICTURES = ROOT / "docs" / "images" / "gallery"
STYLE, WIDE, DPI = "ieee-column", "ieee-page", 120
NOT_SHOWN = {
    "clock-exchanges": "needs two hosts whose clocks are compared",
    "host-noise": "needs counters of a real host",
}
"""Figures of the registry that no simulation has."""


class Shot(Struct, frozen=True):
    """A picture: the test and its settings, the figure, and what stands below it."""

    name: str
    text: str
    test: str
    figure: str
    settings: tuple[str, ...] = ()
    seeds: tuple[int, ...] = ()
    """Several runs of the test in one figure, each with its own seed."""


COTS = (
    "send.40.count=150",
    "repeat.times=1",
    "axis.load.values=0% 100%",
    "axis.payload.values=64B 512B 1472B",
)
PAPERS = (
    Shot(
        "maps-figure-3",
        "MAPS 2015, Figure 3: transmit periods",
        "studies/maps/cots.xml",
        "period-density",
        COTS,
    ),
    Shot(
        "maps-figure-4",
        "MAPS 2015, Figure 4: transmit periods as boxes",
        "studies/maps/cots.xml",
        "period-box",
        COTS,
    ),
    Shot(
        "maps-figure-5",
        "MAPS 2015, Figure 5: one-way latency",
        "studies/maps/cots.xml",
        "latency-density",
        COTS,
    ),
    Shot(
        "udp-versus-raw-figure-5",
        "UDP versus raw, Figure 5: round trip by payload",
        "studies/udp-versus-raw/hub-100.xml",
        "latency-by-payload",
    ),
    Shot(
        "precision-figure-2",
        "Precision, Figure 2: a cable, repeated",
        "studies/precision/repetitions.xml",
        "histogram",
    ),
    Shot(
        "precision-figure-5",
        "Precision, Figure 5: through a switch, over time",
        "studies/precision/switch.xml",
        "time",
        ("send.10.count=20000",),
    ),
    Shot(
        "robot-figure-5",
        "Robot, Figure 5: round trips over time",
        "studies/robot/baseline.xml",
        "time",
        ("tasks.duration=20s",),
    ),
    Shot(
        "robot-figure-15",
        "Robot, Figure 15: round trips by rarity",
        "studies/robot/baseline.xml",
        "percentiles",
        ("tasks.duration=20s",),
    ),
)
OF_REGISTRY = (
    Shot("network", "", "examples/afdx.xml", "network"),
    Shot("density", "", "examples/first.xml", "density"),
    Shot("latency-by-payload", "", "examples/demo.xml", "latency-by-payload"),
    Shot("percentiles", "", "examples/first.xml", "percentiles", seeds=(1, 2, 3)),
    Shot("split", "", "examples/round-trips.xml", "split"),
    Shot("time", "", "examples/priorities.xml", "time"),
    Shot("cdf", "", "examples/first.xml", "cdf", seeds=(1, 2, 3)),
    Shot("box", "", "examples/afdx.xml", "box"),
    Shot("histogram", "", "examples/first.xml", "histogram"),
    Shot("hops", "", "examples/priorities.xml", "hops"),
    Shot("outcomes", "", "examples/buffers.xml", "outcomes"),
    Shot("frames", "", "examples/priorities.xml", "frames"),
    Shot("queues", "", "examples/buffers.xml", "queues"),
    Shot("credits", "", "examples/shapers.xml", "credits"),
    Shot("clock-offsets", "", "examples/synchronised.xml", "clock-offsets"),
    Shot("sync-states", "", "examples/synchronised.xml", "sync-states"),
    Shot("ptp-offsets", "", "examples/ptp.xml", "ptp-offsets"),
    Shot("explain", "", "examples/priorities.xml", "explain"),
)
_HEAD = """\
# Gallery

<!-- Written by tools/gallery.py; run `make gallery` after a change of a figure. -->

Every figure as `wiregauge figure` prints it, in the style `{style}`, and those of many
panels in `{wide}`: [how to](../how-to/figures-for-a-paper.md),
[names, styles and columns](../reference/figures.md). All are simulated.

"""


def page() -> str:
    """The text of the page."""
    parts = [_HEAD.format(style=STYLE, wide=WIDE), "## Figures of papers\n\n"]
    parts.append(
        "The [studies](../how-to/studies.md) repeat the experiments; these are their tests in a short form. "
        "Any run directory of a study is drawn likewise.\n\n"
    )
    parts += [_shown(shot, shot.text) for shot in PAPERS]
    parts.append("## Every figure\n\n")
    for name, kind in FIGURES.items():
        shot = next((one for one in OF_REGISTRY if one.figure == name), None)
        if shot is not None:
            parts.append(_shown(shot, f"`{name}`: {kind.shows}"))
        else:
            parts.append(f"`{name}`: {kind.shows}. No picture: it {NOT_SHOWN[name]}.\n\n")
    return "".join(parts).rstrip() + "\n"


def _shown(shot: Shot, text: str) -> str:
    told = f"{text}, from [{Path(shot.test).name}](../../{shot.test})"
    alt = text.replace("`", "")
    return f"![{alt}](../images/gallery/{shot.name}.png)\n\n{told}\n\n"


def take(shot: Shot, folder: Path) -> Path:
    """Simulates the test and writes the picture."""
    sides = []
    for seed in shot.seeds or (None,):
        place = folder / f"{shot.name}-{seed}"
        words = ["run", str(ROOT / shot.test), "--bench", "sim", "--out", str(place), "--quiet"]
        words += [part for setting in shot.settings for part in ("--set", setting)]
        words += ["--seed", str(seed)] if seed is not None else []
        done = subprocess.run(
            [sys.executable, "-m", "wiregauge", *words], capture_output=True, text=True, check=False
        )
        if done.returncode not in (0, 1):
            sys.exit(f"{shot.name}: {done.stderr}")
        sides.append(Side(results.judge(place), f"seed {seed}" if shot.seeds else ""))
    figure, path = draw(shot.figure, sides), PICTURES / f"{shot.name}.png"
    try:
        return printed.write(figure, path, STYLES[STYLE], DPI)
    except printed.TooHighError:
        return printed.write(figure, path, STYLES[WIDE], DPI)


def main() -> None:
    """Writes the page, and the pictures that are named or all."""
    PICTURES.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="wiregauge-") as folder:
        for shot in (*PAPERS, *OF_REGISTRY):
            if not sys.argv[1:] or shot.name in sys.argv[1:]:
                take(shot, Path(folder))
    PAGE.write_text(page(), encoding="utf-8")


if __name__ == "__main__":
    main()
