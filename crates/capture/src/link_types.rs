//! Link types with their names at <https://www.tcpdump.org/linktypes.html>.

use std::fmt;

/// `LINKTYPE_` number of an interface without Ethernet frames; displays its name, if known here, and how to capture
/// instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkType(pub i32);

/// Group of a link type, which determines the cure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    /// `-i any`: the kernel omits the header of each frame.
    AnyInterface,
    /// Packets without a frame, as of a tunnel or a loopback interface.
    NoFrame,
    /// A wireless link.
    Wireless,
    /// Ethernet frames after a header of a card, a switch or a program.
    Wrapped,
    /// Another bus or protocol.
    Other,
}

const NAMES: [(i32, &str, Of); 46] = [
    (0, "NULL (BSD loopback)", Of::NoFrame),
    (3, "AX25", Of::Other),
    (6, "IEEE802_5 (token ring)", Of::Other),
    (7, "ARCNET_BSD", Of::Other),
    (8, "SLIP", Of::NoFrame),
    (9, "PPP", Of::NoFrame),
    (10, "FDDI", Of::Other),
    (50, "PPP_HDLC", Of::NoFrame),
    (51, "PPP_ETHER", Of::NoFrame),
    (100, "ATM_RFC1483", Of::Other),
    (101, "RAW (IP without a frame)", Of::NoFrame),
    (104, "C_HDLC", Of::Other),
    (105, "IEEE802_11 (wireless LAN)", Of::Wireless),
    (107, "FRELAY", Of::Other),
    (108, "LOOP (OpenBSD loopback)", Of::NoFrame),
    (113, "LINUX_SLL", Of::AnyInterface),
    (117, "PFLOG", Of::NoFrame),
    (119, "IEEE802_11_PRISM (wireless LAN)", Of::Wireless),
    (127, "IEEE802_11_RADIOTAP (wireless LAN)", Of::Wireless),
    (143, "DOCSIS", Of::Other),
    (163, "IEEE802_11_AVS (wireless LAN)", Of::Wireless),
    (187, "BLUETOOTH_HCI_H4", Of::Other),
    (189, "USB_LINUX", Of::Other),
    (192, "PPI (wireless LAN)", Of::Wireless),
    (195, "IEEE802_15_4_WITHFCS", Of::Other),
    (197, "ERF", Of::Wrapped),
    (201, "BLUETOOTH_HCI_H4_WITH_PHDR", Of::Other),
    (210, "FLEXRAY", Of::Other),
    (212, "LIN", Of::Other),
    (220, "USB_LINUX_MMAPPED", Of::Other),
    (227, "CAN_SOCKETCAN", Of::Other),
    (228, "IPV4 (without a frame)", Of::NoFrame),
    (229, "IPV6 (without a frame)", Of::NoFrame),
    (230, "IEEE802_15_4_NOFCS", Of::Other),
    (239, "NFLOG", Of::NoFrame),
    (240, "NETANALYZER", Of::Wrapped),
    (241, "NETANALYZER_TRANSPARENT", Of::Wrapped),
    (249, "USBPCAP", Of::Other),
    (252, "WIRESHARK_UPPER_PDU", Of::NoFrame),
    (253, "NETLINK", Of::Other),
    (258, "PKTAP", Of::Wrapped),
    (274, "ETHERNET_MPACKET", Of::Wrapped),
    (276, "LINUX_SLL2", Of::AnyInterface),
    (281, "DSA_TAG_BRCM", Of::Wrapped),
    (284, "DSA_TAG_DSA", Of::Wrapped),
    (285, "DSA_TAG_EDSA", Of::Wrapped),
];

impl LinkType {
    fn known(self) -> Option<&'static (i32, &'static str, Of)> {
        NAMES.iter().find(|(number, ..)| *number == self.0)
    }

    /// How to capture Ethernet frames instead.
    pub fn cure(self) -> &'static str {
        match self.known().map(|(.., of)| *of) {
            Some(Of::AnyInterface) => {
                "`-i any` leaves out the header of every frame: capture on the interface itself, tcpdump -i eth0 -w NEW.pcap \
                 (tcpdump -D lists them)"
            }
            Some(Of::NoFrame) => {
                "no frame was captured, but what is in one: capture on the Ethernet interface itself, \
                 tcpdump -i eth0 -w NEW.pcap (tcpdump -D lists them)"
            }
            Some(Of::Wireless) => {
                "capture on the wired side, or on the wireless interface without monitor mode: tcpdump -i wlan0 -y EN10MB -w NEW.pcap"
            }
            Some(Of::Wrapped) => {
                "have the frames alone written: set the card, switch or program to plain Ethernet (EN10MB), or try \
                 editcap -T ether with -C to cut off what is in front of them"
            }
            Some(Of::Other) | None => {
                "only Ethernet (EN10MB) can be read: capture on an Ethernet interface, tcpdump -i eth0 -w NEW.pcap"
            }
        }
    }
}

impl fmt::Display for LinkType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.known() {
            Some((number, name, Of::AnyInterface)) => {
                write!(f, "link type {name} ({number}, `tcpdump -i any`), which is not Ethernet (1)")
            }
            Some((number, name, _)) => write!(f, "link type {name} ({number}), which is not Ethernet (1)"),
            // 147 to 162 mean what their users agreed on.
            None if (147..=162).contains(&self.0) => {
                write!(f, "link type USER{} ({}), which is not Ethernet (1)", self.0 - 147, self.0)
            }
            None => write!(f, "link type {}, which is not Ethernet (1)", self.0),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_ascend_so_that_each_is_there_once() {
        assert!(NAMES.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!(NAMES.iter().all(|(number, ..)| *number != 1));
    }

    #[test]
    fn every_link_type_has_a_cure_and_says_its_number() {
        for number in 0..300 {
            let of = LinkType(number);
            assert!(of.to_string().contains(&number.to_string()), "{of}");
            assert!(!of.cure().is_empty());
        }
        assert!(
            LinkType(113).cure().contains("tcpdump -i eth0") && LinkType(276).to_string().contains("-i any")
        );
        assert_eq!(LinkType(150).to_string(), "link type USER3 (150), which is not Ethernet (1)");
    }
}
