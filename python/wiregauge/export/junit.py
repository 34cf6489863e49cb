"""The verdict as JUnit XML, for the test pages of continuous integration.

A suite per run (and one for the campaign as a whole), a case per limit and per check of validity. A limit that does not
hold is a failure; what is INVALID or incomplete is an error, and so are the limits it leaves undecided. DEGRADED and
notes pass, as in the verdict, and are mentioned in `system-out`; a check without data is skipped. The document conforms
to `junit.xsd` next to this file: the elements and attributes of the schema of Jenkins' xUnit plugin (junit-10) that
are used here, in its order; cases conform to Maven Surefire's schema, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

from lxml import etree
from msgspec import Struct

from wiregauge.export.choice import Choice
from wiregauge.measures import Check, FlowResult, Grade, Judgement, LimitResult, RunResult

_COMPLETENESS = ("campaign-complete", "runs-done")
_NO_XML = re.compile("[^\\t\\n\\r\\u0020-\\ud7ff\\ue000-\\ufffd\\U00010000-\\U0010ffff]")


def schema_path() -> Path:
    """The XML schema of the document, shipped with the package."""
    return Path(__file__).with_name("junit.xsd")


class _Case(Struct, frozen=True):
    """`outcome` is `failure`, `error`, `skipped` or nothing."""

    name: str
    kind: str
    outcome: str
    type: str
    message: str
    text: str


def document(judgement: Judgement, choice: Choice) -> bytes:
    """The document; with a selected flow, limits on other flows are left out."""
    manifest = judgement.manifest
    test = manifest.get("test")
    facts = {
        "test.sha256": test.get("sha256") if isinstance(test, dict) else None,
        "seed": manifest.get("seed"),
        "bench": manifest.get("bench"),
        "validity": judgement.validity.word,
        "verdict": judgement.verdict,
        "verdict.caveat": judgement.caveat or None,
    }
    program = manifest.get("program")
    if isinstance(program, dict):
        facts["program"] = f"{program.get('name')} {program.get('version')}"
    suites = etree.Element("testsuites")
    whole = [_check(check) for check in judgement.checks]
    _suite(suites, judgement.plan.name, 0.0, manifest.get("started"), facts, whole)
    for run in choice.runs(judgement):
        place = ", ".join(f"{axis} {value}" for axis, value in run.plan.point.items())
        repeat = f", repeat {run.plan.repeat}" if judgement.plan.repeats > 1 else ""
        name = f"{judgement.plan.name}: run {run.plan.index}{f', {place}' if place else ''}{repeat}"
        own = {
            **facts,
            "run": run.plan.index,
            "run.seed": run.plan.seed,
            "repeat": run.plan.repeat,
            **{f"point.{axis}": value for axis, value in run.plan.point.items()},
            "validity": run.validity.word,
            "verdict": run.verdict,
            "verdict.caveat": run.caveat or None,
        }
        cases = [*_limits(run, choice), *(_check(check) for check in run.checks)]
        _suite(suites, name, run.plan.duration_ns / 1e9, run.started, own, cases)
    for count in ("tests", "failures", "errors"):
        suites.set(count, str(sum(int(suite.get(count, "0")) for suite in suites)))
    suites.set("name", _clean(judgement.plan.name))
    etree.indent(suites)
    return etree.tostring(suites, encoding="UTF-8", xml_declaration=True) + b"\n"


def _suite(
    suites: etree._Element,
    name: str,
    seconds: float,
    started: object,
    facts: dict[str, object],
    cases: Sequence[_Case],
) -> None:
    suite = etree.SubElement(suites, "testsuite", name=_clean(name), id=str(len(suites)))
    suite.set("tests", str(len(cases)))
    for outcome in ("failure", "error"):
        suite.set(f"{outcome}s", str(sum(case.outcome == outcome for case in cases)))
    suite.set("skipped", str(sum(case.outcome == "skipped" for case in cases)))
    suite.set("time", f"{seconds:.3f}")
    if started:
        suite.set("timestamp", _clean(str(started))[:19])
    properties = etree.SubElement(suite, "properties")
    for key, value in facts.items():
        if value is not None:
            etree.SubElement(properties, "property", name=_clean(key), value=_clean(str(value)))
    seen: dict[str, int] = {}
    for case in cases:
        seen[case.name] = seen.get(case.name, 0) + 1
        again = f" ({seen[case.name]})" if seen[case.name] > 1 else ""
        node = etree.SubElement(suite, "testcase", name=_clean(case.name) + again)
        node.set("classname", _clean(f"{name}.{case.kind}"))
        # Judging takes no time of its own, but Surefire's schema requires one.
        node.set("time", "0.000")
        if case.outcome == "skipped":
            etree.SubElement(node, case.outcome, message=_clean(case.message))
        elif case.outcome:
            told = etree.SubElement(node, case.outcome, message=_clean(case.message), type=case.type)
            told.text = _clean(case.text)
        elif case.text:
            etree.SubElement(node, "system-out").text = _clean(case.text)


def _limits(run: RunResult, choice: Choice) -> Iterable[_Case]:
    for limit in run.limits:
        flow = _flow_of(run, limit)
        if choice.flow is not None and (flow is None or not choice.has_flow(flow.plan)):
            continue
        where = f", {limit.subject}" if limit.flow is not None else ""
        bound = f"{limit.bound.replace('-', ' ')} {limit.written}"
        name = f"{limit.measure} {bound}{where}"
        seen = _observed(limit)
        if run.validity == Grade.INVALID:
            message = f"undecided: the run is INVALID: {'; '.join(run.reasons)}"
            yield _Case(name, "limits", "error", "INVALID", message, f"{limit.measure} {seen}")
        elif limit.holds:
            beside = f"\n{run.caveat}" if run.caveat else ""
            yield _Case(name, "limits", "", "", "", f"{limit.measure} {seen}{beside}")
        elif limit.result == "undecided":
            message = f"undecided: {limit.measure} {seen}"
            yield _Case(
                name, "limits", "error", "UNDECIDED", message, f"{message}\nline {limit.line} of the test"
            )
        else:
            message = f"{limit.measure} {seen}, limit {bound}"
            text = f"{message}\nline {limit.line} of the test"
            yield _Case(name, "limits", "failure", "limit", message, text)


def _flow_of(run: RunResult, limit: LimitResult) -> FlowResult | None:
    return next(
        (flow for flow in run.flows if (flow.plan.id, flow.plan.destination) == (limit.flow, limit.to)), None
    )


def _observed(limit: LimitResult) -> str:
    """The judged figure with its interval and margin."""
    if limit.observed is None or limit.margin is None:
        return f"is not determined: {limit.reason}"
    ends = [f"{edge:.12g}" if edge is not None else "open" for edge in (limit.low, limit.high)]
    interval = f"95 % interval {ends[0]} to {ends[1]} {limit.unit}, " if ends != ["open", "open"] else ""
    n = limit.counted or f"n = {limit.n}"
    text = f"is {limit.observed:.12g} {limit.unit} ({interval}{n}), margin {limit.margin:.12g} {limit.unit}"
    return f"{text}; {limit.reason}" if limit.reason else text


def _check(check: Check) -> _Case:
    said = f"{check.title}: {check.observed} (limit: {check.limit})"
    if check.grade is Grade.NOT_LOOKED_AT:
        return _Case(check.title, "validity", "skipped", "NOT-LOOKED-AT", check.observed, said)
    if check.grade == Grade.INVALID:
        return _Case(check.title, "validity", "error", "INVALID", check.reason or said, said)
    if check.grade != Grade.OK and check.name in _COMPLETENESS:
        # A campaign that did not end as planned must not look like a passed one.
        return _Case(check.title, "validity", "error", "INCOMPLETE", check.reason, said)
    grade = "" if check.grade <= Grade.OK else f"\n{check.grade.name}: {check.reason}"
    return _Case(check.title, "validity", "", "", "", said + grade)


def _clean(text: str) -> str:
    """The text without characters that XML forbids."""
    return _NO_XML.sub("", text)
