"""The console of rich, of which the same holds as of every line of every command."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from wiregauge.files import printable, printable_lines

__all__ = ["ShownConsole"]


class ShownConsole(Console):
    """A console that shows what is in texts: a text is one line, and nothing in it is obeyed but rich's own mark-up."""

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)
