//! Records files as other programs may write them: what we read of a page is what Arrow reads of it.

use std::fs::File;
use std::path::Path;
use std::sync::Arc;

use arrow_array::types::UInt8Type;
use arrow_array::{
    Array, ArrayRef, BooleanArray, DictionaryArray, Int64Array, RecordBatch, StringArray, UInt8Array,
    UInt16Array, UInt32Array,
};
use arrow_schema::{DataType, Field, Schema};
use parquet::arrow::ArrowWriter;
use parquet::basic::{Compression, Encoding};
use parquet::file::metadata::KeyValue;
use parquet::file::properties::{EnabledStatistics, WriterProperties, WriterVersion};
use parquet::schema::types::ColumnPath;
use proptest::prelude::*;
use wg_frame::time::RunTime;
use wg_record::{Clock, Crc, DropReason, Point, RECORD_SCHEMA, Record, RecordFlags};
use wg_track::parquet::read_records;

use crate::support::Scratch;

/// How a file is written.
#[derive(Clone, Debug)]
struct Style {
    version: WriterVersion,
    compression: Compression,
    statistics: EnabledStatistics,
    /// Whether each column has a dictionary; otherwise, an integer column with `deltas` is stored as packed
    /// differences.
    dictionary: [bool; 12],
    deltas: [bool; 12],
    /// Most bytes of a dictionary; what does not fit goes on without.
    dictionary_limit: usize,
    page_rows: usize,
    group_rows: usize,
    nullable: bool,
}

fn style() -> impl Strategy<Value = Style> {
    (
        prop::bool::ANY,
        prop::sample::select(vec![Compression::UNCOMPRESSED, Compression::LZ4_RAW]),
        prop::bool::ANY,
        any::<[bool; 12]>(),
        any::<[bool; 12]>(),
        prop_oneof![Just(1 << 20), 1..200usize],
        prop_oneof![1..40usize, Just(20_000)],
        prop_oneof![20..400usize, Just(1 << 20)],
        any::<bool>(),
    )
        .prop_map(
            |(second, compression, statistics, dictionary, deltas, limit, page, group, nullable)| Style {
                version: if second { WriterVersion::PARQUET_2_0 } else { WriterVersion::PARQUET_1_0 },
                compression,
                statistics: if statistics { EnabledStatistics::Chunk } else { EnabledStatistics::None },
                dictionary,
                deltas,
                dictionary_limit: limit,
                page_rows: page,
                group_rows: group,
                nullable,
            },
        )
}

/// Records whose values take a few bits or many.
fn records() -> impl Strategy<Value = Vec<Record>> {
    let scale = prop::sample::select(vec![1u64, 3, 300, 1 << 20, u64::MAX]);
    (prop::collection::vec(any::<[u64; 4]>(), 1..700), [scale.clone(), scale.clone(), scale]).prop_map(
        |(draws, [times, numbers, fields])| {
            let coded = |draw: u64, shift: u32| (draw >> shift) as usize;
            let record = |[time, sequence, field, codes]: [u64; 4]| Record {
                time: RunTime::from_picos((time % times) as i64),
                sequence: (sequence % numbers) as u32,
                flow: (field % fields) as u16,
                node: ((field >> 16) % fields) as u16,
                port: ((field >> 32) % fields) as u16,
                length: ((field >> 48) % fields) as u16,
                point: Point::ALL[coded(codes, 0) % Point::ALL.len()],
                clock: Clock::ALL[coded(codes, 8) % Clock::ALL.len()],
                crc: Crc::ALL[coded(codes, 16) % Crc::ALL.len()],
                reason: DropReason::ALL[coded(codes, 24) % DropReason::ALL.len()],
                flags: RecordFlags::from_bits((codes >> 32 & 3) as u8),
            };
            draws.into_iter().map(record).collect()
        },
    )
}

