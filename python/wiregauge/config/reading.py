"""Reads an XML tree from a path that need not be trusted, nor its content.

A test file may come from anywhere, so it is refused before it can cost anything: by its size before it is read, by its
document type before an entity is expanded, by its depth before a parser recurses. The first pass is expat, which stops
at the first error and names it; libxml2 then builds the tree with entities, DTDs and the network switched off. libxml2
alone was tried in other tools and means trusting its limits, which change between versions.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn
from xml.parsers import expat

from lxml import etree

from wiregauge.config.diagnostics import Diagnostic, TestError, shown
from wiregauge.files import open_regular

LARGEST_FILE = 64 * 1024 * 1024
"""Bytes of a test file. As many flows as there are numbers fit, each with its tasks, its path and a limit."""
DEEPEST = 16
"""Nesting of elements; the language needs four."""
MOST_ELEMENTS = 500_000

_READABLE = {
    errno.ENOENT: ("there is no such file", "check the path"),
    errno.EACCES: ("you may not read this file", "change its permissions"),
    errno.EPERM: ("you may not read this file", "change its permissions"),
    errno.EISDIR: ("this is a directory", "name a test file in it"),
    errno.ENOTDIR: ("part of the path is not a directory", "check the path"),
    errno.ELOOP: ("the path contains a loop of symbolic links", "check the path"),
    errno.ENAMETOOLONG: ("the path is too long", "shorten it"),
}


_FAULTS = {
    expat.errors.XML_ERROR_JUNK_AFTER_DOC_ELEMENT: (
        "something follows the end of the test",
        "keep one <test> per file and nothing after it",
    ),
    expat.errors.XML_ERROR_DUPLICATE_ATTRIBUTE: ("an attribute is given twice", "keep one of them"),
    expat.errors.XML_ERROR_UNDEFINED_ENTITY: (
        "an unknown entity is used",
        "write &amp;, &lt;, &gt;, &quot; or the character itself",
    ),
    expat.errors.XML_ERROR_UNBOUND_PREFIX: ("a namespace prefix is not declared", "remove the prefix"),
    expat.errors.XML_ERROR_UNKNOWN_ENCODING: ("the declared encoding is unknown", 'write encoding="UTF-8"'),
}
"""Message and cure by expat's error text, where that suffices."""


def _refuse(
    file: str, message: str, cure: str, *, limit: str = "", line: int = 0, element: str = ""
) -> NoReturn:
    raise TestError([Diagnostic(file, line, element, message, limit, cure)])


def read(path: Path) -> bytes:
    """The bytes of a test file.

    Raises `TestError` for anything but a regular file of at most 64 MiB; nothing of a larger one is read.
    """
    file = str(path)
    try:
        with open_regular(path) as source:
            size = os.fstat(source.fileno()).st_size
            if size > LARGEST_FILE:
                _too_large(file, size)
            data = source.read(LARGEST_FILE + 1)
    except OSError as error:
        message, cure = _READABLE.get(
            error.errno or 0, (f"the file cannot be read ({shown(str(error))})", "check the path")
        )
        if error.errno == errno.EINVAL:
            message, cure = _no_file(error)
        _refuse(file, message, cure)
    if len(data) > LARGEST_FILE:
        _too_large(file, len(data))
    return data


def _no_file(error: OSError) -> tuple[str, str]:
    """Message and cure for an `open_regular` error: an unreadable path, or something that is no regular file."""
    if "path" in (error.strerror or ""):
        return f"the file cannot be read ({shown(str(error))})", "check the path"
    return "this is not a regular file", "name a file on disk"


def _too_large(file: str, size: int) -> NoReturn:
    _refuse(
        file,
        f"the file has {size} B",
        "split the test, or sweep values instead of listing them",
        limit=f"{LARGEST_FILE // (1024 * 1024)} MiB",
    )


