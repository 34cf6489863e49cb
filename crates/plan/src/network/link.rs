//! Links between ports.

use serde::{Deserialize, Serialize};
use wg_core::frame::NetworkId;
use wg_core::line::LineRate;
use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::language::switches::link as own;
use crate::places::Attachment;
use crate::reader::{Maybe, Reader};
use crate::statements::{End, link_ends};
use crate::tree::Element;

/// A link between two ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Link {
    /// Its two ends.
    pub ends: [Attachment; 2],
    /// Bit rate on the wire, each direction; half duplex at a hub.
    #[serde(rename = "rate_bps")]
    pub rate: LineRate,
    /// Propagation delay, one way.
    pub delay: Span,
    /// The redundant network it belongs to.
    #[serde(default)]
    pub network: NetworkId,
}

/// A link as it is written.
#[derive(Clone, Debug)]
pub(crate) struct LinkStatement {
    pub(crate) place: Place,
    pub(crate) ends: Option<[End; 2]>,
    pub(crate) rate: Maybe<u64>,
    pub(crate) delay: Maybe<Span>,
    pub(crate) network: NetworkId,
}

impl LinkStatement {
    /// Reads `<link>`.
    pub(crate) fn read(element: &Element, found: &mut Findings) -> Self {
        let mut reader = Reader::new(element, found);
        let between = reader.written(&own::BETWEEN);
        let ends = between.and_then(|written| link_ends(&mut reader, own::BETWEEN.name, written));
        let (rate, delay) = (reader.read(&own::RATE), reader.read(&own::DELAY));
        let network = reader.value(&own::NETWORK);
        // On which network it is decides what it joins.
        let ends = ends.filter(|_| network.is_some());
        Self { place: reader.place, ends, rate, delay, network: network.unwrap_or(NetworkId::A) }
    }

    /// The link between two ports. A rate that could not be read has a value that is never used, as the test is refused.
    pub(crate) fn between(&self, ends: [Attachment; 2]) -> Link {
        Link {
            ends,
            rate: self.rate.as_ref().and_then(|rate| LineRate::new(rate.value)).unwrap_or(LineRate::GIGABIT),
            delay: self.delay.as_ref().map_or(Span::ZERO, |delay| delay.value),
            network: self.network,
        }
    }
}
