// The network and traffic of crates/sim/benches/switched_udp.rs in ns-3; keep the two alike.
//
// 32 end systems on four switches in a star, 1 Gbit/s, 100 ns; 128 periodic UDP flows. Two ways to build it:
//
//   bridged  Switches are BridgeNetDevices, links are CSMA channels with two devices each. It is the only store-and-forward
//            Ethernet switch of ns-3: a bridge does not take point-to-point devices. Such a link is half-duplex,
//            so the load is kept low (trunks below a tenth): the two directions hardly ever meet.
//   routed   Point-to-point links, full-duplex, and routers in the place of the switches: not an equal network, but what
//            ns-3 does fastest.
//
// No traces are kept and no addresses resolved on the way: neighbour caches are filled before the run. Bridges learn:
// the first frames to an end system that has not sent yet are flooded and counted where they go.
#include <cstdint>
#include <cstdlib>
#include <ctime>
#include <iostream>
#include <string>
#include <vector>

#include <ns3/applications-module.h>
#include <ns3/bridge-module.h>
#include <ns3/core-module.h>
#include <ns3/csma-module.h>
#include <ns3/internet-module.h>
#include <ns3/network-module.h>
#include <ns3/point-to-point-module.h>

using namespace ns3;

namespace
{

constexpr uint32_t END_SYSTEMS = 32;
constexpr uint32_t SWITCHES = 4;
constexpr uint32_t FLOWS = 128;
constexpr uint16_t FIRST_PORT = 20000;

uint64_t frameHops = 0;

void
CountHop(Ptr<const Packet>)
{
    ++frameHops;
}

/// The links: end systems in turn to the switches, the other switches to the first.
std::vector<NodeContainer>
Links(const NodeContainer& ends, const NodeContainer& switches)
{
    std::vector<NodeContainer> links;
    for (uint32_t i = 0; i < END_SYSTEMS; ++i)
    {
        links.emplace_back(ends.Get(i), switches.Get(i % SWITCHES));
    }
    for (uint32_t i = 1; i < SWITCHES; ++i)
    {
        links.emplace_back(switches.Get(i), switches.Get(0));
    }
    return links;
}

/// Returns the address of each end system.
std::vector<Ipv4Address>
Bridged(const NodeContainer& ends, const NodeContainer& switches)
{
    CsmaHelper csma;
    csma.SetChannelAttribute("DataRate", StringValue("1Gbps"));
    csma.SetChannelAttribute("Delay", TimeValue(NanoSeconds(100)));
    NetDeviceContainer hosts;
    std::vector<NetDeviceContainer> ports(SWITCHES);
    uint32_t number = 0;
    for (const auto& link : Links(ends, switches))
    {
        const NetDeviceContainer pair = csma.Install(link);
        if (number < END_SYSTEMS)
        {
            hosts.Add(pair.Get(0));
            ports[number % SWITCHES].Add(pair.Get(1));
        }
        else
        {
            ports[number - END_SYSTEMS + 1].Add(pair.Get(0));
            ports[0].Add(pair.Get(1));
        }
        ++number;
    }
    for (uint32_t i = 0; i < SWITCHES; ++i)
    {
        BridgeHelper().Install(switches.Get(i), ports[i]);
    }
    InternetStackHelper().Install(ends);
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.0.0");
    const Ipv4InterfaceContainer interfaces = addresses.Assign(hosts);
    std::vector<Ipv4Address> found;
    for (uint32_t i = 0; i < END_SYSTEMS; ++i)
    {
        found.push_back(interfaces.GetAddress(i));
    }
    for (uint32_t i = 0; i < END_SYSTEMS; ++i)
    {
        const Ptr<Ipv4L3Protocol> stack = ends.Get(i)->GetObject<Ipv4L3Protocol>();
        const Ptr<ArpCache> neighbours = stack->GetInterface(interfaces.Get(i).second)->GetArpCache();
        for (uint32_t other = 0; other < END_SYSTEMS; ++other)
        {
            ArpCache::Entry* entry = neighbours->Add(found[other]);
            entry->SetMacAddress(hosts.Get(other)->GetAddress());
            entry->MarkPermanent();
        }
    }
    return found;
}

/// Returns the address of each end system.
std::vector<Ipv4Address>
Routed(const NodeContainer& ends, const NodeContainer& switches)
{
    InternetStackHelper stack;
    stack.Install(ends);
    stack.Install(switches);
    PointToPointHelper line;
    line.SetDeviceAttribute("DataRate", StringValue("1Gbps"));
    line.SetChannelAttribute("Delay", TimeValue(NanoSeconds(100)));
    Ipv4AddressHelper addresses("10.0.0.0", "255.255.255.252");
    std::vector<Ipv4Address> found;
    for (const auto& link : Links(ends, switches))
    {
        const Ipv4InterfaceContainer pair = addresses.Assign(line.Install(link));
        addresses.NewNetwork();
        if (found.size() < END_SYSTEMS)
        {
            found.push_back(pair.GetAddress(0));
        }
    }
    Ipv4GlobalRoutingHelper::PopulateRoutingTables();
    return found;
}

void
Traffic(const NodeContainer& ends, const std::vector<Ipv4Address>& addresses, int64_t seconds)
{
    const Time duration = Seconds(seconds);
    for (uint32_t i = 0; i < FLOWS; ++i)
    {
        const uint32_t from = i % END_SYSTEMS;
        const uint32_t to = (from + 1 + i * 7 % (END_SYSTEMS - 1)) % END_SYSTEMS;
        const Time period = MilliSeconds(int64_t{1} << i % 8);
        const Time offset = MicroSeconds(i * 7919 % period.GetMicroSeconds());
        const uint16_t port = FIRST_PORT + i;
        UdpServerHelper(port).Install(ends.Get(to)).Start(Seconds(0));
        UdpClientHelper client(addresses[to], port);
        client.SetAttribute("Interval", TimeValue(period));
        client.SetAttribute("PacketSize", UintegerValue(18 + i * 389 % 1455));
        const int64_t count = (duration - offset).GetNanoSeconds() / period.GetNanoSeconds();
        client.SetAttribute("MaxPackets", UintegerValue(static_cast<uint32_t>(count)));
        client.Install(ends.Get(from)).Start(offset);
    }
}

} // namespace

