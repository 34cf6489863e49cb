"""Every attribute of the language changes the plan, and every default of the schema is the one the plan applies.

One rich test holds every element of the language. Each attribute is given another value in it; the plan must change.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

import pytest
from capture_files import Packet, pcapng
from lxml import etree

from wiregauge.config import TestError, load
from wiregauge.config.schema import NAMESPACE, declarations
from wiregauge.plan import Campaign

RICH = f"""<test xmlns="{NAMESPACE}" name="rich">
  <network>
    <end-system name="mac"><clock><temperature at="1s" drift="5ppm"/></clock>
      <timestamps read-cost="0%:20ns 100%:90ns"/><event period="1s" duration="1ms" latency="16us"/>
      <host-tsn>
        <traffic-class number="0" priorities="7"><etf/></traffic-class>
        <traffic-class number="1" priorities="3"><cbs idle-slope="20Mbit/s"/></traffic-class>
        <traffic-class number="2" priorities="0 1 2 4 5 6"/>
        <gate-schedule><gate-entry open="0" for="500us"/><gate-entry open="0 1 2" for="500us"/></gate-schedule>
        <classify flow="60" priority="3"/>
      </host-tsn>
    </end-system>
    <end-system name="sensor"><host interrupts="coalesced" interrupt-wait="50us"/>
      <host-tsn>
        <ingress flow="60">
          <stream-gate>
            <stream-gate-entry state="open" for="900us"/><stream-gate-entry state="closed" for="100us"/>
          </stream-gate>
          <police rate="10Mbit/s" burst="4kB"/>
        </ingress>
      </host-tsn>
    </end-system>
    <end-system name="other">
      <host-tsn offload="txtime-assist" txtime-delay="500us">
        <traffic-class number="0" priorities="0 1 2 3 4 5 6 7"><etf/></traffic-class>
        <gate-schedule><gate-entry open="0" for="1ms"/></gate-schedule>
      </host-tsn>
    </end-system><end-system name="h1"/><end-system name="h2"/>
    <switch name="sw1" kind="mixed-criticality"><vlan id="0" ports="1 2 3"/><vlan id="5" ports="1 2"/></switch>
    <switch name="sw2" kind="arinc664"/>
    <switch name="sw3"><own-frames period="2s"/></switch>
    <host-model name="t1700" interrupts="coalesced" interrupt-wait="50us">
      <receive-buffer class="be"/><stack protocol="raw"/></host-model>
    <end-system name="p1" host="t1700"/>
    <end-system name="p2">
      <host-tsn offload="full">
        <traffic-class number="0" priorities="0 1 2 3" preemptable="on"/>
        <traffic-class number="1" priorities="4 5 6 7"/>
        <gate-schedule>
          <gate-entry open="0 1" for="400us" mac="release"/><gate-entry open="0 1" for="400us" mac="hold"/>
          <gate-entry open="0 1" for="200us"/>
        </gate-schedule>
      </host-tsn>
    </end-system>
    <switch name="r1"><switch-tsn ports="2 3" guard-band="20us">
        <traffic-class number="0" priorities="0 1 2 3" preemptable="on">
          <ats><scheduler flow="80" rate="10Mbit/s" burst="2KiB"/></ats></traffic-class>
        <traffic-class number="1" priorities="4 5 6 7"/>
        <gate-schedule cycle-extension="1us">
          <gate-entry open="0 1" for="500us" mac="release"/><gate-entry open="0 1" for="500us" mac="hold"/>
        </gate-schedule>
        <gate-schedule base-time="5ms">
          <gate-entry open="0 1" for="500us" mac="hold"/><gate-entry open="0 1" for="500us" mac="release"/>
        </gate-schedule>
    </switch-tsn></switch>
    <switch name="r2"><switch-tsn>
        <traffic-class number="0" priorities="0 1 2 3 4 5"/><traffic-class number="1" priorities="6"/>
        <traffic-class number="2" priorities="7"/><cyclic-queuing classes="1 2" cycle="500us"/>
        <ingress flow="80" max-sdu="1500B">
          <stream-gate>
            <stream-gate-entry state="open" for="900us" max-octets="4kB"/>
            <stream-gate-entry state="closed" for="100us"/>
          </stream-gate>
          <police rate="10Mbit/s" burst="4kB" excess-rate="1Mbit/s" excess-burst="4kB"/>
        </ingress>
        <ingress flow="97" max-sdu="1500B"/>
    </switch-tsn></switch>
    <switch name="r3" kind="arinc664"><switch-tsn><traffic-class number="0" priorities="0 1 2 3 4 5 6 7"/>
    </switch-tsn></switch>
    <end-system name="q1"/><end-system name="q2"/><end-system name="q3"/><switch name="bc"/><switch name="tc"/>
    <hub name="hub"/>
    <link between="mac sw1" rate="1Gbit/s"/>
    <link between="sensor sw1" rate="1Gbit/s"/>
    <link between="other sw1" rate="1Gbit/s"/>
    <link between="mac sw2" rate="1Gbit/s" network="B"/>
    <link between="sensor sw2" rate="1Gbit/s" network="B"/>
    <link between="h1 hub" rate="10Mbit/s"/>
    <link between="h2 hub" rate="10Mbit/s"/>
    <link between="sw3 sw1" rate="1Gbit/s"/>
    <link between="p1 r1" rate="1Gbit/s"/>
    <link between="p2 r2" rate="1Gbit/s"/>
    <link between="r1:2 r2:2" rate="1Gbit/s"/>
    <link between="r1:3 r2:3" rate="1Gbit/s"/>
    <link between="q1 bc" rate="1Gbit/s"/><link between="q2 tc" rate="1Gbit/s"/>
    <link between="q3 tc" rate="1Gbit/s"/><link between="bc tc" rate="1Gbit/s"/>
    <link between="r3 sw3" rate="1Gbit/s"/>
  </network>
  <flows>
    <flow id="10" protocol="raw" from="mac" to="sensor"/>
    <flow id="20" protocol="raw" from="mac" to="sensor"/>
    <flow id="30" protocol="rc" from="mac" to="sensor" bag="1ms" sub-links="2"/>
    <flow id="40" protocol="tt" from="mac" to="sensor" period="10ms">
      <window port="sw1:2" offset="1ms"/>
    </flow>
    <flow id="50" protocol="udp" from="h1" to="h2"/>
    <flow id="60" protocol="udp" from="mac" to="sensor" destination-port="7001"/>
    <flow id="70" protocol="rc" from="other" to="sensor" bag="8ms"/>
    <flow id="80" protocol="udp" from="p1" to="p2"><path via="r1:3 r2"/></flow>
    <flow id="91-92" protocol="udp" from="mac" to="sensor"/>
    <flow id="93-94" protocol="udp" from="mac" to="sensor"/>
    <flow id="95-96" protocol="tt" from="sensor" to="mac" period="10ms" offset="3ms" offset-step="1ms"/>
    <flow id="97" protocol="raw" from="p1" to="p2" vlan="9"><path via="r1:3 r2"/></flow>
    <flow id="98" protocol="raw" from="p1" to="p2" vlan="11">
      <path via="r1:2 r2"/><path via="r1:3 r2"/><frer latent-difference="4"/>
    </flow>
    <flow id="99" protocol="raw" from="q1" to="q2"><stream-reservation class="A" max-frame-size="90B"/></flow>
  </flows>
  <synchronise max-offset="9us"><exchange to="sensor"/><ptp/><chrony/>
    <as6802 masters="mac sensor other" compression-masters="sw1" cycles="10">
      <faulty-master name="other" behaviour="early" by="5us"/>
    </as6802>
    <as6802 masters="p1 p2" compression-masters="r1" clients="r2" cycle="1250us" domain="1"/>
    <ptp-domain ordinary-clocks="q1 q2" boundary-clocks="bc" transparent-clocks="tc">
      <ptp-clock name="q1"/><ptp-clock name="bc" priority1="7" priority2="8"/>
    </ptp-domain>
  </synchronise>
  <tasks duration="1s">
    <send flow="10" period="2ms" payload="64B"/><relay flow="10"><fault kind="loss" sequence="5"/></relay>
    <send flow="20" period="2ms" payload="64B" burst="2"/><receive flow="20"/>
    <send flow="30" period="8ms" payload="64B"/><receive flow="30"/>
    <send flow="40" period="10ms" payload="64B"/><receive flow="40"/>
    <send flow="50" period="10ms" payload="64B"/><receive flow="50"/>
    <replay flow="60" file="line.pcapng" interface="0"/><receive flow="60"/>
    <send flow="70" period="8ms" payload="64B"/><relay flow="70" vl="170"/>
    <send flow="80" period="8ms" payload="64B"/><receive flow="80"/>
    <send flow="91-92" period="100ms" payload="64B"/><receive flow="91-92"/>
    <replay flow="93-94" file="line.pcapng" interface="0"/><receive flow="93-94"/>
    <send flow="95-96" period="10ms" payload="64B"/><receive flow="95-96"/>
    <send flow="97" period="8ms" payload="64B"/><receive flow="97"/>
    <send flow="98" period="8ms" payload="64B"/><receive flow="98"/>
    <send flow="99" period="1ms" payload="64B"/><receive flow="99"/>
    <inject on="other" to="sensor" load="10%"/>
    <inject on="other" to="sensor" load="10%" threads="3"/>
    <remote-log on="mac" to="other"/>
    <capture on="sw1"/>
  </tasks>
  <faults>
    <bit-errors link="mac sw1" rate="1e-9"/>
    <loss link="mac sw1" share="1%"/>
    <duplicate link="mac sw1" share="1%"/>
    <delay link="mac sw1" share="1%" by="1ms"/>
    <corrupt link="mac sw1" share="1%"/>
    <wrong-length link="sw3 sw1" sent-by="sw3" share="1%" length="60B"/>
    <cut link="sensor sw1" from="100ms"/>
    <babble flow="30" from="1ms" until="2ms" period="100us"/>
    <restart switch="sw2" from="100ms" until="200ms"/>
    <step-clock on="mac" at="5ms" by="1us"/>
  </faults>
  <sweep><axis of="payload" values="64B 128B" flow="20"/><repeat times="2"/></sweep>
  <limits><limit measure="lost" at-most="0"/><limit measure="sent" at-least="1"/></limits>
