"""Host models from runs: a test that identifies most of a host, and predictions of other runs for comparison."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from wiregauge.calibrate.errors import CalibrationError
from wiregauge.config import Test, TestError, load
from wiregauge.config.with_models import with_host_models
from wiregauge.identify import HostFit
from wiregauge.identify.model_file import attributes, model_text
from wiregauge.measures import Judgement, Summary
from wiregauge.records import RunDirectory
from wiregauge.runner import Trials

PAYLOADS = "64B 256B 512B 1024B 1472B"
_AT_ONCE = "400Gbit/s"
"""Rate of links between namespaces, which forward a frame at once: their token buckets alone limit the rate."""


class Prediction(Struct, frozen=True):
    """A figure of a flow and run as measured and as simulated with the models, ns."""

    run: str
    flow: str
    statistic: str
    measured: float | None
    predicted: float | None
    n: int

    @property
    def ratio(self) -> float | None:
        """Predicted over measured."""
        return self.predicted / self.measured if self.predicted is not None and self.measured else None


def host_test(*, bench: str, count: int, rate: str, seed: int) -> Test:
    """A test that identifies most of two hosts: lengths, bursts that keep the receiver busy, and relayed messages."""
    return (
        Test("host model", seed=seed, bench=bench)
        .end_system("one")
        .end_system("two")
        .link("one", "two", rate=rate)
        .flow(1, protocol="udp", from_="one", to="two")
        .flow(2, protocol="udp", from_="one", to="two")
        .flow(3, protocol="udp", from_="two", to="one")
        .timing(warm_up="50ms")
        .send(1, period="1ms", payload="64B", count=count)
        .receive(1)
        .send(
            2, period="10ms", offset="4500us", payload="256B", count=count // 10 * 8, burst=8, spacing="3us"
        )
        .receive(2)
        .send(3, period="2ms", offset="700us", payload="512B", count=count // 2)
        .relay(3, through="task")
        .axis("payload", PAYLOADS.split(), flow=[1])
    )


def write_model(path: Path, fit: HostFit, name: str, source: str) -> None:
    """Writes the model file; never over an existing one. Raises CalibrationError."""
    remarks = (
        f"Host {fit.name} as the records of {source} tell, one run: {fit.sent} messages sent, {fit.received} received.",
        *(f"Not told: {sentence}." for sentence in fit.untold),
    )
    try:
        with path.open("x", encoding="utf-8") as file:
            file.write(model_text(attributes(fit, name), remarks))
    except FileExistsError:
        raise CalibrationError(f"{path}: is there already; name another file") from None
    except OSError as error:
        raise CalibrationError(f"{path}: cannot be written ({error.strerror})") from None


def predict(directory: RunDirectory, models: Mapping[str, Path], trials: Trials, place: Path) -> Judgement:
    """Simulates the test of `directory` with these models of its hosts, in the new folder `place`."""
    rate = _AT_ONCE if directory.traits.driver == "veth" else None
    text = with_host_models((directory.root / "test.xml").read_bytes(), models, name="prediction", rate=rate)
    place.mkdir(parents=True, exist_ok=True)
    file = place / "prediction.xml"
    file.write_bytes(text)
    try:
        loaded = load(file)
    except TestError as error:
        raise CalibrationError(
            f"{directory.root}: its test cannot be simulated with these models: {error}"
        ) from None
    return trials.run(loaded, place / "run", file="prediction.xml")


def beside(measured: Judgement, predicted: Judgement) -> list[Prediction]:
    """Median and 99th percentile of the latency of every flow and run, measured and predicted."""
    found = []
    for run, other in zip(measured.runs, predicted.runs, strict=True):
        point = ", ".join(f"{axis} {value}" for axis, value in run.plan.point.items())
        for flow, sim in zip(run.flows, other.flows, strict=True):
            here, there = (one.summaries.get("latency") for one in (flow, sim))
            n = here.n if here is not None else 0
            found += [
                Prediction(point, flow.plan.name, name, _value(here, name), _value(there, name), n)
                for name in ("p50", "p99")
            ]
    return found


def _value(summary: Summary | None, name: str) -> float | None:
    return summary.value(name) if summary is not None else None
