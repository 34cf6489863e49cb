//! The complete bytes of a frame on the wire, FCS included, for programs that have only descriptors of frames, as a
//! simulator's capture does.
//!
//! Damage shows as in reality: an inverted bit makes the FCS wrong, an altered payload leaves the FCS right and makes
//! the message's CRC wrong.

use crate::ethernet::FCS_LEN;
use crate::fill::Pattern;
use crate::layout::{Envelope, LayoutError};
use crate::probe::{self, Probe, ProbeFlags};
use crate::rtag;
use crate::time::RunTime;

/// The message in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Content of its header. The transmit time sets its own flag.
    pub probe: Probe,
    /// Content after the header.
    pub fill: Pattern,
    /// Offset in the payload and value of the transmit time.
    pub transmit_time: Option<(usize, RunTime)>,
    /// Whether it was altered after its CRC was computed.
    pub damaged: bool,
}

/// Description of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Headers around the payload.
    pub envelope: Envelope,
    /// Length of the payload in bytes.
    pub payload: usize,
    /// The message in the payload; `None`: zeros.
    pub message: Option<Message>,
    /// Sequence number of a virtual link, in the last byte before the FCS.
    pub sequence: Option<u8>,
    /// Sequence number of the redundancy tag after the addresses and the 802.1Q tag; `None`: no such tag.
    pub redundancy: Option<u16>,
    /// Whether a bit was inverted after the FCS was computed.
    pub fcs_error: bool,
}

impl Image {
    /// Frame length, DA to FCS, padding included, for a payload of `payload` bytes, with or without the sequence number
    /// of a virtual link.
    pub const fn length(envelope: &Envelope, payload: usize, numbered: bool) -> usize {
        if numbered { envelope.numbered_frame_len(payload) } else { envelope.frame_len(payload) }
    }

    /// Writes the frame at the beginning of `bytes`, which must be zero, and returns it.
    ///
    /// # Errors
    /// [`LayoutError::Buffer`] if it does not fit, [`LayoutError::Ipv4`] if it is too long.
    pub fn write<'a>(&self, bytes: &'a mut [u8]) -> Result<&'a [u8], LayoutError> {
        let untagged = Self::length(&self.envelope, self.payload, self.sequence.is_some());
        let length = untagged + if self.redundancy.is_some() { rtag::TAG_LEN } else { 0 };
        let begin = self.envelope.header_len();
        if bytes.len() < length {
            return Err(LayoutError::Buffer { needed: length - FCS_LEN, len: bytes.len() });
        }
        let whole = &mut bytes[..length];
        let bytes = &mut whole[..untagged];
        if let Some(message) = &self.message {
            message.write(&mut bytes[begin..begin + self.payload]);
        }
        match self.sequence {
            Some(sequence) => self.envelope.close_numbered(bytes, self.payload, sequence)?,
            None => self.envelope.close(bytes, self.payload)?,
        };
        let (bytes, end) = (whole, length - FCS_LEN);
        if let Some(sequence) = self.redundancy {
            rtag::insert(bytes, self.envelope.tag.is_some(), sequence);
        }
        let mut fcs = crc32fast::hash(&bytes[..end]).to_le_bytes();
        fcs[0] ^= u8::from(self.fcs_error);
        bytes[end..].copy_from_slice(&fcs);
        Ok(bytes)
    }
}

/// Changes the length of the frame in the first `was` bytes to that of `bytes`: truncated, or extended with zeros, with
/// a new FCS, which is wrong with `fcs_error`.
pub fn change_length(bytes: &mut [u8], was: usize, fcs_error: bool) {
    let end = bytes.len().saturating_sub(FCS_LEN);
    bytes[was.saturating_sub(FCS_LEN).min(end)..].fill(0);
    let mut fcs = crc32fast::hash(&bytes[..end]).to_le_bytes();
    fcs[0] ^= u8::from(fcs_error);
    bytes[end..].iter_mut().zip(fcs).for_each(|(byte, of_fcs)| *byte = of_fcs);
}

impl Message {
    fn write(&self, payload: &mut [u8]) {
        self.fill.write(payload);
        let mut flags = self.probe.flags;
        if let Some((at, time)) = self.transmit_time
            && probe::write_tx_time(payload, at, time).is_ok()
        {
            flags = flags.with(ProbeFlags::TX_TIME);
        }
        // A payload that is too short, which the plan refuses, has no header.
        if probe::seal(payload, Probe { flags, ..self.probe }).is_ok() && self.damaged {
            payload.iter_mut().next_back().into_iter().for_each(|last| *last ^= 1);
        }
    }
}
