//! Places of a certificate that may drop frames, with what a checker needs to see that they accept all.

use serde::Serialize;

use crate::model::{Model, Takes};
use crate::rational::Rational;

/// What waits at a place: steps of flows with a common bound, and their greatest number of bits, if it is limited before.
pub type WaitingPremise = (Vec<(usize, usize)>, Option<String>);

/// A place that may drop frames.
#[derive(Clone, Debug, Serialize)]
pub struct PlacePremise {
    /// Name.
    pub place: String,
    /// Indices of the flows whose frames it may drop.
    pub flows: Vec<usize>,
    /// What it holds, in bits, for a place with limited room.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room: Option<String>,
    /// What waits there.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingPremise>,
    /// Burst and rate of a contract for all that comes, and the time for which it holds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub contract: Option<(String, String, String)>,
    /// Steps of flows that come under the contract, each with the least time from its entry into the network.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub comes: Vec<((usize, usize), String)>,
    /// Why it is not a step that it accepts all frames.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theorem: Option<String>,
}

/// The places of a model.
pub(crate) fn places(model: &Model) -> Vec<PlacePremise> {
    let text = |value: &Rational| value.to_string();
    let one = |place: &crate::model::Place| {
        let mut found = PlacePremise {
            place: place.name.clone(),
            flows: place.flows.clone(),
            room: None,
            waiting: Vec::new(),
            contract: None,
            comes: Vec::new(),
            theorem: None,
        };
        match &place.takes {
            Takes::Room { parts, bits } => {
                found.room = Some(text(bits));
                let parts = parts.iter().map(|(at, most)| (at.clone(), most.as_ref().map(text)));
                found.waiting = parts.collect();
            }
            Takes::Contract { of, bucket, run } => {
                found.contract = Some((text(&bucket.burst), text(&bucket.rate), text(run)));
                found.comes = of.iter().map(|(at, least)| (*at, text(least))).collect();
            }
            Takes::Opening { .. } => found.theorem = Some("instants at which its gate is open".to_owned()),
            Takes::NotAll(why) => found.theorem = Some(why.clone()),
        }
        found
    };
    model.places.iter().map(one).collect()
}
