//! The bytes of frames under way, in reference-counted places: a place is free again when the last copy of its frame has ended.

/// Bytes of a place: the longest frame with tags fits.
const ROOM: usize = 2_048;

/// Stands for the sequence number once the frame has ended.
const GONE: u32 = u32::MAX;

/// State of a place.
#[derive(Clone, Copy, Debug, Default)]
struct Place {
    /// Copies of the frame that have not ended.
    copies: u32,
    /// Sequence number of its message.
    sequence: u32,
}

/// Places of frames.
#[derive(Debug, Default)]
pub(super) struct Places {
    places: Vec<Place>,
    free: Vec<u32>,
}

impl Places {
    /// `count` places, all free.
    fn new(count: u32) -> Self {
        Self { places: vec![Place::default(); count as usize], free: (0..count).rev().collect() }
    }

    /// A place for one copy of a frame whose message has the sequence number `sequence`; `None` if no place is free.
    #[inline]
    fn take(&mut self, sequence: u32) -> Option<u32> {
        let place = self.free.pop()?;
        self.places[place as usize] = Place { copies: 1, sequence };
        Some(place)
    }

    /// Like `take`, but adds a place if none is free; `None` if there are 2³² places.
    pub(super) fn take_or_add(&mut self, sequence: u32) -> Option<u32> {
        if self.free.is_empty() {
            self.free.push(u32::try_from(self.places.len()).ok()?);
            self.places.push(Place::default());
        }
        self.take(sequence)
    }

    /// Sequence number of the message at a place.
    #[inline]
    pub(super) fn sequence(&self, place: u32) -> u32 {
        self.places[place as usize].sequence
    }

    /// Adds `more` copies.
    #[inline]
    pub(super) fn retain(&mut self, place: u32, more: u32) {
        let copies = &mut self.places[place as usize].copies;
        debug_assert!(*copies > 0, "a frame that has ended is copied");
        *copies += more;
    }

    /// Ends a copy.
    #[inline]
    pub(super) fn release(&mut self, place: u32) {
        let own = &mut self.places[place as usize];
        debug_assert!(own.copies > 0, "a frame ends once more than it was copied");
        own.copies = own.copies.saturating_sub(1);
        if own.copies == 0 {
            // From now on the place does not answer for an ended frame.
            own.sequence = GONE;
            self.free.push(place);
        }
    }

    /// Places in use.
    pub(super) fn used(&self) -> usize {
        self.places.len() - self.free.len()
    }
}

/// Places for the bytes of frames.
#[derive(Debug)]
pub struct Buffers {
    memory: Box<[[u8; ROOM]]>,
    /// Bytes of the frame at each place, without FCS.
    lengths: Box<[u16]>,
    places: Places,
}

impl Buffers {
    /// `count` places, all free; less than 2³².
    pub fn new(count: u32) -> Self {
        Self {
            memory: vec![[0; ROOM]; count as usize].into_boxed_slice(),
            lengths: vec![0; count as usize].into_boxed_slice(),
            places: Places::new(count),
        }
    }

    /// Stores the bytes of a frame with one copy, whose message has the sequence number `sequence`; `None` if no place is free or
    /// the frame is too long.
    #[inline]
    pub fn keep(&mut self, bytes: &[u8], sequence: u32) -> Option<u32> {
        let length = u16::try_from(bytes.len()).ok().filter(|length| usize::from(*length) <= ROOM)?;
        let place = self.places.take(sequence)?;
        self.memory[place as usize][..bytes.len()].copy_from_slice(bytes);
        self.lengths[place as usize] = length;
        Some(place)
    }

    /// The bytes at a place.
    #[inline]
    pub fn bytes(&self, place: u32) -> &[u8] {
        let at = place as usize;
        &self.memory[at][..usize::from(self.lengths[at])]
    }

    /// The bytes at a place, mutable.
    #[inline]
    pub fn bytes_mut(&mut self, place: u32) -> &mut [u8] {
        let at = place as usize;
        &mut self.memory[at][..usize::from(self.lengths[at])]
    }

    /// Sequence number of the message at a place.
    #[inline]
    pub fn sequence(&self, place: u32) -> u32 {
        self.places.sequence(place)
    }

    /// Adds `more` copies.
    #[inline]
    pub fn retain(&mut self, place: u32, more: u32) {
        self.places.retain(place, more);
    }

    /// Ends a copy.
    #[inline]
    pub fn release(&mut self, place: u32) {
        self.places.release(place);
    }

    /// Places in use.
    pub fn used(&self) -> usize {
        self.places.used()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_free_when_its_last_copy_has_ended() {
        let mut buffers = Buffers::new(2);
        let first = buffers.keep(&[1; 60], 7).expect("a place");
        let second = buffers.keep(&[2; 1_522], 8).expect("a place");
        assert_eq!(buffers.keep(&[3; 60], 9), None);
        buffers.retain(first, 2);
        buffers.release(first);
        buffers.release(first);
        assert_eq!((buffers.used(), buffers.sequence(first), buffers.bytes(first)), (2, 7, &[1; 60][..]));
        buffers.release(first);
        assert_eq!(buffers.used(), 1);
        assert_eq!(buffers.keep(&[4; 2_049], 1), None, "longer than a frame");
        assert_eq!(buffers.keep(&[4; 64], 1), Some(first));
        assert_eq!(buffers.bytes(second), &[2; 1_522]);
    }
}
