//! Records of measurements that another program made, written as segments.

use std::path::PathBuf;

use pyo3::prelude::*;
use wg_frame::time::RunTime;
use wg_record::segment::{ALL_NODES, SegmentInfo, SegmentWriter};
use wg_record::{Clock, Crc, DropReason, Point, Record, RecordFlags};

use crate::error::NativeError;

/// One observation: time (ps after the epoch), flow, sequence number, node, frame length (B), whether on the way back.
type Observation = (i64, u16, u32, u16, u16, bool);

/// Writes observations of messages at the ends of their flows, in their order, as segments of one run below `spool`.
///
/// Each is a record of a tap at port 1 of its node, by the clock of that node's system. Returns their number. Raises
/// NativeError.
#[pyfunction]
pub(crate) fn spool_observations(
    py: Python<'_>,
    spool: PathBuf,
    epoch_realtime_ns: i64,
    observations: Vec<Observation>,
) -> PyResult<u64> {
    py.detach(|| {
        let info =
            SegmentInfo { end_system: "taps".into(), node: ALL_NODES, run_index: 0, epoch_realtime_ns };
        let mut writer = SegmentWriter::create(&spool.join("taps"), info)
            .map_err(|error| NativeError::new_err(error.to_string()))?;
        for (picos, flow, sequence, node, length, is_returning) in observations {
            let flags = if is_returning { RecordFlags::RETURN } else { RecordFlags::empty() };
            writer
                .push(&Record {
                    time: RunTime::from_picos(picos),
                    sequence,
                    flow,
                    node,
                    port: 1,
                    length,
                    point: Point::Tap,
                    clock: Clock::Realtime,
                    crc: Crc::Unchecked,
                    reason: DropReason::None,
                    flags,
                })
                .map_err(|error| NativeError::new_err(error.to_string()))?;
        }
        writer.finish().map_err(|error| NativeError::new_err(error.to_string()))
    })
}
