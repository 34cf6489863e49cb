//! Decoding of the values of a Parquet page (Apache Parquet format, `Encodings.md`): plain numbers, runs and packed
//! bits, packed deltas.
//!
//! Pages are decoded completely. Every length comes from outside; a page that ends early or contradicts itself is an
//! error.

/// Error text for a page that ends early.
const SHORT: &str = "a page ends before its values";

/// An index into a dictionary.
pub(super) trait Index: Copy + Default + Ord + Into<u64> {
    /// Greatest number of bits.
    const BITS: u32;
    /// The lowest bits of `bits`.
    fn of(bits: u64) -> Self;
}

impl Index for u16 {
    const BITS: u32 = 16;
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
    fn of(bits: u64) -> Self {
        bits as u16
    }
}

impl Index for u32 {
    const BITS: u32 = 32;
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
    fn of(bits: u64) -> Self {
        bits as u32
    }
}

/// Appends `count` indices of a dictionary: a byte with their width, then runs (`RLE_DICTIONARY`).
pub(super) fn dictionary_indices<I: Index>(
    bytes: &[u8],
    count: usize,
    into: &mut Vec<I>,
) -> Result<(), String> {
    let Some((&width, runs)) = bytes.split_first() else {
        return if count == 0 { Ok(()) } else { Err(SHORT.to_owned()) };
    };
    hybrid(runs, u32::from(width), count, into)
}

/// Appends `count` numbers of `width` bits: runs of equal ones, or packed (`RLE`).
pub(super) fn hybrid<I: Index>(
    bytes: &[u8],
    width: u32,
    count: usize,
    into: &mut Vec<I>,
) -> Result<(), String> {
    if width > I::BITS {
        return Err(format!("a page has indices of {width} bits, at most {} are possible here", I::BITS));
    }
    let mut rest = bytes;
    let mut left = count;
    while left > 0 {
        let header = varint(&mut rest)?;
        if header & 1 == 0 {
            let run = usize::try_from(header >> 1).unwrap_or(usize::MAX).min(left);
            let length = width.div_ceil(8) as usize;
            let (value, after) = rest.split_at_checked(length).ok_or(SHORT)?;
            into.extend(std::iter::repeat_n(I::of(little_endian(value)), run));
            (rest, left) = (after, left - run);
            if run == 0 {
                return Err("a page has a run of nothing".to_owned());
            }
        } else {
            let groups = usize::try_from(header >> 1).unwrap_or(usize::MAX);
            let length = groups.saturating_mul(width as usize).min(rest.len());
            let (packed, after) = rest.split_at(length);
            // The last group may be padded beyond the values.
            let values = groups.saturating_mul(8).min(left);
            unpack(packed, width, values, into)?;
            (rest, left) = (after, left - values);
            if groups == 0 {
                return Err("a page has a run of nothing".to_owned());
            }
        }
    }
    Ok(())
}

/// Appends `count` numbers of `width` bits each, packed from the lowest bit on.
pub(super) fn unpack<I: Index>(
    packed: &[u8],
    width: u32,
    count: usize,
    into: &mut Vec<I>,
) -> Result<(), String> {
    if packed.len() < (count * width as usize).div_ceil(8) {
        return Err(SHORT.to_owned());
    }
    // A width known at compile time makes this several times as fast.
    match width {
        0 => into.resize(into.len() + count, I::default()),
        1 => unpack_groups::<I, 1>(packed, count, into),
        2 => unpack_groups::<I, 2>(packed, count, into),
        3 => unpack_groups::<I, 3>(packed, count, into),
        4 => unpack_groups::<I, 4>(packed, count, into),
        5 => unpack_groups::<I, 5>(packed, count, into),
        6 => unpack_groups::<I, 6>(packed, count, into),
        7 => unpack_groups::<I, 7>(packed, count, into),
        8 => unpack_groups::<I, 8>(packed, count, into),
        _ => into.extend((0..count).map(|place| I::of(bits_at(packed, place * width as usize, width)))),
    }
    Ok(())
}

