//! Clocks of nodes.

use serde::{Deserialize, Serialize};
use wg_frame::time::Span;

use crate::diagnostic::{Findings, Place};
use crate::language::nodes::{clock as own, temperature};
use crate::reader::Reader;
use crate::tree::Element;

/// Most drift either way, in ppb: 10 %.
const MOST_DRIFT: i64 = 100_000_000;

/// A node's oscillator. Readings are `offset + (1 + drift) · time`, rounded down to the granularity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Clock {
    /// Reading at the epoch.
    #[serde(default)]
    pub offset: Span,
    /// Drift in parts per billion; positive: too fast.
    #[serde(default)]
    pub drift_ppb: i64,
    /// Standard deviation of the change of drift from one second to the next, in parts per billion.
    #[serde(default)]
    pub wander_ppb: u32,
    /// Resolution of its readings.
    #[serde(default = "picosecond")]
    pub granularity: Span,
    /// Changes of drift by temperature, ascending in time.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub temperature: Vec<TemperatureStep>,
}

impl Clock {
    /// Whether it shows true time.
    pub fn is_perfect(&self) -> bool {
        *self == Self::default()
    }
}

impl Default for Clock {
    fn default() -> Self {
        Self {
            offset: Span::ZERO,
            drift_ppb: 0,
            wander_ppb: 0,
            granularity: picosecond(),
            temperature: Vec::new(),
        }
    }
}

fn picosecond() -> Span {
    Span::from_picos(1)
}

/// A change of temperature and what it does to an oscillator.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TemperatureStep {
    /// When it happens, after the epoch.
    pub at: Span,
    /// Change of the drift, in parts per billion.
    pub drift_ppb: i64,
}

/// Reads `<clock>`.
pub(super) fn clock(element: &Element, found: &mut Findings) -> Clock {
    let mut reader = Reader::new(element, found);
    let offset = reader.value(&own::OFFSET).unwrap_or_default();
    let drift_ppb = reader.value(&own::DRIFT).unwrap_or_default();
    let wander_ppb = reader.value(&own::WANDER).unwrap_or_default();
    let granularity = reader.value(&own::GRANULARITY).unwrap_or(Clock::default().granularity);
    let place = reader.place;
    let temperature = temperatures(element, drift_ppb, &place, found);
    Clock { offset, drift_ppb, wander_ppb, granularity, temperature }
}

fn temperatures(element: &Element, drift: i64, place: &Place, found: &mut Findings) -> Vec<TemperatureStep> {
    let mut steps: Vec<TemperatureStep> = Vec::new();
    for child in element.all("temperature").take(1_024) {
        let mut reader = Reader::new(child, found);
        let (at, change) = (reader.read(&temperature::AT), reader.read(&temperature::DRIFT));
        let (Some(at), Some(change)) = (at, change) else { continue };
        if steps.iter().any(|step| step.at == at.value) {
            let message = format!("the clock already changes at {}", at.written);
            reader.found.error(&reader.place, message, "1 change at a time", "add the two up");
        }
        steps.push(TemperatureStep { at: at.value, drift_ppb: change.value });
    }
    steps.sort_by_key(|step| step.at);
    let mut sum = drift;
    for step in &steps {
        sum = sum.saturating_add(step.drift_ppb);
        if sum.abs() > MOST_DRIFT && drift.abs() <= MOST_DRIFT {
            let message = format!("drift and temperature add up to {sum}ppb after {}", step.at);
            let cure = "write smaller changes of drift; they add up";
            found.error(place, message, "100000ppm either way", cure);
            break;
        }
    }
    steps
}
