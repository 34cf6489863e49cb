//! Frames without socket buffers: a BPF program patches and redirects them inside the kernel.
//!
//! `BPF_PROG_RUN` with `BPF_F_TEST_XDP_LIVE_FRAMES` (Linux 5.18) runs an XDP program over its own pages and sends the
//! frames that the program redirects, in bulk, through the driver's XDP path. The program does the same as
//! [`Template::patch`]: number, transmit time and CRC by the same tables, in a constant number of instructions. No
//! allocation, copy or system call per frame is left.
//!
//! The program also paces: it waits, in the kernel, until a frame or a bulk of frames is due. A call costs some 25 ms
//! at its end, so one call sends a complete stream. Frames that the driver refuses are counted by the interface and
//! missed by the receiver; this side does not see them.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::sync::Arc;

use wg_frame::probe::ProbeFlags;
use wg_frame::template::Template;

use crate::bpf::{self, EXIT, Insn, KTIME_TAI, WORD, add, copy, insn, invoke, load, load_long};
use crate::clock;
use crate::error::NetError;
use crate::interface::Interface;

const PROG_TEST_RUN: libc::c_long = 10;
const MAP_TYPE_ARRAY: u32 = 2;
/// `BPF_F_TEST_XDP_LIVE_FRAMES`.
const LIVE_FRAMES: u32 = 1 << 1;
/// The helper `bpf_redirect`.
const REDIRECT: i32 = 23;
/// Number of frames that the kernel sends at once when only the rate matters, a power of two; the receiving end of a
/// virtual link holds 256.
const BULK: u32 = 64;
/// Greatest number of clock readings until a frame is due: a bound for the verifier, at 15 ns or more each. See
/// [`LONGEST_GAP_NS`].
const LOOKS: i32 = 4_096;
/// The longest gap the program waits for, ns.
pub const LONGEST_GAP_NS: i64 = 50_000;
/// Fraction bits of instants within the program: 2⁻²⁰ ns.
const FRACTION: u32 = 20;

/// Layout of the program's memory: number; epoch, ns of `CLOCK_TAI`; CRC; next due time and gap, in 2⁻²⁰ ns from the
/// epoch; whether a late frame shifts all that follow; position in the bulk and its mask; tables.
const SEQUENCE_AT: i16 = 0;
const EPOCH_AT: i16 = 8;
const CRC_AT: i16 = 16;
const DUE_AT: i16 = 24;
const GAP_AT: i16 = 32;
const SHIFTING_AT: i16 = 40;
const POSITION_AT: i16 = 48;
const MASK_AT: i16 = 56;
const TABLES_AT: usize = 64;
const TABLES: usize = 12;
const MEMORY: u32 = 12_352;
const _: () = assert!(MEMORY as usize == TABLES_AT + TABLES * 1024);

/// A program ready to send one stream.
#[derive(Debug)]
pub struct LiveFrames {
    program: OwnedFd,
    map: OwnedFd,
    stop: Arc<OwnedFd>,
    memory: Vec<u8>,
    frame: Vec<u8>,
    tai_ahead: i64,
    interface: u32,
}

/// `union bpf_attr` for `BPF_PROG_RUN`.
#[derive(Default)]
#[repr(C)]
struct ProgRun {
    program: u32,
    verdict: u32,
    size_in: u32,
    size_out: u32,
    data_in: u64,
    data_out: u64,
    repeat: u32,
    duration: u32,
    context_size_in: u32,
    context_size_out: u32,
    context_in: u64,
    context_out: u64,
    flags: u32,
    cpu: u32,
    batch: u32,
    _pad: u32,
}

