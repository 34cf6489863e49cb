"""Attributes of a test that are set outside its file, as with `--set send.10.period=1ms`.

`ELEMENT.ATTRIBUTE=VALUE` for an element that a test has once, `ELEMENT.KEY.ATTRIBUTE=VALUE` for one of several, where
the key is the value of its `id`, `name`, `flow`, `on`, `between` or `of`. `flow.10.…` is flow 10 and the elements whose
`flow` is 10, except limits. A group is named by its key as the file has it, `send.101-140.period`, and then all its
members are meant; a member by its own, `send.105.period`, which has precedence over its group's. The file is not
changed; the settings are checked like its attributes.
"""

from __future__ import annotations

from collections.abc import Sequence

from lxml import etree

from wiregauge.config import structure
from wiregauge.config.diagnostics import Diagnostic, TestError, shown
from wiregauge.config.groups import STEP, has_groups, names_a_group
from wiregauge.config.schema import declarations

_KEYS = ("id", "name", "flow", "on", "between", "of")
_FORM = "write ELEMENT.ATTRIBUTE=VALUE or ELEMENT.KEY.ATTRIBUTE=VALUE, for example send.10.period=1ms"


def set_attributes(root: etree._Element, settings: Sequence[str]) -> list[str]:
    """Sets them in the tree of a test. Raises TestError for every one that names nothing, or more than one element.

    In a test with groups it returns those that may name members, for `set_members`.
    """
    with_groups = bool(settings) and has_groups(root)
    of_members = [setting for setting in settings if with_groups and _may_name_a_member(setting)]
    _set_all(root, [setting for setting in settings if setting not in of_members], members=False)
    return of_members


def set_members(root: etree._Element, settings: Sequence[str]) -> None:
    """Sets attributes in the tree of a test whose groups have become their members. Raises as `set_attributes`."""
    _set_all(root, settings, members=True)


def _set_all(root: etree._Element, settings: Sequence[str], *, members: bool) -> None:
    found = [wrong for setting in settings if (wrong := _set(root, setting, members=members)) is not None]
    if found:
        raise TestError(found)


def _may_name_a_member(setting: str) -> bool:
    key = setting.partition("=")[0].strip().rpartition(".")[0].partition(".")[2]
    return bool(key) and not names_a_group(key)


def _set(root: etree._Element, setting: str, *, members: bool) -> Diagnostic | None:
    path, equals, value = setting.partition("=")
    scope, dot, attribute = path.strip().rpartition(".")
    element, _, key = scope.partition(".")
    if not (equals and dot and element and attribute):
        return _refused(setting, "it names no attribute", _FORM)
    known = declarations()
    if element not in known:
        return _refused(setting, f"there is no element <{shown(element)}>", _FORM)
    named = [node for node in root.iter() if _is_meant(node, element, key)]
    if not named:
        where = f"the test has no <{element}>" + (f' for "{shown(key)}"' if key else "")
        return _refused(setting, where, "name one that it has")
    if members and attribute == STEP:
        cure = "name the group as the file does, or set the offset of this member"
        return _refused(setting, f"{STEP} is of a whole group", cure)
    able = [node for node in named if attribute in known[structure.local(node)].attributes]
    if not able:
        has = ", ".join(sorted({name for node in named for name in known[structure.local(node)].attributes}))
        return _refused(setting, f'it has no attribute "{shown(attribute)}"', f"it has {has}")
    # Prefer the element that already has the attribute to those that could.
    saying = [node for node in able if attribute in node.attrib]
    if len(able) > 1 and len(saying) == 1:
        able = saying
    if len(able) > 1:
        lines = ", ".join(str(structure.line_of(node)) for node in able)
        return _refused(
            setting, f"it is meant for {len(able)} elements, in lines {lines}", "name one by its key"
        )
    able[0].set(attribute, value.strip())
    return None


def _is_meant(node: etree._Element, element: str, key: str) -> bool:
    tag = structure.local(node)
    if tag not in declarations():
        return False
    if element == "flow" and key:
        return (tag == "flow" and node.get("id") == key) or (tag != "limit" and node.get("flow") == key)
    return tag == element and (not key or key in (node.get(name) for name in _KEYS))


def _refused(setting: str, message: str, cure: str) -> Diagnostic:
    return Diagnostic(f"--set {setting}", 0, "", message, "", cure)
