"""`new`: a test file to begin with."""

from __future__ import annotations

import errno
import json
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Final

import typer

from wiregauge.cli.options import meant
from wiregauge.cli.shared import AsJson
from wiregauge.terminal import BAD_INPUT, NO_ENVIRONMENT, fail, put, put_errors, say

_MOST_NAMED: Final = 40
"""Most reasons, or settings, that are named one by one."""


def new(
    template: Annotated[
        str | None,
        typer.Argument(metavar="[TEMPLATE]", help="Template, or an example.", show_default="lists them"),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Argument(metavar="[FILE]", help="File to write.", show_default="TEMPLATE.xml"),
    ] = None,
    simulation: Annotated[
        Path | None,
        typer.Option(
            "--from",
            metavar="INI",
            help=meant(
                "--from", " simulation of INET (omnetpp.ini, NED files beside it), which the test is to be"
            ),
            show_default=False,
        ),
    ] = None,
    configuration: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="NAME",
            help="With --from: the configuration of the simulation.",
            show_default="its general section",
        ),
    ] = None,
    ned_path: Annotated[
        list[Path] | None,
        typer.Option(
            "--ned-path",
            metavar="DIR",
            help="With --from: where more NED files are, such as the src of INET; repeatable.",
            show_default=False,
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """No file is overwritten."""
    if simulation is not None:
        if template is None or file is not None:
            fail("with --from name one file to write: `wiregauge new test.xml --from omnetpp.ini`", BAD_INPUT)
        left = _from_inet(simulation, configuration, ned_path or (), Path(template))
        _tell(Path(template), left, as_json=as_json)
        return
    if configuration is not None or ned_path:
        fail("--config and --ned-path have an effect with --from only; add it, or leave them out", BAD_INPUT)
    from wiregauge.config.template_files import examples, templates
    from wiregauge.files import nearest

    written: Path | None = None
    if template is not None:
        known = {one.name: one for one in templates()}
        more = {one.name: one for one in examples()}
        chosen = known.get(template) or more.get(template)
        if chosen is None:
            near = nearest(template, (*known, *more))
            fail(
                f'there is no template "{template}"{near}; it is one of {", ".join(known)}, or an example: '
                "`wiregauge new` lists them",
                BAD_INPUT,
            )
        written = file if file is not None else Path(f"{template}.xml")
        _write(chosen.text, written)
    _tell(written, (), as_json=as_json)


def _tell(written: Path | None, left: Sequence[str], *, as_json: bool) -> None:
    """Says what was written, or lists templates and examples."""
    from wiregauge.config.template_files import examples, templates

    known, more = templates(), examples()
    if as_json:
        listed = {
            key: [{"name": one.name, "summary": one.summary} for one in some]
            for key, some in (("templates", known), ("examples", more))
        }
        file = None if written is None else str(written)
        print(json.dumps({"schema": 1, **listed, "written": file, "left": list(left)}, indent=1))
    elif written is not None:
        name = shlex.quote(str(written))
        put(
            f"{written}: written; `wiregauge run {name}` runs it, `wiregauge check {name}` tells about a change"
        )
    else:
        for one in known:
            put(f"{one.name:<19}{one.summary}", indent=19)
        put(f"Examples: {', '.join(one.name for one in more)}")
        put(
            "`wiregauge new NAME` writes NAME.xml; `wiregauge docs examples` says what to see in each example"
        )


def _from_inet(
    simulation: Path, configuration: str | None, paths: Sequence[Path], file: Path
) -> Sequence[str]:
    """Writes a simulation of INET as a test; returns and names the settings that the test does not carry."""
    from wiregauge.config import TestError, load_bytes
    from wiregauge.inet import InetError, read_inet

    try:
        read = read_inet(simulation, configuration, paths)
        load_bytes(read.xml, file, ())
    except InetError as error:
        for reason in error.reasons[:_MOST_NAMED]:
            say(reason)
        fail(f"{simulation}: it cannot be carried as a test for what is said above", BAD_INPUT)
    except TestError as error:
        put_errors(error)
        fail(f"{simulation}: as a test it is refused for what is said above", BAD_INPUT)
    except OSError as error:
        fail(f"{error.filename or simulation}: cannot be read ({error.strerror})", BAD_INPUT)
    except UnicodeDecodeError:
        fail(f"{simulation}: it is no text in UTF-8; name the omnetpp.ini of a simulation", BAD_INPUT)
    _write(read.xml.decode(), file)
    for left in read.left[:_MOST_NAMED]:
        say(f"not carried: {left}")
    if len(read.left) > _MOST_NAMED:
        say(f"and {len(read.left) - _MOST_NAMED} more settings")
    return read.left


def _write(text: str, file: Path) -> None:
    from wiregauge.files import ForeignFileError, cure_for, write_whole

    try:
        write_whole(file, text, replacing=None)
    except ForeignFileError:
        fail(f"{file}: there is a file of that name already, and it stays as it is; name another", BAD_INPUT)
    except OSError as error:
        missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
        cure = "name a file in a directory that exists" if missing else cure_for(error)
        code = NO_ENVIRONMENT if error.errno in (errno.ENOSPC, errno.EDQUOT) else BAD_INPUT
        fail(f"{file}: the file cannot be written ({error.strerror}); {cure}", code)
