//! Launch times: each frame states when it has to leave, and the queueing discipline `etf`, or the card, holds it until
//! then (`SO_TXTIME`, Linux 4.19).
//!
//! The kernel counts launch times in TAI. Failures come back through the socket's error queue: a frame whose instant
//! had passed, or whose instant the discipline cannot use, is dropped and reported.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use wg_frame::time::WallNanos;

use crate::ancillary::{CONTROL_LEN, ControlBuffer};
use crate::clock;
use crate::error::NetError;
use crate::interface::Interface;
use crate::qdisc::{self, Qdisc};
use crate::sys::{Plain, set_option};

/// `SO_TXTIME` of asm-generic/socket.h, also the type of the control message.
const SO_TXTIME: libc::c_int = 61;
/// `SO_EE_ORIGIN_TXTIME` and its codes of linux/errqueue.h.
const ORIGIN: u8 = 6;
const MISSED: u8 = 2;
/// Time between handing a frame over and its dequeueing by `etf`, ns: allows for system calls and a busy core.
const MARGIN: i64 = 200_000;

// SAFETY: a C structure of two integers.
unsafe impl Plain for libc::sock_txtime {}

/// Numbers of frames whose launch time was not kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Unlaunched {
    /// Frames whose instant had passed.
    pub missed: u64,
    /// Frames whose instant the queueing discipline does not accept.
    pub invalid: u64,
}

/// Launch parameters of an interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Whether the card launches, or a timer of the kernel.
    pub by_hardware: bool,
    /// Time before its launch at which a frame has to be handed over, ns.
    pub ahead_ns: i64,
    /// TAI minus UTC in this kernel, ns.
    tai_ns: i64,
}

/// A control message with a launch time, in the kernel's layout.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(super) struct LaunchTime {
    head: libc::cmsghdr,
    nanos: u64,
}

/// Reason why an interface cannot launch frames.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoLaunch {
    /// Different queueing discipline at the interface.
    #[error("{interface} has the queue discipline {found}, which knows no launch times; {}", cure(.interface))]
    NoEtf {
        /// Name of the interface.
        interface: String,
        /// Queueing discipline; `none` without any.
        found: String,
    },
    /// Queueing discipline with another clock.
    #[error("the etf queue discipline of {interface} counts by clock {clock}, not by CLOCK_TAI (11); {}", cure(.interface))]
    Clock {
        /// Name of the interface.
        interface: String,
        /// Clock ID of its discipline.
        clock: i32,
    },
    /// Launch times that are deadlines only.
    #[error("the etf queue discipline of {interface} sends as soon as it can (deadline_mode); {}", cure(.interface))]
    Deadlines {
        /// Name of the interface.
        interface: String,
    },
}

/// The command that configures an interface for launching.
fn cure(interface: &str) -> String {
    format!(
        "`tc qdisc replace dev {interface} root etf clockid CLOCK_TAI delta 300000` needs the kernel module sch_etf; \
         add `offload` where the card launches by itself"
    )
}

impl Launch {
    /// Launch parameters of this interface for frames of this priority.
    ///
    /// # Errors
    /// The interface cannot launch, with the reason and the cure; or the kernel refuses.
    pub fn at(interface: &Interface, priority: u8) -> Result<Result<Self, NoLaunch>, NetError> {
        let qdiscs = qdisc::of(interface)?;
        Ok(judge(&interface.name, priority, &qdiscs).map(|(delta, by_hardware)| Self {
            by_hardware,
            ahead_ns: i64::from(delta) + MARGIN,
            tai_ns: clock::tai_ahead(),
        }))
    }

    /// Enables launch times for `socket`.
    pub(super) fn enable(socket: &impl AsFd) -> io::Result<()> {
        let wish = libc::sock_txtime { clockid: libc::CLOCK_TAI, flags: libc::SOF_TXTIME_REPORT_ERRORS };
        set_option(socket.as_fd(), libc::SOL_SOCKET, SO_TXTIME, wish)
    }

    /// The control message of a frame that has to leave at `at`.
    pub(super) fn time(&self, at: WallNanos) -> LaunchTime {
        // SAFETY: a cmsghdr of zeroes is valid; its padding differs between C libraries.
        let mut head: libc::cmsghdr = unsafe { std::mem::zeroed() };
        head.cmsg_len = size_of::<LaunchTime>() as _;
        head.cmsg_level = libc::SOL_SOCKET;
        head.cmsg_type = SO_TXTIME;
        LaunchTime { head, nanos: at.get().saturating_add(self.tai_ns).max(0).unsigned_abs() }
    }
}

