//! What is varied, and what is judged.

use super::attribute::{Attribute, Declared, Text, optional, required};
use super::element::{Element, list, many, maybe, nothing, several};
use super::types;

elements! {
    /// Runs the test at every combination of the values of its axes: the last axis varies fastest, repeats
    /// are innermost. At most 10000 runs.
    sweep "sweep" holds list(&[many("axis"), maybe("repeat")]) {}
    /// A parameter that is varied.
    axis "axis" named OF holds nothing() {
        /// What is varied; one axis of each kind.
        OF: &'static str = required("of", &types::AXIS_NAME);
        /// The values it takes.
        VALUES: Text = required("values", &types::VALUES);
        /// The flows it acts on. Axes of load, burst, rate, forwarding-mode, policing and integration act on
        /// no flows and do not take it. Default: all flows.
        FLOW: Vec<u16> = optional("flow", &types::FLOW_IDS);
    }
    /// Measures every point several times.
    repeat "repeat" named TIMES holds nothing() {
        /// How often.
        TIMES: u32 = required("times", &types::TIMES);
    }
    /// What the measures are judged against; every run must keep all of them.
    limits "limits" holds list(&[several("limit")]) {}
    /// One bound on one measure. Exactly one of at-most and at-least.
    limit "limit" named MEASURE holds nothing() {
        /// The flows it judges, each separately. A measure that only some flows have, such as rtt or
        /// lateness, is judged on those; unplanned is counted per run and takes no flow. Default: every flow.
        FLOW: Vec<u16> = optional("flow", &types::FLOW_IDS);
        /// What is judged.
        MEASURE: Text = required("measure", &types::MEASURE);
        /// The largest value allowed, in the unit of the measure.
        AT_MOST: Text = optional("at-most", &types::BOUND);
        /// The smallest value allowed, in the unit of the measure.
        AT_LEAST: Text = optional("at-least", &types::BOUND);
    }
}
