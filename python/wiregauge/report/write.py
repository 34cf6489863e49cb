"""Writes report.html: one self-contained file, without any request, with all names from files escaped."""

from __future__ import annotations

import contextlib
import json
import sys
import zlib
from base64 import b64encode
from collections.abc import Collection, Iterable, Iterator, Mapping
from functools import cache
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from wiregauge.figures import Figure, build
from wiregauge.figures.explained import explained_figures
from wiregauge.figures.model import Panel
from wiregauge.figures.ticks import extent
from wiregauge.files import ForeignFileError, check_place, cure_for, printable_lines, write_whole
from wiregauge.measures import DEFINITIONS, Judgement, RunDirectoryError
from wiregauge.measures.definitions.units import duration
from wiregauge.measures.explaining import Explanation, explain
from wiregauge.measures.large import is_large, narrowed
from wiregauge.measures.progress import reached
from wiregauge.records import read_notes, seal, uncollected
from wiregauge.report import checked, corrected, generated, served, tables
from wiregauge.report.alarms import alarm_table
from wiregauge.report.all_flows import all_flows
from wiregauge.report.clusters import cluster_table
from wiregauge.report.credits import credit_table
from wiregauge.report.embedded import embedded, packed
from wiregauge.report.explained import MOST_FLOWS, FlowSection, flow_sections
from wiregauge.report.first import Glance, glance
from wiregauge.report.keys import key_tables
from wiregauge.report.live_network import foreign_table, network_table
from wiregauge.report.passive import passive_table
from wiregauge.report.ptp import ptp_table
from wiregauge.report.tables import Table
from wiregauge.results import headline, judge, shapes, views
from wiregauge.results.explaining.shapes import explained_shapes

if TYPE_CHECKING:
    from jinja2 import Environment

    from wiregauge.report.beside_bounds import Bounded

REPORT = "report.html"
"""File name of a run directory's page."""

MARK = b'<meta name="generator" content="wiregauge">'
"""Marks the head of every page of this program."""
_CHARSET = '<meta charset="utf-8">\n'

_MOST_LISTED = 300
"""The most flows that are listed with their routes."""
LONG_TABLE = 30
"""Rows above which a table is initially folded on the screen (print shows all of it)."""


def write(run_dir: Path, judgement: Judgement | None = None, bounds: Bounded | None = None) -> Path:
    """Judges `run_dir` (unless the judgement is given) and writes its `report.html`; returns the path.

    With `bounds` the report compares them with observations. Raises RunDirectoryError when the directory cannot be
    judged or written.
    """
    judgement = judgement or judge(run_dir)
    path = run_dir / REPORT
    store(path, rendered(judgement, bounds), made_from=judgement.manifest.get("digest"))
    reached("drawing", 1.0)
    return path


def rendered(judgement: Judgement, bounds: Bounded | None = None) -> str:
    """The text of a run's report, with its figures and what explains it. Raises RunDirectoryError as `explain`."""
    with uncollected() if is_large(judgement) else contextlib.nullcontext():
        explanation = explain(judgement, most=MOST_FLOWS)
        return page(judgement, _figures(judgement, explanation), explanation, bounds)


def export_figures(
    run_dir: Path,
    out_dir: Path,
    formats: Collection[str] = frozenset({"png", "svg"}),
    judgement: Judgement | None = None,
    bounds: Bounded | None = None,
) -> list[Path]:
    """Writes every figure of the report into `out_dir` as PNG and SVG; returns the paths.

    Judges `run_dir` unless the judgement is given.

    Raises RunDirectoryError when the directory cannot be judged or written, ValueError for another format.
    """
    from wiregauge.figures import printed

    judgement = judgement or judge(run_dir)
    figures = _figures(judgement, explain(judgement, most=MOST_FLOWS))
    figures += bounds.figures if bounds is not None else []
    paths = []
    try:
        for place, figure in enumerate(figures, 1):
            paths += printed.save(figure, out_dir, formats)
            reached("drawing", _MADE + (1.0 - _MADE) * place / len(figures))
    except OSError as error:
        raise RunDirectoryError(
            f"{out_dir}: figures cannot be written ({error.strerror}); choose a writable directory with room for them"
        ) from None
    return paths


