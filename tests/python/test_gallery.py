"""The gallery has every figure of the registry, and its pictures are there and small."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from wiregauge.figures import FIGURES

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools"))
gallery: Any = importlib.import_module("gallery")
sys.path.pop(0)


def test_every_figure_is_shown_or_said_to_need_more() -> None:
    shown = {shot.figure for shot in gallery.OF_REGISTRY}
    assert shown | set(gallery.NOT_SHOWN) == set(FIGURES)
    assert not shown & set(gallery.NOT_SHOWN)


def test_the_page_is_current_and_its_pictures_are_small() -> None:
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "run `make gallery`"
    shots = [*gallery.PAPERS, *gallery.OF_REGISTRY]
    pictures = {path.stem: path.stat().st_size for path in gallery.PICTURES.glob("*.png")}
    assert set(pictures) == {shot.name for shot in shots}
    assert max(pictures.values()) < 200_000
    assert sum(pictures.values()) < 1_500_000


def test_each_paper_has_a_figure() -> None:
    papers = {path.name for path in (ROOT / "studies").iterdir() if path.is_dir()}
    assert {Path(shot.test).parts[1] for shot in gallery.PAPERS} == papers
    assert all((ROOT / shot.test).is_file() for shot in (*gallery.PAPERS, *gallery.OF_REGISTRY))
