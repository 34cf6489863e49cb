//! Which frames a receiver of streams takes.

/// Ports a [`FrameFilter`] may name.
pub const MAX_PORTS: usize = 64;

/// Which frames are taken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FrameFilter {
    /// UDP over IPv4 to these ports.
    pub udp_ports: Vec<u16>,
    /// Frames of this EtherType, if any.
    pub ether_type: Option<u16>,
}
