//! Reasons why a capture, or a part of it, cannot be read.

use std::{fmt, io};

use crate::any_interface::{SLL, SLL2};
use crate::link_types::LinkType;

/// Reason why a file cannot be read at all.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// An error of the file system.
    #[error("cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The path is a directory.
    #[error("is a directory; name a pcapng or pcap file in it")]
    Directory,
    /// The file is no capture.
    #[error(
        "is neither pcapng nor pcap nor ERF; `tshark -r FILE -w NEW.pcapng` converts what Wireshark can read"
    )]
    Unknown,
    /// A compressed file that is cut or damaged before any of its content.
    #[error("is compressed, and cut or damaged before its first frame; copy it again")]
    Packed,
    /// The file is empty.
    #[error("is empty")]
    Empty,
    /// All frames are of another link type.
    #[error("has no Ethernet frame, but {count} of {link_type}; {}", link_type.cure())]
    NoEthernet {
        /// Their link type.
        link_type: LinkType,
        /// Number of frames.
        count: u64,
    },
    /// No frame is usable.
    #[error("has no frame that can be used, but {count} {what}")]
    NothingUsable {
        /// The reason for most of them.
        what: String,
        /// Number of frames.
        count: u64,
    },
}

impl ReadError {
    /// Whether all frames are of `tcpdump -i any`, which can be read as far as their header was kept.
    pub(crate) fn is_any_interface(&self) -> bool {
        matches!(self, Self::NoEthernet { link_type, .. } if [SLL, SLL2].contains(&link_type.0))
    }
}

/// A part of a file that could not be used, or only partly.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Trouble {
    /// The file ends within a block.
    Truncated {
        /// Length of the complete blocks before, bytes.
        at: u64,
    },
    /// A block that contradicts itself; nothing after it was read.
    Damaged {
        /// Length of the complete blocks before, bytes.
        at: u64,
    },
    /// A read error in the middle of the file.
    Unread {
        /// Length of the complete blocks before, bytes.
        at: u64,
    },
    /// A frame of an interface that is no Ethernet; see [`LinkType`](crate::link_types::LinkType).
    LinkType {
        /// Its `LINKTYPE_` number.
        link_type: i32,
    },
    /// A frame of `-i any`, of which this link type keeps less than a header.
    AnyInterface {
        /// Its `LINKTYPE_` number.
        link_type: i32,
    },
    /// A packet of `-i any` from an interface without Ethernet frames.
    NotEthernet,
    /// A frame of an interface that the file does not describe.
    NoInterface,
    /// A frame without a time.
    NoTime,
    /// A frame whose interface has an impossible time resolution, or a time beyond year 9999.
    NoSuchTime,
    /// A frame longer than any Ethernet frame.
    TooLong,
    /// A frame that was captured in part.
    Snapped,
}

impl Trouble {
    /// Whether frames after it may be missing.
    pub fn ends_the_file(&self) -> bool {
        matches!(self, Self::Truncated { .. } | Self::Damaged { .. } | Self::Unread { .. })
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Truncated { at } => write!(f, "the file ends within a block, {at} B from its beginning"),
            Self::Damaged { at } => {
                write!(f, "the file is damaged {at} B from its beginning; nothing behind it was read")
            }
            Self::Unread { at } => write!(f, "the file cannot be read beyond {at} B"),
            Self::LinkType { link_type } => write!(f, "frames of {}", LinkType(*link_type)),
            Self::AnyInterface { link_type: SLL } => f.write_str(
                "frames of `-i any` (LINUX_SLL), without their destination and interface: what passed two interfaces is \
                 there twice",
            ),
            Self::AnyInterface { .. } => {
                f.write_str("frames of `-i any` (LINUX_SLL2), without their destination address")
            }
            Self::NotEthernet => f.write_str("packets of `-i any` from interfaces without Ethernet frames"),
            Self::NoInterface => f.write_str("frames of an interface that the file does not describe"),
            Self::NoTime => f.write_str("frames without a time (simple packet blocks)"),
            Self::NoSuchTime => f.write_str("frames with an impossible time or resolution"),
            Self::TooLong => f.write_str("frames longer than 65 535 B"),
            Self::Snapped => f.write_str("frames of which only the beginning was captured"),
        }
    }
}