impl LiveFrames {
    /// Prepares `frame`, for which `template` was made and which has no UDP checksum, to leave by `interface`.
    ///
    /// # Errors
    /// The right to load BPF programs is missing, the kernel is older than 5.18, or the template computes a checksum.
    pub fn new(interface: &Interface, frame: &[u8], template: &Template) -> Result<Self, NetError> {
        let what = format!("cannot send live frames on {}", interface.name);
        let cure = "live XDP frames need root and Linux 5.18 or later";
        let plain = |e| NetError::of(what.clone(), cure, e);
        let places = template.places();
        if places.checksum.is_some() || frame.len() < places.payload + places.payload_len {
            return Err(plain(io::Error::from_raw_os_error(libc::EINVAL)));
        }
        let map = bpf::map(MAP_TYPE_ARRAY, MEMORY, 1).map_err(plain)?;
        let stop = bpf::map(MAP_TYPE_ARRAY, 8, 1).map_err(plain)?;
        let code = program(&map, &stop, interface.index, frame.len(), template);
        let program = bpf::load_program(&code).map_err(plain)?;
        let (_, tables) = template.crc_parts(ProbeFlags::NONE);
        let mut memory = vec![0; TABLES_AT + TABLES * 1024];
        let values = tables.iter().flatten();
        for (place, value) in memory[TABLES_AT..].as_chunks_mut::<4>().0.iter_mut().zip(values) {
            *place = value.to_ne_bytes();
        }
        let stop = Arc::new(stop);
        Ok(Self {
            program,
            map,
            stop,
            memory,
            frame: frame.to_vec(),
            tai_ahead: clock::tai_ahead(),
            interface: interface.index,
        })
    }

    /// Sends a few frames that no receiver takes: to and from the same address. The interface's counters then show
    /// whether its driver accepts XDP frames, and nothing more.
    ///
    /// # Errors
    /// The kernel cannot run live frames.
    pub fn probe(&self) -> Result<(), NetError> {
        let mut own = self.frame.clone();
        own.copy_within(6..12, 0);
        self.try_out(&trial_frame(&own), 4)
    }

    /// Sends a [`trial_frame`] `count` times.
    ///
    /// # Errors
    /// The kernel cannot run live frames.
    pub fn try_out(&self, bytes: &[u8], count: u32) -> Result<(), NetError> {
        let what = "cannot try live XDP frames";
        let plain = |e| NetError::of(what, "live XDP frames need root and Linux 5.18 or later", e);
        let interface = self.interface;
        let code =
            [insn(0xB7, 1, 0, 0, interface.cast_signed()), insn(0xB7, 2, 0, 0, 0), invoke(REDIRECT), EXIT];
        let program = bpf::load_program(&code).map_err(plain)?;
        let mut run = ProgRun {
            program: program.as_raw_fd().cast_unsigned(),
            size_in: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            data_in: bytes.as_ptr() as u64,
            repeat: count,
            flags: LIVE_FRAMES,
            batch: count,
            ..ProgRun::default()
        };
        bpf::call(PROG_TEST_RUN, &mut run).map(drop).map_err(plain)
    }

    /// A handle that ends [`send`](Self::send) from another thread.
    pub fn stopper(&self) -> Stopper {
        Stopper(Arc::clone(&self.stop))
    }

    /// Sends `schedule.count` frames and returns when the last was handed to the driver, or soon after a [`Stopper`]
    /// was used.
    ///
    /// # Errors
    /// The interface is gone, or its driver accepts no XDP frames (a virtual link accepts them only while its other end
    /// has an XDP program or GRO); or a gap exceeds [`LONGEST_GAP_NS`].
    pub fn send(&mut self, template: &Template, schedule: &LiveSchedule) -> io::Result<()> {
        if schedule.gap_ps < 0 || schedule.gap_ps / 1_000 > LONGEST_GAP_NS {
            return Err(io::Error::from_raw_os_error(libc::EINVAL));
        }
        let fixed = |ps: i64| i64::try_from((i128::from(ps) << FRACTION) / 1_000).unwrap_or(i64::MAX);
        let (crc, _) = template.crc_parts(schedule.flags);
        let bulk = bulk_of(schedule);
        let mut put = |at: i16, value: i64| {
            let at = usize::from(at.unsigned_abs());
            self.memory[at..at + 8].copy_from_slice(&value.to_ne_bytes());
        };
        put(SEQUENCE_AT, i64::from(schedule.first));
        put(EPOCH_AT, schedule.epoch_ns + self.tai_ahead);
        put(CRC_AT, i64::from(crc));
        put(DUE_AT, fixed(schedule.first_due_ps));
        put(GAP_AT, fixed(schedule.gap_ps));
        put(SHIFTING_AT, i64::from(schedule.exact_gaps));
        put(POSITION_AT, 0);
        put(MASK_AT, i64::from(bulk) - 1);
        bpf::update(&self.map, 0, &self.memory)?;
        let places = template.places();
        let second = wg_frame::probe::VERSION << 4
            | schedule.flags.bits()
            | if places.transmit_time.is_some() { ProbeFlags::TX_TIME.bits() } else { 0 };
        self.frame[places.payload + 1] = second;
        let mut run = ProgRun {
            program: self.program.as_raw_fd().cast_unsigned(),
            size_in: u32::try_from(self.frame.len()).unwrap_or(u32::MAX),
            data_in: self.frame.as_ptr() as u64,
            repeat: schedule.count,
            flags: LIVE_FRAMES,
            batch: bulk,
            ..ProgRun::default()
        };
        bpf::call(PROG_TEST_RUN, &mut run).map(drop)
    }
}

