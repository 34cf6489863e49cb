//! Queueing disciplines of an interface, read by netlink (rtnetlink(7), linux/pkt_sched.h).

use std::io;

use crate::error::NetError;
use crate::interface::Interface;
use crate::netlink::{self, attribute, half, word};

/// A queueing discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qdisc {
    /// Kind: `etf`, `fq_codel`, `noqueue`, …
    pub(crate) kind: String,
    /// Whether it is the root, which every frame of the interface passes.
    pub(crate) is_root: bool,
    /// Handle, major and minor number.
    pub(crate) handle: u32,
    /// Parent class: the handle of the discipline above and a number.
    pub(crate) parent: u32,
    /// Queues of each priority, for `mqprio` and `taprio`.
    pub(crate) queues: Option<Queues>,
    /// Parameters of `etf`.
    pub(crate) etf: Option<Etf>,
}

/// Traffic classes (`struct tc_mqprio_qopt`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Queues {
    /// Traffic class of each priority.
    class_of: [u8; PRIORITIES],
    /// Number of queues and first queue of each class.
    ranges: [(u16, u16); PRIORITIES],
}

impl Queues {
    /// The queues for frames of this priority.
    pub(crate) fn of(&self, priority: u8) -> std::ops::Range<u16> {
        let class = self.class_of.get(usize::from(priority)).copied().unwrap_or(0);
        let (count, first) = self.ranges.get(usize::from(class)).copied().unwrap_or((0, 0));
        first..first.saturating_add(count)
    }

    /// Decodes `num_tc`, the map of 16 priorities, `hw`, 16 counts and 16 offsets.
    pub(crate) fn read(given: &[u8]) -> Option<Self> {
        let class_of = given.get(1..1 + PRIORITIES)?.try_into().ok()?;
        let mut ranges = [(0, 0); PRIORITIES];
        for (class, range) in ranges.iter_mut().enumerate() {
            let count = half(given, 2 + PRIORITIES + 2 * class)?;
            *range = (count, half(given, 2 + 3 * PRIORITIES + 2 * class)?);
        }
        Some(Self { class_of, ranges })
    }
}

/// Parameters of `etf` (`struct tc_etf_qopt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Etf {
    /// Time before its launch at which a frame is passed to the driver, ns.
    pub(crate) delta_ns: i32,
    /// Clock ID.
    pub(crate) clock: i32,
    /// Whether launch times are deadlines, so that frames may leave earlier.
    pub(crate) deadline_mode: bool,
    /// Whether the card launches.
    pub(crate) offload: bool,
}

/// `struct tcmsg`.
const TC_HEADER: usize = 20;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_ETF_PARMS: u16 = 1;
const TCA_TAPRIO_PRIOMAP: u16 = 1;
/// `TC_QOPT_BITMASK` and `TC_QOPT_MAX_QUEUE`.
const PRIORITIES: usize = 16;

/// The queueing disciplines of `interface`.
///
/// # Errors
/// The kernel refuses.
pub(crate) fn of(interface: &Interface) -> Result<Vec<Qdisc>, NetError> {
    let failed =
        |e| NetError::of(format!("cannot ask for the queue disciplines of {}", interface.name), "", e);
    ask(interface.index).map_err(failed)
}

fn ask(index: u32) -> io::Result<Vec<Qdisc>> {
    let mut found = Vec::new();
    // `struct tcmsg`: family and padding, the interface, then handle, parent and info.
    let body = [&[0; 4][..], &index.to_ne_bytes(), &[0; 12]].concat();
    netlink::list(libc::NETLINK_ROUTE, &netlink::listing(libc::RTM_GETQDISC, &body), |body| {
        found.extend(qdisc(body, index));
    })?;
    Ok(found)
}

