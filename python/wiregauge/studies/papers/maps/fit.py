"""Fits the machine model to Table 3: least squares on four of the six payloads.

`python studies/maps/fit.py` prints the parameters; with the study.json of a study directory it prints the errors of
the means, those of the fitted payloads and the others. Only parameters with a closed form are fitted: of the FIFO an
interval is given, and the time of the injectors' calls was inferred separately.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

FITTED = (64, 256, 512, 1472)
"""Payloads that parameters are fitted on, B; 128 and 1024 are predictions."""
HEADERS = 14 + 20 + 8 + 4
"""Ethernet, IPv4, UDP and FCS, B."""
FLOOD = 1472 + HEADERS
WIRE = 8e-3
"""Time of a byte at 1 Gbit/s, µs."""
PREAMBLE = 8
WAIT = {50: 117.0, 100: 125.0}
"""Mean wait for an interrupt 250 µs after the last one, µs, by load in %, simulated: the load pauses more at 50 %."""
COTS_RECEIVE = 1.2
"""Time to read a frame, µs: it lowers the standard deviation under load; set by those of the fitted payloads."""
PERIOD = 2000.0
"""Period of the application, µs."""
IN_FIFO = 1.5
"""Frames of the flood ahead of the slots: the second arrives while the first waits for a slot."""
UPPER = ((128, 50), (256, 50), (512, 50), (1024, 50), (1472, 50), (512, 100), (1024, 100), (1472, 100))
"""Payloads, B, and loads, %, at which COTS UDP is outside the lower regime."""

Table = Mapping[tuple[str, int, int, str], float]


def published() -> Table:
    """Table 3 by protocol, payload, load and statistic; µs, losses in %."""
    found = {}
    with Path(__file__).with_name("expected.csv").open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            if row["item"] == "Table 3":
                protocol, load = row["series"].removesuffix(" %").split(", ")
                payload = int(row["x"].removesuffix(" B"))
                found[protocol, payload, int(load), row["statistic"]] = float(row["value"])
    return found


def fit(table: Table) -> dict[str, float]:
    """The parameters by name; µs, bytes, frames."""
    rc_fixed, rc_byte = _line(table, "RC")
    be_fixed, _ = _line(table, "BE")
    udp_fixed, _ = _line(table, "UDP")
    read = rc_byte - 3 * WIRE
    wake = _spread(table, "RC")
    own = rc_fixed - HEADERS * read - 3 * WIRE * (HEADERS + PREAMBLE) - wake / 2
    cots_wake = _spread(table, "UDP")
    # The interrupt latency passes while the message waits for the interrupt.
    upper = [
        (table["UDP", size, load, "mean"], WAIT[load] + _wire(size)) for size, load in UPPER if size in FITTED
    ]
    send = _offset(upper) - COTS_RECEIVE
    triggered = [
        (table["TTE", size, load, "mean"], _triggered(size, load, read) + wake / 2)
        for size in FITTED
        for load in (0, 50, 100)
    ]
    slots = [
        _ahead(table["BE", size, load, "mean"], read * FLOOD, read * (size + HEADERS)) - IN_FIFO
        for size in FITTED
        for load in (50, 100)
        if table["BE", size, load, "lost"] < 5
    ]
    return {
        "card-read-per-byte": read,
        "receive-wake-up of tte-card": wake,
        "transmit of tte-card": own,
        "transmit of tte": _offset(triggered),
        "transmit of be": own + be_fixed - rc_fixed,
        "receive-wake-up of cots-card": cots_wake,
        "transmit of cots-card": send,
        "interrupt-latency": udp_fixed - send - COTS_RECEIVE - cots_wake / 2 - _wire(0),
        "slots": float(np.mean(slots)),
    }


def _wire(payload: int) -> float:
    """Time on one link, µs: the switch cuts through."""
    return WIRE * (payload + HEADERS + PREAMBLE)


def _triggered(payload: int, load: int, read: float) -> float:
    """Latency of a time-triggered message without the time of its call, µs.

    Half a period, two windows for the longest frame, the last link, reading; under load half a frame of the flood.
    """
    flood = read * FLOOD / 2 if load else 0.0
    return 500.0 + 2 * WIRE * (FLOOD + PREAMBLE) + _wire(payload) + read * (payload + HEADERS) + flood


def _offset(pairs: Sequence[tuple[float, float]]) -> float:
    """The offset between published and explained values, µs; relative errors have equal weight."""
    theirs, explained = np.array(pairs).T
    return float(np.sum((theirs - explained) / theirs**2) / np.sum(1 / theirs**2))


def _ahead(wait: float, flood: float, own: float) -> float:
    """Frames ahead of a message in the buffer: one in 2 ms is a message, and read faster than the flood."""
    messages = wait / PERIOD
    return (wait - messages * own) / flood + messages


def fifo_bracket() -> tuple[int, int]:
    """Lower and upper limit of the FIFO's size, B: next to two frames of the flood 512 B fit, and 1024 B do not."""
    return 2 * FLOOD + 512 + HEADERS, 2 * FLOOD + 1024 + HEADERS


def _line(table: Table, protocol: str) -> tuple[float, float]:
    """Fit of idle latency over payload: µs without payload, and µs per byte. Relative errors have equal weight."""
    sizes = np.array(FITTED, dtype=np.float64)
    means = np.array([table[protocol, size, 0, "mean"] for size in FITTED])
    rows = np.column_stack([np.ones_like(sizes), sizes]) / means[:, None]
    fixed, byte = np.linalg.lstsq(rows, np.ones_like(means), rcond=None)[0]
    return float(fixed), float(byte)


def _spread(table: Table, protocol: str) -> float:
    """Width of the uniform distribution with the median of the idle standard deviations, µs."""
    return float(np.sqrt(12) * np.median([table[protocol, size, 0, "sd"] for size in FITTED]))


def errors(study: Path) -> list[str]:
    """Worst and root mean square deviation of the means of a study directory's study.json, a line for each group."""
    tree = json.loads(study.read_text(encoding="utf-8"))
    groups: dict[tuple[str, str], dict[bool, list[float]]] = {}
    (table,) = (item for item in tree["items"] if item["item"] == "Table 3")
    for cell in table["cells"]:
        if cell["statistic"] != "mean" or cell["deviation"] is None:
            continue
        protocol, load = cell["series"].removesuffix(" %").split(", ")
        payload = int(cell["x"].removesuffix(" B"))
        state = "idle" if load == "0" else "loaded"
        if protocol == "UDP" and load != "0" and (payload, int(load)) not in UPPER:
            state = "lower regime"
        of = groups.setdefault((protocol, state), {True: [], False: []})
        of[payload in FITTED].append(100 * cell["deviation"])
    return [
        f"{' '.join(group):18}" + "".join(f"  {_spread_text(of[fitted])}" for fitted in (True, False))
        for group, of in groups.items()
    ]


def _spread_text(found: Sequence[float]) -> str:
    if not found:
        return f"{'none':>20}"
    rms = float(np.sqrt(np.mean(np.square(found))))
    return f"{len(found):3} worst {max(found, key=abs):+6.1f} rms {rms:5.1f} %"


def main() -> None:
    """Prints the fit, or the errors of a study."""
    if len(sys.argv) > 1:
        lines = [
            "group               fitted payloads              other payloads",
            *errors(Path(sys.argv[1])),
        ]
    else:
        lines = [f"{name:32}{value:10.4f}" for name, value in fit(published()).items()]
        lines.append(f"{'fifo':32}{fifo_bracket()[0]:10} to {fifo_bracket()[1]}")
    sys.stdout.write("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