</test>
"""

Edit = dict[str, str | None]
"""Attributes by name; None removes one."""

# What senders and injectors share.
SHAPING: dict[str, Edit] = {
    "active": {"active": "10ms", "pause": "10ms"},
    "pause": {"active": "10ms", "pause": "20ms"},
    "pacing": {"pacing": "gap"},
    "backend": {"backend": "packet"},
}

CHECKED = {
    ("relay", "on"),
    ("host-model", "name"),
    ("path", "to"),
    ("path", "network"),
    ("traffic-class", "number"),
    ("gate-schedule", "cycle-time"),
    ("stream-gate", "cycle-time"),
    ("flows", "reservable"),
}
"""Says again what is known already: another value is refused."""
ALLOWS = {("tasks", "overload")}
"""Takes away a refusal, and changes nothing else: `tests/broken` has what is refused without it."""
FRAME_FAULT: dict[str, Edit] = {
    "link": {"link": "sensor sw1"},
    "share": {"share": "2%"},
    "flow": {"share": None, "flow": "10", "sequence": "5"},
    "sequence": {"share": None, "flow": "10", "sequence": "5-7"},
    "sent-by": {"sent-by": "mac"},
    "from": {"from": "1ms"},
    "until": {"until": "1s"},
}

HOST: dict[str, Edit] = {
    **{
        name: {name: "7us"}
        for name in (
            "transmit",
            "transmit-per-byte",
            "receive",
            "receive-per-byte",
            "interface-delay",
            "interface-receive-delay",
            "interrupt-latency",
            "interrupt-wait",
            "send-wake-up",
            "receive-wake-up",
            "relay-wake-up",
            "card-read",
            "card-read-per-byte",
        )
    },
    "interrupts": {"interrupts": "polled"},
    "interrupt-frames": {"interrupt-frames": "7"},
    "backlog": {"backlog": "7"},
    "ring": {"ring": "7"},
    "egress": {"egress": "7KiB"},
}

# Per element and attribute: another value, with whatever it takes to make it mean something.
OTHER: dict[str, dict[str, Edit]] = {
    "test": {"name": {"name": "other"}, "seed": {"seed": "2"}, "bench": {"bench": "netns"}},
    "network": {"host": {"host": "ideal"}, "routing": {"routing": "shortest"}},
    "path": {"via": {"via": "r1:2 r2"}, "to": {"to": "mac"}, "network": {"network": "B"}},
    "end-system": {
        "name": {"name": "renamed"},
        "host": {"host": "ideal"},
        "line-drift": {"line-drift": "-40ppm"},
        "interframe-gap": {"interframe-gap": "11B"},
    },
    "timestamps": {
        "application-error": {"application-error": "10ns"},
        "driver-error": {"driver-error": "10ns"},
        "wire-error": {"wire-error": "0%:-20ns 100%:60ns"},
        "read-cost": {"read-cost": "30ns"},
        "subtract-read-cost": {"subtract-read-cost": "least"},
    },
    "event": {
        "period": {"period": "2s"},
        "offset": {"offset": "1s"},
        "duration": {"duration": "2ms"},
        "latency": {"latency": "0%:1us 100%:16us"},
        "ramp-to": {"ramp-to": "150us"},
        "threads": {"threads": "send"},
    },
    "own-frames": {
        "period": {"period": "1s"},
        "offset": {"offset": "1s"},
        "frame": {"frame": "100B"},
        "priority": {"priority": "3"},
        "ports": {"ports": "1"},
    },
    "host-tsn": {
        "channels": {"channels": "4"},
        "offload": {"offload": "full"},
        "txtime-delay": {"txtime-delay": "600us"},
        "shortest-fragment": {"shortest-fragment": "128B"},
        "hold-advance": {"hold-advance": "30us"},
        "release-advance": {"release-advance": "5us"},
    },
    "traffic-class": {
        "number": {"number": "5"},
        "priorities": {"priorities": "6 7"},
        "queues": {"queues": "3"},
        "longest-frame": {"longest-frame": "1000B"},
        "preemptable": {"preemptable": "on"},
        "virtual-links": {"virtual-links": "low high"},
    },
    "frer": {
        "recovery": {"recovery": "match"},
        "history-length": {"history-length": "9"},
        "reset": {"reset": "3s"},
        "individual": {"individual": "match"},
        "replicate-at": {"replicate-at": "r1"},
        "eliminate-at": {"eliminate-at": "r2"},
        "intermediate-recovery": {"eliminate-at": "r2", "intermediate-recovery": "on"},
        "latent-difference": {"latent-difference": "5"},
        "latent-period": {"latent-period": "3s"},
        "latent-reset": {"latent-reset": "60s"},
    },
    "flows": {"reservable": {"reservable": "0.5%"}},
    "stream-reservation": {
        "class": {"class": "B"},
        "max-frame-size": {"max-frame-size": "200B"},
        "interval-frames": {"interval-frames": "2"},
    },
    "switch-tsn": {
        "ports": {"ports": "3"},
        "guard-band": {"guard-band": "30us"},
        "shortest-fragment": {"shortest-fragment": "128B"},
        "hold-advance": {"hold-advance": "30us"},
        "release-advance": {"release-advance": "5us"},
    },
    "ats": {"longest-residence": {"longest-residence": "2s"}},
    "scheduler": {
        "flow": {"flow": "97"},
        "rate": {"rate": "20Mbit/s"},
        "burst": {"burst": "4KiB"},
    },
    "cyclic-queuing": {
        "classes": {"classes": "0 1"},
        "cycle": {"cycle": "400us"},
        "base-time": {"base-time": "1us"},
    },
    "cbs": {
        "idle-slope": {"idle-slope": "30Mbit/s"},
        "max-frame": {"max-frame": "500B"},
        "max-interference": {"max-interference": "600B"},
        "offload": {"offload": "on"},
    },
    "etf": {"delta": {"delta": "200us"}, "offload": {"offload": "on"}, "deadline": {"deadline": "on"}},
    "gate-schedule": {
        "base-time": {"base-time": "1us"},
        "cycle-time": {"cycle-time": "9ms"},
        "cycle-extension": {"cycle-extension": "2us"},
    },
    "gate-entry": {"open": {"open": "0 1"}, "for": {"for": "600us"}, "mac": {"mac": "release"}},
    "classify": {"flow": {"flow": "10"}, "priority": {"priority": "2"}},
    "ingress": {
        "flow": {"flow": "20", "offload": "on"},
        "offload": {"offload": "on"},
        "identify": {"identify": "source"},
        "fields": {"identify": "ip", "fields": "source-ip destination-port"},
        "max-sdu": {"max-sdu": "1400B"},
        "block-oversize": {"block-oversize": "on"},
        "gate-of": {"gate-of": "80"},
        "meter-of": {"meter-of": "80"},
    },
    "stream-gate": {
        "base-time": {"base-time": "1us"},
        "cycle-time": {"cycle-time": "9ms"},
        "close-on-invalid": {"close-on-invalid": "on"},
        "close-on-octets": {"close-on-octets": "on"},
    },
    "stream-gate-entry": {
        "state": {"state": "open"},
        "for": {"for": "800us"},
        "max-octets": {"max-octets": "9kB"},
        "priority": {"priority": "6"},
    },
    "police": {
        "rate": {"rate": "20Mbit/s"},
        "burst": {"burst": "5kB"},
        "excess-rate": {"excess-rate": "2Mbit/s"},
        "excess-burst": {"excess-burst": "5kB"},
        "coupling": {"coupling": "on"},
        "colour-mode": {"colour-mode": "aware"},
        "drop-on-yellow": {"drop-on-yellow": "on"},
        "mark-all-red": {"mark-all-red": "on"},
    },
    "clock": {
        "offset": {"offset": "-5us"},
        "drift": {"drift": "-20ppm"},
        "wander": {"wander": "3ppb"},
        "granularity": {"granularity": "8ns"},
    },
    "temperature": {"at": {"at": "2s"}, "drift": {"drift": "-5ppm"}},
    "host": {**HOST, "background": {"background": "received"}},
    "host-model": {
        **HOST,
        "background": {"background": "discarded"},
        "name": {"name": "other"},
        "like": {"like": "ideal"},
        "file": {"file": "t1700.host.xml"},
    },
    "receive-buffer": {
        "class": {"class": "rc", "slots": "9"},
        "slots": {"slots": "9"},
        "fifo": {"fifo": "2KiB"},
    },
    "stack": {
        "protocol": {"protocol": "be"},
        "transmit": {"transmit": "7us"},
        "transmit-per-byte": {"transmit-per-byte": "7ns"},
        "receive": {"receive": "7us"},
        "receive-per-byte": {"receive-per-byte": "7ns"},
    },
    "switch": {
        "name": {"name": "renamed"},
        "kind": {"kind": "mixed-criticality"},
        "file": {"file": "measured.switch.xml"},
        "forwarding-mode": {"forwarding-mode": "cut-through"},
        "delay": {"delay": "3us"},
        "forwarding": {"forwarding": "learning"},
        "address-table": {"forwarding": "learning", "address-table": "777"},
        "learning-time": {"forwarding": "learning", "learning-time": "3us"},
        "ageing-time": {"forwarding": "learning", "ageing-time": "7s"},
        "priorities": {"priorities": "fifo"},
        "buffer": {"buffer": "64KiB"},
        "buffer-frames": {"buffer-frames": "7"},
        "queue-buffer": {"queue-buffer": "64KiB"},
        "queue-frames": {"queue-frames": "7"},
        "shared-buffer": {"shared-buffer": "64KiB"},
        "shared-frames": {"shared-frames": "7"},
        "policing": {"policing": "off"},
        "integration": {"integration": "shuffling"},
        "raster": {"raster": "50us"},
        "raster-others": {"raster": "50us", "raster-others": "2"},
        "mixed-rate-delay": {"mixed-rate-delay": "3us"},
        "line-drift": {"line-drift": "-40ppm"},
        "interframe-gap": {"interframe-gap": "11B"},
        "shortest-frame": {"shortest-frame": "32B"},
        "longest-frame": {"longest-frame": "9018B"},
    },
    "vlan": {"id": {"id": "6"}, "ports": {"ports": "1 2 3"}},
    "hub": {"name": {"name": "renamed"}, "delay": {"delay": "500ns"}},
    "link": {
        "between": {"between": "mac sw1:9"},
        "rate": {"rate": "100Mbit/s"},
        "delay": {"delay": "1us"},
        "network": {"network": "B"},
    },
    "flow": {
        "id": {"id": "7"},
        "source-macs": {"source-mac": "02:00:00:10:00:00", "source-macs": "5"},
        "destination-macs": {"destination-mac": "02:00:00:10:00:00", "destination-macs": "5"},
        "protocol": {"protocol": "udp"},
        "from": {"from": "other"},
        "to": {"to": "other sensor"},
        "deadline": {"deadline": "1s"},
        "vlan": {"vlan": "5"},
        "priority": {"priority": "5"},
        "dscp": {"dscp": "46"},
        "networks": {"networks": "B"},
        "vl": {"vl": "7"},
        "lmax": {"lmax": "777B"},
        "bag": {"bag": "2ms"},
        "sub-links": {"sub-links": "3"},
        "queue": {"queue": "7"},
        "skew-max": {"skew-max": "7ms"},
        "redundancy": {"redundancy": "off"},
        "sequence-number": {"sequence-number": "within"},
        "jitter": {"jitter": "7us"},
        "period": {"period": "5ms"},
        "offset": {"offset": "7us"},
        "offset-step": {"offset-step": "2ms"},
        "window": {"window": "77us"},
        "early": {"early": "7us"},
        "late": {"late": "777us"},
        "source-mac": {"source-mac": "02:00:00:00:00:71"},
        "destination-mac": {"destination-mac": "02:00:00:00:00:72"},
        "source-ip": {"source-ip": "10.1.1.1"},
        "destination-ip": {"destination-ip": "10.1.1.2"},
        "source-port": {"source-port": "5000"},
        "destination-port": {"destination-port": "5001"},
    },
    "window": {
        "port": {"port": "mac", "offset": "1ms"},
        "offset": {"offset": "2ms"},
        "length": {"length": "77us"},
    },
    "synchronise": {
        "reference": {"reference": "other"},
        "asymmetry": {"asymmetry": "7us"},
        "max-offset": {"max-offset": "7us"},
        "on-failure": {"on-failure": "refuse"},
        "wait": {"wait": "7s"},
    },
    "exchange": {"period": {"period": "7ms"}, "to": {"to": "other"}, "protocol": {"protocol": "raw"}},
    "ptp": {
        "timestamps": {"timestamps": "software"},
        "steer": {"steer": "off"},
        "interval": {"interval": "125ms"},
        "kp": {"kp": "0.7"},
        "ki": {"ki": "0.3"},
        "domain": {"domain": "20"},
        "transport": {"transport": "udp"},
        "delay": {"delay": "p2p"},
    },
    "chrony": {},
    "as6802": {
        "masters": {"masters": "sensor mac other"},
        "compression-masters": {"compression-masters": "sw1 sw2"},
        "clients": {"clients": None},
        "integrity": {"integrity": "high"},
        "cycle": {"cycle": "2ms"},
        "cycles": {"cycles": "20"},
        "precision": {"precision": "10us"},
        "max-drift": {"max-drift": "50ppm"},
        "max-delay": {"max-delay": "150us"},
        "faulty-masters": {"faulty-masters": "1"},
        "domain": {"domain": "7"},
        "priority": {"priority": "3"},
        "sync-threshold": {"sync-threshold": "3"},
        "stable-cycles": {"stable-cycles": "9"},
        "unstable-cycles": {"unstable-cycles": "9"},
        "powered-within": {"powered-within": "3ms"},
    },
    "faulty-master": {"name": {"name": "mac"}, "behaviour": {"behaviour": "late"}, "by": {"by": "7us"}},
    "ptp-domain": {
        "ordinary-clocks": {"ordinary-clocks": "q1 q2 q3"},
        "boundary-clocks": {"boundary-clocks": "bc tc", "transparent-clocks": None},
        "transparent-clocks": {"transparent-clocks": None},
        "domain": {"domain": "3"},
        "profile": {"profile": "gptp", "boundary-clocks": "bc tc", "transparent-clocks": None},
        "delay": {"delay": "p2p"},
        "announce-interval": {"announce-interval": "1s"},
        "sync-interval": {"sync-interval": "125ms"},
        "delay-interval": {"delay-interval": "125ms"},
        "announce-timeout": {"announce-timeout": "4"},
        "servo": {"servo": "basic"},
        "kp": {"kp": "0.1"},
        "ki": {"ki": "0.001"},
        "first-step-threshold": {"first-step-threshold": "1ms"},
        "step-threshold": {"step-threshold": "20us"},
        "delay-filter": {"delay-filter": "average"},
        "delay-filter-length": {"delay-filter-length": "5"},
        "priority": {"priority": "6"},
        "max-offset": {"max-offset": "2us"},
    },
    "ptp-clock": {
        "name": {"name": "q2", "role": "slave-only"},
        "priority1": {"priority1": "100"},
        "priority2": {"priority2": "100"},
        "role": {"role": "slave-only"},
    },
    "tasks": {
        "warm-up": {"warm-up": "1s"},
        "duration": {"duration": "2s"},
        "drain": {"drain": "1s"},
        "overload": {"overload": "on"},
    },
    "send": {
        "flow": {"flow": "10"},
        "period": {"period": "4ms"},
        "load": {"period": None, "load": "1%"},
        "payload": {"payload": "65B"},
        "fill": {"fill": "random"},
        "count": {"count": "100"},
        "offset": {"offset": "1ms"},
        "offset-step": {"offset-step": "1ms"},
        "cycle-offset": {"cycle-offset": "3ms"},
        "distribution": {"burst": None, "distribution": "exponential"},
        "burst": {"burst": "3"},
        "spacing": {"spacing": "10us"},
        "rate-limit": {"rate-limit": "10Mbit/s"},
        "sub-link": {"sub-link": "2"},
        "frame": {"payload": None, "frame": "165B"},
        "seed": {"distribution": "exponential", "seed": "7"},
        "ramp-to": {"ramp-to": "7ms"},
        "launch": {"launch": "on"},
        "transmit-time": {"transmit-time": "13B"},
        **SHAPING,
    },
    "replay": {
        "flow": {"flow": "50"},
        "file": {"file": "other.pcapng"},
        "interface": {"interface": "right"},
        "direction": {"direction": "sent"},
        "speed": {"speed": "50%"},
        "loops": {"loops": "4"},
        "loop-gap": {"loops": "4", "loop-gap": "7ms"},
        "count": {"count": "5"},
        "offset": {"offset": "1ms"},
        "offset-step": {"offset-step": "1ms"},
        "pacing": {"pacing": "gap"},
        "backend": {"backend": "packet"},
        "launch": {"launch": "on"},
        "transmit-time": {"transmit-time": "13B"},
    },
    "receive": {"flow": {"flow": "10"}, "on": {"on": "other"}},
    "relay": {
        "flow": {"flow": "20"},
        "on": {"on": "other"},
        "through": {"through": "task"},
        "vl": {"vl": "171"},
    },
    "fault": {
        "kind": {"kind": "corrupt"},
        "sequence": {"sequence": "6"},
        "to": {"kind": "misdirect", "to": "other"},
    },
    "inject": {
        "on": {"on": "mac"},
        "to": {"to": "mac"},
        "load": {"load": "11%"},
        "payload": {"payload": "100B"},
        "burst": {"burst": "11"},
        "frame": {"frame": "165B"},
        "distribution": {"distribution": "exponential"},
        "launch": {"launch": "off"},
        "threads": {"threads": "4"},
        "send-cost": {"send-cost": "40us"},
        "sleep-overhead": {"sleep-overhead": "0%:50us 100%:70us"},
        **SHAPING,
    },
    "remote-log": {
        "on": {"on": "sensor"},
        "to": {"to": "sensor"},
        "record": {"record": "64B"},
        "records": {"records": "7"},
    },
    "capture": {"on": {"on": "sw2"}, "snap": {"snap": "96B"}},
    "bit-errors": {
        "rate": {"rate": "1e-8"},
        **{name: FRAME_FAULT[name] for name in ("link", "sent-by", "from", "until")},
    },
    "loss": FRAME_FAULT,
    "duplicate": FRAME_FAULT,
    "delay": {**FRAME_FAULT, "by": {"by": "2ms"}},
    "corrupt": FRAME_FAULT,
    "wrong-length": {
        **{name: FRAME_FAULT[name] for name in ("share", "from", "until")},
        "length": {"length": "1600B"},
        "link": {"link": "mac sw2", "sent-by": "sw2"},
        "sent-by": {"link": "p1 r1", "sent-by": "p1"},
        "flow": {"share": None, "flow": "80", "sequence": "5", "link": "p1 r1", "sent-by": "p1"},
        "sequence": {"share": None, "flow": "80", "sequence": "5-7", "link": "p1 r1", "sent-by": "p1"},
    },
    "cut": {"link": {"link": "mac sw1"}, "from": {"from": "101ms"}, "until": {"until": "200ms"}},
    "babble": {
        "flow": {"flow": "40"},
        "from": {"from": "1.5ms"},
        "until": {"until": "3ms"},
        "period": {"period": "200us"},
        "load": {"period": None, "load": "1%"},
        "length": {"length": "777B"},
    },
    "restart": {"switch": {"switch": "sw1"}, "from": {"from": "101ms"}, "until": {"until": "201ms"}},
    "step-clock": {"on": {"on": "sw1"}, "at": {"at": "6ms"}, "by": {"by": "-1us"}},
    "axis": {
        "of": {"of": "period", "values": "1ms 2ms"},
        "values": {"values": "64B 129B"},
        "flow": {"flow": "10"},
    },
    "repeat": {"times": {"times": "3"}},
    "limit": {
        "flow": {"flow": "10"},
        "measure": {"measure": "delivered"},
        "at-most": {"at-most": "1"},
        "at-least": {"at-least": None, "at-most": "5"},
    },
}

# Which of several elements of a kind; the first where nothing is said.
WHICH: dict[tuple[str, str], int] = {
    ("as6802", "clients"): 1,
    **{("flow", name): 2 for name in ("networks", "vl", "lmax", "bag", "sub-links", "queue", "skew-max")},
    **{("flow", name): 2 for name in ("redundancy", "sequence-number", "jitter")},
    **{("flow", name): 3 for name in ("period", "offset", "window", "early", "late")},
    **{("flow", name): 1 for name in ("id", "from", "to", "protocol")},
    ("flow", "dscp"): 4,
    **{
        ("flow", f"{end}-{what}"): 5
        for end in ("source", "destination")
        for what in ("mac", "macs", "ip", "port")
    },
    **{("send", name): 1 for name in ("distribution", "burst", "spacing", "rate-limit", "flow")},
    ("send", "sub-link"): 2,
    ("relay", "vl"): 1,
    **{("send", name): 4 for name in ("frame", "seed", "ramp-to", "launch", "transmit-time", *SHAPING)},
    ("host-tsn", "txtime-delay"): 2,
    ("traffic-class", "queues"): 2,
    ("traffic-class", "longest-frame"): 6,
    ("traffic-class", "preemptable"): 2,
    ("traffic-class", "virtual-links"): 11,
    ("send", "cycle-offset"): 3,
    ("gate-schedule", "cycle-extension"): 3,
    ("gate-entry", "mac"): 5,
    **{("host-tsn", name): 3 for name in ("shortest-fragment", "hold-advance", "release-advance")},
    ("stream-gate-entry", "state"): 1,
    ("stream-gate-entry", "priority"): 2,
    **{("ingress", name): 1 for name in ("identify", "fields", "max-sdu", "block-oversize")},
    **{("ingress", name): 2 for name in ("gate-of", "meter-of")},
    **{("stream-gate", name): 1 for name in ("close-on-invalid", "close-on-octets")},
    **{
        ("police", name): 1
        for name in (
            "excess-rate",
            "excess-burst",
            "coupling",
            "colour-mode",
            "drop-on-yellow",
            "mark-all-red",
        )
    },
    ("end-system", "name"): 4,
    ("end-system", "host"): 2,
    **{("end-system", name): 5 for name in ("line-drift", "interframe-gap")},
    **{("switch", name): 1 for name in ("mixed-rate-delay", "line-drift", "interframe-gap")},
    **{("inject", name): 1 for name in ("threads", "send-cost", "sleep-overhead")},
    ("switch", "name"): 1,
    ("switch", "kind"): 1,
    ("link", "between"): 0,
    ("link", "network"): 5,
    ("vlan", "id"): 1,
    ("vlan", "ports"): 1,
    ("limit", "at-least"): 1,
    # The groups.
    ("flow", "offset-step"): 10,
    ("send", "offset-step"): 7,
    ("replay", "offset-step"): 1,
}

# What must change with it elsewhere: tag, which, attributes.
WITH: dict[tuple[str, str], list[tuple[str, int, Edit]]] = {
    ("end-system", "name"): [("link", 6, {"between": "renamed hub"}), ("flow", 4, {"to": "renamed"})],
    ("traffic-class", "priorities"): [("traffic-class", 2, {"priorities": "0 1 2 4 5"})],
    ("replay", "launch"): [("classify", 0, {"priority": "7"})],
    ("classify", "flow"): [("flow", 1, {"vlan": "5"})],
    ("ingress", "flow"): [("flow", 1, {"vlan": "5"})],
    ("switch", "name"): [
        ("link", 3, {"between": "mac renamed"}),
        ("link", 4, {"between": "sensor renamed"}),
        ("restart", 0, {"switch": "renamed"}),
    ],
    ("hub", "name"): [("link", 5, {"between": "h1 renamed"}), ("link", 6, {"between": "h2 renamed"})],
    ("link", "between"): [
        ("vlan", 0, {"ports": "9 1 2"}),
        ("vlan", 1, {"ports": "9 1 2"}),
        ("window", 0, {"port": "sw1:1"}),
    ],
    ("link", "network"): [("link", 6, {"network": "B"})],
    ("path", "via"): [("path", 1, {"via": "r1:2 r2"})],
    ("flow", "id"): [
        ("send", 1, {"flow": "7"}),
        ("receive", 0, {"flow": "7"}),
        ("axis", 0, {"flow": "7"}),
    ],
    ("send", "flow"): [("send", 0, {"flow": "20"})],
    ("replay", "flow"): [("send", 4, {"flow": "60"})],
    ("receive", "flow"): [("relay", 0, {"flow": "20"})],
    ("relay", "flow"): [("receive", 0, {"flow": "10"})],
}


def edited(root: etree._Element, tag: str, which: int, edit: Edit) -> None:
    node = list(root.iter(f"{{{NAMESPACE}}}{tag}"))[which]
    for name, value in edit.items():
        if value is None:
            node.attrib.pop(name)
        else:
            node.set(name, value)


def compiled(root: etree._Element, folder: Path) -> Campaign:
    path = folder / "t.xml"
    path.write_bytes(etree.tostring(root))
    return load(path).campaign


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One for all tests: a plan says where its captures are."""
    folder = tmp_path_factory.mktemp("effect")
    left = [Packet(1_000_000 * k, 100 + k, sent=k % 2 == 0) for k in range(4)]
    right = [Packet(1_000_000 * k, 200, 1) for k in range(4, 6)]
    (folder / "line.pcapng").write_bytes(pcapng(left + right, ("left", "right")))
    (folder / "other.pcapng").write_bytes(pcapng(left[:3], ("left",)))
    (folder / "measured.switch.xml").write_text(f'<switch xmlns="{NAMESPACE}" name="any" queue-frames="77"/>')
    (folder / "t1700.host.xml").write_text(
        f'<host-model xmlns="{NAMESPACE}" name="any"><receive-buffer class="tt" slots="3"/></host-model>'
    )
    return folder


