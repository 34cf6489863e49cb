//! Streams: traffic at rates too high for one object per message.
//!
//! Servicing threads pass messages through queues, each in its own buffer, which supports some ten thousand messages a
//! second sent and received by one thread. A stream is sent by a dedicated thread from a template through the fastest
//! backend of the host, and received by a thread that counts every frame. [`paced_sender`] controls the send times,
//! [`account`] counts arrivals by number, and [`gaps`] evaluates the gaps.

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

/// Offset of the transmit time in frames of background load, directly after the probe header.
pub const TRANSMIT_TIME_OF_LOAD: usize = wg_frame::probe::LEN;

/// Content of a stream's frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameSpec {
    /// Flow number in the probe header.
    pub flow: u16,
    /// Headers.
    pub envelope: Envelope,
    /// Payload length in bytes.
    pub payload: usize,
    /// Offset of the transmit time in the payload.
    pub transmit_time: Option<usize>,
    /// Value of the last byte, if it is the placeholder for a virtual link's sequence number.
    pub number: Option<u8>,
}

/// Error of a frame specification.
#[derive(Debug, thiserror::Error)]
pub enum FrameSpecError {
    /// Invalid headers.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Invalid payload.
    #[error(transparent)]
    Probe(#[from] ProbeError),
}

/// Part of a frame written by this program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Extent {
    /// Payload only; the kernel adds the headers.
    Payload,
    /// Whole frame with a UDP checksum.
    Frame,
    /// Whole frame without a UDP checksum.
    FrameWithoutChecksum,
}

impl FrameSpec {
    /// Bytes to send and their template.
    ///
    /// # Errors
    /// Payload or transmit time do not fit.
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

    /// Frame length in bytes, DA to FCS.
    pub fn frame_len(&self) -> usize {
        Image::length(&self.envelope, self.payload, self.number.is_some())
    }
}