_MADE = 0.6
"""Share of the time that is done when the figures are made; then they are written."""


def _figures(judgement: Judgement, explanation: Explanation) -> list[Figure]:
    reached("drawing", 0.0)
    drawn = shapes(judgement)
    reached("drawing", 0.2)
    seen = views(judgement)
    reached("drawing", 0.5)
    made = [*build(judgement, drawn, seen), *explained_figures(explained_shapes(judgement, explanation))]
    reached("drawing", _MADE)
    # With no known flow a figure has nothing to draw.
    return [figure for figure in made if figure.panels]


def page(
    judgement: Judgement, figures: list[Figure], explanation: Explanation, bounds: Bounded | None = None
) -> str:
    """The text of report.html."""
    picture = _picture(figures)
    whole = judgement
    judgement, chosen = narrowed(whole)
    told = f"Told in full are {chosen}." if chosen else ""
    if bounds is not None:
        figures = [*figures, *bounds.figures]
    return render(
        "report.html.j2",
        figures
        if picture is None
        else [picture, *(f for f in figures if len(f.panels) > 2 or f.title != picture.title)],
        judgement=judgement,
        headline=headline(whole),
        notes=read_notes(judgement.directory),
        in_full=told,
        every_flow=all_flows(whole),
        glance=glance(judgement),
        messages=embedded(whole, explanation, _rendered_part),
        zoom=_packed_zoom(),
        key_tables=key_tables(judgement),
        outcomes=tables.outcome_table(judgement),
        details=tables.detail_table(judgement),
        corrected=corrected.correction_table(judgement),
        cited=corrected.citation_table(judgement),
        critical=served.critical_table(judgement),
        loads=served.load_table(judgement),
        streams=generated.stream_table(judgement),
        accounts=generated.account_table(judgement),
        pairs=served.pair_table(judgement),
        order=served.order_table(judgement),
        deadlines=served.deadline_table(judgement),
        hops=tables.hop_table(judgement),
        clusters=cluster_table(judgement),
        network=network_table(judgement),
        foreign=foreign_table(judgement),
        passive=passive_table(judgement),
        ptp_domains=ptp_table(judgement),
        credits=credit_table(judgement),
        alarms=alarm_table(judgement),
        bounds=bounds.table if bounds is not None else None,
        bound_figures=[figure.id for figure in bounds.figures] if bounds is not None else [],
        bound_alarms=bounds.alarms if bounds is not None else [],
        checks=checked.check_table(whole),
        explained=flow_sections(explanation),
        unexplained=explanation.left_out,
        limits=checked.limit_table(judgement),
        grants=checked.grant_table(judgement),
        facts=_facts(judgement),
        host=_strings(judgement.manifest.get("host")),
        bench_facts=_bench_facts(judgement),
        definitions=list(DEFINITIONS.values()),
    )


def render(template: str, figures: list[Figure], **content: object) -> str:
    """Renders a page: the template with its content, the figures, styles and scripts all inside."""
    from markupsafe import Markup

    from wiregauge.figures import interactive
    from wiregauge.figures.legend import legend

    drawn = [
        {
            "id": figure.id,
            "title": figure.title,
            "caption": " ".join(filter(None, (figure.caption, figure.hint))),
            "notes": figure.notes,
            "measures": [DEFINITIONS[name] for name in figure.measures if name in DEFINITIONS],
            "json": Markup(_embedded(interactive.draw(figure, legend=False))),
            "height": interactive.height(figure, legend=False),
            "width": interactive.least_width(figure),
            "legend": [
                {"text": entry.text, "group": entry.group, "sample": Markup(entry.sample)}
                for entry in legend(figure)
            ],
        }
        for figure in figures
    ]
    shown = [table.pruned() for table in _tables_in(content.values()) if table.size]
    named = {head.measure for table in shown for head in table.heads}
    return (
        _templates()
        .get_template(template)
        .render(
            used=named | {name for figure in figures for name in figure.measures},
            figures=drawn,
            titles=DEFINITIONS,
            long_table=LONG_TABLE,
            css=Markup(_file("report.css")),
            script=Markup(_file("report.js")),
            plotly=_packed_script() if figures else None,
            **content,
        )
    )