fn qdisc(body: &[u8], index: u32) -> Option<Qdisc> {
    if word(body, 4)? != index {
        return None;
    }
    let attributes = body.get(TC_HEADER..)?;
    let kind = attribute(attributes, libc::TCA_KIND)?;
    let kind = netlink::text(kind);
    let parameters =
        attribute(attributes, libc::TCA_OPTIONS).and_then(|inner| attribute(inner, TCA_ETF_PARMS));
    let etf = parameters.filter(|_| kind == "etf").and_then(|given| {
        let flags = word(given, 8)?;
        Some(Etf {
            delta_ns: word(given, 0)?.cast_signed(),
            clock: word(given, 4)?.cast_signed(),
            deadline_mode: flags & 1 != 0,
            offload: flags & 2 != 0,
        })
    });
    let options = attribute(attributes, libc::TCA_OPTIONS);
    let queues = match &*kind {
        "mqprio" => options,
        "taprio" => options.and_then(|inner| attribute(inner, TCA_TAPRIO_PRIOMAP)),
        _ => None,
    };
    let (handle, parent) = (word(body, 8)?, word(body, 12)?);
    let queues = queues.and_then(Queues::read);
    Some(Qdisc { kind, is_root: parent == TC_H_ROOT, handle, parent, queues, etf })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::netlink::{HEADER, messages};

    fn read(datagram: &[u8], index: u32, found: &mut Vec<Qdisc>) -> io::Result<bool> {
        messages(datagram, |body| found.extend(qdisc(body, index)))
    }

    fn with_length(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut out = [&((4 + value.len()) as u16).to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
        out.resize(out.len().next_multiple_of(4), 0);
        out
    }

    fn message(kind: u16, index: u32, parent: u32, attributes: &[u8]) -> Vec<u8> {
        let body =
            [&[0; 4][..], &index.to_ne_bytes(), &[0; 4], &parent.to_ne_bytes(), &[0; 4], attributes].concat();
        let length = (HEADER + body.len()) as u32;
        [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), &[0; 10], &body].concat()
    }

    fn etf(flags: u32) -> Vec<u8> {
        let parameters = [300_000_u32, 11, flags].map(u32::to_ne_bytes).concat();
        let options = with_length(libc::TCA_OPTIONS | 0x8000, &with_length(TCA_ETF_PARMS, &parameters));
        [with_length(libc::TCA_KIND, b"etf\0"), options].concat()
    }

    #[test]
    fn queue_disciplines_of_one_interface_are_read() {
        const NEW: u16 = 36;
        let datagram = [
            message(NEW, 7, TC_H_ROOT, &etf(2)),
            message(NEW, 8, TC_H_ROOT, &etf(0)),
            message(NEW, 7, 0x10000, &with_length(libc::TCA_KIND, b"pfifo\0")),
            message(libc::NLMSG_DONE as u16, 0, 0, &[]),
        ]
        .concat();
        let mut found = Vec::new();
        assert!(read(&datagram, 7, &mut found).expect("whole"));
        let etf = Etf { delta_ns: 300_000, clock: 11, deadline_mode: false, offload: true };
        assert_eq!(
            found,
            [
                Qdisc {
                    kind: "etf".into(),
                    is_root: true,
                    handle: 0,
                    parent: TC_H_ROOT,
                    queues: None,
                    etf: Some(etf)
                },
                Qdisc {
                    kind: "pfifo".into(),
                    is_root: false,
                    handle: 0,
                    parent: 0x10000,
                    queues: None,
                    etf: None
                },
            ]
        );
    }

    /// What the kernel 6.1 tells of `num_tc 3 map 2 2 1 0 2 … queues 1@0 1@1 2@2`.
    #[test]
    fn queues_of_priorities_are_read() {
        let mut given = vec![3, 2, 2, 1, 0, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 0];
        for values in [[1_u16, 1, 2], [0, 1, 2]] {
            given.extend((0..16).flat_map(|class| values.get(class).copied().unwrap_or(0).to_ne_bytes()));
        }
        let queues = Queues::read(&given).expect("whole");
        assert_eq!([queues.of(3), queues.of(2), queues.of(0), queues.of(9)], [0..1, 1..2, 2..4, 2..4]);
        assert_eq!(Queues::read(&given[..81]), None);
    }

    proptest! {
        #[test]
        fn any_bytes_end_the_reading(bytes in proptest::collection::vec(any::<u8>(), 0..200), at in 0_usize..160, byte: u8) {
            let mut found = Vec::new();
            // Errors are answers, too.
            let _ = read(&bytes, 7, &mut found);
            let mut whole = [message(36, 7, TC_H_ROOT, &etf(0)), message(36, 7, 1, &etf(3))].concat();
            let at = at % whole.len();
            whole[at] = byte;
            let _ = read(&whole, 7, &mut found);
            prop_assert!(found.len() <= 12);
        }
    }

    #[test]
    fn the_kernel_tells_of_loopback() {
        let interfaces = crate::interfaces().expect("there are some");
        let loopback = interfaces.iter().find(|interface| interface.name == "lo").expect("always there");
        let found = of(loopback).expect("anyone may ask");
        assert!(found.iter().all(|qdisc| qdisc.etf.is_none()), "{found:?}");
    }
}
