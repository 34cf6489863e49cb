//! The report of a run from those of its stages: each counts what it drove itself, and the rest is zero.

use std::collections::BTreeMap;

use wg_plan::Network;

use crate::report::{
    AccessPointReport, AgentReport, FilterReport, FrerReport, JunctionReport, RecoveryReport, SimReport,
    SwitchReport, TaskReport,
};

/// The report of two stages.
pub(crate) fn sum(mut whole: SimReport, part: SimReport) -> SimReport {
    let SimReport { agents, switches, frer, stream_filters, credits, records, frame_hops, events, .. } = part;
    for (name, agent) in agents {
        add_agent(whole.agents.entry(name).or_default(), agent);
    }
    for (name, switch) in switches {
        add_switch(whole.switches.entry(name).or_default(), switch);
    }
    for (flow, report) in frer {
        add_frer(whole.frer.entry(flow).or_default(), report);
    }
    whole.stream_filters.iter_mut().zip(stream_filters).for_each(|(sum, filter)| add_filter(sum, &filter));
    // A stage tells the credits of its own ports only.
    whole.credits.extend(credits);
    whole.records += records;
    whole.frame_hops += frame_hops;
    whole.events += events;
    whole
}

/// The report of all stages, with its lists in the order of a whole one: by node, port and class.
pub(crate) fn in_order(mut report: SimReport, network: &Network) -> SimReport {
    let index: BTreeMap<&str, usize> =
        network.nodes.iter().enumerate().map(|(index, node)| (node.name.as_str(), index)).collect();
    report.credits.sort_by_key(|one| (index.get(one.node.as_str()).copied(), one.port, one.class));
    report
}

fn add_counts<K: Ord>(sum: &mut BTreeMap<K, u64>, counts: BTreeMap<K, u64>) {
    for (key, count) in counts {
        *sum.entry(key).or_default() += count;
    }
}

fn add_each(sum: &mut [u64], counts: &[u64]) {
    sum.iter_mut().zip(counts).for_each(|(sum, count)| *sum += count);
}

fn add_agent(sum: &mut AgentReport, agent: AgentReport) {
    let AgentReport { access_points, tasks, records_written, streams, load_read, unreceived, .. } = agent;
    for (sum, point) in sum.access_points.iter_mut().zip(access_points) {
        let AccessPointReport { frames_sent, frames_received, send_errors, .. } = point;
        sum.frames_sent += frames_sent;
        sum.frames_received += frames_received;
        sum.send_errors += send_errors;
    }
    // The same tasks in the same order; only frames that belong to none are told of at the end, where there are any.
    for (at, task) in tasks.into_iter().enumerate() {
        match sum.tasks.get_mut(at) {
            Some(sum) => add_task(sum, &task),
            None => sum.tasks.push(task),
        }
    }
    for (sum, load) in sum.streams.iter_mut().zip(streams) {
        sum.figures.account.received += load.figures.account.received;
        sum.figures.account.distinct += load.figures.account.distinct;
        add_counts(&mut sum.figures.lost, load.figures.lost);
    }
    sum.records_written += records_written;
    sum.load_read += load_read;
    add_counts(&mut sum.unreceived, unreceived);
}

fn add_task(sum: &mut TaskReport, task: &TaskReport) {
    sum.planned = sum.planned.max(task.planned);
    sum.done += task.done;
    sum.late += task.late;
    sum.wire_bytes += task.wire_bytes;
    sum.crc_errors += task.crc_errors;
    sum.wrong_destination += task.wrong_destination;
    sum.unknown_flow += task.unknown_flow;
    sum.sequence_gaps += task.sequence_gaps;
    sum.sequence_repeats += task.sequence_repeats;
}

fn add_switch(sum: &mut SwitchReport, switch: SwitchReport) {
    for (sum, port) in sum.ports.iter_mut().zip(switch.ports) {
        sum.frames += port.frames;
        sum.bytes += port.bytes;
        add_counts(&mut sum.dropped, port.dropped);
        sum.most_waiting_bytes = sum.most_waiting_bytes.max(port.most_waiting_bytes);
    }
}

fn add_frer(sum: &mut FrerReport, report: FrerReport) {
    let FrerReport { came, recovery, individual, latent_errors, first_latent_error_ps, junctions, .. } =
        report;
    add_each(&mut sum.came, &came);
    add_recovery(&mut sum.recovery, recovery);
    sum.individual.iter_mut().zip(individual).for_each(|(sum, one)| add_recovery(sum, one));
    sum.latent_errors = sum.latent_errors.zip(latent_errors).map(|(sum, errors)| sum + errors);
    sum.first_latent_error_ps = sum.first_latent_error_ps.into_iter().chain(first_latent_error_ps).min();
    for (sum, JunctionReport { came, recovery, individual, .. }) in sum.junctions.iter_mut().zip(junctions) {
        add_each(&mut sum.came, &came);
        add_recovery(&mut sum.recovery, recovery);
        sum.individual.iter_mut().zip(individual).for_each(|(sum, one)| add_recovery(sum, one));
    }
}

fn add_recovery(sum: &mut RecoveryReport, part: RecoveryReport) {
    let RecoveryReport { passed, discarded, rogue, out_of_order, lost, tagless, resets } = part;
    sum.passed += passed;
    sum.discarded += discarded;
    sum.rogue += rogue;
    sum.out_of_order += out_of_order;
    sum.lost += lost;
    sum.tagless += tagless;
    sum.resets += resets;
}

fn add_filter(sum: &mut FilterReport, part: &FilterReport) {
    sum.matching += part.matching;
    sum.passed += part.passed;
    sum.not_passing_sdu += part.not_passing_sdu;
    sum.not_passing += part.not_passing;
    sum.red += part.red;
    sum.yellow += part.yellow;
}
