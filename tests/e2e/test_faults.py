"""Whatever is killed, nothing is left behind and what was recorded can be shown."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support import COMMAND, Runner, interfaces_and_spaces, processes, scenario, until

LONG = '<tasks><send flow="10" period="1ms" payload="64B" count="20000"/><receive flow="10"/></tasks>'


class Campaign:
    """A campaign that is going on, and its processes."""

    def __init__(self, folder: Path, *options: str, test: str = "") -> None:
        (folder / "t.xml").write_text(test or scenario(LONG))
        self.folder = folder
        self.process = subprocess.Popen(
            [str(COMMAND), "run", "t.xml", "--out", "r", *options],
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )

    def wait_for_records(self) -> None:
        """Until two who record have written some hundred records: what is killed then leaves that much to show."""
        end = time.monotonic() + 90
        while time.monotonic() < end:
            partitions = list(self.folder.glob("r/spool/run-0000/*/*.arrows"))
            if sum(path.stat().st_size > 20_000 for path in partitions) >= 2:
                return
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.05)
        raise AssertionError("no records of both agents after 90 s")

    def descendants(self) -> list[tuple[int, list[str]]]:
        """Every process below the command, with its command line."""
        children: dict[int, list[int]] = {}
        lines: dict[int, list[str]] = {}
        for entry in Path("/proc").iterdir():
            if entry.name.isdigit():
                try:
                    stat = (entry / "stat").read_text()
                    line = (entry / "cmdline").read_bytes().decode(errors="replace").split("\0")
                except OSError:
                    continue
                children.setdefault(int(stat.rsplit(")", 1)[1].split()[1]), []).append(int(entry.name))
                lines[int(entry.name)] = line
        found, front = [], [self.process.pid]
        while front:
            process = front.pop()
            found.append((process, lines.get(process, [])))
            front += children.get(process, [])
        return found

    def one(self, *words: str) -> int:
        """The youngest process whose command line has all these words."""
        fitting = [
            pid
            for pid, line in self.descendants()
            if all(any(word in part for part in line) for word in words)
        ]
        assert fitting, self.descendants()
        return max(fitting)

    def end(self) -> tuple[int, str]:
        _, err = self.process.communicate(timeout=60)
        assert "Traceback" not in err, err
        return self.process.returncode, err


@pytest.fixture
def campaign(tmp_path: Path) -> Iterator[Campaign]:
    before = interfaces_and_spaces()
    campaign = Campaign(tmp_path)
    campaign.wait_for_records()
    yield campaign
    if campaign.process.poll() is None:
        os.killpg(campaign.process.pid, signal.SIGKILL)
        campaign.process.wait()
    campaign.process.communicate()  # closes its pipes
    until(lambda: interfaces_and_spaces() == before, "the end of all that it made", 10)


def shows_what_was_recorded(wiregauge: Runner) -> dict[str, object]:
    done = wiregauge("show", "r", "--json")
    assert done.code == 4, done.err
    shown = done.json()
    (flow,) = shown["runs"][0]["flows"]
    assert flow["delivered"] > 100
    assert flow["sent"] == flow["delivered"] + flow["lost"] + flow["unknown"]
    assert shown["validity"] != "VALID"
    result: dict[str, object] = flow
    return result


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_campaign_keeps_what_was_measured(
    campaign: Campaign, wiregauge: Runner, number: signal.Signals
) -> None:
    os.killpg(campaign.process.pid, number)  # as a terminal does: every process of the group gets it
    code, _ = campaign.end()
    assert code == 4
    assert json.loads((campaign.folder / "r" / "manifest.json").read_text())["state"] == "interrupted"
    assert (campaign.folder / "r" / "report.html").exists()
    flow = shows_what_was_recorded(wiregauge)
    assert flow["lost"] == 0, "stopping is no loss"


def test_a_killed_command(campaign: Campaign, wiregauge: Runner) -> None:
    assert {campaign.process.pid, campaign.one("serve")} <= processes(), "agents are known as ours"
    campaign.process.kill()
    campaign.process.wait()
    until(lambda: not processes(), "the end of all that it started")
    shows_what_was_recorded(wiregauge)


def test_a_killed_testmaster(campaign: Campaign, wiregauge: Runner) -> None:
    os.kill(campaign.one("-m", "wiregauge", "run"), signal.SIGKILL)
    campaign.end()
    shows_what_was_recorded(wiregauge)


def test_a_killed_agent(campaign: Campaign, wiregauge: Runner) -> None:
    os.kill(campaign.one("serve"), signal.SIGKILL)
    code, err = campaign.end()
    assert code == 4
    assert "agent of" in err
    assert "killed by signal 9" in err
    shows_what_was_recorded(wiregauge)


def test_a_running_campaign_is_not_touched(campaign: Campaign, wiregauge: Runner) -> None:
    done = wiregauge("show", "r")
    assert done.code == 4
    assert "still running" in done.err


def test_a_full_disk(wiregauge: Runner, tmp_path: Path) -> None:
    """The records fill a small file system of their own; what fitted is shown, and the reason is named."""
    (tmp_path / "t.xml").write_text(scenario(LONG.replace("20000", "12000")))
    script = (
        f'mkdir small && mount -t tmpfs -o size=900k none small && "{COMMAND}" run t.xml --out small/r; code=$?; '
        "cp -r small kept; exit $code"
    )
    answer = subprocess.run(
        ["unshare", "--mount", "sh", "-c", script],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert "Traceback" not in answer.stderr
    assert answer.returncode == 4, answer.stderr
    assert "No space left" in answer.stderr or "full" in answer.stderr
    manifest = json.loads((tmp_path / "kept" / "r" / "manifest.json").read_text())
    assert manifest["runs"][0]["state"] == "partial"
    # Where there is room again, what the agents could still write is shown.
    done = wiregauge("show", "kept/r", "--json")
    assert done.code == 4, done.err
    (flow,) = done.json()["runs"][0]["flows"]
    assert flow["delivered"] > 100


def test_without_privilege_one_line_says_what_helps(wiregauge: Runner, tmp_path: Path) -> None:
    (tmp_path / "t.xml").write_text(scenario(LONG))
    done = wiregauge(
        "run", "t.xml", "--out", "r", prefix=("setpriv", "--bounding-set=-all", "--inh-caps=-all")
    )
    assert done.code == 3, done.err
    assert len(done.err.strip().splitlines()) == 1
    assert "root" in done.err
    assert not (tmp_path / "r").exists()
