"""A test written in Python instead of XML.

Each call adds one element of the test language and takes its attributes, with the same names (`from_` for `from`,
`_` for `-`) and the same quantities as text: `"2ms"`, `"64B"`. Nothing is checked on the way; `compile()` checks
all of it with the very checks of a file, and its messages name the element a call has made. Ranges make groups as in a
file: `.end_system("device[1-40]")`, `.flow("101-140", from_="device[1-40]", …)`.

    test = (
        Test("first", seed=1)
        .end_system("mac")
        .end_system("sensor")
        .link("mac", "sensor", rate="1Gbit/s")
        .flow(10, protocol="udp", from_="mac", to="sensor")
        .send(10, period="2ms", payload="64B", count=1000)
        .receive(10)
        .limit("lost", at_most=0)
    )
    campaign = test.compile().campaign
"""

from __future__ import annotations

import hashlib
from pathlib import Path

from lxml import etree

from wiregauge.config.elements import Elements
from wiregauge.config.loading import Loaded, compile_tree
from wiregauge.files import write_whole


class Test(Elements):
    """A test under construction; every method adds an element and returns the test itself."""

    __test__ = False  # the name is the field's; pytest must not take it for a test case

    def to_xml(self) -> str:
        """The test as a file of the test language."""
        etree.indent(self._root)
        body = etree.tostring(self._root, encoding="unicode")
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{body}\n'

    def write(self, path: Path | str) -> None:
        """Writes the test as a file, UTF-8."""
        write_whole(Path(path), self.to_xml())

    def compile(self) -> Loaded:
        """The campaign; raises `TestError` with every diagnostic, named by the elements the calls made."""
        xml = self.to_xml().encode()
        campaign = compile_tree(self._root, self._file, Path())
        return Loaded(campaign, xml, hashlib.sha256(xml).hexdigest(), campaign.warnings)