int
main(int argc, char* argv[])
{
    const std::string kind = argc > 1 ? argv[1] : "bridged";
    const int64_t seconds = argc > 2 ? std::atoll(argv[2]) : 10;
    const bool recorded = kind == "recorded" && argc > 3;
    const bool bridged = recorded || kind == "bridged";
    if ((!bridged && kind != "routed") || seconds < 1)
    {
        std::cerr << "usage: switched_udp bridged|routed SECONDS, or switched_udp recorded SECONDS PREFIX\n";
        return 2;
    }
    // Headers only: a record of ours holds no payload either.
    Config::SetDefault("ns3::PcapFileWrapper::CaptureSize", UintegerValue(64));
    NodeContainer ends;
    ends.Create(END_SYSTEMS);
    NodeContainer switches;
    switches.Create(SWITCHES);
    const auto addresses = bridged ? Bridged(ends, switches) : Routed(ends, switches);
    if (recorded)
    {
        CsmaHelper().EnablePcapAll(argv[3], false);
    }
    Traffic(ends, addresses, seconds);
    Config::ConnectWithoutContext(bridged
                                      ? "/NodeList/*/DeviceList/*/$ns3::CsmaNetDevice/PhyTxBegin"
                                      : "/NodeList/*/DeviceList/*/$ns3::PointToPointNetDevice/PhyTxBegin",
                                  MakeCallback(&CountHop));
    Simulator::Stop(Seconds(seconds) + MilliSeconds(100));
    const std::clock_t begun = std::clock();
    Simulator::Run();
    const double took = static_cast<double>(std::clock() - begun) / CLOCKS_PER_SEC;
    Simulator::Destroy();
    std::cout << "{\"simulator\": \"ns-3 " << kind << "\", \"frame_hops\": " << frameHops
              << ", \"cpu_s\": " << took << "}\n";
    return 0;
}