/// The delta of the discipline that launches frames of this priority, ns, and whether the card does it. It is the root
/// of the interface, or serves the only queue of that priority below `mqprio` or `taprio`.
fn judge(interface: &str, priority: u8, qdiscs: &[Qdisc]) -> Result<(i32, bool), NoLaunch> {
    let name = || interface.to_owned();
    let root = qdiscs.iter().find(|qdisc| qdisc.is_root);
    let below = root.and_then(|root| {
        let queues = root.queues.as_ref()?.of(priority);
        // Its classes are numbered from 1, one for each queue.
        let class = root.handle | (u32::from(queues.start) + 1);
        let found = qdiscs.iter().find(|qdisc| !qdisc.is_root && qdisc.parent == class)?;
        found.etf.filter(|_| queues.len() == 1)
    });
    let Some(etf) = root.and_then(|qdisc| qdisc.etf).or(below) else {
        let found = root.map_or("none", |qdisc| &qdisc.kind).to_owned();
        return Err(NoLaunch::NoEtf { interface: name(), found });
    };
    if etf.clock != libc::CLOCK_TAI {
        return Err(NoLaunch::Clock { interface: name(), clock: etf.clock });
    }
    if etf.deadline_mode {
        return Err(NoLaunch::Deadlines { interface: name() });
    }
    Ok((etf.delta_ns.max(0), etf.offload))
}

/// Reads reports about launch times from the error queue of `socket`, without waiting.
pub(super) fn take_unlaunched(socket: &impl AsFd, sum: &mut Unlaunched) -> io::Result<()> {
    let mut control = ControlBuffer::EMPTY;
    loop {
        // SAFETY: a msghdr of zeroes is a valid "nothing".
        let mut header: libc::msghdr = unsafe { std::mem::zeroed() };
        header.msg_control = control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_LEN as _;
        // SAFETY: `header` refers to a live control buffer of the length beside it and to nothing else.
        let got = unsafe {
            libc::recvmsg(
                socket.as_fd().as_raw_fd(),
                &raw mut header,
                libc::MSG_ERRQUEUE | libc::MSG_DONTWAIT | libc::MSG_TRUNC,
            )
        };
        if got < 0 {
            let error = io::Error::last_os_error();
            return match error.raw_os_error() {
                Some(libc::EAGAIN) => Ok(()),
                Some(libc::EINTR) => continue,
                _ => Err(error),
            };
        }
        let used = (header.msg_controllen as usize).min(CONTROL_LEN);
        note(&control.0[..used], sum);
    }
}

