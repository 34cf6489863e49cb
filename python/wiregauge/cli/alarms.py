"""What looks at a measurement while it goes on: alarms, what they bring about, the endpoint, the disk."""

from __future__ import annotations

import contextlib
import shlex
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from wiregauge.cli.options import meant
from wiregauge.terminal import BAD_INPUT, fail, say

if TYPE_CHECKING:
    from prometheus_client.registry import Collector

    from wiregauge.plan import Campaign
    from wiregauge.runner.live.hook import Hook

__all__ = [
    "AlarmTexts",
    "CaptureAround",
    "DiskSize",
    "MetricsAddress",
    "OnAlarm",
    "check_action",
    "check_alarms",
    "hooked",
    "metrics_address",
    "metrics_option",
    "monitor_options",
    "on_alarm_option",
    "say_all",
    "say_failed",
    "served",
    "summaries_option",
]

AlarmTexts = Annotated[
    list[str] | None,
    typer.Option(
        "--alarm",
        metavar="'MEASURE <= VALUE'",
        help="netns, lab: raise an alarm where a live figure of a flow is beyond this, for example 'lost <= 0' or "
        "'latency.max <= 2ms'; repeatable.",
        show_default=False,
    ),
]


def on_alarm_option(only: str) -> Any:
    """`--on-alarm` of a command, with what it needs."""
    return typer.Option(
        "--on-alarm",
        metavar="exit|COMMAND",
        help=meant("--on-alarm", only=only),
        show_default="print a line",
    )


def metrics_option(only: str = "") -> Any:
    """`--metrics` of a command, with what it needs."""
    return typer.Option(
        "--metrics", metavar="[ADDRESS:]PORT", help=meant("--metrics", only=only), show_default=False
    )


def summaries_option(only: str = "") -> Any:
    """`--summaries` of a command, with what it needs."""
    return typer.Option(
        "--summaries", metavar="DIR", help=meant("--summaries", only=only), show_default=False
    )


OnAlarm = Annotated[list[str] | None, on_alarm_option("With --alarm")]
MetricsAddress = Annotated[str | None, metrics_option("netns or lab")]
DiskSize = Annotated[
    str | None,
    typer.Option(
        "--disk",
        metavar="SIZE",
        help="netns: end the run before its directory exceeds this size, for example 10GB.",
        show_default="the disk",
    ),
]
CaptureAround = Annotated[
    str | None,
    typer.Option(
        "--capture-around",
        metavar="TIME",
        help="netns, lab, with --alarm: captures of the test keep the frames only that came so long before an alarm or "
        "after it, for example 10s.",
        show_default="every frame",
    ),
]
_LONGEST_AROUND_S: Final = 600.0


def monitor_options(
    alarm: Sequence[str] | None,
    on_alarm: Sequence[str] | None,
    metrics: str | None,
    disk: str | None,
    capture_around: str | None,
) -> dict[str, Any]:
    """What was given, read; None where nothing was."""
    from wiregauge.runner.live.alarms import AlarmError, AlarmLimit

    try:
        limits = [AlarmLimit.read(text) for text in alarm] if alarm else None
    except AlarmError as error:
        fail(f"--alarm {error}", BAD_INPUT)
    if on_alarm and not limits:
        fail("--on-alarm has an effect with --alarm only; say what to look at, or leave it out", BAD_INPUT)
    for action in on_alarm or ():
        check_action(action)
    return {
        "alarm": limits,
        "on_alarm": list(on_alarm) if on_alarm else None,
        "metrics": metrics_address(metrics),
        "disk": _bytes(disk),
        "capture_around": _around(capture_around, limits),
    }


def check_alarms(limits: Any, campaign: Campaign, capture_around: Any = None) -> None:
    """An alarm that no flow can raise is a mistake somebody should know of, and so is a time without captures."""
    if capture_around is not None and not any(run.captures for run in campaign.runs):
        fail(
            "--capture-around: this test captures nothing; give it a <capture>, or leave the option out",
            BAD_INPUT,
        )
    for limit in limits or ():
        if not any(limit.is_of(run) for run in campaign.runs):
            fail(
                f"--alarm '{limit.written}': no flow of this test has live figures of {limit.measure}; relayed flows "
                "have rtt, others latency unless their sender is paced by gap",
                BAD_INPUT,
            )


def check_action(action: str) -> None:
    """An action of `--on-alarm` is `exit`, or the words of a program that there is."""
    if action == "exit":
        return
    try:
        words = shlex.split(action)
    except ValueError as error:
        fail(f"--on-alarm '{action}': {error}; close what is open", BAD_INPUT)
    if not words or shutil.which(words[0]) is None:
        fail(
            f"--on-alarm '{action}': there is no such program; write exit, or a command and its words",
            BAD_INPUT,
        )


def metrics_address(text: str | None) -> tuple[str, int] | None:
    """What was given with `--metrics`, read."""
    if text is None:
        return None
    from wiregauge.runner.live.endpoint import EndpointError, address_of

    try:
        return address_of(text)
    except EndpointError as error:
        fail(f"--metrics {error}", BAD_INPUT)


def _around(text: str | None, limits: object) -> float | None:
    if text is None:
        return None
    from wiregauge.plan.quantity import QuantityError, time_ns

    if not limits:
        fail(
            "--capture-around has an effect with --alarm only; say what to look at, or leave it out",
            BAD_INPUT,
        )
    try:
        around_s = time_ns(text) / 1e9
    except QuantityError as error:
        fail(f"--capture-around {error}", BAD_INPUT)
    if not 0 < around_s <= _LONGEST_AROUND_S:
        fail(f"--capture-around {text}: write a time above 0 and up to 10min", BAD_INPUT)
    return around_s


def _bytes(text: str | None) -> int | None:
    if text is None:
        return None
    from wiregauge.plan.quantity import QuantityError
    from wiregauge.runner.live.disk import size_of

    try:
        return size_of(text)
    except QuantityError as error:
        fail(f"--disk {error}", BAD_INPUT)


@contextlib.contextmanager
def served(address: tuple[str, int] | None, collector: Collector) -> Iterator[None]:
    """Serves what a collector has to say at an address, if there is one."""
    if address is None:
        yield
        return
    from wiregauge.runner.live.endpoint import Endpoint

    endpoint = Endpoint(address, collector)
    endpoint.serve()
    try:
        yield
    finally:
        endpoint.close()


@contextlib.contextmanager
def hooked(actions: Sequence[str]) -> Iterator[list[Hook]]:
    """The commands among actions, which have ended in the end."""
    from wiregauge.runner.live.hook import Hook

    hooks = [Hook(shlex.split(action)) for action in actions if action != "exit"]
    try:
        yield hooks
    finally:
        for hook in hooks:
            hook.close()


def say_failed(hooks: Iterable[Hook]) -> None:
    """Says which commands failed."""
    for hook in hooks:
        if hook.failed:
            say(f"--on-alarm: {hook.failed} of {hook.started} commands failed; the first: {hook.reason}")


def say_all(sentences: Iterable[str]) -> None:
    """Says each sentence."""
    for sentence in sentences:
        say(sentence)
