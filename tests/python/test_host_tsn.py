"""TSN settings of hosts: the commands are those of the real tc and ethtool; benches that have none of it refuse it.

The kernel at hand may lack every queue discipline. tc reads its arguments before it asks the kernel, so what it says
tells a word it does not know from a part that the kernel does not have.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from wiregauge.cli import app
from wiregauge.config import (
    Cbs,
    Classify,
    Etf,
    GateEntry,
    GateSchedule,
    HostTsn,
    Ingress,
    Police,
    StreamGate,
    StreamGateEntry,
    Test,
    TestError,
    TrafficClass,
    load,
)
from wiregauge.plan import Campaign, host_commands
from wiregauge.runner import BeyondBenchError, bench_named
from wiregauge.runner.benches.capabilities import beyond_hosts, beyond_namespaces

pytestmark = pytest.mark.usefixtures("unreported")

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = ROOT / "examples" / "lab" / "host_tsn.xml"
ANSWERS_OF_THE_KERNEL = (
    "Specified qdisc kind is unknown",
    "Failed to find specified qdisc",
    "TC classifier not found",
    "Parent Qdisc doesn't exist",
    "Cannot delete qdisc with handle of zero",
    "Cannot find specified qdisc",
    "Invalid handle",
    "RTNETLINK answers: ",
    "netlink error: Operation not supported",
    "Could not change any device features",
    "Failed to load TC action module",
    "We have an error talking to the kernel",
    "Actual changes:",
    "hw-tc-offload: off [requested on]",
)
"""What is said of arguments that were read."""


def refused_words(lines: Iterable[str]) -> list[str]:
    """The lines whose arguments a program did not read, with what it said; run on the loopback of a new namespace."""
    if os.geteuid() != 0:
        pytest.skip("this host grants no virtual interfaces to this user")
    for program in ("tc", "ethtool", "unshare"):
        if shutil.which(program) is None:
            pytest.skip(f"{program} is missing")
    refused = []
    for line in lines:
        # A namespace of its own for each: nothing is left of the one before, and nothing of this host is touched.
        script = f"tc qdisc add dev lo clsact; {line}" if " filter " in line else line
        done = subprocess.run(
            ["unshare", "--net", "sh", "-c", script],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "LC_ALL": "C"},
        )
        said = [one.strip() for one in (done.stdout + done.stderr).splitlines() if one.strip()]
        odd = [one for one in said if not any(answer in one for answer in ANSWERS_OF_THE_KERNEL)]
        if odd:
            refused.append(f"{line}: {odd[0]}")
    return refused


def base(
    talker: HostTsn | None = None,
    listener: HostTsn | None = None,
    launch: str | None = None,
    priority: int | None = None,
    *,
    relayed: bool = False,
) -> Test:
    test = (
        Test("t", bench="lab")
        .end_system("talker", tsn=talker)
        .end_system("listener", tsn=listener)
        .link("talker", "listener", rate="1Gbit/s")
        .flow(10, protocol="raw", from_="talker", to="listener")
        .flow(20, protocol="udp", from_="talker", to="listener", priority=priority)
        .timing(duration="1s")
        .send(10, period="10ms", payload="100B", launch=launch)
        .receive(10)
        .send(20, period="10ms", payload="100B")
    )
    return test.relay(20) if relayed else test.receive(20)


def all_in_one_class() -> TrafficClass:
    return TrafficClass(0, "0 1 2 3 4 5 6 7", shaper=Etf(offload="on"))


def commands_of(campaign: Campaign) -> list[str]:
    found = host_commands(campaign, dict.fromkeys(campaign.network.names, "lo"))
    return [line for host in found for line in (*host.apply, *host.undo)]


def variants() -> dict[str, Campaign]:
    gates = [StreamGateEntry("open", "1ms", max_octets="16MiB"), StreamGateEntry("closed", "1us")] * 12
    plain = [TrafficClass(0, "7", queues=2), TrafficClass(1, "0 1 2 3 4 5 6", queues=6)]
    shaped = [
        TrafficClass(0, "3", shaper=Cbs("20Mbit/s", offload="on")),
        TrafficClass(1, "2", shaper=Cbs("3Mbit/s", "300B", "1000B")),
        TrafficClass(2, "0 1 4 5 6 7"),
    ]
    launched = [
        TrafficClass(0, "7", shaper=Etf("1ms", offload="on", deadline="on")),
        TrafficClass(1, "0 1 2 3 4 5 6"),
    ]
    eight = [TrafficClass(number, str(number)) for number in range(8)]
    long = GateSchedule([GateEntry("76ms", "0 1 2 3 4 5 6 7")] * 28, base_time="24h")
    one = GateSchedule([GateEntry("1ms", "0")], cycle_time="1ms")
    police = Police("400Gbit/s", "16MiB")
    tests = {
        "mqprio": base(HostTsn(plain, channels=8)),
        "mqprio by the card": base(HostTsn(plain, offload="full")),
        "cbs": base(HostTsn(shaped, classify=[Classify(20, 3), Classify(10, 2)])),
        "etf": base(HostTsn(launched, classify=[Classify(10, 7)]), launch="on"),
        "taprio, the longest": base(HostTsn(eight, long)),
        "taprio by the card": base(HostTsn(eight, long, offload="full")),
        "taprio by launch times": base(
            HostTsn([all_in_one_class()], one, offload="txtime-assist", txtime_delay="500us")
        ),
        "the longest gate": base(None, HostTsn(ingress=[Ingress(20, StreamGate(gates, "24h"), police)])),
        "by the card": base(None, HostTsn(ingress=[Ingress(20, StreamGate(gates[:2]), offload="on")])),
        "tags": base(HostTsn(), priority=5),
        "tags and classes": base(HostTsn(plain), HostTsn(ingress=[Ingress(20, police=police)]), priority=7),
        "police": base(None, HostTsn(ingress=[Ingress(10, police=Police("8kbit/s", "114B"))])),
    }
    made = {name: test.compile().campaign for name, test in tests.items()}
    return {**made, "example": load(EXAMPLE).campaign}


@pytest.mark.parametrize("name", sorted(variants()))
def test_the_real_programs_read_every_command(name: str) -> None:
    lines = commands_of(variants()[name])
    assert lines
    assert refused_words(lines) == []


def preempting(fragment: str | None = None, schedule: GateSchedule | None = None) -> list[str]:
    low = TrafficClass(1, "0 1 2 3 4 5", preemptable="on")
    classes = [TrafficClass(0, "7"), low, TrafficClass(2, "6", preemptable="on")]
    tsn = HostTsn(classes, schedule, offload="full", shortest_fragment=fragment)
    campaign = base(tsn).compile().campaign
    assert beyond_hosts(campaign) == []
    return commands_of(campaign)


SET_MM = re.compile(
    r"ethtool --set-mm \S+"
    r"(?: (?:verify-enabled|tx-enabled|pmac-enabled) (?:on|off)| (?:verify-time|tx-min-frag-size) \d+)+"
)
"""ethtool(8): options that have a value each, in any order."""


@pytest.mark.parametrize(
    ("fragment", "bytes_"), [(None, 60), ("64B", 60), ("128B", 124), ("192B", 188), ("256B", 252)]
)
def test_preemption_is_asked_for_by_the_documented_words(fragment: str | None, bytes_: int) -> None:
    """ethtool(8), --set-mm: tx-min-frag-size is 64 (1 + addFragSize) - 4; tc-mqprio(8) and tc-taprio(8), fp: E or P for
    each class, of a card that keeps the classes itself."""
    entries = [GateEntry("500us", "0", mac="hold"), GateEntry("500us", "0 1 2", mac="release")]
    for schedule, by_card in ((None, "hw 1 mode channel"), (GateSchedule(entries), "flags 0x2")):
        lines = preempting(fragment, schedule)
        merge, root = lines[:2]
        assert SET_MM.fullmatch(merge)
        assert merge.endswith(f"pmac-enabled on tx-enabled on verify-enabled on tx-min-frag-size {bytes_}")
        assert root.endswith(f"{by_card} fp E P P")
        assert ("sched-entry H 01 500000 sched-entry R 07 500000" in root) == (schedule is not None)
        # What was there before is not known here: `restored` names it.
        assert lines[2:] == ["tc qdisc del dev lo root"]


def test_the_dry_run_names_the_layer_that_is_as_before_afterwards() -> None:
    classes = [TrafficClass(0, "7"), TrafficClass(1, "0 1 2 3 4 5 6", preemptable="on")]
    campaign = base(HostTsn(classes, offload="full")).compile().campaign
    (host,) = host_commands(campaign, dict.fromkeys(campaign.network.names, "eth1"))
    assert host.restored == ("the MAC merge layer (ethtool --set-mm)",)


def test_a_program_that_knows_preemption_reads_every_word() -> None:
    """Where the distribution has such programs: tc since 6.4, ethtool since 6.3."""
    known = {
        "tc": ("[fp ", ["tc", "qdisc", "add", "dev", "lo", "root", "mqprio", "help"]),
        "ethtool": ("--set-mm", ["ethtool", "--help"]),
    }
    for program, (word, help_) in known.items():
        if shutil.which(program) is None:
            continue
        told = subprocess.run(help_, capture_output=True, text=True, check=False)
        if word in told.stdout + told.stderr:
            assert refused_words(line for line in preempting() if line.startswith(program)) == []


def test_what_no_command_sets_is_refused_on_hosts() -> None:
    low = TrafficClass(1, "0 1 2 3 4 5 6", preemptable="on")
    by_kernel = base(HostTsn([TrafficClass(0, "7"), low])).compile().campaign
    (why,) = beyond_hosts(by_kernel)
    assert why.startswith(
        '"talker" has preemptable classes in <host-tsn>: only cards preempt; write offload="full"'
    )
    entries = [GateEntry("500us", "0", mac="hold"), GateEntry("500us", "0 1", mac="release")]
    advances = HostTsn(
        [TrafficClass(0, "7"), low],
        GateSchedule(entries),
        offload="full",
        hold_advance="2us",
        release_advance="1us",
    )
    reasons = beyond_hosts(base(advances).compile().campaign)
    assert [reason.split(" in <host-tsn>")[0] for reason in reasons] == [
        '"talker" has hold-advance',
        '"talker" has release-advance',
    ]


@pytest.mark.parametrize(
    "line",
    [
        "tc qdisc replace dev lo root handle 5747: taprio num_tc 1 maps 0",
        "tc qdisc replace dev lo root handle 5747: mqprio num_tc 2 map 0 1 queue 1@0",
        "tc qdisc replace dev lo parent 5747:1 etf clockid CLOCK_TIA delta 1",
        "tc qdisc replace dev lo parent 5747:1 cbs idleslope 1 sendslope -1 hicredit 1 locredit x",
        "tc filter add dev lo ingress pref 1 protocol ip flower dst_prt 7 action police rate 1mbit burst 2k",
        "tc filter add dev lo ingress pref 1 protocol ip flower action gate base-time 0 sched-entry ajar 1000",
        "tc filter add dev lo ingress pref 1 protocol ip flower action police rate 1mbit burst 2k"
        " conform-exceed drops/ok",
        "ethtool -L lo combine 4",
    ],
)
def test_a_wrong_word_is_told_from_a_missing_part(line: str) -> None:
    assert refused_words([line]) != []


def test_an_entry_more_does_not_fit_into_a_message_of_tc() -> None:
    entries = "sched-entry S ff 76000000 " * 32
    classes = "num_tc 8 map 0 1 2 3 4 5 6 7 0 0 0 0 0 0 0 0 queues 1@0 1@1 1@2 1@3 1@4 1@5 1@6 1@7"
    line = (
        f"tc qdisc replace dev lo root handle 5747: taprio {classes} base-time 1 {entries}clockid CLOCK_TAI"
    )
    assert "exceeded bound" in "".join(refused_words([line]))


def test_the_dry_run_prints_every_host(tmp_path: Path) -> None:
    shown = CliRunner().invoke(app, ["tsn", str(EXAMPLE), "--interface", "talker=enp3s0"])
    assert shown.exit_code == 0, shown.output
    lines = shown.output.splitlines()
    assert lines[0] == "# talker, interface enp3s0: before a run"
    root = next(line for line in lines if "taprio" in line)
    assert root == (
        "tc qdisc replace dev enp3s0 root handle 5747: taprio num_tc 3 map 2 2 2 1 2 2 2 0 2 2 2 2 2 2 2 2 "
        "queues 1@0 1@1 2@2 base-time 0 sched-entry S 01 200000 sched-entry S 06 800000 clockid CLOCK_TAI"
    )
    # What comes between stops the schedule's timer: it is stated again, behind filters' root and shapers.
    before = lines[: lines.index("# after it")]
    order = [line.split("enp3s0 ")[1].split()[0] for line in before if " qdisc " in line]
    assert order == ["clsact", "root", "parent", "parent", "root"]
    # 20 Mbit/s of 1 Gbit/s and frames of 1542 B: 1542 · 0.02 = 30.84 and 1542 · 0.98 = 1511.16.
    assert any(
        "cbs idleslope 20000 sendslope -980000 hicredit 31 locredit -1512 offload 0" in line for line in lines
    )
    assert "tc qdisc del dev enp3s0 root" in lines
    assert "# listener, interface eth1: before a run" in lines
    told = CliRunner().invoke(app, ["tsn", str(EXAMPLE), "--json"])
    hosts = json.loads(told.output)["hosts"]
    assert [host["end_system"] for host in hosts] == ["talker", "listener"]
    assert hosts[0]["restored"] == ["channels (ethtool -L)"]
    for wrong, why in (
        ("talker", "write END=NAME"),
        ("nobody=eth1", "no end system nobody"),
        ("talker=a b", "no name"),
    ):
        refused = CliRunner().invoke(app, ["tsn", str(EXAMPLE), "--interface", wrong])
        assert refused.exit_code == 2, refused.output
        assert why in refused.output


def test_filters_tag_what_udp_sockets_send() -> None:
    def filters(campaign: Campaign) -> list[str]:
        return [line.split(" dev lo ")[1] for line in commands_of(campaign) if "filter add" in line]

    made = base(HostTsn(), priority=5).compile().campaign
    addresses = "dst_mac {1} src_mac {0}".format(*(_mac(node.mac) for node in made.network.nodes))
    udp = "ip_proto udp src_ip {} dst_ip {} dst_port 4791".format(
        *(".".join(map(str, node.ipv4)) for node in made.network.nodes)
    )
    (only,) = filters(made)
    head, _, action = only.partition(" action ")
    assert head.startswith(f"egress pref 5700 protocol ip flower {addresses} {udp.rsplit(' ', 1)[0]} ")
    assert action == "vlan push id 0 protocol 802.1Q priority 5"
    with_classes = variants()["tags and classes"]
    raw_is_first = [line for line in filters(with_classes) if "egress" in line]
    assert [line.partition(" action ")[2] for line in raw_is_first] == [
        "skbedit priority 7 pipe action vlan push id 0 protocol 802.1Q priority 7",
        "skbedit priority 7",
    ]
    # Streams write the tag themselves, and arrivals have it.
    assert "protocol 802.1Q flower" in raw_is_first[1]
    (arriving,) = (line for line in filters(with_classes) if line.startswith("ingress"))
    assert "vlan_id 0 vlan_prio 7 vlan_ethtype ip" in arriving


def _mac(mac: Iterable[int]) -> str:
    return ":".join(f"{byte:02x}" for byte in mac)


def test_udp_frames_have_their_tag_with_filters_and_without() -> None:
    """Filters where all who send or return them have some; else the agent writes whole frames."""
    filtered = base(HostTsn(), HostTsn(), priority=5, relayed=True)
    for one in (base(priority=5), base(HostTsn(), priority=5, relayed=True), filtered):
        assert beyond_hosts(one.compile().campaign) == []


def test_flows_with_the_same_headers_have_the_same_tag() -> None:
    two = base(HostTsn(), priority=5).flow(30, protocol="udp", from_="talker", to="listener", priority=4)
    two = two.send(30, period="10ms", payload="100B").receive(30)
    with pytest.raises(TestError, match="a tag of priority 5 and a tag of priority 4"):
        two.compile()


def test_a_test_without_settings_says_so() -> None:
    shown = CliRunner().invoke(app, ["tsn", str(ROOT / "examples" / "first.xml")])
    assert (shown.exit_code, shown.output) == (
        0,
        "no end system of this test has <host-tsn>: nothing would be set\n",
    )


def test_benches_without_queue_disciplines_refuse_by_name() -> None:
    campaign = load(EXAMPLE).campaign
    assert beyond_hosts(campaign) == []
    namespaces = "\n".join(beyond_namespaces(campaign, "kernel"))
    assert '"talker" has <host-tsn>' in namespaces
    assert '"listener" has <host-tsn>' in namespaces
    with pytest.raises(
        BeyondBenchError, match='"talker" has <host-tsn>: the simulator has no model of launch times'
    ):
        bench_named("sim").adapt(campaign)
    refused = CliRunner().invoke(app, ["run", str(EXAMPLE), "--bench", "sim", "--dry-run"])
    assert refused.exit_code == 2
    assert "--dry-run has no effect with --bench sim" in refused.output
