"""Certificates of bounds: the premises, the steps and what they prove, in exact fractions.

`wiregauge.certificate` checks them and shares no code with the analyses. This file only lays together what the native
side writes of each method that gave a bound, and what the answer claims.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from pathlib import Path
from typing import Any, Final

from wiregauge._native import certify_network
from wiregauge._version import __version__
from wiregauge.bounds.analysing import Answer, TargetBound, refuse
from wiregauge.bounds.networks import Source
from wiregauge.files import write_whole
from wiregauge.plan import Network

__all__ = ["CERTIFICATE_SCHEMA", "certificate_of", "schema_path", "write_certificate"]

CERTIFICATE_SCHEMA: Final = 1
_KNOWN: Final = ("tfa", "sfa")
"""Methods whose steps are written."""
_BY_INSTANTS: Final = (
    "what is known of instants: phases of senders and gates, cycles of cyclic queuing (IEEE Std 802.1Q-2022, "
    "8.6.8.4 and Annex T)"
)
_BY_SCHEDULE: Final = "its schedule (SAE AS6802; IEEE Std 802.1Q-2022, TimeAwareOffset of clause 46)"
_METHODS: Final = {
    "pmoo": "pay multiplexing only once (Schmitt, Zdarsky, Fidler: INFOCOM 2008)",
    "plp": "a linear programme (Bouillard, Performance Evaluation 153, 2022)",
}


def schema_path() -> Path:
    """The JSON Schema of certificates."""
    return Path(__file__).with_name("certificate.schema.json")


def write_certificate(answer: Answer, source: Source, data: bytes, place: Path) -> None:
    """Writes the certificate of an answer; `data`: the file of the network. Raises `TestError`, `OSError`."""
    certificate = certificate_of(answer, source, data)
    write_whole(place, (json.dumps(certificate, indent=1, ensure_ascii=False) + "\n").encode())


def certificate_of(answer: Answer, source: Source, data: bytes) -> dict[str, Any]:
    """The certificate of an answer as JSON. Raises `TestError` where the network or the question is wrong."""
    ways = _ways(answer)
    written = [_steps(source, way) for way in ways]
    analyses, sets, proofs = _laid_together(written)
    premises = written[0]["premises"]
    return {
        "certificate": "bounds",
        "schema": CERTIFICATE_SCHEMA,
        "name": answer.name,
        "program": f"wiregauge {__version__}",
        "source": {
            "file": Path(source.file).name,
            "sha256": hashlib.sha256(data).hexdigest(),
            "run": source.runs[0] if source.runs else None,
        },
        "time_unit": answer.time_unit,
        "data_unit": "bit" if answer.time_unit == "s" else "own",
        "method": answer.as_text,
        "arithmetic": answer.arithmetic,
        "packetizer": written[0]["packetizer"],
        "premises": _with_origins(premises, source),
        "analyses": analyses,
        "sets": sets,
        "proofs": proofs,
        "conclusions": _conclusions(answer, proofs),
        "limits": _limits(answer),
        "assumptions": list(answer.assumptions),
        "notes": list(answer.notes),
    }


def _ways(answer: Answer) -> list[dict[str, Any]]:
    """The questions whose steps are written: those that gave a bound, and total flow analysis."""
    texts = {target.method for flow in answer.flows for target in flow.targets if target.method is not None}
    asked = [*sorted(texts), answer.as_text] if texts else [answer.as_text]
    ways = []
    for one in asked:
        method, multiplexing, _, grouping = one.replace(",", "").split()
        if method in _KNOWN:
            ways.append(_question(answer, method, multiplexing, grouping == "on"))
    total = _question(answer, "tfa", answer.multiplexing, answer.grouping == "on")
    return ways if total in ways else [*ways, total]


def _question(answer: Answer, method: str, multiplexing: str, grouping: bool) -> dict[str, Any]:
    own = {"method": method, "multiplexing": multiplexing, "grouping": grouping}
    return {**own, "arithmetic": answer.arithmetic, "phases": answer.phases}


def _steps(source: Source, question: Mapping[str, Any]) -> dict[str, Any]:
    reply: dict[str, Any] = json.loads(certify_network(source.as_json, json.dumps(question)))
    if "certificate" not in reply:
        refuse(source, reply["refused"])
    found: dict[str, Any] = reply["certificate"]
    return found


def _laid_together(written: Sequence[dict[str, Any]]) -> tuple[list[Any], list[Any], list[dict[str, Any]]]:
    """All analyses and sets, and of the proofs of each target the one with the least bound."""
    analyses: list[Any] = []
    sets: list[Any] = []
    proofs: dict[tuple[int, ...], dict[str, Any]] = {}
    for one in written:
        begun, begun_sets = len(analyses), len(sets)
        for proof in one["proofs"]:
            _move(proof, begun.__add__, begun_sets.__add__)
            key = tuple(proof["of"])
            if key not in proofs or _size(proof["delay"]) < _size(proofs[key]["delay"]):
                proofs[key] = proof
        analyses += one["analyses"]
        sets += one.get("sets", ())
    used: dict[int, int] = {}
    used_sets: dict[int, int] = {}
    for proof in proofs.values():
        _move(
            proof,
            lambda place: used.setdefault(place, len(used)),
            lambda place: used_sets.setdefault(place, len(used_sets)),
        )
    ordered = [proofs[key] for key in sorted(proofs)]
    return [analyses[place] for place in used], [sets[place] for place in used_sets], ordered


def _move(proof: dict[str, Any], analysis: Callable[[int], int], sets: Callable[[int], int]) -> None:
    """Gives the analyses and sets of a proof their places in the certificate."""
    proof["analyses"] = [analysis(place) for place in proof["analyses"]]
    if "arrivals" in proof:
        proof["arrivals"] = analysis(proof["arrivals"])
    if "sets" in proof:
        proof["sets"] = sets(proof["sets"])


def _size(delay: str | None) -> tuple[bool, Fraction]:
    return delay is None, Fraction(delay or 0)


def _conclusions(answer: Answer, proofs: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """What the answer claims, with the proof of each bound, or what it rests on instead."""
    known = {(proof["flow"], proof["target"]): place for place, proof in enumerate(proofs)}
    found = []
    for flow in answer.flows:
        names = [target.target for target in flow.targets]
        for target in flow.targets:
            if target.delay is None:
                continue
            claimed = Fraction(target.delay_exact or target.delay)
            own: dict[str, Any] = {"flow": flow.flow, "target": target.target, "delay": str(claimed)}
            place = known.get((flow.flow, target.target))
            others = [name for name in names if name != target.target]
            if place is None and others and all((flow.flow, name) in known for name in others):
                found.append({**own, "slowest_of": others})
            elif place is None:
                found.append({**own, "proof": None, "theorem": _BY_SCHEDULE})
            elif _size(proofs[place]["delay"]) > (False, claimed):
                found.append({**own, "proof": place, "theorem": _theorem(answer, target)})
            else:
                found.append({**own, "proof": place})
    return found


def _theorem(answer: Answer, target: TargetBound) -> str:
    method = (target.method or answer.method).partition(" ")[0]
    return _METHODS.get(method, _BY_INSTANTS)


def _limits(answer: Answer) -> list[dict[str, Any]]:
    return [
        {
            "flow": limit.flow,
            "target": limit.target,
            "at_most": str(Fraction(limit.at_most)),
            "written": limit.written,
            "kept": limit.kept,
            "line": limit.line,
        }
        for limit in answer.limits
    ]


def _with_origins(premises: dict[str, Any], source: Source) -> dict[str, Any]:
    """The premises, each with the element it comes from and its line."""
    network = source.planned[0] if source.planned is not None else None
    ports = _ports(network) if network is not None else {}
    for server in premises["servers"]:
        ends = ports.get(server["server"])
        if ends is not None:
            server["link"] = ends
            server["line"] = server["line"] or source.lines(f'<link between="{" ".join(ends)}">')
        elif network is not None:
            node = server["server"].removesuffix(" receives")
            server["line"] = server["line"] or source.lines(f'end-system "{node}"')
    planned = source.planned[1].flows if source.planned is not None else []
    scheduled = {str(flow.id) for flow in planned if flow.schedule is not None}
    for flow in premises["flows"]:
        if flow["flow"] in scheduled:
            # What it waits before the host that reads it.
            flow["theorem"] = _BY_SCHEDULE
        flow["line"] = flow["line"] or source.lines(f"flow {flow['flow']}")
    return premises


def _ports(network: Network) -> dict[str, list[str]]:
    """The nodes of the link behind each port."""
    found = {}
    for link in network.links:
        names = [network.names[end.node] for end in link.ends]
        for end in link.ends:
            found[f"{network.names[end.node]}:{end.port}"] = names
    return found