/// Reads the control messages of one entry of an error queue.
fn note(control: &[u8], sum: &mut Unlaunched) {
    let head = size_of::<libc::cmsghdr>();
    let mut rest = control;
    // A length of the machine's word, and two integers (socket(7), cmsg(3)).
    while let Some((length, _)) = rest.split_first_chunk::<{ size_of::<usize>() }>() {
        let length = usize::from_ne_bytes(*length);
        let Some(data) = rest.get(head..length) else { return };
        // struct sock_extended_err: number, origin, type, code, …
        if let [_, _, _, _, ORIGIN, _, code, ..] = *data {
            *(if code == MISSED { &mut sum.missed } else { &mut sum.invalid }) += 1;
        }
        rest = rest.get(length.next_multiple_of(size_of::<usize>())..).unwrap_or_default();
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::qdisc::{Etf, Queues};

    const ETF: Etf = Etf { delta_ns: 300_000, clock: libc::CLOCK_TAI, deadline_mode: false, offload: false };

    fn qdisc(kind: &str, is_root: bool, etf: Option<Etf>) -> Qdisc {
        Qdisc { kind: kind.into(), is_root, handle: 0x5747_0000, parent: 0, queues: None, etf }
    }

    #[test]
    fn an_interface_launches_where_etf_is_at_its_root_and_counts_tai() {
        assert_eq!(judge("eth0", 0, &[qdisc("etf", true, Some(ETF))]), Ok((300_000, false)));
        let offload = Etf { offload: true, ..ETF };
        assert_eq!(
            judge("eth0", 0, &[qdisc("ingress", false, None), qdisc("etf", true, Some(offload))]),
            Ok((300_000, true))
        );
        let below = [qdisc("mqprio", true, None), qdisc("etf", false, Some(ETF))];
        let refused = judge("eth0", 0, &below).expect_err("the frames of a socket take the root").to_string();
        assert!(
            refused.contains("eth0 has the queue discipline mqprio")
                && refused.contains("tc qdisc replace dev eth0 root etf")
        );
        assert!(judge("eth0", 0, &[]).expect_err("nothing there").to_string().contains("discipline none"));
        let monotonic = judge("eth0", 0, &[qdisc("etf", true, Some(Etf { clock: 1, ..ETF }))]);
        assert_eq!(monotonic, Err(NoLaunch::Clock { interface: "eth0".into(), clock: 1 }));
        let deadlines = judge("eth0", 0, &[qdisc("etf", true, Some(Etf { deadline_mode: true, ..ETF }))]);
        assert!(matches!(deadlines, Err(NoLaunch::Deadlines { .. })));
    }

    #[test]
    fn below_traffic_classes_the_queue_of_the_priority_launches() {
        // Priority 7 has queue 0, all else queues 1 and 2.
        let mut map = vec![2, 1, 1, 1, 1, 1, 1, 1, 0, 1, 1, 1, 1, 1, 1, 1, 1, 0];
        for values in [[1_u16, 2], [0, 1]] {
            map.extend((0..16).flat_map(|class| values.get(class).copied().unwrap_or(0).to_ne_bytes()));
        }
        let root = Qdisc { queues: Queues::read(&map), ..qdisc("taprio", true, None) };
        let below = |class: u32| Qdisc { parent: 0x5747_0000 | class, ..qdisc("etf", false, Some(ETF)) };
        assert_eq!(judge("eth0", 7, &[root.clone(), below(1)]), Ok((300_000, false)));
        for (priority, class) in [(7, 2), (0, 1), (0, 2)] {
            let refused = judge("eth0", priority, &[root.clone(), below(class)]);
            assert!(matches!(refused, Err(NoLaunch::NoEtf { .. })), "{priority} {class}: {refused:?}");
        }
    }

    #[test]
    fn a_launch_time_is_a_control_message_in_tai() {
        let launch = Launch { by_hardware: false, ahead_ns: 500_000, tai_ns: 37_000_000_000 };
        let message = launch.time(WallNanos::new(1_700_000_000_000_000_123));
        assert_eq!(message.nanos, 1_700_000_037_000_000_123);
        #[expect(clippy::unnecessary_cast, reason = "its type differs between C libraries")]
        let told = (message.head.cmsg_len as usize, message.head.cmsg_level, message.head.cmsg_type);
        assert_eq!(told, (size_of::<libc::cmsghdr>() + 8, libc::SOL_SOCKET, 61));
    }

    /// One control message of the error queue, as net/sched/sch_etf.c fills it.
    fn told(level: i32, origin: u8, code: u8) -> Vec<u8> {
        let data = [&125_u32.to_ne_bytes()[..], &[origin, 0, code, 0], &[0; 24]].concat();
        let length = size_of::<libc::cmsghdr>() + data.len();
        [&length.to_ne_bytes()[..], &level.to_ne_bytes(), &11_i32.to_ne_bytes(), &data].concat()
    }

    #[test]
    fn missed_and_impossible_launches_are_told_apart() {
        let mut sum = Unlaunched::default();
        note(&told(0, 6, 2), &mut sum);
        note(&[told(0, 4, 2), told(0, 6, 1), told(263, 6, 2)].concat(), &mut sum);
        assert_eq!(sum, Unlaunched { missed: 2, invalid: 1 });
    }

    proptest! {
        #[test]
        fn whatever_the_kernel_leaves_is_read_within_bounds(bytes in proptest::collection::vec(any::<u8>(), 0..CONTROL_LEN), length in 0_usize..80) {
            let mut sum = Unlaunched::default();
            note(&bytes, &mut sum);
            let mut with_length = length.to_ne_bytes().to_vec();
            with_length.extend(bytes);
            note(&with_length, &mut sum);
            prop_assert!(sum.missed + sum.invalid <= 32);
        }
    }

    /// The socket option itself needs neither the discipline nor rights; and without the former nothing is ever missed.
    #[test]
    fn a_socket_takes_launch_times() {
        let socket = std::net::UdpSocket::bind("127.0.0.1:0").expect("loopback is there");
        Launch::enable(&socket).expect("Linux 4.19 or later");
        let mut sum = Unlaunched::default();
        take_unlaunched(&socket, &mut sum).expect("an empty queue is no error");
        assert_eq!(sum, Unlaunched::default());
    }

    /// On an interface whose priority 7 leaves by etf below taprio, and whose filter gives every frame that priority.
    #[test]
    #[ignore = "needs etf and taprio: make check-tsn-vm"]
    fn etf_launches_what_comes_in_time_and_tells_of_the_rest() {
        let name = std::env::var("WIREGAUGE_TSN_INTERFACE").expect("the script of the machine names it");
        let interface = crate::interface_named(&name).expect("it is there");
        let peer = std::env::var("WIREGAUGE_TSN_PEER").expect("likewise");
        let arrived = || crate::link_counters(&peer).expect("it is there").received;
        let before = arrived();
        let refused = Launch::at(&interface, 0).expect("the kernel tells");
        assert!(matches!(refused, Err(NoLaunch::NoEtf { .. })), "{refused:?}");
        let launch = Launch::at(&interface, 7).expect("the kernel tells").expect("etf is there");
        let mut sender =
            crate::transmit::Transmitter::launching(&interface, launch).expect("a packet socket");
        let mut send = |ahead_ns: i64| {
            let slot = sender.slot().expect("one at a time");
            slot.bytes[..12].copy_from_slice(&[0x02; 12]);
            slot.bytes[12..14].copy_from_slice(&[0x88, 0xB5]);
            sender.commit(60);
            sender.launch_at(WallNanos::new(clock::realtime().get() + ahead_ns));
            sender.flush().expect("the socket lives").taken
        };
        assert!((0..10).all(|_| send(200_000_000) == 1));
        // A past instant is refused when it is handed over.
        assert!((0..5).all(|_| send(-50_000_000) == 0));
        std::thread::sleep(std::time::Duration::from_millis(600));
        let not = sender.unlaunched().expect("the error queue can be read");
        assert_eq!((not, arrived() - before), (Unlaunched { missed: 0, invalid: 5 }, 10));
    }
}
