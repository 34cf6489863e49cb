"""A run ends, and soon, when an agent falls silent or somebody asks; what was measured is kept, nothing is left."""

from __future__ import annotations

import json
import os
import signal

from support import Runner, until
from test_faults import Campaign, campaign, shows_what_was_recorded

__all__ = ["campaign"]


def test_a_stopped_agent_is_named_and_given_up(campaign: Campaign, wiregauge: Runner) -> None:
    os.kill(campaign.one("serve"), signal.SIGSTOP)
    code, err = campaign.end()
    assert code == 4
    assert "sign of life" in err
    assert "was stopped (SIGSTOP)" in err
    assert "was given up" in err
    manifest = json.loads((campaign.folder / "r" / "manifest.json").read_text())
    assert manifest["state"] == "failed"
    assert "agent of" in manifest["reason"]
    shows_what_was_recorded(wiregauge)


def test_a_request_to_stop_beside_a_stopped_agent_is_served(campaign: Campaign, wiregauge: Runner) -> None:
    os.kill(campaign.one("serve"), signal.SIGSTOP)
    os.killpg(campaign.process.pid, signal.SIGINT)
    code, _ = campaign.end()
    assert code == 4
    assert json.loads((campaign.folder / "r" / "manifest.json").read_text())["state"] == "interrupted"
    shows_what_was_recorded(wiregauge)


def test_a_second_request_ends_at_once_and_what_was_recorded_can_be_shown(
    campaign: Campaign, wiregauge: Runner
) -> None:
    # The first has to wait for this one.
    os.kill(campaign.one("serve"), signal.SIGSTOP)
    os.killpg(campaign.process.pid, signal.SIGINT)

    def asked_again() -> bool:
        """Requests that follow at once are the same one; once they are not, the next ends it."""
        if campaign.process.poll() is None:
            os.killpg(campaign.process.pid, signal.SIGINT)
        return campaign.process.poll() is not None

    until(asked_again, "the end at a second request", 30)
    code, err = campaign.end()
    assert code == 4
    assert "second request" in err
    assert not (campaign.folder / "r" / "report.html").exists(), "it did not wait for anything"
    shows_what_was_recorded(wiregauge)
