"""`new`: a test file to begin with."""

from __future__ import annotations

import errno
import json
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from wiregauge.cli.shared import AsJson
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, put

if TYPE_CHECKING:
    from wiregauge.config.template_files import Template


def new(
    template: Annotated[
        str | None,
        typer.Argument(metavar="[TEMPLATE]", help="Template, or an example.", show_default="lists them"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="File to write.", show_default="TEMPLATE.xml"),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """No file is overwritten."""
    from wiregauge.config.template_files import examples, templates
    from wiregauge.files import nearest

    known = {one.name: one for one in templates()}
    more = {one.name: one for one in examples()}
    written: Path | None = None
    if template is not None:
        chosen = known.get(template) or more.get(template)
        if chosen is None:
            near = nearest(template, (*known, *more))
            fail(
                f'there is no template "{template}"{near}; it is one of {", ".join(known)}, or an example: '
                "`wiregauge new` lists them",
                BAD_INPUT,
            )
        written = file if file is not None else Path(f"{template}.xml")
        _write(chosen, written)
    if as_json:
        listed = {
            key: [{"name": one.name, "summary": one.summary} for one in some.values()]
            for key, some in (("templates", known), ("examples", more))
        }
        print(
            json.dumps(
                {"schema": 1, **listed, "written": None if written is None else str(written)}, indent=1
            )
        )
    elif written is not None:
        name = shlex.quote(str(written))
        put(
            f"{written}: written; `wiregauge run {name}` runs it, `wiregauge check {name}` tells about a change"
        )
    else:
        for one in known.values():
            put(f"{one.name:<19}{one.summary}", indent=19)
        put(f"Examples: {', '.join(more)}")
        put(
            "`wiregauge new NAME` writes NAME.xml; `wiregauge docs examples` says what to see in each example"
        )


def _write(chosen: Template, file: Path) -> None:
    from wiregauge.files import ForeignFileError, cure_for, write_whole

    try:
        write_whole(file, chosen.text, replacing=None)
    except ForeignFileError:
        fail(f"{file}: there is a file of that name already, and it stays as it is; name another", BAD_INPUT)
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        cure = "name a file in a directory that exists" if missing else cure_for(error)
        code = NO_ENVIRONMENT if error.errno in (errno.ENOSPC, errno.EDQUOT) else BAD_INPUT
        fail(f"{file}: the file cannot be written ({error.strerror}); {cure}", code)
