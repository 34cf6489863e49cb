//! Streams: traffic at rates at which a message can no longer be an object of its own.
//!
//! The servicing threads carry messages from queue to queue, each with its buffer; good for some ten thousand a second,
//! sent and received by one thread. A stream is sent by a thread that does nothing else, from a template, over the
//! fastest way the host has, and taken in by a thread that accounts for every frame. [`paced_sender`] keeps the time,
//! [`account`] knows what became of each number, [`gaps`] how well gaps were kept.

pub mod account;
pub mod backend;
pub mod gaps;
pub mod lead;
pub mod paced_sender;
pub mod receiver;
pub mod summary;

use wg_frame::fill::Pattern;
use wg_frame::image::Image;
use wg_frame::layout::{Carrier, Envelope, LayoutError};
use wg_frame::probe::ProbeError;
use wg_frame::template::{Places, Template};

/// Where frames of background load carry their transmit time: right behind the probe header.
pub const TRANSMIT_TIME_OF_LOAD: usize = wg_frame::probe::LEN;

/// What the frames of a stream look like.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSpec {
    /// Number of the flow in the probe header.
    pub flow: u16,
    /// Headers.
    pub envelope: Envelope,
    /// Payload in bytes.
    pub payload: usize,
    /// Where the transmit time lies in the payload.
    pub transmit_time: Option<usize>,
    /// What the last byte is where it is to hold the sequence number of a virtual link.
    pub number: Option<u8>,
}

/// Why a stream has no frame.
#[derive(Debug, thiserror::Error)]
pub enum FrameSpecError {
    /// In its headers.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// In its payload.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// How much of a frame is this program's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// The payload; the kernel makes headers.
    Payload,
    /// All of it, with a UDP checksum.
    Frame,
    /// All of it, without a UDP checksum.
    FrameWithoutChecksum,
}

impl FrameSpec {
    /// The bytes to send and their template.
    ///
    /// # Errors
    /// Where payload or transmit time do not fit.
    pub fn template(&self, extent: Extent) -> Result<(Vec<u8>, Template), FrameSpecError> {
        let header = self.envelope.header_len();
        let mut buffer = vec![0; header + self.payload + 64];
        Pattern::Sequential.write(&mut buffer[header..header + self.payload]);
        let mut envelope = self.envelope;
        let mut checksum = None;
        if let Carrier::Udp { checksummed, .. } = &mut envelope.carrier {
            *checksummed &= extent != Extent::FrameWithoutChecksum;
            checksum = checksummed.then_some(header - 2);
        }
        let mut places = Places {
            payload: header,
            payload_len: self.payload,
            transmit_time: self.transmit_time,
            checksum,
        };
        let mut bytes = match self.number {
            Some(number) => envelope.close_numbered(&mut buffer, self.payload, number)?.to_vec(),
            None => envelope.close(&mut buffer, self.payload)?.to_vec(),
        };
        if extent == Extent::Payload {
            bytes = bytes[header..header + self.payload].to_vec();
            places = Places { payload: 0, checksum: None, ..places };
        }
        let template = Template::new(&mut bytes, places, self.flow)?;
        Ok((bytes, template))
    }

    /// Bytes of the frame, DA to FCS.
    pub fn frame_len(&self) -> usize {
        Image::length(&self.envelope, self.payload, self.number.is_some())
    }
}
