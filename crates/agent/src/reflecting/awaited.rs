//! Packets whose answers are awaited: as many as an order has, or of one without an end those of the last seconds.

use wg_frame::stamp::Timestamp;

/// The packets sent, the last `room` of them with their times.
#[derive(Debug)]
pub struct Awaited {
    room: usize,
    /// Time in each packet, at its number modulo `room`.
    times: Vec<Timestamp>,
    /// Number that the kernel gave the send of each, and its own, at the former modulo `room`.
    numbers: Vec<(u32, u64)>,
    sent: u64,
}

/// What an answer is to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// The packet of this number.
    Packet(u64),
    /// A packet of which nothing is known any longer.
    TooLate,
    /// Nothing that was sent.
    Nothing,
}

/// The number of a packet as its field has it, which begins anew after 2^32 of them.
#[expect(clippy::cast_possible_truncation, reason = "the field has the lower half")]
pub const fn on_the_wire(number: u64) -> u32 {
    number as u32
}

impl Awaited {
    /// Room for so many packets, at least one.
    pub fn new(room: usize) -> Self {
        Self { room: room.max(1), times: Vec::new(), numbers: Vec::new(), sent: 0 }
    }

    /// Number of packets sent, and of the next one.
    pub fn sent(&self) -> u64 {
        self.sent
    }

    /// Notes the next packet: the time in it, and the number that the kernel gave its send.
    pub fn note(&mut self, time: Timestamp, of_kernel: u32) {
        put(&mut self.times, place(self.sent, self.room), time);
        put(&mut self.numbers, place(u64::from(of_kernel), self.room), (of_kernel, self.sent));
        self.sent += 1;
    }

    /// The packet of a number that the kernel gave.
    pub fn of_kernel(&self, of_kernel: u32) -> Option<u64> {
        let (known, number) = *self.numbers.get(place(u64::from(of_kernel), self.room))?;
        (known == of_kernel && number < self.sent).then_some(number)
    }

    /// The last packet with this number on the wire, if it had this time.
    pub fn find(&self, sequence: u32, time: Timestamp) -> Found {
        let back = u64::from(on_the_wire(self.sent).wrapping_sub(sequence));
        let Some(number) = self.sent.checked_sub(back).filter(|_| back > 0) else { return Found::Nothing };
        if back > self.room as u64 {
            return Found::TooLate;
        }
        if self.times.get(place(number, self.room)) == Some(&time) {
            Found::Packet(number)
        } else {
            Found::Nothing
        }
    }
}

fn place(number: u64, room: usize) -> usize {
    usize::try_from(number % room as u64).expect("it is below the room")
}

/// Puts a value at a place; between it and the end, where the kernel left numbers out, come defaults.
fn put<T: Clone + Default>(values: &mut Vec<T>, at: usize, value: T) {
    if at >= values.len() {
        values.resize(at + 1, T::default());
    }
    values[at] = value;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_packets_are_known_and_older_ones_are_late() {
        let mut awaited = Awaited::new(3);
        assert_eq!(awaited.find(0, Timestamp(0)), Found::Nothing);
        for number in 0..10_u32 {
            // The kernel counts a send that it refused.
            awaited.note(Timestamp(u64::from(number) + 100), number + u32::from(number > 5));
        }
        for (sequence, found) in
            [(9, Found::Packet(9)), (7, Found::Packet(7)), (6, Found::TooLate), (10, Found::Nothing)]
        {
            assert_eq!(awaited.find(sequence, Timestamp(u64::from(sequence) + 100)), found, "{sequence}");
        }
        assert_eq!(awaited.find(8, Timestamp(5)), Found::Nothing);
        assert_eq!([8, 9, 10, 6].map(|number| awaited.of_kernel(number)), [Some(7), Some(8), Some(9), None]);
    }

    #[test]
    fn numbers_go_on_where_those_on_the_wire_begin_anew() {
        let mut awaited = Awaited { sent: (1 << 32) - 1, ..Awaited::new(4) };
        awaited.note(Timestamp(1), u32::MAX);
        awaited.note(Timestamp(2), 0);
        assert_eq!(awaited.find(u32::MAX, Timestamp(1)), Found::Packet((1 << 32) - 1));
        assert_eq!(awaited.find(0, Timestamp(2)), Found::Packet(1 << 32));
        assert_eq!(awaited.of_kernel(0), Some(1 << 32));
    }
}
