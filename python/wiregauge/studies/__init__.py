"""Whole experiments of published papers: their tests are run, their tables and figures compared.

A study of one's own is a folder with a `study.py`; docs/how-to/studies.md shows one.
"""

from __future__ import annotations

from wiregauge.studies.beside import Beside
from wiregauge.studies.carrying import Carried, Going, Pace, carry_out, load_parts
from wiregauge.studies.declaring import Cells, Item, Key, Parameter, Part, Picture, Study
from wiregauge.studies.drawing import against_rarity, as_counts, over_time, with_extremes
from wiregauge.studies.fitting import line
from wiregauge.studies.keeping import StudyDirectory
from wiregauge.studies.known import names, open_study
from wiregauge.studies.laying import ItemResult, Laid, lay
from wiregauge.studies.measured import (
    Measured,
    difference,
    greatest,
    known,
    least,
    left_out,
    ratio,
    scaled,
    total,
)
from wiregauge.studies.page import write_page
from wiregauge.studies.recurring import Leaves, Recurring, leaves, recurring
from wiregauge.studies.results import Course, Results
from wiregauge.studies.sensitivity import Sensitivity, find_sensitivity, measure
from wiregauge.studies.shown import ListedShown, study_json
from wiregauge.studies.size import SIZES, Size, StudyError
from wiregauge.studies.summing import code_of, headline, verdict_of
from wiregauge.studies.text import study_text

__all__ = [
    "SIZES",
    "Beside",
    "Carried",
    "Cells",
    "Course",
    "Going",
    "Item",
    "ItemResult",
    "Key",
    "Laid",
    "Leaves",
    "ListedShown",
    "Measured",
    "Pace",
    "Parameter",
    "Part",
    "Picture",
    "Recurring",
    "Results",
    "Sensitivity",
    "Size",
    "Study",
    "StudyDirectory",
    "StudyError",
    "against_rarity",
    "as_counts",
    "carry_out",
    "code_of",
    "difference",
    "find_sensitivity",
    "greatest",
    "headline",
    "known",
    "lay",
    "least",
    "leaves",
    "left_out",
    "line",
    "load_parts",
    "measure",
    "names",
    "open_study",
    "over_time",
    "ratio",
    "recurring",
    "scaled",
    "study_json",
    "study_text",
    "total",
    "verdict_of",
    "with_extremes",
    "write_page",
]
