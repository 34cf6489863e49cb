"""The console of rich, with the rules for all lines of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from wiregauge.files import printable, printable_lines
from wiregauge.terminal.wrapping import breaks, indent_of, width_for

__all__ = ["ShownConsole"]


class ShownConsole(Console):
    """A console that prints texts safely: a text is one line, and only rich's own mark-up in it has an effect.

    Text printed with `soft_wrap` is a sentence: one line in a file, and on a terminal broken between words.
    """

    def print(self, *objects: Any, soft_wrap: bool | None = None, **how: Any) -> None:
        if soft_wrap and len(objects) == 1 and isinstance(objects[0], str | Text):
            objects = (self._sentence(objects[0], markup=how.get("markup"), highlight=how.get("highlight")),)
        super().print(*objects, soft_wrap=soft_wrap, **how)

    def print_whole(self, line: str, **how: Any) -> None:
        """Prints a line that is never broken, so that it can be copied: a command."""
        super().print(Text(printable(line)), soft_wrap=True, **how)

    def _sentence(self, sentence: str | Text, *, markup: bool | None, highlight: bool | None) -> str | Text:
        """The sentence with line ends at the terminal's last column."""
        if width_for(self.file) is None:
            return sentence
        text = (
            self.render_str(sentence, markup=markup is not False, highlight=highlight is not False)
            if isinstance(sentence, str)
            else sentence
        )
        indent = indent_of(text.plain)
        lines = breaks(text.plain, self.width, indent)
        return Text("\n" + " " * indent).join(text[begin:end] for begin, end in lines)

    def render_str(self, text: str, **how: Any) -> Text:
        return super().render_str(printable(text), **how)

    def render(self, renderable: RenderableType, options: ConsoleOptions | None = None) -> Iterator[Segment]:
        for segment in super().render(renderable, options):
            yield segment if segment.control else Segment(printable_lines(segment.text), segment.style)
