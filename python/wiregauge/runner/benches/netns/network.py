"""Builds and shapes the network of the netns bench, in a process of its own.

pyroute2 forks a child for every namespace it talks to. In the testmaster, which has threads (gRPC, Polars), such a
child can inherit a lock that is never released and hang. This process has no threads; it does its work and
ends. The network stays, because the namespaces are bound to files in `/run/netns` of the enclosure.

Called as `python -m wiregauge.runner.benches.netns.network`, with an `Order` on standard input. Exit code 0, or
1 and one line on standard error.
"""

from __future__ import annotations

import contextlib
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import msgspec
from pyroute2 import IPRoute, NetNS, netns
from pyroute2.ethtool.ioctl import EthtoolError, EthtoolFeaturesList, IoctlEthtool, NotSupportedError
from pyroute2.netlink.exceptions import NetlinkError
from pyroute2.netlink.rtnl import TC_H_ROOT
from pyroute2.netlink.rtnl.tcmsg import sched_tbf

from wiregauge.plan import Attachment, Link, Node, Switch
from wiregauge.runner.benches.netns.order import NETWORK_SPACE, Order, network_port, space_name

__all__ = ["main"]

# Preamble and start delimiter (8), frame check sequence (4) and inter-frame gap (12) occupy a wire but do not
# belong to the kernel's frames. The shaper counts them, or small frames would get too much of the line.
_WIRE_OVERHEAD: Final = 24
# One largest frame with its overhead and a tag: the least depth of a token bucket that lets it pass at all.
_BUCKET: Final = 1_546
_HOST_QUEUE: Final = 4 << 20
_TICK_NS: Final = 64  # unit of tbf's bucket depth in the kernel interface (PSCHED_SHIFT 6)
_NTF_MASTER: Final = 0x04
_NUD_PERMANENT: Final = 0x80
# A forwarding entry that never ages. A bridge takes a *permanent* one for its own address and keeps the frame.
_NUD_NOARP: Final = 0x40
_CARRIER_SECONDS: Final = 10.0
_RATE32_MAX: Final = (1 << 32) - 1
_IFF_NOARP: Final = 0x80
_MTU: Final = 1_600
"""MTU of links to the network that the model plays, B: a frame of 1500 B with all tags."""
_OFFLOADS: Final = ("checksum", "gro", "gso", "segmentation", "scatter-gather", "vlan")
"""Parts of feature names of offloads that leave a frame unfinished, or merge several, for an interface to complete."""


def main() -> int:
    """Executes the one task it is given."""
    order = msgspec.json.decode(sys.stdin.buffer.read(), type=Order)
    try:
        if order.task == "remove":
            for name in netns.listnetns():
                if not name.startswith("."):  # agents listen there
                    netns.remove(name)
            return 0
        if order.switches == "model":
            if order.task == "build":
                _build_around_model(order)
            return 0
        builder = _Builder(order)
        lent = _Lent(order.interfaces, order.home, order.were_up) if order.interfaces is not None else None
        if order.task == "build":
            builder.build(lent)
        elif order.task == "return" and lent is not None:
            lent.give_back(order.network.nodes)
        elif lent is None:
            builder.shape()
    except (OSError, NetlinkError, EthtoolError) as error:
        print(f"the kernel refused to {order.task} the network: {error}", file=sys.stderr)
        return 1
    return 0


