//! Regulators of asynchronous traffic shaping (ATS; IEEE Std 802.1Q-2022, 8.6.11): flows that go on behind them.
//!
//! A regulator releases a frame when the bucket of its flow holds it, and not before the frames that came earlier in its
//! group: the flows of one class that came over one link share a queue. What leaves it keeps the bucket, whatever came:
//! bursts do not grow from hop to hop, and no delay depends on one behind a regulator.
//!
//! **Shaping for free** (Specht, Samii: "Urgency-based scheduler for time-sensitive switched Ethernet networks", ECRTS
//! 2016; Le Boudec: "A theory of traffic regulators for deterministic networks with application to interleaved
//! regulators", IEEE/ACM Transactions on Networking 26(6), 2018). Let the frames of a group enter a system that keeps
//! their order, each flow within the bucket of its regulator behind the system. Then no frame is released later than the
//! greatest delay `D` of the system after it entered. For, by induction over the frames in order: a frame waits until it
//! comes, at most `D` after it entered; or for the one before it, which entered no later; or for its bucket. Frame `n` of
//! a flow may be released at `E_n = E_m + (l_m + … + l_n − b) / r` for some earlier `m`. It entered at `s_n ≥ s_m +
//! (l_m + … + l_n − b) / r`, and `E_m ≤ s_m + D`. The system is the path from the previous regulators of these flows, or
//! their sender's port, if it is the same for all of them, with constant forwarding delays.
//!
//! **A flow that is alone in its group**, with at most `b' + r'·t` where it enters and `r' ≤ r`, is released after at most
//! `D + (b' − b) / r`, in any system that keeps its own frames in order. Several flows that do not all keep their buckets
//! can delay one another without limit (Thomas, Le Boudec: "On time-synchronization issues in time-sensitive networks with
//! regulators and nonideal clocks", SIGMETRICS 2020). Then, as always, nothing waits for more than the maximum residence
//! time: what would is dropped.

use std::collections::BTreeMap;

use crate::curve::Bucket;
use crate::model::{Flow, Model, Multiplexing, Regulator};
use crate::number::Number;
use crate::rational::Rational;

/// What regulators make of the delays of a network.
pub(crate) struct Regulated<N> {
    /// By flow: greatest time from the call to its release by the regulator in front of it; zero without one.
    pub starts: Vec<Option<N>>,
    /// By flow: greatest number of its bits in that regulator.
    pub held: Vec<Option<N>>,
    /// Flows whose frames that regulator may drop.
    pub dropped: Vec<usize>,
}

/// Delays in front of and behind regulators, from the delays to the targets of every flow.
pub(crate) fn regulated<N: Number>(
    model: &Model,
    multiplexing: Multiplexing,
    ends: &[Vec<Option<N>>],
) -> Regulated<N> {
    let mut found = Regulated {
        starts: vec![Some(N::zero()); model.flows.len()],
        held: vec![Some(N::zero()); model.flows.len()],
        dropped: Vec::new(),
    };
    let groups = groups(model);
    if groups.is_empty() {
        return found;
    }
    for (index, flow) in model.flows.iter().enumerate() {
        let Some(regulator) = &flow.regulator else { continue };
        // From its entry into the queue in front of the first server of its previous part.
        let passed = |regulator: &Regulator| {
            let (from, target) = regulator.from;
            ends[from][target].as_ref().map(|end| end.minus(&N::of(&first_wait(&model.flows[from]))))
        };
        let own = passed(regulator);
        let group = groups.get(&group_of(model, flow, regulator)).map_or(&[][..], Vec::as_slice);
        let within = match excess(model, regulator) {
            Some(excess) if group.len() == 1 => own.as_ref().map(|own| own.plus(&N::of(&excess))),
            Some(_) if multiplexing == Multiplexing::Fifo && is_free(model, group) => group
                .iter()
                .map(|other| passed(model.flows[*other].regulator.as_ref()?))
                .reduce(|a, b| a.zip(b).map(|(a, b)| a.greater(&b)))
                .flatten(),
            _ => None,
        };
        let most = N::of(&regulator.longest_wait);
        if !within.as_ref().is_some_and(|within| within.minus(&most).is_not_positive()) {
            found.dropped.push(index);
        }
        let at_most = own.map(|own| own.plus(&most));
        let through = crate::knowledge::lesser(within, at_most);
        let came = came(model, regulator);
        found.held[index] =
            through.as_ref().map(|through| N::of(&came.burst).plus(&N::of(&came.rate).times(through)));
        let before = found.starts[regulator.from.0].clone();
        let first = N::of(&first_wait(&model.flows[regulator.from.0]));
        found.starts[index] = before.zip(through).map(|(before, through)| before.plus(&first).plus(&through));
    }
    found
}

