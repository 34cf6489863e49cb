"""Every check of the doctor with planted facts: it is fine, it fails, and it does not know."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from wiregauge.examining import (
    CHECKS,
    Fact,
    Look,
    NotKnownError,
    Severity,
    facts_of_json,
    judge,
    judge_together,
)
from wiregauge.examining.checks.base import cpus_of
from wiregauge.examining.hosts import _fact
from wiregauge.runner.rpc import agent_pb2 as pb

OPTIONS = (
    "CONFIG_HIGH_RES_TIMERS=y",
    "CONFIG_PTP_1588_CLOCK=y",
    "CONFIG_NETWORK_PHY_TIMESTAMPING=y",
    "CONFIG_NET_SCH_TAPRIO=m",
    "CONFIG_NET_SCH_ETF=m",
    "CONFIG_NET_SCH_CBS=m",
    "CONFIG_NET_SCH_MQPRIO=m",
    "CONFIG_VLAN_8021Q=m",
    "CONFIG_XDP_SOCKETS=y",
)
HOST: dict[str, Any] = {
    "clock-source": "tsc",
    "clock-synchronised": True,
    "clock-max-error-us": 120,
    "clock-tai-offset-s": 37,
    "clock-programs": ("phc2sys", "ptp4l"),
    "kernel-preemption": "PREEMPT_RT",
    "kernel-options": OPTIONS,
    "rt-runtime-us": -1,
    "rt-period-us": 1_000_000,
    "cores": 4,
    "isolated-cpus": "3",
    "nohz-full-cpus": "3",
    "governors": ("performance",),
    "idle-states": ("POLL 0 us", "C1 2 us"),
    "idle-latency-us": 2,
    "rmem-max-bytes": 16 << 20,
    "wmem-max-bytes": 16 << 20,
    "limit-locked-memory-bytes": -1,
    "limit-real-time-priority": 99,
    "limit-open-files": 4_096,
    "firewall-chains": (),
    "firewall-tables": (),
    "spool-free-bytes": 100 << 30,
    "sched-fifo": True,
    "mlockall": True,
    "cpu-dma-latency": True,
    "timestamps": True,
    "packet-sockets": True,
    "network-namespaces": True,
    "user-namespaces": False,
    "wake-ups": 400,
    "wake-late-p50-ns": 3_000,
    "wake-late-p99-ns": 9_000,
    "wake-late-max-ns": 40_000,
}
INTERFACE: dict[str, Any] = {
    "state": "up",
    "mtu-bytes": 1_500,
    "mac": "02:00:00:00:00:0a",
    "ipv4": ("10.20.0.1",),
    "timestamps-transmit": "hardware",
    "timestamps-receive": "hardware",
    "timestamp-filters": ("all",),
    "timestamp-clock": "/dev/ptp0",
    "offload-gro": False,
    "offload-gro-hardware": False,
    "offload-lro": False,
    "offload-tso": False,
    "offload-gso": False,
    "vlan-filter": False,
    "bridge-vlan-filter": False,
    "coalescing-receive-us": 0,
    "coalescing-receive-frames": 1,
    "coalescing-transmit-us": 0,
    "coalescing-adaptive": False,
    "receive-queues": 1,
    "deferred-interrupts": 0,
    "flush-timeout-ns": 0,
    "polled-by-threads": False,
    "xdp-by-driver": True,
    "xdp-zero-copy": True,
    "eee": False,
    "pause-receive": False,
    "pause-transmit": False,
    "reverse-path-filter": 0,
    "interrupt-cpus": ("24: 0-2",),
}

FAULTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("clock-source", {"clock-source": "hpet"}, "degrades", "current_clocksource"),
    ("clock-source", {"clock-source": "jiffies"}, "prevents", "current_clocksource"),
    ("clock-source", {"clock-source": "sundial"}, "unknown", ""),
    ("clock-synchronised", {"clock-synchronised": False}, "degrades", "systemctl enable"),
    ("clock-synchronised", {"clock-max-error-us": 12_000}, "degrades", "chronyc makestep"),
    ("clock-programs", {"clock-programs": ()}, "degrades", "systemctl enable"),
    ("clock-programs", {"clock-programs": ("chronyd", "systemd-timesyn")}, "degrades", "systemd-timesyncd"),
    (
        "clock-programs",
        {"clock-programs": ("chronyd", "phc2sys", "ptp4l")},
        "degrades",
        "disable --now chrony",
    ),
    ("clock-programs", {"clock-programs": ("ptp4l",)}, "degrades", "phc2sys"),
    ("kernel-preemption", {"kernel-preemption": "PREEMPT_DYNAMIC"}, "degrades", "apt install"),
    ("kernel-timing", {"kernel-options": OPTIONS[1:]}, "degrades", "apt install"),
    ("kernel-queues", {"kernel-options": (*OPTIONS[:-1], "CONFIG_XDP_SOCKETS=n")}, "degrades", "apt install"),
    ("cpu-isolation", {"isolated-cpus": ""}, "degrades", "isolcpus=managed_irq,domain,3"),
    ("cpu-ticks", {"nohz-full-cpus": ""}, "degrades", "nohz_full=3"),
    ("frequency-governor", {"governors": ("performance", "powersave")}, "degrades", "cpupower frequency-set"),
    ("idle-states", {"idle-latency-us": 133, "cpu-dma-latency": False}, "degrades", "cpupower idle-set"),
    ("wake-ups", {"wake-late-p99-ns": 300_000}, "degrades", "nohz_full=3"),
    ("rt-throttling", {"rt-runtime-us": 950_000}, "degrades", "sched_rt_runtime_us=-1"),
    ("sched-fifo", {"sched-fifo": False}, "degrades", "setcap"),
    ("mlockall", {"mlockall": False}, "degrades", "setcap"),
    ("cpu-dma-latency", {"cpu-dma-latency": False}, "degrades", "/dev/cpu_dma_latency"),
    ("kernel-timestamps", {"timestamps": False}, "prevents", "apt install"),
    ("packet-sockets", {"packet-sockets": False}, "degrades", "setcap"),
    ("namespaces", {"network-namespaces": False}, "degrades", "unprivileged_userns_clone"),
    ("socket-buffers", {"rmem-max-bytes": 212_992}, "degrades", "sysctl -w net.core.rmem_max=8388608"),
    ("process-limits", {"limit-open-files": 256}, "degrades", "ulimit -n"),
    ("process-limits", {"limit-locked-memory-bytes": 65_536, "mlockall": False}, "degrades", "ulimit -l"),
    ("process-limits", {"limit-real-time-priority": 0, "sched-fifo": False}, "degrades", "ulimit -r"),
    ("spool-room", {"spool-free-bytes": 1 << 30}, "degrades", "--spool"),
    ("spool-room", {"spool-free-bytes": 1 << 20}, "prevents", "--spool"),
    (
        "firewall",
        {"firewall-chains": ("inet filter input drop: filter at input, 0 rules",)},
        "prevents",
        "nft insert rule inet filter input iifname INTERFACE accept",
    ),
    (
        "firewall",
        {"firewall-chains": ("ip filter OUTPUT accept: filter at output, 3 rules",)},
        "degrades",
        "nft insert rule ip filter OUTPUT oifname INTERFACE accept",
    ),
    ("firewall", {"firewall-tables": ("filter: 7 rules",)}, "degrades", "iptables -I INPUT"),
    ("firewall", {"firewall-chains": ("ip filter F drop: filter at forward, 9 rules",)}, "fine", ""),
    ("link", {"state": "down"}, "prevents", "ip link set dev eth1 up"),
    ("address", {"ipv4": ()}, "prevents", "ip addr add"),
    ("mtu", {"mtu-bytes": 1_400}, "degrades", "mtu 1500"),
    ("interface-timestamps", {"timestamps-receive": "software"}, "degrades", "ethtool -T eth1"),
    ("interface-timestamps", {"timestamps-transmit": "none"}, "prevents", "ethtool -T eth1"),
    ("offload-gro", {"offload-gro": True}, "degrades", "ethtool -K eth1 gro off"),
    ("offload-gro-hardware", {"offload-gro-hardware": True}, "degrades", "ethtool -K eth1 rx-gro-hw off"),
    ("offload-lro", {"offload-lro": True}, "degrades", "ethtool -K eth1 lro off"),
    ("offload-tso", {"offload-tso": True}, "degrades", "ethtool -K eth1 tso off"),
    ("offload-gso", {"offload-gso": True}, "degrades", "ethtool -K eth1 gso off"),
    ("vlan-filter", {"vlan-filter": True}, "degrades", "rx-vlan-filter off"),
    ("vlan-filter", {"bridge-vlan-filter": True}, "degrades", "bridge vlan add"),
    ("coalescing", {"coalescing-receive-us": 3}, "degrades", "ethtool -C eth1"),
    ("coalescing", {"coalescing-adaptive": True}, "degrades", "ethtool -C eth1"),
    ("interrupt-deferral", {"deferred-interrupts": 2}, "degrades", "echo 0 > /sys/class/net/eth1/napi_defer"),
    (
        "interrupt-deferral",
        {"flush-timeout-ns": 200_000},
        "degrades",
        "/sys/class/net/eth1/gro_flush_timeout",
    ),
    ("polling-threads", {"polled-by-threads": True}, "degrades", "echo 0 > /sys/class/net/eth1/threaded"),
    ("receive-queues", {"receive-queues": 8}, "degrades", "ethtool -L eth1 combined 1"),
    ("xdp", {"xdp-by-driver": False}, "degrades", "choose another interface"),
    ("xdp", {"xdp-zero-copy": False}, "fine", ""),
    ("eee", {"eee": True}, "degrades", "ethtool --set-eee eth1 eee off"),
    ("flow-control", {"pause-receive": True}, "degrades", "ethtool -A eth1"),
    (
        "reverse-path-filter",
        {"reverse-path-filter": 1},
        "degrades",
        "sysctl -w net.ipv4.conf.eth1.rp_filter=2",
    ),
    ("reverse-path-filter", {"reverse-path-filter": 2}, "fine", ""),
    ("interrupts", {"interrupt-cpus": ("24: 0-3",)}, "degrades", "echo 0-2 > /proc/irq/24/smp_affinity_list"),
    ("interrupts", {"cores": 1, "interrupt-cpus": ("24: 0",)}, "degrades", "nproc"),
]


def facts(changed: dict[str, Any] | None = None) -> list[Fact]:
    """A host that is fine in every respect, but for what is changed; None is not readable."""
    changed = changed or {}
    told: list[tuple[str, str, Any]] = [(name, "", value) for name, value in HOST.items()]
    told += [(name, "eth1", value) for name, value in INTERFACE.items()]
    seen = [(name, of, changed.get(name, value)) for name, of, value in told]
    return [
        Fact(name, of, value, "" if value is not None else "it was planted so") for name, of, value in seen
    ]


def test_a_host_without_fault_is_fine_in_every_respect() -> None:
    found = judge(facts())
    assert {one.name for one in found} == {check.name for check in CHECKS}
    assert [one for one in found if one.severity is not Severity.FINE] == []
    assert all(one.cure == "" and one.fix == "" for one in found)


@pytest.mark.parametrize(("name", "planted", "severity", "cure"), FAULTS)
def test_a_planted_fault_is_found_with_its_cure(
    name: str, planted: dict[str, Any], severity: str, cure: str
) -> None:
    (found,) = [one for one in judge(facts(planted)) if one.name == name]
    assert found.severity == severity, found
    assert cure in found.cure
    assert (found.cure == "") == (severity in ("fine", "unknown"))
    assert "\n" not in found.cure
    assert found.seen
    (check,) = [check for check in CHECKS if check.name == name]
    assert found.fix == (check.fix if severity in ("prevents", "degrades") else "")


def test_every_check_has_been_seen_to_fail() -> None:
    failed = {name for name, _, severity, _ in FAULTS if severity in ("prevents", "degrades")}
    assert failed == {check.name for check in CHECKS}


@pytest.mark.parametrize("fact", [*HOST, *INTERFACE])
def test_what_cannot_be_read_is_never_fine(fact: str) -> None:
    """Every fact decides at least one check, which then does not know, or decides by another fact."""
    before = {one.name: one for one in judge(facts())}
    planted = [one for one in facts() if one.name != fact]
    interface = "eth1" if fact in INTERFACE else ""
    planted.append(Fact(fact, interface, None, "it was planted so"))
    after = [one for one in judge(planted) if one != before[one.name]]
    assert all(one.severity is Severity.UNKNOWN for one in after)
    assert all(one.seen == "not known here: it was planted so" and not one.cure for one in after)
    # These decide only where another fact leaves it open.
    elsewhere = {"user-namespaces", "mac"}
    assert bool(after) or fact in elsewhere


def test_a_fact_that_the_agent_does_not_tell_is_not_known() -> None:
    found = {one.name: one for one in judge([fact for fact in facts() if fact.name != "eee"])}
    assert found["eee"].seen == "not known here: the agent does not tell of eee; it may be of another version"


@pytest.mark.parametrize("read", ["truth", "number", "text", "texts"])
def test_a_fact_of_another_kind_is_not_known(read: str) -> None:
    kinds: dict[str, Any] = {"truth": True, "number": 5, "text": "word", "texts": ("a", "b")}
    look = Look([Fact(name, "", value) for name, value in kinds.items()])
    for kind, value in kinds.items():
        if kind == read:
            assert getattr(look, read)(kind) == value
        else:
            with pytest.raises(NotKnownError):
                getattr(look, read)(kind)


WORDS = st.text(st.sampled_from("ab0,-=:. "), max_size=12) | st.text()


@pytest.mark.parametrize("name", [*HOST, *INTERFACE])
@settings(max_examples=25)
@given(value=st.one_of(st.booleans(), st.integers(), WORDS, st.lists(WORDS, min_size=1).map(tuple)))
def test_no_fact_upsets_a_judge(name: str, value: bool | int | str | tuple[str, ...]) -> None:
    found = judge(facts({name: value}))
    assert {one.name for one in found} == {check.name for check in CHECKS}


def test_a_fixed_offload_is_not_to_be_fixed() -> None:
    planted = [fact for fact in facts() if fact.name != "offload-gro-hardware"]
    planted.append(Fact("offload-gro-hardware", "eth1", True, note="the driver has it fixed"))
    (found,) = [one for one in judge(planted) if one.name == "offload-gro-hardware"]
    assert (found.severity, found.fix) == (Severity.DEGRADES, "")


def test_addresses_that_two_have_are_found_over_the_whole_lab() -> None:
    def host(mac: str | None, *ipv4: str, interface: str = "eth1") -> list[Fact]:
        return [
            Fact("mac", interface, mac, "" if mac else "it is hidden"),
            Fact("ipv4", interface, ipv4),
        ]

    well = {"a": host("02:00:00:00:00:01", "10.0.0.1"), "b": host("02:00:00:00:00:02", "10.0.0.2")}
    assert judge_together(well) == []
    same_mac = {"a": host("02:00:00:00:00:01", "10.0.0.1"), "b": host("02:00:00:00:00:01", "10.0.0.2")}
    ((name, found),) = judge_together(same_mac)
    assert (name, found.severity, found.seen) == (
        "b",
        Severity.PREVENTS,
        "02:00:00:00:00:01 is also that of a eth1",
    )
    same_ip = {"a": [*host("02:00:00:00:00:01", "10.0.0.1"), *host(None, "10.0.0.1", interface="eth2")]}
    found_here = [one for _, one in judge_together(same_ip)]
    assert [one.severity for one in found_here] == [Severity.UNKNOWN, Severity.PREVENTS]
    assert found_here[1].cure == "ip addr del 10.0.0.1 dev eth2"
    bridged = {"a": [*host("02:00:00:00:00:01"), *host("02:00:00:00:00:01", interface="br0")]}
    assert judge_together(bridged) == []


def test_facts_are_the_same_by_both_ways() -> None:
    """As the agent program prints them, and as an agent answers."""
    told: list[dict[str, Any]] = [
        {"name": "a", "interface": "", "value": True, "unreadable": "", "note": ""},
        {"name": "b", "interface": "eth1", "value": -5, "unreadable": "", "note": "as seen"},
        {"name": "c", "interface": "", "value": "word", "unreadable": "", "note": ""},
        {"name": "d", "interface": "", "value": ["x", "y"], "unreadable": "", "note": ""},
        {"name": "e", "interface": "", "value": None, "unreadable": "hidden", "note": ""},
    ]
    answered = [
        pb.HostFact(name="a", truth=True),
        pb.HostFact(name="b", interface="eth1", number=-5, note="as seen"),
        pb.HostFact(name="c", text="word"),
        pb.HostFact(name="d", texts=pb.Texts(text=["x", "y"])),
        pb.HostFact(name="e", unreadable="hidden"),
    ]
    assert facts_of_json(told) == [_fact(one) for one in answered]
    assert _fact(pb.HostFact(name="f")).value is None


def test_lists_of_processors_are_read() -> None:
    assert cpus_of("0-2,5") == {0, 1, 2, 5}
    assert cpus_of("") == set()
    for wrong in ("all", "0-", "3-x", "0-99999999"):
        with pytest.raises(NotKnownError):
            cpus_of(wrong)
