"""Live figures of a campaign as metrics."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Final

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, InfoMetricFamily, Metric
from prometheus_client.registry import Collector

from wiregauge.records.live import FlowNow, RunNow

__all__ = ["RunFigures"]

_LABELS: Final = ("run", "flow", "source", "destination")


class RunFigures(Collector):
    """The figures that `show` was given last."""

    def __init__(self) -> None:
        self.facts: dict[str, str] = {}
        """What identifies the test."""
        self.state: tuple[RunNow, float, dict[str, int], dict[str, int]] | None = None

    def show(self, now: RunNow, share: float, raised: Mapping[str, int], active: Mapping[str, int]) -> None:
        """Sets the state that is served from now on."""
        self.state = (now, share, dict(raised), dict(active))

    def describe(self) -> list[Metric]:
        """Returns no metrics, so that registration collects nothing."""
        return []

    def collect(self) -> Iterator[Metric]:
        """The families of one moment."""
        info = InfoMetricFamily("wiregauge_live_test", "The test that is run.")
        info.add_metric([], self.facts)
        yield info
        state = self.state
        if state is None:
            return
        now, share, raised, active = state
        run = str(now.index)
        for name, text, value in (
            ("run_number", "Runs of the campaign that have begun.", now.position + 1),
            ("run_done_ratio", "Planned time of the run that is over.", share),
            ("run_time_seconds", "Time of the run that the figures extend to.", now.seconds),
            ("flows_left_out", "Flows without live figures.", now.left_out),
        ):
            family = GaugeMetricFamily(f"wiregauge_live_{name}", text, labels=["run"])
            family.add_metric([run], value)
            yield family
        dropped = CounterMetricFamily(
            "wiregauge_live_records_dropped", "Records the instrument lost, in no figure.", labels=["run"]
        )
        dropped.add_metric([run], now.dropped)
        yield dropped
        yield from _counts(now, run)
        yield from _times(now, run)
        yield from _alarms(raised, active)


def _of(flow: FlowNow, run: str) -> list[str]:
    return [run, str(flow.flow), flow.source, flow.destination]


def _counts(now: RunNow, run: str) -> Iterator[Metric]:
    families: dict[str, Metric] = {}
    for name, text in (
        ("sent", "Messages sent, warm-up excluded."),
        ("received", "Different messages that arrived intact."),
        ("repeats", "Messages that arrived once more."),
    ):
        counter = CounterMetricFamily(
            f"wiregauge_live_{name}_messages", text, labels=_LABELS, unit="messages"
        )
        for flow in now.flows:
            counter.add_metric(_of(flow, run), getattr(flow, name))
        families[name] = counter
    # A gauge, for the value decreases when a message arrives late, which no counter may.
    lost = GaugeMetricFamily(
        "wiregauge_live_lost_messages",
        "Messages that should have arrived and have not.",
        labels=_LABELS,
        unit="messages",
    )
    for flow in now.flows:
        lost.add_metric(_of(flow, run), flow.lost)
    yield from families.values()
    yield lost


def _times(now: RunNow, run: str) -> Iterator[Metric]:
    for measure, text in (
        ("latency", "From the intended send to the receiving application, in the last second."),
        ("rtt", "From the sending application and back, in the last second."),
    ):
        family = GaugeMetricFamily(
            f"wiregauge_live_{measure}_seconds", text, labels=[*_LABELS, "quantile"], unit="seconds"
        )
        for flow in (one for one in now.flows if one.measure == measure):
            for quantile, value in (("0.5", flow.p50_ns), ("0.99", flow.p99_ns), ("1", flow.max_ns)):
                if value is not None:
                    family.add_metric([*_of(flow, run), quantile], value / 1e9)
        if family.samples:
            yield family


def _alarms(raised: Mapping[str, int], active: Mapping[str, int]) -> Iterator[Metric]:
    if not raised:
        return
    total = CounterMetricFamily(
        "wiregauge_alarms_raised", "How often it was raised in this run.", labels=["alarm"]
    )
    going = GaugeMetricFamily(
        "wiregauge_alarm_active_flows", "Flows that are beyond it in the last second.", labels=["alarm"]
    )
    for alarm, count in raised.items():
        total.add_metric([alarm], count)
        going.add_metric([alarm], active.get(alarm, 0))
    yield total
    yield going