/// A column of words, given all of the vocabulary and the place of each record's word in it.
fn words<'a>(
    records: &[Record],
    all: impl Iterator<Item = &'a str>,
    place: impl Fn(&Record) -> usize,
) -> ArrayRef {
    let keys: UInt8Array = records.iter().map(|r| place(r) as u8).collect();
    Arc::new(
        DictionaryArray::<UInt8Type>::try_new(keys, Arc::new(StringArray::from_iter_values(all))).unwrap(),
    )
}

macro_rules! words {
    ($records:expr, $vocabulary:ident, $field:ident) => {
        words($records, $vocabulary::ALL.iter().map(|value| value.name()), |r| {
            $vocabulary::ALL.iter().position(|value| *value == r.$field).unwrap()
        })
    };
}

fn batch(records: &[Record], nullable: bool) -> RecordBatch {
    let small =
        |get: fn(&Record) -> u16| -> ArrayRef { Arc::new(records.iter().map(get).collect::<UInt16Array>()) };
    let flag = |flag: RecordFlags| -> ArrayRef {
        Arc::new(records.iter().map(|r| Some(r.flags.has(flag))).collect::<BooleanArray>())
    };
    let columns: [(&str, ArrayRef); 12] = [
        ("time", Arc::new(records.iter().map(|r| r.time.as_picos()).collect::<Int64Array>())),
        ("flow", small(|r| r.flow)),
        ("sequence", Arc::new(records.iter().map(|r| r.sequence).collect::<UInt32Array>())),
        ("node", small(|r| r.node)),
        ("port", small(|r| r.port)),
        ("length", small(|r| r.length)),
        ("point", words!(records, Point, point)),
        ("clock", words!(records, Clock, clock)),
        ("crc", words!(records, Crc, crc)),
        ("reason", words!(records, DropReason, reason)),
        ("returning", flag(RecordFlags::RETURN)),
        ("warm_up", flag(RecordFlags::WARM_UP)),
    ];
    let fields: Vec<Field> =
        columns.iter().map(|(name, array)| Field::new(*name, array.data_type().clone(), nullable)).collect();
    let arrays = columns.into_iter().map(|(_, array)| array).collect();
    RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap()
}

fn write(path: &Path, batch: &RecordBatch, style: &Style) {
    let pair = |key: &str, value: &str| KeyValue::new(format!("wiregauge.{key}"), value.to_owned());
    let schema = RECORD_SCHEMA.to_string();
    let metadata = vec![pair("schema", &schema), pair("kind", "records"), pair("run", "4")];
    let mut properties = WriterProperties::builder()
        .set_writer_version(style.version)
        .set_compression(style.compression)
        .set_statistics_enabled(style.statistics)
        .set_dictionary_page_size_limit(style.dictionary_limit)
        .set_data_page_row_count_limit(style.page_rows)
        .set_write_batch_size(style.page_rows.min(1024))
        .set_max_row_group_row_count(Some(style.group_rows))
        .set_key_value_metadata(Some(metadata));
    for (place, field) in batch.schema().fields().iter().enumerate() {
        let column = ColumnPath::from(field.name().as_str());
        let is_integer = field.data_type().is_integer();
        properties = properties.set_column_dictionary_enabled(column.clone(), style.dictionary[place]);
        // Only the second version's default for texts is one that is not read here.
        let plain = if is_integer && style.deltas[place] {
            Encoding::DELTA_BINARY_PACKED
        } else if *field.data_type() == DataType::Boolean && style.deltas[place] {
            Encoding::RLE
        } else {
            Encoding::PLAIN
        };
        properties = properties.set_column_encoding(column, plain);
    }
    let file = File::create(path).unwrap();
    let mut writer = ArrowWriter::try_new(file, batch.schema(), Some(properties.build())).unwrap();
    writer.write(batch).unwrap();
    writer.close().unwrap();
}

