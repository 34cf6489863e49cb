-- Wireshark dissector for what Wiregauge measures with and measures.
--
--   wiregauge   the probe header of every message (UDP port 61188, any other port where the CRC matches, EtherType
--               0x88B5), its CRC checked
--   wg664       ARINC 664 part 7: virtual link, network, equipment, sequence number; steps of the number that the
--               integrity check would not accept
--   wgpcf       protocol control frames of SAE AS6802 (EtherType 0x891D), the transparent clock in nanoseconds
--
-- Install it with `wiregauge dissector --install`, or give it to one call: tshark -X lua_script:wiregauge.lua
-- Filters: wiregauge.flow == 10, wiregauge.crc_ok == 0, wg664.vl == 0x0010 && wg664.network == "A", wgpcf.type == 2

local UDP_PORT = 61188
local ETHERTYPE_PROBE = 0x88B5
local ETHERTYPE_PCF = 0x891D
local HEADER = 12
local LAST_OF_SHORT = 46  -- payload of the shortest frame: what a raw message may be padded to

-- Exclusive or of two 32-bit numbers: a library up to Lua 5.2, an operator from 5.3 on.
local bits = rawget(_G, "bit") or rawget(_G, "bit32")
local xor, rshift, band
if bits then
    xor, rshift, band = bits.bxor, bits.rshift, bits.band
else
    xor = load("return function(a, b) return a ~ b end")()
    rshift = load("return function(a, n) return (a & 0xffffffff) >> n end")()
    band = load("return function(a, b) return a & b end")()
end

-- CRC-32 of IEEE Std 802.3, one byte at a time.
local crc_table = {}
for byte = 0, 255 do
    local c = byte
    for _ = 1, 8 do
        if c % 2 == 1 then
            c = xor(0xEDB88320, rshift(c, 1))
        else
            c = rshift(c, 1)
        end
    end
    crc_table[byte] = c
end
local function unsigned(value)
    if value < 0 then return value + 4294967296 end
    return value
end

-- ------------------------------------------------------------------------------------------------ probe header

local probe = Proto("wiregauge", "Wiregauge message")
local NO_YES = { [0] = "no", [1] = "yes" }
local f = {
    magic = ProtoField.uint8("wiregauge.magic", "Magic", base.HEX),
    version = ProtoField.uint8("wiregauge.version", "Version", base.DEC, nil, 0xF0),
    flags = ProtoField.uint8("wiregauge.flags", "Flags", base.HEX, nil, 0x0F),
    is_return = ProtoField.bool("wiregauge.return", "On the way back from a relay", 8, nil, 0x01),
    has_time = ProtoField.bool("wiregauge.tx_time", "Holds a transmit time", 8, nil, 0x02),
    warm_up = ProtoField.bool("wiregauge.warm_up", "Sent during the warm-up", 8, nil, 0x04),
    flow = ProtoField.uint16("wiregauge.flow", "Flow"),
    sequence = ProtoField.uint32("wiregauge.sequence", "Sequence number"),
    crc = ProtoField.uint32("wiregauge.crc", "CRC-32", base.HEX),
    crc_ok = ProtoField.uint8("wiregauge.crc_ok", "CRC-32 matches", base.DEC, NO_YES),
    payload = ProtoField.uint16("wiregauge.payload", "Payload in bytes"),
}
probe.fields = { f.magic, f.version, f.flags, f.is_return, f.has_time, f.warm_up, f.flow, f.sequence, f.crc, f.crc_ok, f.payload }
local e_damaged = ProtoExpert.new("wiregauge.damaged", "CRC-32 does not match: header or payload is damaged",
    expert.group.CHECKSUM, expert.severity.ERROR)
local e_cut = ProtoExpert.new("wiregauge.cut", "Captured in part: the CRC-32 cannot be checked",
    expert.group.CHECKSUM, expert.severity.NOTE)
probe.experts = { e_damaged, e_cut }

-- Length of the payload whose CRC-32 is `wanted`; nil when there is none. A raw frame does not say how much of it is
-- padding, so in a short one every length is tried, all in one pass.
local function intact_length(bytes, length, wanted, may_be_padded)
    local c = 0xFFFFFFFF
    for at = 0, length - 1 do
        local byte = (at >= 8 and at < 12) and 0 or bytes:get_index(at)
        c = xor(crc_table[band(xor(c, byte), 0xFF)], rshift(c, 8))
        local last = at == length - 1
        if (last or (may_be_padded and at >= HEADER - 1)) and unsigned(xor(c, 0xFFFFFFFF)) == wanted then
            return at + 1
        end
    end
    return nil