def _file(name: str) -> str:
    return resources.files("wiregauge.report").joinpath(name).read_text(encoding="utf-8")


@cache
def _templates() -> Environment:
    """The templates, each compiled on first use, which takes as long as the rest of a small page.

    Compiled templates are cached next to Python's compiled modules, if that folder is writable.
    """
    from jinja2 import Environment, FileSystemBytecodeCache, FunctionLoader, StrictUndefined
    from jinja2.bccache import Bucket

    class Kept(FileSystemBytecodeCache):
        def dump_bytecode(self, bucket: Bucket) -> None:
            with contextlib.suppress(OSError):
                super().dump_bytecode(bucket)

    folder = Path(__file__).with_name("__pycache__")
    made = Environment(
        autoescape=True,
        finalize=_seen,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        loader=FunctionLoader(_file),
        auto_reload=False,
        bytecode_cache=None if sys.dont_write_bytecode else Kept(str(folder)),
    )
    made.filters.update(duration=duration)
    return made


def _seen(value: object) -> object:
    """A value from outside as printable text; the page's own markup is unchanged."""
    return printable_lines(value) if type(value) is str else value


def _rendered_part(template: str, content: Mapping[str, object]) -> str:
    return _templates().get_template(template).render(**content)


@cache
def _packed_zoom() -> Mapping[str, object]:
    """The scripts and the style of messages against time, packed as `_packed_script`."""
    from markupsafe import Markup

    library = _file("vendor/uPlot.iife.min.js")
    notice = " ".join((library[: library.index("*/")] + _file("vendor/LICENSE")).strip("/*! ").split())
    script = "\n".join((library, _file("zoom.js"), _file("embedded.js")))
    style = _file("vendor/uPlot.min.css") + _file("zoom.css")
    return {"notice": notice, "packed": Markup(packed(script.encode())), "css": Markup(style)}


@cache
def _packed_script() -> Mapping[str, object]:
    """The drawing script, deflated as text to less than half its size; its licence notice stays readable."""
    from markupsafe import Markup

    from wiregauge.figures import interactive

    script = interactive.script()
    notice = " ".join(script[: script.index("*/")].replace("*", " ").strip("/ ").split())
    return {"notice": notice, "packed": Markup(b64encode(zlib.compress(script.encode(), 5)).decode("ascii"))}


def store(path: Path, text: str, made_from: object = None) -> None:
    """Writes a page atomically; another page of this program is replaced, anything else is not.

    It contains its own digest and that of the manifest it was `made_from`, which has those of all other files. Raises
    RunDirectoryError for a place that is taken, and when the disk refuses.
    """
    source = f'<meta name="made-from" content="{made_from}">\n' if made_from is not None else ""
    signs = f'{_CHARSET}{MARK.decode()}\n<meta name="digest" content="">\n{source}'
    with _refused(path):
        write_whole(path, seal(text.replace(_CHARSET, signs, 1)), replacing=_replaced_at(path))


def check_page(path: Path) -> None:
    """Raises RunDirectoryError, before any work, where `store` would for this path."""
    with _refused(path):
        check_place(path, replacing=_replaced_at(path))


def _replaced_at(path: Path) -> bytes:
    return b"" if path.name == REPORT else MARK


@contextlib.contextmanager
def _refused(path: Path) -> Iterator[None]:
    try:
        yield
    except ForeignFileError as error:
        raise RunDirectoryError(f"{path}: {error.strerror}") from None
    except OSError as error:
        again = f", then `wiregauge report {path.parent}` writes it" if path.name == REPORT else ""
        raise RunDirectoryError(
            f"{path}: cannot be written ({error.strerror}); {cure_for(error)}{again}"
        ) from None