@pytest.fixture(scope="module")
def rich(folder: Path) -> Campaign:
    return compiled(etree.fromstring(RICH), folder)


def test_every_attribute_has_another_value() -> None:
    declared = {(tag, name) for tag, element in declarations().items() for name in element.attributes}
    assert {(tag, name) for tag, edits in OTHER.items() for name in edits} == declared
    assert {element.tag for element in etree.fromstring(RICH).iter()} == {
        f"{{{NAMESPACE}}}{tag}" for tag in declarations()
    }


@pytest.mark.parametrize(("tag", "name"), [(tag, name) for tag, edits in OTHER.items() for name in edits])
def test_every_attribute_changes_the_plan(folder: Path, rich: Campaign, tag: str, name: str) -> None:
    before, after = etree.fromstring(RICH), etree.fromstring(RICH)
    # With `on` left out a task runs at every end: only a flow with several shows that it is looked at.
    edit = OTHER[tag][name]
    if (tag, name) == ("receive", "on"):
        for root in (before, after):
            edited(root, "flow", 1, {"to": "sensor other"})
        edited(before, "receive", 0, {"on": "sensor"})
        extra = deepcopy(after.find(f".//{{{NAMESPACE}}}receive"))
        assert extra is not None
        for root, on in ((before, "other"), (after, "sensor")):
            copy = deepcopy(extra)
            copy.set("on", on)
            parent = root.find(f".//{{{NAMESPACE}}}tasks")
            assert parent is not None
            parent.append(copy)
    edited(after, tag, WHICH.get((tag, name), 0), edit)
    for other in WITH.get((tag, name), []):
        edited(after, *other)
    if (tag, name) == ("network", "routing"):
        # It is for flows that name no way.
        for root in (before, after):
            for node in root.findall(".//*[@flow='98']") + root.findall(".//*[@id='98']"):
                parent = node.getparent()
                assert parent is not None
                parent.remove(node)
        for path in after.findall(f".//{{{NAMESPACE}}}path"):
            parent = path.getparent()
            assert parent is not None
            parent.remove(path)
    if (tag, name) in CHECKED:
        with pytest.raises(TestError, match=f"{name} "):
            compiled(after, folder)
        return
    is_rich = etree.tostring(before) == etree.tostring(etree.fromstring(RICH))
    changed = compiled(after, folder) != (rich if is_rich else compiled(before, folder))
    assert changed == ((tag, name) not in ALLOWS)