/// A frame between the same addresses as `frame` that no receiver takes: of a type reserved for experiments (IEEE Std
/// 802, EtherType 0x88B6).
pub fn trial_frame(frame: &[u8]) -> [u8; 60] {
    let mut bytes = [0; 60];
    bytes[..12].copy_from_slice(&frame[..12]);
    bytes[12..14].copy_from_slice(&[0x88, 0xB6]);
    bytes
}

/// A schedule of live frames.
#[derive(Clone, Copy, Debug)]
pub struct LiveSchedule {
    /// Sequence number of the first frame.
    pub first: u32,
    /// Number of frames, at least 1.
    pub count: u32,
    /// Flags of all frames.
    pub flags: ProbeFlags,
    /// Origin of transmit times and due times, ns of `CLOCK_REALTIME`.
    pub epoch_ns: i64,
    /// Due time of the first frame, ps after the epoch; at most [`LONGEST_GAP_NS`] from now.
    pub first_due_ps: i64,
    /// Time between two frames, ps; 0: back to back.
    pub gap_ps: i64,
    /// Whether frames leave one by one and a late one shifts all that follow; else they leave in bulks, on an absolute
    /// schedule.
    pub exact_gaps: bool,
}

/// Number of frames that leave together: one if gaps are kept, else those due within [`LONGEST_GAP_NS`].
fn bulk_of(schedule: &LiveSchedule) -> u32 {
    let fitting = (LONGEST_GAP_NS * 1_000).checked_div(schedule.gap_ps).unwrap_or(i64::from(BULK));
    let fitting = u32::try_from(fitting).unwrap_or(BULK).clamp(1, BULK);
    if schedule.exact_gaps { 1 } else { 1 << fitting.ilog2() }
}

/// Ends a stream of live frames.
#[derive(Clone, Debug)]
pub struct Stopper(Arc<OwnedFd>);

impl Stopper {
    /// Makes the program drop the remaining frames, which takes some 50 ns a frame.
    ///
    /// # Errors
    /// None in practice.
    pub fn stop(&self) -> io::Result<()> {
        bpf::update(&self.0, 0, &1_u64.to_ne_bytes())
    }
}