def _tables_in(value: object) -> Iterator[Table]:
    """Every table in the content of a page, at any depth."""
    if isinstance(value, Table):
        yield value
    elif isinstance(value, Glance):
        yield from _tables_in([value.flows, value.limits])
    elif isinstance(value, FlowSection):
        yield from _tables_in([value.modes, value.worst])
    elif isinstance(value, Iterable) and not isinstance(value, str | Mapping):
        for part in value:
            yield from _tables_in(part)


def _embedded(value: object) -> str:
    """JSON for a script element: without "<", which could begin a tag."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).replace("<", "\\u003c")


_PICTURES = ("latency-by-payload", "latency-percentiles", "latency-density", "network")
"""Candidates for the picture on the first screen: the first that the data allow."""


def _picture(figures: list[Figure]) -> Figure | None:
    """The picture of the first screen; of many panels the two that reach highest, as the figure follows below."""
    made = {figure.id: figure for figure in figures}
    whole = next((made[name] for name in _PICTURES if name in made), None)
    if whole is None:
        return None

    def top(panel: Panel) -> float:
        return (extent([panel], "y", positive=False) or (0.0, 0.0))[1]

    chosen = sorted(whole.panels, key=top, reverse=True)[:2]
    panels = [panel for panel in whole.panels if any(panel is one for one in chosen)]
    left = len(whole.panels) - len(panels)
    notes = [
        f"The {len(panels)} panels with the highest values are shown; {left} more "
        f"{'is' if left == 1 else 'are'} below, among the figures."
    ]
    return replace(
        whole,
        id="picture",
        panels=panels,
        columns=len(panels) if all(len(panel.title) < 28 for panel in panels) else 1,
        notes=[*(notes if left else []), *whole.notes],
        panel_height=min(whole.panel_height, 230),
    )


def _strings(value: object) -> Mapping[str, str]:
    return {str(k): str(v) for k, v in value.items()} if isinstance(value, dict) else {}


def _facts(judgement: Judgement) -> dict[str, str]:
    manifest = judgement.manifest
    test, program = _strings(manifest.get("test")), _strings(manifest.get("program"))
    plan = judgement.plan
    first = plan.runs[0] if plan.runs else None
    sweep = "; ".join(f"{axis} {', '.join(values)}" for axis, values in plan.axes.items())
    facts = {
        "Test": f"{test.get('name', plan.name)} ({test.get('file', '?')}, SHA-256 {test.get('sha256', '?')[:16]}…)",
        **({"Set beside the file": ", ".join(judgement.settings)} if judgement.settings else {}),
        "Bench": str(manifest.get("bench", "?")),
        **({"Switches and links": judgement.traits.between} if judgement.traits.between else {}),
        "Program": f"{program.get('name', '?')} {program.get('version', '?')}",
        "Seed": str(manifest.get("seed", "?")),
        "Started, finished": f"{manifest.get('started') or '?'}, {manifest.get('finished') or 'not finished'}",
        "Sweep": sweep or "none",
        "Repeats": str(plan.repeats),
    }
    if first is not None:
        facts["First run"] = (
            f"warm-up {first.warm_up_ns / 1e9:g} s, measured part {first.duration_ns / 1e9:g} s"
        )
        listed = [
            f"{flow.id}: {' → '.join(flow.path) or flow.source + ' → ' + flow.destination}"
            + (" and back" if flow.relayed else "")
            + (f", every {flow.period_ns / 1e6:g} ms" if flow.period_ns else "")
            for flow in first.flows[:_MOST_LISTED]
        ]
        left = len(first.flows) - len(listed)
        facts["Flows"] = "; ".join([*listed, f"and {left} more, in test.xml"] if left else listed)
    return facts


def _bench_facts(judgement: Judgement) -> list[Mapping[str, str]]:
    raw = judgement.manifest.get("bench_facts")
    return [_strings(fact) for fact in raw if isinstance(fact, dict)] if isinstance(raw, list) else []