@pytest.mark.parametrize(
    ("tag", "name", "default"),
    [
        (declaration.name, attribute.name, attribute.default)
        for declaration in declarations().values()
        for attribute in declaration.attributes.values()
        if attribute.default is not None
    ],
)
def test_defaults_of_the_schema_are_those_of_the_plan(
    folder: Path, rich: Campaign, tag: str, name: str, default: str
) -> None:
    root = etree.fromstring(RICH)
    nodes = [node for node in root.iter(f"{{{NAMESPACE}}}{tag}") if node.get(name) is None]
    if (tag, name) == ("send", "spacing"):  # means something in a burst only
        nodes = [node for node in nodes if node.get("burst")]
    assert nodes
    for node in nodes:
        node.set(name, default)
    assert compiled(root, folder) == rich


WRONG = "?!"
"""A value that no attribute may have."""
OTHERWISE = {
    ("axis", "values"): f'payload "{WRONG}"',
    ("host-model", "file"): "there is no such file",
    ("switch", "file"): "there is no such file",
}
"""Where the message about a wrong value is of what it stands for."""


def with_wrong(tag: str, name: str, thorough: bool) -> Iterator[tuple[str, etree._Element]]:
    """The rich test with a wrong value of an attribute: at elements that have it, and where it has another above."""
    root = etree.fromstring(RICH)
    places = [which for which, node in enumerate(root.iter(f"{{{NAMESPACE}}}{tag}")) if name in node.attrib]
    for which in places if thorough else {*places[:1], *places[-1:]}:
        root = etree.fromstring(RICH)
        edited(root, tag, which, {name: WRONG})
        yield f"{which}", root
    if OTHER[tag][name][name] is None:  # it goes
        return
    root, which = etree.fromstring(RICH), WHICH.get((tag, name), 0)
    for element, number, edit in [(tag, which, OTHER[tag][name]), *WITH.get((tag, name), [])]:
        edited(root, element, number, edit)
    edited(root, tag, which, {name: WRONG})
    yield "changed", root


@pytest.mark.parametrize("tag", OTHER)
def test_a_wrong_value_is_the_only_mistake(folder: Path, thorough: bool, tag: str) -> None:
    """What cannot be checked because a value is not known is no second mistake."""
    told = {
        (name, where): said(root, folder)
        for name in OTHER[tag]
        for where, root in with_wrong(tag, name, thorough)
    }
    assert {
        key: lines
        for key, lines in told.items()
        if len(lines) != 1 or OTHERWISE.get((tag, key[0]), f'{key[0]} "{WRONG}"') not in lines[0]
    } == {}


def said(root: etree._Element, folder: Path) -> list[str]:
    try:
        compiled(root, folder)
    except TestError as error:
        return [str(one) for one in error.diagnostics]
    return []
