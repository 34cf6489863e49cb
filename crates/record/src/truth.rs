//! What was true beside the records. Nothing that judges reads it: it is there so that judging can be judged.

use std::collections::HashMap;
use std::sync::Arc;

use arrow_array::types::{Int64Type, UInt16Type, UInt32Type};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef};
use wg_frame::time::RunTime;

use crate::columns::{
    CodeColumn, bit_column, bits, codes, number_column, numbers, vocabulary, vocabulary_type,
};
use crate::schema::{RecordFlags, Truth, TruthKind};
use crate::table::Row;

impl Row for Truth {
    const FILE: &'static str = "truth.arrows";
    const KIND: &'static str = "truth";
    const SCHEMA: u32 = 1;
    const GROWING: &'static [&'static str] = &["time", "value"];

    fn time(&self) -> RunTime {
        self.time
    }

    fn schema(metadata: HashMap<String, String>) -> SchemaRef {
        let field = |name: &str, data_type| Field::new(name, data_type, false);
        let fields = vec![
            field("time", DataType::Int64),
            field("kind", vocabulary_type()),
            field("value", DataType::Int64),
            field("flow", DataType::UInt16),
            field("sequence", DataType::UInt32),
            field("node", DataType::UInt16),
            field("port", DataType::UInt16),
            field("returning", DataType::Boolean),
            field("warm_up", DataType::Boolean),
        ];
        Arc::new(Schema::new(fields).with_metadata(metadata))
    }

    fn kinds() -> ArrayRef {
        vocabulary::<TruthKind>()
    }

    fn batch(rows: &[Self], schema: &SchemaRef, kinds: &ArrayRef) -> Result<RecordBatch, ArrowError> {
        RecordBatch::try_new(
            schema.clone(),
            vec![
                numbers::<Truth, Int64Type>(rows, |t| t.time.as_picos()),
                codes(rows, kinds, |t| t.kind.code())?,
                numbers::<Truth, Int64Type>(rows, |t| t.value),
                numbers::<Truth, UInt16Type>(rows, |t| t.flow),
                numbers::<Truth, UInt32Type>(rows, |t| t.sequence),
                numbers::<Truth, UInt16Type>(rows, |t| t.node),
                numbers::<Truth, UInt16Type>(rows, |t| t.port),
                bits(rows, |t| t.flags.has(RecordFlags::RETURN)),
                bits(rows, |t| t.flags.has(RecordFlags::WARM_UP)),
            ],
        )
    }

    fn decode(batch: &RecordBatch, into: &mut Vec<Self>) -> Result<(), String> {
        let time = number_column::<Int64Type>(batch, "time")?;
        let kind = CodeColumn::<TruthKind>::of(batch, "kind")?;
        let value = number_column::<Int64Type>(batch, "value")?;
        let flow = number_column::<UInt16Type>(batch, "flow")?;
        let sequence = number_column::<UInt32Type>(batch, "sequence")?;
        let node = number_column::<UInt16Type>(batch, "node")?;
        let port = number_column::<UInt16Type>(batch, "port")?;
        let returning = bit_column(batch, "returning")?;
        let warm_up = bit_column(batch, "warm_up")?;
        into.extend((0..batch.num_rows()).map(|i| Truth {
            time: RunTime::from_picos(time[i]),
            value: value[i],
            sequence: sequence[i],
            flow: flow[i],
            node: node[i],
            port: port[i],
            kind: kind.at(i),
            flags: RecordFlags::from_bits(u8::from(returning.value(i)) | u8::from(warm_up.value(i)) << 1),
        }));
        Ok(())
    }
}