class _Builder:
    def __init__(self, order: Order) -> None:
        self._nodes, self._links = order.network.nodes, order.network.links
        self._rate = order.link_rate_bps
        self._chosen = order.chosen
        self._pairs = order.pairs
        self._spaces: dict[int, NetNS] = {}
        self._interfaces: dict[str, str] = {}

    def build(self, lent: _Lent | None) -> None:
        """Creates namespaces, links, addresses and queues. Lent interfaces are not shaped."""
        for index, _ in enumerate(self._nodes):
            self._build_node(index)
        if lent is not None:
            lent.take(self._nodes)
            self._interfaces = lent.names
        for link in self._links:
            self._build_link(link, made=lent is not None)
        if lent is None:
            self.shape()
        self._teach_addresses()
        if lent is not None:
            lent.await_carriers(self._nodes)

    def shape(self) -> None:
        """Creates or changes the token bucket of every port."""
        for link in self._links:
            for end in link.ends:
                kind = self._nodes[end.node].kind
                space = self._space(end.node)
                queue = kind.port_buffer.bytes if isinstance(kind, Switch) else _HOST_QUEUE
                index = space.link_lookup(ifname=self._port_name(end))[0]
                _shape(space, index, self._rate or link.rate_bps, queue)

    def _space(self, index: int) -> NetNS:
        if index not in self._spaces:
            self._spaces[index] = NetNS(space_name(self._nodes[index]))
        return self._spaces[index]

    def _build_node(self, index: int) -> None:
        node = self._nodes[index]
        netns.create(space_name(node))
        _quieten(space_name(node))
        space = self._space(index)
        space.link("set", index=space.link_lookup(ifname="lo")[0], state="up")
        if not node.is_end_system:
            space.link("add", ifname="br0", kind="bridge", br_stp_state=0, br_mcast_snooping=0)
            space.link("set", index=space.link_lookup(ifname="br0")[0], state="up")

    def _build_link(self, link: Link, *, made: bool) -> None:
        a, b = link.ends
        if not made:
            self._space(a.node).link(
                "add",
                ifname=self._port_name(a),
                kind="veth",
                peer={"ifname": self._port_name(b), "net_ns_fd": space_name(self._nodes[b.node])},
            )
        for end in (a, b):
            node = self._nodes[end.node]
            space = self._space(end.node)
            index = space.link_lookup(ifname=self._port_name(end))[0]
            if node.is_end_system:
                # A lent interface keeps its address: the plan uses it.
                address = {} if made else {"address": _mac(node)}
                space.link("set", index=index, state="up", **address)
                space.addr("add", index=index, address=_ipv4(node), prefixlen=15)
            else:
                space.link("set", index=index, master=space.link_lookup(ifname="br0")[0], state="up")

    def _teach_addresses(self) -> None:
        """Adds fixed neighbours and forwarding entries: no ARP and no flooding among the measured frames."""
        interfaces: dict[int, int] = {}
        # Only for pairs that meet: all of 250 end systems would be 62 250 kernel calls.
        for here, there in self._pairs:
            space = self._space(here)
            if here not in interfaces:
                name = self._interfaces.get(self._nodes[here].name, "eth0")
                interfaces[here] = space.link_lookup(ifname=name)[0]
            _teach(space, interfaces[here], self._nodes[there])
        for switch, node in enumerate(self._nodes):
            if node.is_end_system:
                continue
            space = self._space(switch)
            ports = self._next_ports(switch)
            ways = [(_mac(self._nodes[target]), port) for target, port in ports.items()]
            ways += [(_text(mac), ports[target]) for mac, target in self._chosen if target in ports]
            for mac, port in ways:
                index = space.link_lookup(ifname=f"p{port}")[0]
                space.fdb("add", ifindex=index, lladdr=mac, flags=_NTF_MASTER, state=_NUD_NOARP)

    def _next_ports(self, switch: int) -> dict[int, int]:
        """Output port of this switch for every end system; the plan ensures that the network is a tree."""
        neighbours: dict[int, list[tuple[int, int]]] = {}
        for link in self._links:
            for here, there in (link.ends, link.ends[::-1]):
                neighbours.setdefault(here.node, []).append((there.node, here.port))
        ports: dict[int, int] = {}
        for first, port in neighbours.get(switch, []):
            seen, front = {switch, first}, [first]
            while front:
                node = front.pop()
                if self._nodes[node].is_end_system:
                    ports[node] = port
                    continue
                for beyond, _ in neighbours.get(node, []):
                    if beyond not in seen:
                        seen.add(beyond)
                        front.append(beyond)
        return ports

    def _port_name(self, end: Attachment) -> str:
        node = self._nodes[end.node]
        return self._interfaces.get(node.name, "eth0") if node.is_end_system else f"p{end.port}"


