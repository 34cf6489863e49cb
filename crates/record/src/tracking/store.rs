//! What the records say about each message so far.
//!
//! Every field is a minimum, a maximum, a sum or a flag, so that the order of the records cannot matter.

use std::collections::BTreeMap;

use wg_frame::time::RunTime;

use crate::schema::Point;

/// Messages in a page.
const PAGE: u32 = 1 << 8;
/// A time nothing was seen at. A run is at most 106 days, so only nonsense has it; it is taken for the one before.
const UNSEEN: i64 = i64::MAX;

/// The times of a message that the messages table keeps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(usize)]
pub(super) enum Instant {
    Intended,
    TxApp,
    TxDrv,
    RxDrv,
    RxApp,
    BackTxApp,
    BackTxDrv,
    BackRxDrv,
    BackRxApp,
    TxWire,
    TxWireB,
    RxWire,
    RxWireB,
}

impl Instant {
    const COUNT: usize = Self::RxWireB as usize + 1;

    /// The time a record of `point` gives, seen at the source or the destination of its leg; `on_b` where it is of
    /// the copy on network B of a flow that travels on both.
    pub(super) fn of(
        point: Point,
        returning: bool,
        at_source: bool,
        at_destination: bool,
        on_b: bool,
    ) -> Option<Self> {
        match (point, returning) {
            (Point::WireSend, false) if at_source => Some(if on_b { Self::TxWireB } else { Self::TxWire }),
            (Point::WireReceive, false) if at_destination => {
                Some(if on_b { Self::RxWireB } else { Self::RxWire })
            }
            (Point::IntendedSend, false) if at_source => Some(Self::Intended),
            (Point::ApplicationSend, false) if at_source => Some(Self::TxApp),
            (Point::DriverSend, false) if at_source => Some(Self::TxDrv),
            (Point::DriverReceive, false) if at_destination => Some(Self::RxDrv),
            (Point::ApplicationReceive, false) if at_destination => Some(Self::RxApp),
            (Point::ApplicationSend, true) if at_source => Some(Self::BackTxApp),
            (Point::DriverSend, true) if at_source => Some(Self::BackTxDrv),
            (Point::DriverReceive, true) if at_destination => Some(Self::BackRxDrv),
            (Point::ApplicationReceive, true) if at_destination => Some(Self::BackRxApp),
            _ => None,
        }
    }
}

/// A place on the way of a message, ordered as a message passes them: leg, node on the leg, point at the node.
/// A node that is not on the way comes after all that are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Way(u64);

impl Way {
    /// Before every place: nothing was seen.
    pub(super) const NOWHERE: Self = Self(0);
    /// After every place.
    const BEYOND: Self = Self(u64::MAX);
    /// Set in every real place.
    const SEEN: u64 = 1 << 41;

    pub(super) fn new(returning: bool, place: u16, point: Point, node: u16) -> Self {
        Self(
            Self::SEEN
                | u64::from(returning) << 40
                | u64::from(place) << 24
                | u64::from(point.code()) << 16
                | u64::from(node),
        )
    }
    pub(super) fn node(self) -> u16 {
        (self.0 & 0xffff) as u16
    }
    pub(super) fn point(self) -> Option<Point> {
        Point::from_code((self.0 >> 16 & 0xff) as u8)
    }
}

/// What is known of one message.
#[derive(Clone, Copy, Debug)]
pub(super) struct Seen {
    /// Earliest time of each [`Instant`].
    times: [i64; Instant::COUNT],
    /// Place in the input of the first intact copy at the final destination.
    pub(super) first_copy_order: u64,
    /// Nearest to the sender, and the frame length there; undamaged records only.
    pub(super) first: (Way, u16),
    /// Farthest on the way.
    pub(super) last: Way,
    /// Farthest drop and the code of its reason.
    pub(super) drop: (Way, u8),
    /// Intact copies at the final destination.
    pub(super) copies: u32,
    /// Damaged copies at an application on the way.
    pub(super) corrupted: u32,
    /// Intact copies at an application that was not meant to get them.
    pub(super) misdirected: u32,
    /// Undamaged frames at any application.
    pub(super) arrivals: u32,
    /// Copies removed because that of the other network came first.
    pub(super) second_copies: u32,
    /// The sender has a record of sending it.
    pub(super) send_recorded: bool,
    /// An application of the sender handed it over.
    pub(super) handed_over: bool,
    /// Somebody verified its CRC.
    pub(super) verified: bool,
}

impl Seen {
    const NOTHING: Self = Self {
        times: [UNSEEN; Instant::COUNT],
        first_copy_order: u64::MAX,
        first: (Way::BEYOND, 0),
        last: Way::NOWHERE,
        drop: (Way::NOWHERE, 0),
        copies: 0,
        corrupted: 0,
        misdirected: 0,
        arrivals: 0,
        second_copies: 0,
        send_recorded: false,
        handed_over: false,
        verified: false,
    };

    /// Notes a time; true when it is earlier than any before.
    pub(super) fn note(&mut self, instant: Instant, time: RunTime) -> bool {
        let entry = &mut self.times[instant as usize];
        let ps = time.as_picos().min(UNSEEN - 1);
        let is_earliest = ps < *entry;
        if is_earliest {
            *entry = ps;
        }
        is_earliest
    }

    pub(super) fn time(&self, instant: Instant) -> Option<RunTime> {
        let ps = self.times[instant as usize];
        (ps != UNSEEN).then_some(RunTime::from_picos(ps))
    }
}

/// The messages of one flow and phase by sequence number.
///
/// Pages exist only where a record touched them, because a plan may count billions of messages and a damaged
/// header may name any of them. Records of a flow come nearly in sequence, so the page used last is nearly
/// always the one wanted next and the directory is seldom asked.
#[derive(Debug)]
pub(super) struct Messages {
    planned: u32,
    pages: Vec<Box<[Seen]>>,
    /// Page number to place in `pages`.
    directory: BTreeMap<u32, usize>,
    /// Page number and place used last.
    recent: Option<(u32, usize)>,
    /// Sequence numbers at and beyond `planned`.
    beyond: BTreeMap<u32, Seen>,
}

impl Messages {
    pub(super) fn new(planned: u32) -> Self {
        Self { planned, pages: Vec::new(), directory: BTreeMap::new(), recent: None, beyond: BTreeMap::new() }
    }

    pub(super) fn planned(&self) -> u32 {
        self.planned
    }

    /// What is known of `sequence`.
    pub(super) fn entry(&mut self, sequence: u32) -> &mut Seen {
        if sequence >= self.planned {
            return self.beyond.entry(sequence).or_insert(Seen::NOTHING);
        }
        let number = sequence / PAGE;
        let page = match self.recent {
            Some((recent, page)) if recent == number => page,
            _ => self.turn_to(number),
        };
        &mut self.pages[page][(sequence % PAGE) as usize]
    }

    /// Everything that was touched, and some that was not, by ascending sequence.
    pub(super) fn iter(&self) -> impl Iterator<Item = (u32, &Seen)> {
        let paged = self.directory.iter().flat_map(|(&number, &page)| {
            self.pages[page].iter().zip(0..PAGE).map(move |(seen, place)| (number * PAGE + place, seen))
        });
        paged.chain(self.beyond.iter().map(|(&sequence, seen)| (sequence, seen)))
    }

    fn turn_to(&mut self, number: u32) -> usize {
        let pages = &mut self.pages;
        let page = *self.directory.entry(number).or_insert_with(|| {
            pages.push(vec![Seen::NOTHING; PAGE as usize].into_boxed_slice());
            pages.len() - 1
        });
        self.recent = Some((number, page));
        page
    }
}
