"""The reference page of the test language: its tables come from the schema, so they cannot drift from it.

`make language` renews the tables in the page; a test compares them.
"""

from __future__ import annotations

from itertools import groupby

from wiregauge.config.schema import Attribute, Declaration, declarations, value_types

BEGIN = "<!-- From here to the end marker: made by tools/language.py from the schema. -->"
END = "<!-- End of what is made from the schema. -->"


def tables() -> str:
    """Every element with its attributes, then every type of value, in Markdown."""
    elements = "\n".join(_element(declaration) for declaration in declarations().values())
    return f"## Elements\n\n{elements}\n## Values\n\n{_types()}"


def renewed(page: str) -> str:
    """The page with its tables as the schema has them now; raises ValueError for a page without markers."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError("the page has lost the markers between which the tables stand")
    return f"{before}{BEGIN}\n\n{tables()}\n{END}{after}"


def _element(declaration: Declaration) -> str:
    parents = [f"`<{name}>`" for name, other in declarations().items() if declaration.name in other.children]
    within = f"In {', '.join(parents)}. " if parents else "The outermost element. "
    holds = ", ".join(f"`<{child}>`{_times(*many)}" for child, many in declaration.children.items())
    lines = [f"### `<{declaration.name}>`\n", f"{declaration.documentation}\n"]
    lines.append(f"{within}{f'Holds {holds}.' if holds else 'Holds no elements.'}\n")
    if declaration.attributes:
        lines += ["| attribute | value | default | meaning |", "| --- | --- | --- | --- |"]
        lines += [_attribute(attribute) for attribute in declaration.attributes.values()]
        lines.append("")
    return "\n".join(lines)


def _times(least: int, most: int | None) -> str:
    if (least, most) == (1, 1):
        return " (once)"
    if (least, most) == (0, 1):
        return " (at most once)"
    return " (once or more)" if least else " (any number)"


def _attribute(attribute: Attribute) -> str:
    default = "required" if attribute.required else f"`{attribute.default}`" if attribute.default else "none"
    kind = f"[{attribute.type}](#{attribute.type})"
    return f"| `{attribute.name}` | {kind} | {default} | {attribute.documentation.replace('|', '/')} |"


def _types() -> str:
    parts = []
    for value in value_types().values():
        parts.append(f"### {value.name}\n\n{value.documentation}\n")
        if value.choices:
            # Choices of one meaning, the statistics of a measure, share a row.
            alike = groupby(value.choices.items(), key=lambda choice: choice[1])
            rows = [
                f"| {' '.join(f'`{name}`' for name, _ in group)} | {meaning} |" for meaning, group in alike
            ]
            parts.append("\n".join(["| choice | meaning |", "| --- | --- |", *rows, ""]))
    return "\n".join(parts)