def _build_around_model(order: Order) -> None:
    """Creates a namespace for each end system and one for the network, where each end system's link ends.

    The model plays the lines: nothing is shaped here. It exchanges frames past every stack, so each must be complete,
    with its checksum and its tag, and the kernel must not answer for the network or send into it.
    """
    nodes = order.network.end_systems
    spaces = {NETWORK_SPACE: _empty_space(NETWORK_SPACE)}
    for number, node in nodes.items():
        name = space_name(node)
        spaces[name] = space = _empty_space(name)
        port = network_port(number)
        ends = {"net_ns_fd": NETWORK_SPACE, "ifname": port, "mtu": _MTU}
        space.link("add", ifname="eth0", kind="veth", mtu=_MTU, peer=ends)
        _unload(name, "eth0")
        _unload(NETWORK_SPACE, port)
        network = spaces[NETWORK_SPACE]
        far = network.link_lookup(ifname=port)[0]
        _poll(network, NETWORK_SPACE, far, port)
        network.link("set", index=far, flags=_IFF_NOARP, change=_IFF_NOARP)
        network.link("set", index=far, state="up")
        near = space.link_lookup(ifname="eth0")[0]
        space.link("set", index=near, state="up", address=_mac(node))
        space.addr("add", index=near, address=_ipv4(node), prefixlen=15)
    for here, there in order.pairs:
        space = spaces[space_name(nodes[here])]
        _teach(space, space.link_lookup(ifname="eth0")[0], nodes[there])


def _empty_space(name: str) -> NetNS:
    """Creates a namespace with nothing but its loopback."""
    netns.create(name)
    _quieten(name)
    space = NetNS(name)
    space.link("set", index=space.link_lookup(ifname="lo")[0], state="up")
    return space


def _unload(space: str, interface: str) -> None:
    """Switches off an interface's offloads. Raises OSError if one stays on."""
    with _within(space):
        driver = IoctlEthtool(interface)
        try:
            features = driver.get_features()
            for name in _unfinished(features):
                features.set_value(name, value=False)
            # The kernel also reports this where the driver keeps none of several requested variants.
            with contextlib.suppress(NotSupportedError):
                driver.set_features(features)
            kept = _unfinished(driver.get_features())
        finally:
            driver.close()
    if kept:
        raise OSError(
            f"{interface} in {space} keeps the offload {kept[0]}, which would leave frames unfinished"
        )


def _poll(space: NetNS, name: str, index: int, interface: str) -> None:
    """Has an interface poll its ring, as it must to receive XDP frames from its other end, without merging frames.

    A veth polls while GRO is on, and GRO merges no frames beyond its size limit.
    """
    try:
        space.link("set", index=index, **{"IFLA_GRO_MAX_SIZE": 1})
        with _within(name):
            driver = IoctlEthtool(interface)
            try:
                features = driver.get_features()
                features.set_value("rx-gro", value=True)
                driver.set_features(features)
            finally:
                driver.close()
    except (NetlinkError, NotSupportedError):
        # Without it (before Linux 5.19) XDP frames do not arrive, which their sender notices when it tries.
        return


def _unfinished(features: EthtoolFeaturesList) -> list[str]:
    """Offloads that are on and can be switched off."""
    return [
        name
        for name, active, changeable, *_ in features
        if active and changeable and any(part in name for part in _OFFLOADS)
    ]


def _teach(space: NetNS, interface: int, other: Node) -> None:
    """Adds a permanent neighbour: no ARP among the measured frames."""
    space.neigh("add", dst=_ipv4(other), lladdr=_mac(other), ifindex=interface, state=_NUD_PERMANENT)


