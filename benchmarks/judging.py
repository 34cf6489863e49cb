"""The cost of judging and the report, without simulation: seconds and memory compared with the bars.

`python -m benchmarks.judging --flows [FLOWS]` has a network of so many flows (default 4500; up to 65 000) simulated for
150 ms, judged and drawn: processor time, memory, sizes of what is written.
`python -m benchmarks.judging [MESSAGES …]` (default: `--flows`, then 10^5 messages of 30 flows, 10^6, 10^7) simulates a
test of each size and has a process of its own judge it, search it for what explains it, and write the page. `--day`
instead of sizes: 24 hours of 100 Hz. Bars: 2 ms of processor time for a flow, and 4 GiB whatever their number; 10^5
messages of 30 flows in 3 s with everything; 10^6 in 3 s and 10^7 in 30 s without the search for modes; a day in 2
minutes with it; 1 GiB. Of the same run of 10^6 messages or fewer `track` and `report`, which are all that follows a
simulation, take 2 us of processor time a message.
"""

from __future__ import annotations

import json
import resource
import subprocess
import sys
import tempfile
from pathlib import Path

from msgspec import Struct

from benchmarks import table

GIB = 1 << 30


class Case(Struct, frozen=True):
    """A test with a number of flows and messages of each, and the bar: seconds, with or without the explanation."""

    name: str
    flows: int
    messages: int
    period_us: int
    bar_s: float
    explained: bool


CASES = {
    100_000: Case("10^5 messages of 30 flows, with what explains it", 30, 3_334, 1_000, 3.0, True),
    1_000_000: Case("10^6 messages, without the search for modes", 1, 1_000_000, 100, 3.0, False),
    10_000_000: Case("10^7 messages, without the search for modes", 1, 10_000_000, 50, 30.0, False),
}
DAY = Case("24 h of 100 Hz, with what explains it", 1, 8_640_000, 10_000, 120.0, True)

WORK = """
import json, sys, time
from importlib import import_module
from pathlib import Path
from wiregauge import measures, results
from wiregauge.measures.explaining import Explanation, explain
write = import_module("wiregauge.report.write")
directory, explained = Path(sys.argv[1]), sys.argv[2] == "1"
begin = time.perf_counter()
judgement = results.judge(directory)
judged = time.perf_counter()
found = explain(judgement, most=write.MOST_FLOWS) if explained else Explanation((), 0, 0)
searched = time.perf_counter()
write.page(judgement, write._figures(judgement, found), found)
done = time.perf_counter()
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
peak = int(peak.split()[1]) * 1024
print(json.dumps([judged - begin, searched - judged, done - searched, peak]))
"""


def test_file(case: Case) -> str:
    """The test as XML: every flow from its own end system to one receiver."""
    ends = "".join(f'<end-system name="e{k}"/>' for k in range(case.flows + 1))
    links = "".join(f'<link between="e{k} sw" rate="10Gbit/s"/>' for k in range(case.flows + 1))
    flows = "".join(
        f'<flow id="{k + 1}" protocol="udp" from="e{k}" to="e{case.flows}"/>' for k in range(case.flows)
    )
    tasks = "".join(
        f'<send flow="{k + 1}" period="{case.period_us}us" payload="64B" count="{case.messages}"/>'
        f'<receive flow="{k + 1}"/>'
        for k in range(case.flows)
    )
    return (
        '<test xmlns="urn:wiregauge:test:2" name="judging" seed="1">'
        f'<network>{ends}<switch name="sw"/>{links}</network>'
        f"<flows>{flows}</flows><tasks>{tasks}</tasks></test>"
    )


