//! Selection of frames by a receiver of streams.

/// Greatest number of ports of a [`FrameFilter`].
pub const MAX_PORTS: usize = 64;

/// The frames that a receiver selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameFilter {
    /// Destination ports of UDP over IPv4.
    pub udp_ports: Vec<u16>,
    /// EtherType of further frames, if any.
    pub ether_type: Option<u16>,
}