end

local function begins_as_probe(buffer)
    return buffer:len() >= HEADER and buffer(0, 1):uint() == 0x57 and rshift(buffer(1, 1):uint(), 4) == 1
end

local function dissect_probe(buffer, pinfo, tree, is_raw)
    if not begins_as_probe(buffer) then return 0 end
    local flow, sequence, flags = buffer(2, 2):uint(), buffer(4, 4):uint(), band(buffer(1, 1):uint(), 0x0F)
    pinfo.cols.protocol = "Wiregauge"
    local way = (band(flags, 1) ~= 0) and " (back)" or ""
    local phase = (band(flags, 4) ~= 0) and " warm-up" or ""
    pinfo.cols.info = string.format("flow %d message %d%s%s", flow, sequence, way, phase)
    local branch = tree:add(probe, buffer(), string.format("Wiregauge message: flow %d, number %d", flow, sequence))
    branch:add(f.magic, buffer(0, 1))
    branch:add(f.version, buffer(1, 1))
    local flag_branch = branch:add(f.flags, buffer(1, 1))
    flag_branch:add(f.is_return, buffer(1, 1))
    flag_branch:add(f.has_time, buffer(1, 1))
    flag_branch:add(f.warm_up, buffer(1, 1))
    branch:add(f.flow, buffer(2, 2))
    branch:add(f.sequence, buffer(4, 4))
    local crc_branch = branch:add(f.crc, buffer(8, 4))
    if buffer:reported_len() > buffer:len() then
        crc_branch:add_proto_expert_info(e_cut)
    else
        local short = is_raw and buffer:len() <= LAST_OF_SHORT
        local length = intact_length(buffer:bytes(), buffer:len(), buffer(8, 4):uint(), short)
        crc_branch:add(f.crc_ok, buffer(8, 4), length and 1 or 0):set_generated()
        if length then
            branch:add(f.payload, buffer(0, length), length):set_generated()
        else
            crc_branch:add_proto_expert_info(e_damaged)
            pinfo.cols.info:append(" [damaged]")
        end
    end
    return buffer:len()
end

function probe.dissector(buffer, pinfo, tree)
    return dissect_probe(buffer, pinfo, tree, pinfo.dst_port ~= UDP_PORT)
end
DissectorTable.get("udp.port"):add(UDP_PORT, probe)
-- Flows may choose their ports. Two octets are too little to tell a message by; its CRC is enough, or that it was cut.
probe:register_heuristic("udp", function(buffer, pinfo, tree)
    if not begins_as_probe(buffer) then return false end
    local is_cut = buffer:reported_len() > buffer:len()
    if not is_cut and not intact_length(buffer:bytes(), buffer:len(), buffer(8, 4):uint(), false) then return false end
    return dissect_probe(buffer, pinfo, tree, false) > 0
end)
DissectorTable.get("ethertype"):add(ETHERTYPE_PROBE, probe)

-- ------------------------------------------------------------------------------------------- ARINC 664 part 7

local avionics = Proto("wg664", "ARINC 664 part 7")
local NETWORKS = { [1] = "A", [2] = "B" }
local a = {
    constant = ProtoField.uint32("wg664.constant", "Constant field", base.HEX),
    vl = ProtoField.uint16("wg664.vl", "Virtual link", base.DEC),
    network = ProtoField.string("wg664.network", "Network"),
    net = ProtoField.uint8("wg664.net_id", "Network identifier of the equipment", base.DEC),
    equipment = ProtoField.uint8("wg664.equipment", "Equipment", base.DEC),
    sequence = ProtoField.uint8("wg664.sequence", "Sequence number", base.DEC),
    previous = ProtoField.framenum("wg664.previous", "Frame before on this virtual link and network"),
}
avionics.fields = { a.constant, a.vl, a.network, a.net, a.equipment, a.sequence, a.previous }
local e_gap = ProtoExpert.new("wg664.gap", "Frames are missing before this one", expert.group.SEQUENCE, expert.severity.WARN)
local e_repeat = ProtoExpert.new("wg664.repeated", "A number that came before: repeated or out of order",
    expert.group.SEQUENCE, expert.severity.WARN)
local e_reset = ProtoExpert.new("wg664.reset", "The sender was reset (0 comes only then)", expert.group.SEQUENCE, expert.severity.NOTE)
avionics.experts = { e_gap, e_repeat, e_reset }

