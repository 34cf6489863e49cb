//! Ports with traffic classes: queues, shapers and gates.

use std::collections::BTreeMap;

use wg_core::clock::LocalTime;
use wg_core::line::{LineRate, SMALLEST_FRAME};
use wg_core::port::PortConfig;
use wg_core::queue::{Capacity, PRIORITIES, QUEUES};
use wg_core::selection::{
    AsynchronousConfig, Cyclic, GateEntry, GateList, Gates, Guard, Preemption, SchedulerConfig, Selection,
    StrictPriority, TrafficClassConfig, TrafficClasses,
};
use wg_frame::ethernet::MacAddress;
use wg_plan::host_tsn;
use wg_plan::{AsynchronousShaper, Attachment, FlowId, FlowScheduler, PortClass, PortSchedule, PortTsn};

use crate::error::SimError;

/// Queues and selection of a port, with a capacity of `queue` for each queue and `limit` for the buffer.
pub(super) fn port(
    tsn: &PortTsn,
    streams: &Streams,
    at: Attachment,
    line: LineRate,
    limit: Capacity,
    queue: Capacity,
) -> Result<(PortConfig, Selection), SimError> {
    let config = PortConfig::traffic_classes(line, limit, tsn.classes_of_priorities());
    let config = PortConfig { queue_limits: [queue; QUEUES], ..config };
    let (mut idle_slopes, mut longest_frames) = ([None; PRIORITIES], [u16::MAX; PRIORITIES]);
    for (class, queue) in tsn.classes.iter().zip(0..PRIORITIES) {
        idle_slopes[queue] = class.idle_slope_bps;
        longest_frames[queue] = class.longest_frame.unwrap_or(u16::MAX);
    }
    let is_plain = |class: &PortClass| {
        // Every field is named: a new one does not compile until it is known whether strict priority alone serves it.
        let PortClass {
            priorities: _,
            virtual_links: _,
            idle_slope_bps,
            longest_frame,
            preemptable,
            asynchronous,
        } = class;
        idle_slope_bps.is_none() && longest_frame.is_none() && !preemptable && asynchronous.is_none()
    };
    let plain = tsn.classes.iter().all(is_plain);
    if plain && tsn.schedules.is_empty() && tsn.cyclic.is_none() {
        return Ok((config, Selection::StrictPriority(StrictPriority)));
    }
    let cyclic = tsn.cyclic.map(|cyclic| Cyclic {
        base: LocalTime::ZERO + cyclic.base_time,
        cycle: cyclic.cycle,
        queues: cyclic.classes.map(usize::from),
    });
    let lists: Vec<GateList> =
        cyclic.iter().map(Cyclic::gates).chain(tsn.schedules.iter().map(list)).collect();
    let gates = (!lists.is_empty()).then(|| Gates::new(&lists)).transpose();
    let gates =
        gates.map_err(|error| SimError::plan(format!("port {} of node {}: {error}", at.port, at.node)))?;
    let guard = tsn.guard_band.map_or(Guard::Length, Guard::Band);
    let preemption = preemption(tsn, line);
    let mut asynchronous = [const { None }; PRIORITIES];
    for (class, queue) in tsn.classes.iter().zip(0..PRIORITIES) {
        asynchronous[queue] = class.asynchronous.as_ref().map(|shaper| shaped(shaper, streams));
    }
    let config_of_classes =
        TrafficClassConfig { idle_slopes, longest_frames, gates, guard, preemption, asynchronous, cyclic };
    let classes = TrafficClasses::new(config_of_classes);
    Ok((config, Selection::TrafficClasses(Box::new(classes))))
}

/// The queues of virtual links at a port of a device with virtual links: those of their classes, or above all classes.
pub(super) fn critical(classes: PortConfig, tsn: &PortTsn, knows_links: bool) -> PortConfig {
    if !knows_links {
        return classes;
    }
    let PortConfig { line, limit, queue_of_priority, queue_limits, .. } = classes;
    let converged = PortConfig::converged(line, limit, queue_of_priority, tsn.classes_of_links());
    PortConfig { queue_limits, ..converged }
}

/// The flows that pass a switch, by number.
pub(super) type Streams = BTreeMap<FlowId, Stream>;

/// A flow with the identification of its frames at a switch.
pub(super) struct Stream {
    pub(super) destination: MacAddress,
    pub(super) vlan: u16,
    /// Ingress port.
    pub(super) enters: u16,
}

fn shaped(shaper: &AsynchronousShaper, streams: &Streams) -> AsynchronousConfig {
    let scheduler = |one: &FlowScheduler| {
        let stream = streams.get(&one.flow)?;
        Some(SchedulerConfig {
            destination: stream.destination,
            vlan: stream.vlan,
            rate: one.rate_bps,
            burst: 8 * u64::from(one.burst),
            group: stream.enters,
        })
    };
    let schedulers = shaper.schedulers.iter().filter_map(scheduler).collect();
    AsynchronousConfig { schedulers, longest_residence: shaper.longest_residence }
}

/// Preemptable queues of a port, if any.
pub(super) fn preemption(tsn: &PortTsn, line: LineRate) -> Option<Preemption> {
    let queues = tsn.classes.iter().zip(0..PRIORITIES).filter(|(class, _)| class.preemptable);
    let queues = queues.fold(0_u8, |queues, (_, queue)| queues | 1 << queue);
    let shortest_fragment = tsn.shortest_fragment.unwrap_or(SMALLEST_FRAME);
    let advances = tsn.advances(line);
    (queues != 0).then_some(Preemption { queues, shortest_fragment, advances })
}

fn list(schedule: &PortSchedule) -> GateList {
    let entry = |entry: &host_tsn::GateEntry| {
        let open =
            entry.open.iter().fold(0, |open, class| open | 1_u8.checked_shl(u32::from(*class)).unwrap_or(0));
        GateEntry { open, length: entry.length, mac: entry.mac }
    };
    GateList {
        base: LocalTime::ZERO + schedule.base_time,
        extension: schedule.cycle_extension,
        entries: schedule.entries.iter().map(entry).collect(),
    }
}
