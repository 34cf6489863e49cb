"""Pages from templates: every value of a file is text, whatever it contains."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any, Final

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from wiregauge.files import printable_lines
from wiregauge.measures.definitions.units import count_of, duration, in_unit, share

__all__ = ["STATIC", "page", "static_file"]

STATIC: Final[Mapping[str, tuple[str, str, str]]] = {
    "report.css": ("wiregauge.report", "report.css", "text/css"),
    "serve.css": ("wiregauge.serve", "static/serve.css", "text/css"),
    "uplot.css": ("wiregauge.report", "vendor/uPlot.min.css", "text/css"),
    "uplot.js": ("wiregauge.report", "vendor/uPlot.iife.min.js", "text/javascript"),
    "page.js": ("wiregauge.serve", "static/page.js", "text/javascript"),
    "edit.js": ("wiregauge.serve", "static/edit.js", "text/javascript"),
    "live.js": ("wiregauge.serve", "static/live.js", "text/javascript"),
    "zoom.css": ("wiregauge.report", "zoom.css", "text/css"),
    "zoom.js": ("wiregauge.report", "zoom.js", "text/javascript"),
    "served.js": ("wiregauge.serve", "static/served.js", "text/javascript"),
}
"""Files that pages load: package, place in it, media type."""


@cache
def static_file(name: str) -> bytes:
    """The content of a file of `STATIC`."""
    package, place, _ = STATIC[name]
    return resources.files(package).joinpath(place).read_bytes()


@cache
def _templates() -> Environment:
    made = Environment(
        autoescape=True,
        finalize=_seen,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        # A report shares the view of messages with the server.
        loader=ChoiceLoader(
            [PackageLoader("wiregauge.serve", "templates"), PackageLoader("wiregauge.report", "")]
        ),
        auto_reload=False,
    )
    made.filters.update(duration=duration, share=share, count_of=count_of, in_unit=in_unit)
    return made


def _seen(value: object) -> object:
    """A value from outside as printable text; markup of templates is unchanged."""
    return printable_lines(value) if type(value) is str else value


def page(request: Request, template: str, status: int = 200, **content: Any) -> Response:
    """A page from its template. `root` begins every address of the server."""
    root = request.scope.get("root_path", "")
    found = _templates().get_template(template).render(root=root, path=request.url.path, **content)
    return HTMLResponse(found, status)