local eth_dst, eth_src, eth_type = Field.new("eth.dst"), Field.new("eth.src"), Field.new("eth.type")
local eth_fcs = Field.new("eth.fcs")
local interface_id = Field.new("frame.interface_id")

-- By virtual link, network and interface: number and frame of the last; and by frame what was found when it was first
-- read, for Wireshark dissects a frame as often as it is looked at.
local last, found
function avionics.init()
    last, found = {}, {}
end

local function follow(key, number, frame)
    local before = last[key]
    last[key] = { number = number, frame = frame }
    if not before then return {} end
    -- 1 to 255 and 1 again; 0 only after a reset.
    local expected = before.number % 255 + 1
    local verdict = nil
    if number == 0 then
        verdict = "reset"
    elseif number ~= expected and before.number ~= 0 then
        local ahead = (number - expected) % 255
        verdict = ahead < 128 and "gap" or "repeat"
    elseif before.number == 0 and number ~= 1 then
        verdict = "gap"
    end
    return { verdict = verdict, previous = before.frame }
end

function avionics.dissector(buffer, pinfo, tree)
    local dst, src, kind = eth_dst(), eth_src(), eth_type()
    if not (dst and src and kind) or kind.value ~= 0x0800 then return end
    local address, from = dst.range, src.range
    if address(0, 4):uint() ~= 0x03000000 then return end
    local vl = address(4, 2):uint()
    local network = NETWORKS[rshift(from(5, 1):uint(), 5)] or "?"
    local branch = tree:add(avionics, buffer(), string.format("ARINC 664 part 7: virtual link %d, network %s", vl, network))
    branch:add(a.constant, address(0, 4))
    branch:add(a.vl, address(4, 2))
    branch:add(a.network, from(5, 1), network)
    branch:add(a.net, from(3, 1))
    branch:add(a.equipment, from(4, 1))
    if buffer:len() < buffer:reported_len() then return end
    -- The last byte before the frame check sequence, which a socket does not see.
    local at = buffer:len() - (eth_fcs() and 5 or 1)
    local number = buffer(at, 1):uint()
    local sequence = branch:add(a.sequence, buffer(at, 1))
    if not pinfo.visited then
        local interface = interface_id()
        found[pinfo.number] = follow(vl .. network .. (interface and interface.value or ""), number, pinfo.number)
    end
    local told = found[pinfo.number]
    if told and told.previous then branch:add(a.previous, told.previous):set_generated() end
    if told and told.verdict == "gap" then sequence:add_proto_expert_info(e_gap) end
    if told and told.verdict == "repeat" then sequence:add_proto_expert_info(e_repeat) end
    if told and told.verdict == "reset" then sequence:add_proto_expert_info(e_reset) end
end
register_postdissector(avionics)

-- ------------------------------------------------------------------------------------------------- SAE AS6802

local control = Proto("wgpcf", "SAE AS6802 protocol control frame")
local TYPES = { [2] = "integration (IN)", [4] = "coldstart (CS)", [8] = "coldstart acknowledge (CA)" }
local p = {
    cycle = ProtoField.uint32("wgpcf.integration_cycle", "Integration cycle", base.DEC),
    membership = ProtoField.uint32("wgpcf.membership", "Membership", base.HEX),
    priority = ProtoField.uint8("wgpcf.sync_priority", "Synchronisation priority", base.DEC),
    domain = ProtoField.uint8("wgpcf.sync_domain", "Synchronisation domain", base.DEC),
    kind = ProtoField.uint8("wgpcf.type", "Type", base.DEC, TYPES, 0x0F),
    clock = ProtoField.double("wgpcf.transparent_clock_ns", "Transparent clock in ns"),
}
control.fields = { p.cycle, p.membership, p.priority, p.domain, p.kind, p.clock }

function control.dissector(buffer, _, tree)
    local kind = eth_type()
    if not kind or kind.value ~= ETHERTYPE_PCF then return end
    local start = kind.offset + 2
    if buffer:len() < start + 28 then return end
    local frame = buffer(start, 28)
    local branch = tree:add(control, frame, "SAE AS6802 protocol control frame")
    branch:add(p.cycle, frame(0, 4))
    branch:add(p.membership, frame(4, 4))
    branch:add(p.priority, frame(12, 1))
    branch:add(p.domain, frame(13, 1))
    branch:add(p.kind, frame(14, 1))
    -- In units of 2^-16 ns.
    local clock = frame(20, 4):uint() * 65536 + frame(24, 4):uint() / 65536
    branch:add(p.clock, frame(20, 8), clock)
end
register_postdissector(control)
