//! BPF programs and maps, as far as this crate needs them (linux/bpf.h; instructions of RFC 9669).

pub(crate) mod classic;
pub(crate) mod xdp;

use std::io;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// `enum bpf_cmd`.
const MAP_CREATE: libc::c_long = 0;
const MAP_UPDATE: libc::c_long = 2;
const PROG_LOAD: libc::c_long = 5;
const PROG_TYPE_XDP: u32 = 6;
/// The helper `bpf_ktime_get_tai_ns`.
pub(crate) const KTIME_TAI: i32 = 208;

/// `union bpf_attr` for `BPF_MAP_CREATE`, as far as used.
#[derive(Default)]
#[repr(C)]
struct MapCreate {
    kind: u32,
    key: u32,
    value: u32,
    entries: u32,
    flags: u32,
    inner: u32,
}

/// `union bpf_attr` for `BPF_MAP_UPDATE_ELEM`, as far as used.
#[derive(Default)]
#[repr(C)]
struct MapUpdate {
    map: u32,
    _pad: u32,
    key: u64,
    value: u64,
    flags: u64,
}

/// `union bpf_attr` for `BPF_PROG_LOAD`, as far as used.
#[derive(Default)]
#[repr(C)]
struct ProgLoad {
    kind: u32,
    count: u32,
    code: u64,
    licence: u64,
    log_level: u32,
    log_size: u32,
    log: u64,
    kernel_version: u32,
    flags: u32,
}

pub(crate) fn call<T>(command: libc::c_long, attributes: &mut T) -> io::Result<i32> {
    // SAFETY: `attributes` is a live C structure of the size given; pointers in it refer to memory that lives across
    // the call, which its makers above keep.
    let got =
        unsafe { libc::syscall(libc::SYS_bpf, command, std::ptr::from_mut(attributes), size_of::<T>()) };
    if got < 0 { Err(io::Error::last_os_error()) } else { Ok(i32::try_from(got).unwrap_or(i32::MAX)) }
}

pub(crate) fn descriptor<T>(command: libc::c_long, attributes: &mut T) -> io::Result<OwnedFd> {
    let fd = call(command, attributes)?;
    // SAFETY: the commands used with this function return a new descriptor nobody else owns.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// `struct bpf_insn`.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Insn {
    pub(crate) code: u8,
    pub(crate) registers: u8,
    pub(crate) offset: i16,
    pub(crate) immediate: i32,
}

pub(crate) const fn insn(code: u8, to: u8, from: u8, offset: i16, immediate: i32) -> Insn {
    Insn { code, registers: from << 4 | to, offset, immediate }
}
pub(crate) const fn copy(to: u8, from: u8) -> Insn {
    insn(0xBF, to, from, 0, 0)
}
pub(crate) const fn set(to: u8, value: i32) -> Insn {
    insn(0xB7, to, 0, 0, value)
}
pub(crate) const fn add(to: u8, value: i32) -> Insn {
    insn(0x07, to, 0, 0, value)
}
pub(crate) const fn load(size: u8, to: u8, from: u8, offset: i16) -> Insn {
    insn(0x61 | size, to, from, offset, 0)
}
/// Loads eight bytes.
pub(crate) const fn load_long(to: u8, from: u8, offset: i16) -> Insn {
    insn(0x79, to, from, offset, 0)
}
pub(crate) const fn invoke(helper: i32) -> Insn {
    insn(0x85, 0, 0, 0, helper)
}
pub(crate) const WORD: u8 = 0x00;
pub(crate) const HALF: u8 = 0x08;
pub(crate) const BYTE: u8 = 0x10;
pub(crate) const EXIT: Insn = insn(0x95, 0, 0, 0, 0);

/// An offset in a frame, a map or a program, in the type of an instruction.
///
/// # Panics
/// If it exceeds 32 KiB, which no offset here does.
pub(crate) fn offset(place: usize) -> i16 {
    i16::try_from(place).expect("within a frame, a map or a program")
}

/// Creates a map from an index to values of `value` bytes.
pub(crate) fn map(kind: u32, value: u32, entries: u32) -> io::Result<OwnedFd> {
    descriptor(MAP_CREATE, &mut MapCreate { kind, key: 4, value, entries, ..MapCreate::default() })
}

/// Sets entry `key`; `value` must have the map's length.
pub(crate) fn update(map: &OwnedFd, key: u32, value: &[u8]) -> io::Result<()> {
    let mut update = MapUpdate {
        map: map.as_raw_fd().cast_unsigned(),
        key: (&raw const key) as u64,
        value: value.as_ptr() as u64,
        ..MapUpdate::default()
    };
    call(MAP_UPDATE, &mut update).map(drop)
}

/// Loads an XDP program, which the kernel verifies and compiles.
pub(crate) fn load_program(code: &[Insn]) -> io::Result<OwnedFd> {
    let licence = c"Dual MIT/GPL";
    let mut order = ProgLoad {
        kind: PROG_TYPE_XDP,
        count: u32::try_from(code.len()).unwrap_or(u32::MAX),
        code: code.as_ptr() as u64,
        licence: licence.as_ptr() as u64,
        ..ProgLoad::default()
    };
    descriptor(PROG_LOAD, &mut order)
}