def measure(case: Case, scratch: Path) -> tuple[float, float, float, int]:
    """Seconds of judging, of the search and of the page, and the peak memory, bytes."""
    file, out = scratch / "test.xml", scratch / "run"
    file.write_text(test_file(case))
    run = [sys.executable, "-m", "wiregauge", "run", str(file), "--bench", "sim", "--out", str(out)]
    made = subprocess.run(run, capture_output=True, text=True, check=False)
    if not (out / "manifest.json").exists():
        sys.exit(f"the test could not be simulated:\n{made.stderr}")
    work = [sys.executable, "-c", WORK, str(out), str(int(case.explained))]
    done = subprocess.run(work, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the run could not be judged:\n{done.stderr}")
    judged, searched, drawn, peak = json.loads(done.stdout.splitlines()[-1])
    return judged, searched, drawn, int(peak)


AFTER_BAR_US = 2.0
"""Bar for processor time per message of all that follows a simulation, us."""
MOST_AFTER = 1_000_000
"""Messages above which this is not measured: what it costs a message hardly changes."""


def after(case: Case, out: Path) -> None:
    """Tracks a run again and writes its report, prints the processor time and adds it to the table."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    for command in ("track", "report"):
        again = [sys.executable, "-m", "wiregauge", command, str(out)]
        done = subprocess.run(again, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            sys.exit(f"{command} failed:\n{done.stderr}")
    now = resource.getrusage(resource.RUSAGE_CHILDREN)
    seconds = now.ru_utime + now.ru_stime - before.ru_utime - before.ru_stime
    messages = case.flows * case.messages
    each = seconds / messages * 1e6
    print(f"{messages} messages, track and report: {each:.2f} us of processor time a message, ", end="")
    print(f"{each / AFTER_BAR_US:.2f} of the bar of {AFTER_BAR_US:g} us")
    table.add(
        f"track and report, {messages} messages",
        f"{each:.2f} us a message",
        bar=f"<= {AFTER_BAR_US:g} us",
        reached=each <= AFTER_BAR_US,
    )


FLOWS = 4_500
"""Flows of the network of `--flows`."""
FLOW_BAR_MS = 2.0
"""Bar for processor time per flow, ms: 65 000 flows are judged in little more than two minutes."""
FLOWS_BAR = 4 * GIB
"""Bar for memory, for any number of flows."""
MOST_ENDS, MOST_SWITCHES = 1000, 50
"""Most end systems and switches of the network of `--flows`."""
FLOWS_WORK = """
import json, sys, time
from pathlib import Path
from wiregauge import measures, report, results
begin = time.process_time()
judgement = results.judge(Path(sys.argv[1]))
done = time.process_time()
flows = judgement.runs[0].flows
page = report.write(Path(sys.argv[1]), judgement)
drawn = time.process_time()
size = (Path(sys.argv[1]) / "measures.json").stat().st_size
beside = sum(path.stat().st_size for path in Path(sys.argv[1]).glob("flows/*"))
peak = next(line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
peak = int(peak.split()[1]) * 1024
sent = sum(flow.counts["sent"] for flow in flows)
print(json.dumps([len(flows), sent, done - begin, drawn - done, peak, size, beside, page.stat().st_size]))
"""


def many_flows(flows: int, scratch: Path) -> None:
    """Judges a network of many flows and prints the costs."""
    file, out = scratch / "test.xml", scratch / "run"
    ends = str(min(max(flows // 16, 8), MOST_ENDS))
    switches = str(min(max(flows // 256, 4), MOST_SWITCHES))
    size = ["--end-systems", ends, "--switches", switches, "--flows", str(flows), "--duration", "150ms"]
    example = Path(__file__).resolve().parents[1] / "examples" / "large_network.py"
    subprocess.run([sys.executable, str(example), str(file), *size], check=True)
    run = [sys.executable, "-m", "wiregauge", "run", str(file), "--bench", "sim", "--out", str(out), "--json"]
    made = subprocess.run(run, capture_output=True, text=True, check=False)
    work = [sys.executable, "-c", FLOWS_WORK, str(out)]
    done = subprocess.run(work, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        sys.exit(f"the run could not be made or judged:\n{made.stderr}\n{done.stderr}")
    count, sent, seconds, drawn, peak, written, beside, page = json.loads(done.stdout.splitlines()[-1])
    each = seconds / count * 1e3
    print(f"{count} flows, {sent} messages: {each:.2f} ms of processor time a flow, ", end="")
    print(f"{each / FLOW_BAR_MS:.2f} of the bar of {FLOW_BAR_MS:g} ms; {peak / GIB:.2f} GiB, ", end="")
    print(
        f"{written / count / 1e3:.1f} kB of measures.json a flow, {beside / count / 1e3:.1f} kB beside it; ",
        end="",
    )
    print(f"report: {drawn:.1f} s, {page / 1e6:.1f} MB")
    table.add(
        f"judging {count} flows",
        f"{each:.2f} ms a flow",
        bar=f"<= {FLOW_BAR_MS:g} ms",
        reached=each <= FLOW_BAR_MS,
    )
    table.add(
        f"memory of judging and report, {count} flows",
        f"{peak / GIB:.2f} GiB",
        bar=f"<= {FLOWS_BAR / GIB:g} GiB",
        reached=peak <= FLOWS_BAR,
    )


def main(arguments: list[str]) -> None:
    """Measures and prints one row per case."""
    if arguments[:1] == ["--flows"]:
        with tempfile.TemporaryDirectory() as scratch:
            many_flows(int(arguments[1]) if arguments[1:] else FLOWS, Path(scratch))
        return
    if not arguments:
        main(["--flows"])
    if arguments == ["--smoke"]:
        main(["--flows", "60"])
        arguments = ["1000"]
    if arguments == ["--day"]:
        cases = [DAY]
    else:
        wanted = [int(float(text)) for text in arguments] or list(CASES)
        small = Case("{} messages, with what explains it", 1, 0, 1_000, 3.0, True)
        cases = [
            CASES.get(n, Case(small.name.format(n), 1, n, small.period_us, small.bar_s, True)) for n in wanted
        ]
    for case in cases:
        with tempfile.TemporaryDirectory() as scratch:
            judged, searched, drawn, peak = measure(case, Path(scratch))
            if case.flows * case.messages <= MOST_AFTER:
                after(case, Path(scratch) / "run")
        total = judged + searched + drawn
        print(
            f"{case.name}: {total:.2f} s (judged {judged:.2f}, searched {searched:.2f}, drawn {drawn:.2f}), "
            f"{total / case.bar_s:.2f} of the bar of {case.bar_s:g} s; {peak / GIB:.2f} of the bar of 1 GiB"
        )
        reached = total <= case.bar_s and peak <= GIB
        table.add(
            f"judging and report, {case.name}",
            f"{total:.2f} s",
            bar=f"<= {case.bar_s:g} s, 1 GiB",
            reached=reached,
        )


if __name__ == "__main__":
    main(sys.argv[1:])
