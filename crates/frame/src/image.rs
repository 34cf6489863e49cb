//! A whole frame as it is on the wire, FCS included, from what is known of it: for whoever has descriptors of frames and is
//! asked for their bytes, as a simulator's capture is.
//!
//! Damage shows as it would: an inverted bit leaves the FCS wrong, an altered payload leaves the FCS right and the sum of
//! the message wrong.

use crate::ethernet::FCS_LEN;
use crate::fill::Pattern;
use crate::layout::{Envelope, LayoutError};
use crate::probe::{self, Probe, ProbeFlags};
use crate::rtag;
use crate::time::RunTime;

/// The message in a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// What its header says. The transmit time adds its own flag.
    pub probe: Probe,
    /// Content behind the header.
    pub fill: Pattern,
    /// Where in the payload the transmit time lies, and which it is.
    pub transmit_time: Option<(usize, RunTime)>,
    /// Altered after its sum was made.
    pub damaged: bool,
}

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Image {
    /// Everything round the payload.
    pub envelope: Envelope,
    /// Bytes of payload.
    pub payload: usize,
    /// The message that is the payload; without, that is zeros.
    pub message: Option<Message>,
    /// Sequence number of a virtual link, the last byte before the FCS.
    pub sequence: Option<u8>,
    /// Sequence number of the redundancy tag behind the addresses and the 802.1Q tag, where the frame has one.
    pub redundancy: Option<u16>,
    /// A bit was inverted behind the FCS.
    pub fcs_error: bool,
}

impl Image {
    /// Length of the frame, DA to FCS, padding included, of a payload of `payload` bytes, with or without the sequence number
    /// of a virtual link.
    pub const fn length(envelope: &Envelope, payload: usize, numbered: bool) -> usize {
        if numbered { envelope.numbered_frame_len(payload) } else { envelope.frame_len(payload) }
    }

    /// Writes the frame at the beginning of `bytes`, which are zero, and returns it.
    ///
    /// # Errors
    /// [`LayoutError::Buffer`] where it does not fit, [`LayoutError::Ipv4`] where it is too long.
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

/// Makes of the frame in the first `was` bytes one as long as `bytes`: cut short, or run on with zeros, with an FCS of its
/// own, which is wrong with `fcs_error`.
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
        // Too short a payload, which the plan refuses, stays without a header.
        if probe::seal(payload, Probe { flags, ..self.probe }).is_ok() && self.damaged {
            payload.iter_mut().next_back().into_iter().for_each(|last| *last ^= 1);
        }
    }
}