def parse(data: bytes, file: str) -> etree._Element:
    """The tree of a test file; raises `TestError` for anything but plain, well-formed UTF-8 XML."""
    _check_text(data, file)
    _Scan(file).run(data)
    parser = etree.XMLParser(
        resolve_entities=False,
        no_network=True,
        load_dtd=False,
        dtd_validation=False,
        attribute_defaults=False,
        huge_tree=False,
        remove_comments=True,
        remove_pis=True,
    )
    try:
        return etree.fromstring(data, parser)
    except etree.XMLSyntaxError as error:
        line = error.lineno or 0
        if "imit exceeded" in (error.msg or ""):
            message = "an attribute or a gap between elements is too long for libxml2"
            _refuse(file, message, "shorten it", limit="10 MB", line=line)
        _refuse(file, f"this is not XML ({shown(error.msg or '')})", "correct the file", line=line)


def _check_text(data: bytes, file: str) -> None:
    if not data.strip():
        _refuse(file, "the file is empty", 'begin it with <test xmlns="urn:wiregauge:test:2" name="…">')
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        _refuse(file, "the file is encoded as UTF-16", "save it as UTF-8")
    try:
        data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        _refuse(file, f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8", line=line)
    if b"\0" in data:
        line = data.count(b"\n", 0, data.index(b"\0")) + 1
        _refuse(file, "the file holds a NUL byte; it is not XML", "name a test file", line=line)


class _Scan:
    """Refuses, in one pass over the bytes, what must never reach a tree builder."""

    def __init__(self, file: str) -> None:
        self._file = file
        self._open: list[tuple[str, int]] = []
        self._elements = 0
        self._parser = expat.ParserCreate()
        self._parser.XmlDeclHandler = self._declaration
        self._parser.StartDoctypeDeclHandler = self._doctype
        self._parser.StartElementHandler = self._start
        self._parser.EndElementHandler = self._end

    def run(self, data: bytes) -> None:
        try:
            self._parser.Parse(data, True)
        except (expat.ExpatError, ValueError, LookupError) as error:
            # ValueError and LookupError: an encoding expat asks Python for and Python does not have.
            code = error.code if isinstance(error, expat.ExpatError) else 0
            line = error.lineno if isinstance(error, expat.ExpatError) else 1
            message, cure = self._explain(code)
            _refuse(self._file, message, cure, line=line)

    def _explain(self, code: int) -> tuple[str, str]:
        text = expat.errors.messages.get(code, "not XML")
        inside = f"<{self._open[-1][0]}> of line {self._open[-1][1]}" if self._open else ""
        known = expat.errors.codes
        if code == known[expat.errors.XML_ERROR_TAG_MISMATCH]:
            return (
                f"a closing tag does not match {inside}",
                "close the elements in the order they were opened",
            )
        if code in (known[expat.errors.XML_ERROR_NO_ELEMENTS], known[expat.errors.XML_ERROR_UNCLOSED_TOKEN]):
            if inside:
                return f"the file ends inside {inside}", "close every element; the file may be cut off"
            return "the file holds no element", 'begin it with <test xmlns="urn:wiregauge:test:2" name="…">'
        explained = _FAULTS.get(text)
        if explained is not None:
            return explained
        if not self._elements:
            return f"this is not XML ({text})", 'begin it with <test xmlns="urn:wiregauge:test:2" name="…">'
        return (
            f"this is not XML ({text})",
            "write <, > and & as &lt;, &gt; and &amp; and quote every attribute",
        )

    def _declaration(self, _version: str, encoding: str | None, _standalone: int) -> None:
        if encoding is not None and encoding.lower() not in ("utf-8", "us-ascii", "ascii"):
            message = f'the declared encoding is "{shown(encoding)}"'
            _refuse(self._file, message, 'save the file as UTF-8 and write encoding="UTF-8"', line=1)

    def _doctype(self, *_: object) -> None:
        cure = "remove <!DOCTYPE …>; the schema is part of the program"
        line = self._parser.CurrentLineNumber
        _refuse(self._file, "a document type with its entities is not allowed", cure, line=line)

    def _start(self, name: str, _attributes: dict[str, str]) -> None:
        line = self._parser.CurrentLineNumber
        self._open.append((name, line))
        self._elements += 1
        if len(self._open) > DEEPEST:
            message = "elements are nested too deeply"
            _refuse(self._file, message, "a test has four levels", limit=str(DEEPEST), line=line)
        if self._elements > MOST_ELEMENTS:
            message = "the file has too many elements"
            _refuse(self._file, message, "split the test", limit=str(MOST_ELEMENTS), line=line)

    def _end(self, _name: str) -> None:
        self._open.pop()