/// As [`unpack`] for `WIDTH` of at most 8: eight numbers at a time.
fn unpack_groups<I: Index, const WIDTH: usize>(packed: &[u8], count: usize, into: &mut Vec<I>) {
    let begin = into.len();
    let end = begin + count;
    let mask = (1u64 << WIDTH) - 1;
    into.resize(begin + count.next_multiple_of(8), I::default());
    let (eights, _) = into[begin..].as_chunks_mut::<8>();
    let (groups, last) = packed.as_chunks::<WIDTH>();
    let mut last_group = [0; WIDTH];
    last_group[..last.len().min(WIDTH)].copy_from_slice(last);
    for (eight, group) in eights.iter_mut().zip(groups.iter().chain([&last_group])) {
        let mut word = [0; 8];
        word[..WIDTH].copy_from_slice(group);
        let word = u64::from_le_bytes(word);
        for (place, value) in eight.iter_mut().enumerate() {
            *value = I::of(word >> (place * WIDTH) & mask);
        }
    }
    into.truncate(end);
}

/// `width` bits, at most 64, from bit `at` on; zeros beyond the end of `packed`.
#[inline]
fn bits_at(packed: &[u8], at: usize, width: u32) -> u64 {
    let (byte, shift) = (at / 8, at % 8);
    let low = word_at(packed, byte) >> shift;
    let bits =
        if shift + width as usize > 64 { low | word_at(packed, byte + 8) << (64 - shift) } else { low };
    if width < 64 { bits & ((1 << width) - 1) } else { bits }
}

#[inline]
fn word_at(packed: &[u8], byte: usize) -> u64 {
    match packed.get(byte..byte + 8) {
        Some(word) => little_endian(word),
        None => little_endian(packed.get(byte..).unwrap_or_default()),
    }
}

/// A little-endian number of at most 8 bytes.
#[inline]
fn little_endian(bytes: &[u8]) -> u64 {
    match bytes.try_into() {
        Ok(word) => u64::from_le_bytes(word),
        Err(_) => bytes.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
    }
}

/// Calls back for the numbers of `WIDTH` bytes each (`PLAIN`).
pub(super) fn plain<const WIDTH: usize>(
    bytes: &[u8],
    count: usize,
    each: impl FnMut([u8; WIDTH]),
) -> Result<(), String> {
    let (numbers, _) = bytes.as_chunks::<WIDTH>();
    numbers.get(..count).ok_or(SHORT)?.iter().copied().for_each(each);
    Ok(())
}

/// Calls back for the texts of a page (`PLAIN`).
pub(super) fn plain_texts(
    mut bytes: &[u8],
    count: usize,
    mut each: impl FnMut(&[u8]) -> Result<(), String>,
) -> Result<(), String> {
    for _ in 0..count {
        let (length, after) = bytes.split_first_chunk::<4>().ok_or(SHORT)?;
        let length = usize::try_from(u32::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (text, after) = after.split_at_checked(length).ok_or(SHORT)?;
        each(text)?;
        bytes = after;
    }
    Ok(())
}

/// A number that may be stored with more bits than its type has.
pub(super) trait Number: Copy {
    /// The lowest bits of `stored`.
    fn of(stored: i64) -> Self;
}

impl Number for i64 {
    #[inline]
    fn of(stored: i64) -> Self {
        stored
    }
}

impl Number for i32 {
    #[inline]
    #[expect(clippy::cast_possible_truncation, reason = "the lowest bits are asked for")]
    fn of(stored: i64) -> Self {
        stored as i32
    }
}

impl Number for u32 {
    #[inline]
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "the lowest bits are asked for"
    )]
    fn of(stored: i64) -> Self {
        stored as u32
    }
}

/// Number of values unpacked at once; miniblocks have a multiple of it.
const GROUP: usize = 32;

