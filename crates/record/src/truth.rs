//! The truth beside the records. It is no input of judging; it serves to check the judgement.

use arrow_array::ArrayRef;
use arrow_array::types::{Int64Type, UInt16Type, UInt32Type};
use wg_frame::time::RunTime;

use crate::columns::{Cells, flag_cells, kind_cells, number_cells, vocabulary};
use crate::schema::{FLOW_FOREIGN, RecordFlags, Truth, TruthKind};
use crate::table::Row;

impl Row for Truth {
    const FILE: &'static str = "truth.arrows";
    const KIND: &'static str = "truth";
    const SCHEMA: u32 = 1;
    const GROWING: &'static [&'static str] = &["time", "value"];
    const COLUMNS: &'static [Cells<Self>] = &[
        number_cells!("time", Int64Type, |row| row.time.as_picos(), |row, cell| {
            row.time = RunTime::from_picos(cell);
        }),
        kind_cells!(TruthKind),
        number_cells!("value", Int64Type, |row| row.value, |row, cell| row.value = cell),
        number_cells!("flow", UInt16Type, |row| row.flow, |row, cell| row.flow = cell),
        number_cells!("sequence", UInt32Type, |row| row.sequence, |row, cell| row.sequence = cell),
        number_cells!("node", UInt16Type, |row| row.node, |row, cell| row.node = cell),
        number_cells!("port", UInt16Type, |row| row.port, |row, cell| row.port = cell),
        flag_cells!("returning", RecordFlags::RETURN),
        flag_cells!("warm_up", RecordFlags::WARM_UP),
    ];

    fn blank() -> Self {
        let (time, flags) = (RunTime::ZERO, RecordFlags::empty());
        Self {
            time,
            value: 0,
            sequence: 0,
            flow: FLOW_FOREIGN,
            node: 0,
            port: 0,
            kind: TruthKind::ALL[0],
            flags,
        }
    }

    fn time(&self) -> RunTime {
        self.time
    }

    fn kinds() -> ArrayRef {
        vocabulary::<TruthKind>()
    }
}