/// The program that sends the frame as message `sequence`, with the time of sending.
#[expect(clippy::too_many_lines, reason = "a program in the order it runs")]
fn program(
    map: &OwnedFd,
    stop: &OwnedFd,
    interface: u32,
    frame_len: usize,
    template: &Template,
) -> Vec<Insn> {
    let places = template.places();
    let payload = bpf::offset(places.payload);
    let mut to_refusal = Vec::new();
    let mut code = vec![
        load(WORD, 6, 1, 0), // data
        load(WORD, 3, 1, 4), // data_end
        copy(4, 6),
        add(4, i32::from(bpf::offset(frame_len))),
    ];
    // if data + len > data_end
    to_refusal.push(code.len());
    code.push(insn(0x2D, 4, 3, 0, 0));
    code.extend(address_of(1, stop));
    code.push(load_long(1, 1, 0));
    to_refusal.push(code.len());
    code.push(insn(0x55, 1, 0, 0, 0));
    code.extend(address_of(8, map));
    code.extend(wait());
    code.extend([
        load(WORD, 9, 8, SEQUENCE_AT),
        copy(2, 9),
        add(2, 1),
        insn(0x63, 8, 2, SEQUENCE_AT, 0),
        load(WORD, 7, 8, CRC_AT),
    ]);
    let add_to_crc = |code: &mut Vec<Insn>, of: u8, bits: i32, table: usize| {
        code.push(copy(2, of));
        code.push(insn(0x77, 2, 0, 0, bits)); // >>
        code.push(insn(0x57, 2, 0, 0, 0xFF)); // &
        code.push(insn(0x67, 2, 0, 0, 2)); // <<
        code.push(copy(3, 8));
        code.push(insn(0x0F, 3, 2, 0, 0)); // +
        code.push(load(WORD, 4, 3, bpf::offset(TABLES_AT + table * 1024)));
        code.push(insn(0xAF, 7, 4, 0, 0)); // ^
    };
    for (table, byte) in (0..4).enumerate() {
        add_to_crc(&mut code, 9, 24 - 8 * byte, table);
    }
    if let Some(at) = places.transmit_time {
        code.push(invoke(KTIME_TAI));
        code.push(load_long(1, 8, EPOCH_AT));
        code.push(insn(0x1F, 0, 1, 0, 0)); // −
        code.push(insn(0x27, 0, 0, 0, 1_000)); // ·
        code.push(copy(5, 0));
        for (table, byte) in (0..8).enumerate() {
            add_to_crc(&mut code, 5, 56 - 8 * byte, 4 + table);
        }
        code.push(insn(0xDC, 5, 0, 0, 64)); // to network order
        code.push(insn(0x7B, 6, 5, payload + bpf::offset(at), 0));
    }
    code.push(insn(0xDC, 9, 0, 0, 32));
    code.push(insn(0x63, 6, 9, payload + 4, 0));
    code.push(insn(0xDC, 7, 0, 0, 32));
    code.push(insn(0x63, 6, 7, payload + 8, 0));
    code.push(insn(0xB7, 1, 0, 0, interface.cast_signed()));
    code.push(insn(0xB7, 2, 0, 0, 0));
    code.push(invoke(REDIRECT));
    code.push(EXIT);
    let refuse = code.len();
    code.push(insn(0xB7, 0, 0, 0, 1)); // XDP_DROP
    code.push(EXIT);
    for at in to_refusal {
        code[at].offset = bpf::offset(refuse - at - 1);
    }
    code
}

/// Loads the address of a map's only value into register `to`.
fn address_of(to: u8, map: &OwnedFd) -> [Insn; 2] {
    [insn(0x18, to, 2, 0, map.as_raw_fd()), insn(0, 0, 0, 0, 0)]
}

/// Waits until the frame is due if it is the first of its bulk, and advances the due time. Register 8 holds the memory.
fn wait() -> Vec<Insn> {
    let fraction = FRACTION.cast_signed();
    vec![
        load_long(1, 8, POSITION_AT),
        load_long(2, 8, MASK_AT),
        copy(3, 1),
        insn(0x5F, 3, 2, 0, 0), // &
        add(1, 1),
        insn(0x7B, 8, 1, POSITION_AT, 0),
        insn(0x55, 3, 0, 17, 0), // within a bulk: no waiting
        load_long(9, 8, DUE_AT),
        insn(0x77, 9, 0, 0, fraction), // >>
        load_long(1, 8, EPOCH_AT),
        insn(0x0F, 9, 1, 0, 0), // +
        insn(0xB7, 7, 0, 0, 0),
        invoke(KTIME_TAI),
        insn(0x3D, 0, 9, 2, 0), // ≥: it is time
        add(7, 1),
        insn(0xA5, 7, 0, -4, LOOKS), // <: look again
        load_long(1, 8, SHIFTING_AT),
        insn(0x15, 1, 0, 6, 0), // a fixed schedule
        load_long(1, 8, EPOCH_AT),
        insn(0x1F, 0, 1, 0, 0),        // −
        insn(0x67, 0, 0, 0, fraction), // <<
        load_long(1, 8, DUE_AT),
        insn(0xBD, 0, 1, 1, 0), // ≤: it is not late
        insn(0x7B, 8, 0, DUE_AT, 0),
        load_long(1, 8, DUE_AT),
        load_long(2, 8, GAP_AT),
        insn(0x0F, 1, 2, 0, 0), // +
        insn(0x7B, 8, 1, DUE_AT, 0),
    ]
}