class _Lent:
    """Interfaces of the host, moved into namespaces of end systems and returned."""

    def __init__(self, names: dict[str, str], home: int, were_up: Sequence[str]) -> None:
        self.names = names
        self._home = home
        self._were_up = were_up

    def take(self, nodes: Sequence[Node]) -> None:
        """Moves each interface into the namespace of its end system."""
        with _within(self._home), IPRoute() as kernel:
            for node in nodes:
                index = kernel.link_lookup(ifname=self.names[node.name])[0]
                kernel.link("set", index=index, net_ns_fd=space_name(node))

    def give_back(self, nodes: Sequence[Node]) -> None:
        """Returns each interface to the host, without our address and up if it was, as far as it still exists."""
        for node in nodes:
            with _within(space_name(node)), IPRoute() as kernel:
                for index in kernel.link_lookup(ifname=self.names[node.name]):
                    kernel.flush_addr(index=index)
                    kernel.link("set", index=index, state="down")
                    kernel.link("set", index=index, net_ns_fd=self._home)
        with _within(self._home), IPRoute() as kernel:
            for name in self._were_up:
                for index in kernel.link_lookup(ifname=name):
                    kernel.link("set", index=index, state="up")

    def await_carriers(self, nodes: Sequence[Node]) -> None:
        """Waits for the carriers: a cable takes seconds to come up. Raises OSError for one that does not."""
        patience = time.monotonic() + _CARRIER_SECONDS
        for node in nodes:
            name = self.names[node.name]
            with _within(space_name(node)), IPRoute() as kernel:
                index = kernel.link_lookup(ifname=name)[0]
                while not kernel.get_links(index)[0].get_attr("IFLA_CARRIER"):
                    if time.monotonic() > patience:
                        raise OSError(f"{name} has no carrier: is the cable connected, and the other end up?")
                    time.sleep(0.05)


@contextlib.contextmanager
def _within(space: str | int) -> Iterator[None]:
    """Runs the block inside a namespace, by its name or open file."""
    with Path("/proc/self/ns/net").open() as here:
        netns.setns(space)
        try:
            yield
        finally:
            netns.setns(here.fileno())


def _mac(node: Node) -> str:
    return _text(node.mac)


def _text(mac: Iterable[int]) -> str:
    return ":".join(f"{byte:02x}" for byte in mac)


def _ipv4(node: Node) -> str:
    return ".".join(str(byte) for byte in node.ipv4)


def _quieten(space: str) -> None:
    """Disables IPv6 in the namespace: neighbour discovery would send its own frames among the measured ones."""
    with _within(space):
        for which in ("all", "default"):
            # A kernel without IPv6 has nothing to disable.
            with contextlib.suppress(FileNotFoundError):
                Path(f"/proc/sys/net/ipv6/conf/{which}/disable_ipv6").write_text("1", encoding="ascii")


class _WireTbf:
    """pyroute2's `tbf` with the two parameters it leaves out: wire overhead and a bucket of exact depth.

    The library computes the bucket in whole microseconds, which above 1 Gbit/s is less than a frame, and cannot set
    the overhead; its table of plugins is the intended place for extensions.
    """

    parent = TC_H_ROOT
    options = sched_tbf.options

    @staticmethod
    def get_parameters(keywords: dict[str, Any]) -> dict[str, Any]:
        rate: int = keywords["rate"]
        depth_ns = -(-_BUCKET * 1_000_000_000 // rate)
        parameters = {
            "rate": rate,
            "rate_overhead": _WIRE_OVERHEAD,
            "limit": keywords["limit"],
            "buffer": -(-depth_ns // _TICK_NS),
            "mtu": 0,
        }
        return {"attrs": [["TCA_TBF_PARMS", parameters], ["TCA_TBF_RTAB", True]]}

    @staticmethod
    def fix_request(request: dict[str, Any]) -> None:
        request.pop("rate", None)
        request.pop("limit", None)


def _shape(space: NetNS, index: int, rate_bps: int, queue_bytes: int) -> None:
    rate = rate_bps // 8
    with contextlib.suppress(NetlinkError):  # there is none yet
        space.tc("del", index=index, parent=TC_H_ROOT)
    if rate > _RATE32_MAX:
        # Beyond 34 Gbit/s the classic parameter overflows, and no software token bucket is that fast.
        return
    space.tc("modules")["tbf"] = _WireTbf
    space.tc("add", "tbf", index, 0x10000, rate=rate, limit=queue_bytes)


if __name__ == "__main__":
    sys.exit(main())
