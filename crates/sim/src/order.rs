//! The order of the records and of the truth of one instant: by where they were made.

use wg_record::{Record, Truth, TruthKind};

/// What decides the order of the records of one instant. Those of equal keys are made by one stage, and keep their order:
/// a drop at the ingress of a port has another reason than one at its queues.
pub(crate) fn order(record: &Record) -> impl Ord + use<> {
    let Record { time, node, port, point, reason, .. } = *record;
    (time, node, point, port, reason)
}

/// What decides the order of the entries of the truth of one instant; those of equal keys as for records. The courses of
/// credits are written at the end, class by class.
pub(crate) fn truth_order(truth: &Truth) -> impl Ord + use<> {
    let Truth { time, node, port, kind, sequence, .. } = *truth;
    let credit = (kind == TruthKind::Credit).then_some((node, port, sequence));
    (credit, time, node, port, kind)
}