fn plain() -> Style {
    Style {
        version: WriterVersion::PARQUET_1_0,
        compression: Compression::UNCOMPRESSED,
        statistics: EnabledStatistics::None,
        dictionary: [true; 12],
        deltas: [false; 12],
        dictionary_limit: 1 << 20,
        page_rows: 20_000,
        group_rows: 1 << 20,
        nullable: true,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn every_way_to_write_records_is_read(records in records(), style in style()) {
        let scratch = Scratch::new();
        let path = scratch.path().join("records.parquet");
        write(&path, &batch(&records, style.nullable), &style);
        let (run, mut read) = read_records(&path).unwrap();
        // Groups are read in the order of their beginnings; equal records are equal.
        let key = |r: &Record| format!("{r:?}");
        let mut written = records;
        written.sort_by_key(key);
        read.sort_by_key(key);
        prop_assert_eq!((run, read), (4, written));
    }
}

fn one() -> Record {
    Record {
        time: RunTime::from_picos(1),
        sequence: 2,
        flow: 3,
        node: 4,
        port: 5,
        length: 6,
        point: Point::ALL[0],
        clock: Clock::ALL[0],
        crc: Crc::ALL[0],
        reason: DropReason::None,
        flags: RecordFlags::empty(),
    }
}

/// The error that this column of a file of two records gives.
fn refused(column: &str, array: ArrayRef, style: &Style) -> String {
    let scratch = Scratch::new();
    let path = scratch.path().join("records.parquet");
    let whole = batch(&[one(), one()], true);
    let place = whole.schema().index_of(column).unwrap();
    let mut fields: Vec<Field> = whole.schema().fields().iter().map(|field| field.as_ref().clone()).collect();
    let mut arrays = whole.columns().to_vec();
    fields[place] = Field::new(column, array.data_type().clone(), true);
    arrays[place] = array;
    write(&path, &RecordBatch::try_new(Arc::new(Schema::new(fields)), arrays).unwrap(), style);
    read_records(&path).unwrap_err().to_string()
}

#[test]
fn cells_nobody_can_understand_are_named() {
    for version in [WriterVersion::PARQUET_1_0, WriterVersion::PARQUET_2_0] {
        let style = Style { version, ..plain() };
        let empty = refused("node", Arc::new(UInt16Array::from(vec![Some(1), None])), &style);
        assert!(empty.contains("the column `node` has empty cells"), "{empty}");
    }
    let odd = refused("point", Arc::new(StringArray::from(vec!["tap", "nowhere"])), &plain());
    assert!(odd.contains("the column `point` has a word outside its vocabulary"), "{odd}");
    let text = refused("time", Arc::new(StringArray::from(vec!["1", "2"])), &plain());
    assert!(text.contains("the column `time` has the unexpected type"), "{text}");
    let wide = arrow_array::Int32Array::from(vec![1, 70_000]);
    let wide = refused("flow", Arc::new(wide), &plain());
    assert!(wide.contains("the column `flow` has the impossible value 70000"), "{wide}");
}

#[test]
fn an_encoding_that_is_not_read_is_named_with_the_cure() {
    let scratch = Scratch::new();
    let path = scratch.path().join("records.parquet");
    let whole = batch(&[one(), Record { sequence: 9, ..one() }], false);
    let pair = |key: &str, value: String| KeyValue::new(format!("wiregauge.{key}"), value);
    let metadata = vec![
        pair("schema", RECORD_SCHEMA.to_string()),
        pair("kind", "records".to_owned()),
        pair("run", "4".to_owned()),
    ];
    let properties = WriterProperties::builder()
        .set_column_dictionary_enabled(ColumnPath::from("sequence"), false)
        .set_column_encoding(ColumnPath::from("sequence"), Encoding::BYTE_STREAM_SPLIT)
        .set_key_value_metadata(Some(metadata))
        .build();
    let mut writer =
        ArrowWriter::try_new(File::create(&path).unwrap(), whole.schema(), Some(properties)).unwrap();
    writer.write(&whole).unwrap();
    writer.close().unwrap();
    let error = read_records(&path).unwrap_err().to_string();
    assert!(error.contains("`sequence` is encoded as BYTE_STREAM_SPLIT"), "{error}");
    assert!(error.contains("write it anew"), "{error}");
}