/// Wait before the first server of a flow.
fn first_wait(flow: &Flow) -> Rational {
    flow.steps.first().map_or(Rational::ZERO, |step| step.wait.clone())
}

/// Server and class behind a regulator, and the server before it.
type GroupOf = (usize, u8, usize);

fn group_of(model: &Model, flow: &Flow, regulator: &Regulator) -> GroupOf {
    let (from, target) = regulator.from;
    let before = &model.flows[from];
    (flow.steps[0].server, flow.steps[0].class, before.steps[before.targets[target].last].server)
}

/// The flows of each group.
fn groups(model: &Model) -> BTreeMap<GroupOf, Vec<usize>> {
    let mut found: BTreeMap<GroupOf, Vec<usize>> = BTreeMap::new();
    for (index, flow) in model.flows.iter().enumerate() {
        if let Some(regulator) = &flow.regulator {
            found.entry(group_of(model, flow, regulator)).or_default().push(index);
        }
    }
    found
}

/// What enters the path to a regulator.
fn came(model: &Model, regulator: &Regulator) -> Bucket<Rational> {
    let from = &model.flows[regulator.from.0];
    let varies = from.steps.first().map_or(Rational::ZERO, |step| step.variation.clone());
    let least = from.arrival.iter().min_by(|a, b| a.rate.cmp(&b.rate));
    let all = least.map_or((Rational::ZERO, Rational::ZERO), |one| (one.burst.clone(), one.rate.clone()));
    Bucket { burst: &all.0 + &(&all.1 * &varies), rate: all.1 }
}

/// Flows that their regulator releases no faster than the link before it brings them, with the server before that link:
/// those alone in their group, since a frame that waits for its bucket finds it empty before.
pub(crate) fn spaced(model: &Model) -> BTreeMap<usize, usize> {
    let alone = groups(model).into_iter().filter(|(_, flows)| flows.len() == 1);
    let spaced = alone.filter_map(|((_, _, server), flows)| {
        let regulator = model.flows[flows[0]].regulator.as_ref()?;
        let capacity = model.servers[server].capacity.as_ref()?;
        (regulator.rate <= *capacity).then_some((flows[0], server))
    });
    spaced.collect()
}

/// Time by which the bucket of a regulator may delay a flow alone; `None`: more comes than it passes.
fn excess(model: &Model, regulator: &Regulator) -> Option<Rational> {
    let before = &model.flows[regulator.from.0];
    // The same bucket, or one that never releases a frame later, in the very steps of its clock.
    if let Some(previous) = &before.regulator
        && previous.rate <= regulator.rate
        && previous.fills_in <= regulator.fills_in
        && before.longest_frame <= &previous.rate * &previous.fills_in
    {
        return Some(Rational::ZERO);
    }
    let (came, passes) = (came(model, regulator), &regulator.passes);
    let beyond = &came.burst - &passes.burst;
    (came.rate <= passes.rate).then(|| (&beyond / &passes.rate).max(Rational::ZERO))
}

/// Whether a group is shaped for free: one way for all that keeps their order, and everyone within its bucket.
fn is_free(model: &Model, group: &[usize]) -> bool {
    let mut ways = group.iter().filter_map(|flow| {
        let (from, target) = model.flows[*flow].regulator.as_ref()?.from;
        let before = &model.flows[from];
        let steps = before.path(before.targets[target].last);
        Some(steps.into_iter().map(|step| &before.steps[step]).collect::<Vec<_>>())
    });
    let Some(first) = ways.next() else { return false };
    let keeps_order = first.iter().enumerate().all(|(place, step)| {
        !model.servers[step.server].cuts_through && (place == 0 || step.variation.is_zero())
    });
    let alike = ways.all(|way| {
        way.len() == first.len()
            && way.iter().zip(&first).enumerate().all(|(place, (a, b))| {
                let waits = place == 0 || (a.wait == b.wait && a.variation == b.variation);
                (a.server, a.class) == (b.server, b.class) && waits
            })
    });
    let within = |flow: &usize| {
        model.flows[*flow]
            .regulator
            .as_ref()
            .and_then(|own| excess(model, own))
            .is_some_and(|by| by.is_zero())
    };
    keeps_order && alike && group.iter().all(within)
}
