"""Explains libxml2's schema errors in words an engineer can act on.

libxml2 decides whether a file is valid. Its messages speak of facets and stop at the first unexpected child, so
the explanation is made here, from the same schema: every misplaced element and attribute at once, with the
nearest name that is allowed. Wrong values are left to the plan, which knows units; `leftover` names what the plan
did not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from difflib import get_close_matches
from functools import lru_cache

from lxml import etree

from wiregauge.config.diagnostics import MOST_DIAGNOSTICS, Diagnostic, shown
from wiregauge.config.schema import (
    ATTRIBUTE,
    NAMESPACE,
    Declaration,
    Refusal,
    declarations,
    value_types,
)


def local(node: etree._Element) -> str:
    """Name of an element without its namespace."""
    return etree.QName(node).localname


def line_of(node: etree._Element) -> int:
    """Line of the start tag; 0 for a tree that was built in code."""
    line = node.sourceline
    return line if isinstance(line, int) else 0


def described(node: etree._Element) -> str:
    """The element as its author would recognise it: `<send flow="10">`."""
    tag = local(node)
    name = naming_attribute(tag)
    value = node.get(name) if name else None
    return f"<{shown(tag)}>" if value is None else recognised(tag, value)


def naming_attribute(tag: str) -> str | None:
    """The attribute by which a message tells an element from others of its kind; None for an unknown element."""
    declared = declarations().get(tag)
    return None if declared is None else declared.named_by


def recognised(tag: str, value: str) -> str:
    """An element as its author would recognise it by its naming attribute."""
    return f'<{tag} {naming_attribute(tag)}="{shown(value)}">'


def explain(root: etree._Element, file: str) -> list[Diagnostic]:
    """Every element and attribute that is misplaced, missing or unknown."""
    if root.tag != f"{{{NAMESPACE}}}test":
        return [_wrong_root(root, file)]
    return list(_element(root, file))


def _wrong_root(root: etree._Element, file: str) -> Diagnostic:
    name = etree.QName(root)
    if name.localname == "test":
        message = (
            f'the namespace "{shown(name.namespace)}" is not that of this language'
            if name.namespace
            else "the test has no namespace"
        )
    else:
        message = "the outermost element is not <test>"
    cure = f'write <test xmlns="{NAMESPACE}" name="…">'
    return Diagnostic(file, line_of(root), f"<{shown(name.localname)}>", message, "", cure)


def explain_part(node: etree._Element, file: str) -> list[Diagnostic]:
    """Everything that is misplaced in an element of the language that is a document of its own."""
    return list(_element(node, file))


def _element(node: etree._Element, file: str) -> Iterator[Diagnostic]:
    declaration = declarations()[local(node)]
    for name in node.attrib:
        attribute = etree.QName(name)
        if attribute.namespace is None and attribute.localname not in declaration.attributes:
            message = f'there is no attribute "{shown(attribute.localname)}" here'
            yield _wrong(file, node, message, "", _attribute_cure(attribute.localname, declaration.name))
    for attribute_name, declared in declaration.attributes.items():
        if declared.required and node.get(attribute_name) is None:
            explanation = declared.documentation.split(".")[0]
            cure = f'add {attribute_name}="…": {explanation}'
            yield _wrong(file, node, f"{attribute_name} is missing", "", cure)
    if any((text or "").strip() for text in (node.text, *(child.tail for child in node))):
        message, cure = "there is text between the elements", "remove it, or make it a comment <!-- … -->"
        yield _wrong(file, node, message, "", cure)
    yield from _children(node, declaration, file)


def _children(node: etree._Element, declaration: Declaration, file: str) -> Iterator[Diagnostic]:
    seen: dict[str, etree._Element] = {}
    for child in node:
        tag = local(child)
        if etree.QName(child).namespace != NAMESPACE:
            message = "the element is not of this language's namespace"
            cure = f'remove its xmlns or prefix; the file has xmlns="{NAMESPACE}"'
            yield _wrong(file, child, message, "", cure)
        elif tag not in declaration.children:
            yield _wrong(file, child, *_misplaced(tag, local(node)))
        else:
            _, most = declaration.children[tag]
            if most == 1 and tag in seen:
                message = f"<{tag}> stands here a second time"
                yield _wrong(file, child, message, "1", f"merge it with the one on line {line_of(seen[tag])}")
            if tag == "axis" and "repeat" in seen:
                yield _wrong(file, child, "an axis follows <repeat>", "", "write <repeat> last")
            seen.setdefault(tag, child)
            yield from _element(child, file)
    for tag, (least, _) in declaration.children.items():
        if least > 0 and tag not in seen:
            yield _wrong(file, node, f"<{tag}> is missing", f"at least {least}", f"add <{tag}>")
    if declaration.any_of_children and len(node) == 0:
        tags = _listed(declaration.children)
        yield _wrong(file, node, "the element is empty", "at least 1 child", f"add {tags}")


def _wrong(file: str, at: etree._Element, message: str, limit: str, cure: str) -> Diagnostic:
    return Diagnostic(file, line_of(at), described(at), message, limit, cure)


def _listed(tags: Iterable[str]) -> str:
    return " or ".join(f"<{tag}>" for tag in tags)


@lru_cache(maxsize=1024)
def _misplaced(tag: str, parent: str) -> tuple[str, str, str]:
    """Message, limit and cure for an element that may not stand in its parent."""
    declaration = declarations()[parent]
    homes = [name for name, other in declarations().items() if tag in other.children]
    near = get_close_matches(tag, declaration.children, n=1, cutoff=0.7)
    if homes:
        return f"<{tag}> does not belong into <{parent}>", "", f"move it into {_listed(homes)}"
    if near:
        return f"there is no element <{shown(tag)}>", "", f"write <{near[0]}>"
    allowed = (
        f"<{parent}> takes {_listed(declaration.children)}"
        if declaration.children
        else f"<{parent}> is empty"
    )
    return f"there is no element <{shown(tag)}>", "", f"remove it; {allowed}"


@lru_cache(maxsize=1024)
def _attribute_cure(name: str, element: str) -> str:
    declaration = declarations()[element]
    allowed = list(declaration.attributes)
    if not allowed:
        return f"remove it; <{declaration.name}> has no attributes"
    alike = [
        other for other in allowed if other.replace("-", "") == name.replace("_", "").replace("-", "").lower()
    ]
    near = alike or get_close_matches(name, allowed, n=1, cutoff=0.7)
    return f"write {near[0]}" if near else f"remove it; <{declaration.name}> takes {', '.join(allowed)}"


def _names(known: Diagnostic, node: etree._Element, attribute: str) -> bool:
    """Whether a diagnostic of the plan is about this attribute, or with none about this element.

    The plan may identify an element by another attribute than the schema does; then its value decides.
    """
    if known.line != line_of(node) or not known.message.startswith(f"{attribute} " if attribute else ""):
        return False
    if known.element == described(node):
        return True
    same = re.match(rf"<{re.escape(local(node))}[ >]", known.element) is not None
    return same and known.message.startswith(f'{attribute} "{shown(node.get(attribute) or "")}"')


def leftover(refused: Sequence[Refusal], known: Sequence[Diagnostic], file: str) -> list[Diagnostic]:
    """Diagnostics for schema errors that none names yet, the first of very many; with the documented form of the
    value."""
    found: dict[tuple[int, str, str], Diagnostic] = {}
    for entry in refused:
        match = ATTRIBUTE.search(entry.message)
        node = entry.node
        if len(found) >= MOST_DIAGNOSTICS:
            break
        if match is None:
            message, cure, name = (
                f"the schema refuses this ({shown(entry.message)})",
                "see the test language",
                "",
            )
        else:
            name = match["attribute"]
            declared = declarations()[local(node)].attributes.get(name)
            form = value_types()[declared.type] if declared is not None else None
            value = shown(node.get(name) or "")
            message = f'{name} "{value}" is not allowed'
            cure = form.documentation if form is not None else "see the test language"
            if form is not None and form.choices:
                near = get_close_matches(value, form.choices, n=3, cutoff=0.5)
                cure = f"write {' or '.join(near or list(form.choices)[:8])}"
        where = (line_of(node), described(node))
        if not any(_names(one, node, name) for one in known):
            found.setdefault((*where, name), Diagnostic(file, *where, message, "", cure))
    return list(found.values())
