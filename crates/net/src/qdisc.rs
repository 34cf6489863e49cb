//! The queue disciplines of an interface, asked of the kernel by netlink (rtnetlink(7), linux/pkt_sched.h).

use std::io;

use crate::error::NetError;
use crate::interface::Interface;
use crate::netlink::{self, attribute, word};

/// A queue discipline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Qdisc {
    /// Its kind: `etf`, `fq_codel`, `noqueue`, …
    pub(crate) kind: String,
    /// Every frame of the interface passes it.
    pub(crate) is_root: bool,
    /// Its parameters, of `etf`.
    pub(crate) etf: Option<Etf>,
}

/// Parameters of `etf` (`struct tc_etf_qopt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Etf {
    /// How long before its launch a frame is given to the driver, ns.
    pub(crate) delta_ns: i32,
    /// Number of its clock.
    pub(crate) clock: i32,
    /// Launch times are the latest instants.
    pub(crate) deadline_mode: bool,
    /// The card launches.
    pub(crate) offload: bool,
}

/// `struct tcmsg`.
const TC_HEADER: usize = 20;
const TC_H_ROOT: u32 = u32::MAX;
const TCA_ETF_PARMS: u16 = 1;

/// Those of `interface`.
///
/// # Errors
/// The kernel does not tell.
pub(crate) fn of(interface: &Interface) -> Result<Vec<Qdisc>, NetError> {
    let failed =
        |e| NetError::of(format!("cannot ask for the queue disciplines of {}", interface.name), "", e);
    ask(interface.index).map_err(failed)
}

fn ask(index: u32) -> io::Result<Vec<Qdisc>> {
    let mut found = Vec::new();
    // Of `struct tcmsg`: family and padding, the interface, then handle, parent and info.
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
    Some(Qdisc { kind, is_root: word(body, 12)? == TC_H_ROOT, etf })
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
                Qdisc { kind: "etf".into(), is_root: true, etf: Some(etf) },
                Qdisc { kind: "pfifo".into(), is_root: false, etf: None },
            ]
        );
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