/// Appends `count` numbers stored as differences (`DELTA_BINARY_PACKED`).
pub(super) fn deltas<N: Number>(bytes: &[u8], count: usize, into: &mut Vec<N>) -> Result<(), String> {
    let mut rest = bytes;
    let block = varint(&mut rest)?;
    let miniblocks = varint(&mut rest)?;
    let told = varint(&mut rest)?;
    let mut value = zigzag(&mut rest)?;
    let per_miniblock = block.checked_div(miniblocks).and_then(|n| usize::try_from(n).ok()).unwrap_or(0);
    let miniblocks = usize::try_from(miniblocks).unwrap_or(usize::MAX);
    if told != count as u64 || per_miniblock == 0 || per_miniblock % GROUP != 0 {
        return Err("a page of differences contradicts itself".to_owned());
    }
    if count == 0 {
        return Ok(());
    }
    into.push(N::of(value));
    let mut left = count - 1;
    while left > 0 {
        let least = zigzag(&mut rest)?;
        let (widths, after) = rest.split_at_checked(miniblocks).ok_or(SHORT)?;
        rest = after;
        for &width in widths.iter().take(left.div_ceil(per_miniblock)) {
            let width = usize::from(width);
            if width > 64 {
                return Err(format!("a page has differences of {width} bits"));
            }
            let values = per_miniblock.min(left);
            // A writer may omit the bytes after the last value.
            let (packed, after) = rest.split_at((per_miniblock / 8).saturating_mul(width).min(rest.len()));
            if packed.len() < (values * width).div_ceil(8) {
                return Err(SHORT.to_owned());
            }
            let mut room = [0; ROOM + 8];
            for from in (0..values).step_by(GROUP) {
                let packed = &packed[from / 8 * width..];
                let mut numbers = [0; GROUP];
                unpack_group(packed, width, &mut room, &mut numbers);
                for number in &mut numbers {
                    value = value.wrapping_add(number.wrapping_add(least));
                    *number = value;
                }
                let numbers = &numbers[..GROUP.min(values - from)];
                into.extend(numbers.iter().map(|number| N::of(*number)));
                value = numbers.last().copied().unwrap_or(value);
            }
            (rest, left) = (after, left - values);
        }
    }
    Ok(())
}

/// Bytes for a group of numbers of at most 56 bits.
const ROOM: usize = 256;

/// Unpacks the first numbers of `packed`, each of `width` bits, at most 64; undefined beyond its end. `room` is scratch
/// space.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "a width is at most 64")]
fn unpack_group(packed: &[u8], width: usize, room: &mut [u8; ROOM + 8], numbers: &mut [i64; GROUP]) {
    if width > 56 {
        for (place, number) in numbers.iter_mut().enumerate() {
            *number = bits_at(packed, place * width, width as u32).cast_signed();
        }
        return;
    }
    // The bits of a number and its shift within a byte fit one word, and there is room behind the last one.
    let length = packed.len().min(GROUP / 8 * width);
    room[..length].copy_from_slice(&packed[..length]);
    let mask = (1u64 << width) - 1;
    for (place, number) in numbers.iter_mut().enumerate() {
        let at = place * width;
        let word = room[at / 8 % ROOM..].first_chunk().map_or(0, |word| u64::from_le_bytes(*word));
        *number = (word >> (at % 8) & mask).cast_signed();
    }
}

/// Removes a number of up to 64 bits, 7 to a byte, from the front (`ULEB128`).
fn varint(rest: &mut &[u8]) -> Result<u64, String> {
    let mut number = 0u64;
    for shift in (0..64).step_by(7) {
        let (&byte, after) = rest.split_first().ok_or(SHORT)?;
        *rest = after;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err("a page has a number of more than 64 bits".to_owned())
}

fn zigzag(rest: &mut &[u8]) -> Result<i64, String> {
    varint(rest).map(|number| (number >> 1).cast_signed() ^ -(number & 1).cast_signed())
}
