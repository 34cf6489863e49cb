//! Cyclic queuing and forwarding (CQF; IEEE Std 802.1Q-2022, Annex T): what comes in a cycle leaves in the next one.
//!
//! **Delay.** A frame that comes at any time of a cycle has left by the end of the next one: after two cycles at most.
//! The next port with the same cycle time gets it by then and the way to it, and its own cycles begin at known times: the
//! number of the cycle in which the frame comes there at the latest follows, and the end of the one after it. So `h` hops
//! whose cycles begin as much later as frames take to them have a delay of at most `h + 1` cycles and those times, and
//! not `2h`. Clocks count by their greatest deviation in a run. In the last of these cycles the frame has left when all that
//! may come in a cycle, and what goes before it, has: the rest of the cycle is spare.
//!
//! **Fit.** All that rests on the frames of a cycle having left by the end of the next one. What comes to a port in a
//! cycle came to the first of these ports in as many cycles as the number of the cycle varies, and one more; there it is
//! within the curve of the flow. It must fit into a cycle less a frame of another class, the gap behind the cycle before,
//! a guard band, windows and what is sent of the classes above. A port where it may not is refused. That the ports rely on
//! one another is no circle: each cycle rests on those before.
//!
//! For the other analyses such a port is a delay of two cycles, which every rate-latency service with that latency is
//! below.

use wg_plan::Diagnostic;

use crate::instants::{PICOS_PER_SECOND, picos_down, picos_up, rounded};
use crate::model::{Flow, Model, Step, problem};
use crate::nodes::Layout;
use crate::number::Number;
use crate::rational::Rational;
use crate::rules::{Cycles, GAP, Rule};
use crate::tfa::{Total, exact};
use crate::values::{Settings, Values};

/// Delays to the targets of every flow.
pub(crate) type Ends = Vec<Vec<Option<Rational>>>;

/// Delays to the targets of flows that pass cyclic queues; `None`: there are no such queues.
///
/// # Errors
/// Ports whose queues may get more in a cycle than they can send in the next one.
pub(crate) fn analyse<N: Number>(
    model: &Model,
    layout: &Layout,
    settings: Settings,
    total: &Total<N>,
) -> Result<Option<Ends>, Vec<Diagnostic>> {
    let is_cyclic = |rule: &Rule<Rational>| matches!(rule, Rule::Cyclic(_));
    if !model.servers.iter().any(|server| server.rules.values().any(is_cyclic)) {
        return Ok(None);
    }
    let delays = total.bounds.iter().map(|bound| {
        let delay = bound.delay.as_ref()?;
        delay.exact().or_else(|| Rational::from_f64(delay.upper()))
    });
    let mut chains = Chains {
        model,
        layout,
        delays: delays.collect(),
        shifts: exact(&total.shifts),
        came: vec![None; layout.hops.len()],
        spare: Vec::new(),
    };
    for (hop, described) in layout.hops.iter().enumerate() {
        chains.came[hop] = chains.comes(hop, described.before);
    }
    let values: Values<Rational> = Values::of(model, layout, settings);
    let mut faults = Vec::new();
    for node in 0..layout.nodes.len() {
        match chains.spare_of(&values, node) {
            Ok(spare) => chains.spare.push(spare),
            Err(fault) => faults.push(fault),
        }
    }
    if faults.is_empty() { Ok(Some(chains.ends())) } else { Err(faults) }
}

/// The cycles in which a frame may come to cyclic queues, by their numbers from the one in which it came to the first of
/// them.
#[derive(Clone, Copy, Debug)]
struct Came {
    /// First hop of these.
    first: usize,
    earliest: i128,
    latest: i128,
}

struct Chains<'a> {
    model: &'a Model,
    layout: &'a Layout,
    delays: Vec<Option<Rational>>,
    shifts: Vec<Option<Rational>>,
    /// By hop; `None`: not to cyclic queues.
    came: Vec<Option<Came>>,
    /// Time that is surely left of each cycle of a node; zero for one without cycles.
    spare: Vec<Rational>,
}

impl<'a> Chains<'a> {
    fn cycles(&self, hop: usize) -> Option<&'a Cycles<Rational>> {
        let node = &self.layout.nodes[self.layout.hops[hop].node];
        match self.model.servers[node.server].rules.get(&node.class) {
            Some(Rule::Cyclic(cycles)) => Some(cycles),
            _ => None,
        }
    }

    fn at(&self, hop: usize) -> (&'a Flow, &'a Step) {
        let flow = self.layout.hops[hop].flow;
        let flow_of = &self.model.flows[flow];
        (flow_of, &flow_of.steps[hop - self.layout.first[flow]])
    }

    /// Hops of a flow are in the order of its path.
    fn comes(&self, hop: usize, before: Option<usize>) -> Option<Came> {
        let cycles = self.cycles(hop)?;
        let anew = Came { first: hop, earliest: 0, latest: 0 };
        let Some((before, came)) = before.and_then(|before| Some((before, self.came[before]?))) else {
            return Some(anew);
        };
        let left = self.cycles(before).filter(|left| left.picos == cycles.picos);
        let Some(left) = left else { return Some(anew) };
        let (flow, step) = self.at(hop);
        let number = |instant: i128| (instant - cycles.base).div_euclid(cycles.picos);
        let capacity = self.model.servers[self.layout.nodes[self.layout.hops[before].node].server]
            .capacity
            .as_ref()
            .map_or(Rational::ZERO, |rate| {
                &(&flow.shortest_frame - &Rational::integer(GAP)).max(Rational::ZERO) / rate
            });
        let varies = left.deviation + cycles.deviation;
        let soonest = picos_down(&(&(&step.wait - &step.variation) + &capacity));
        Some(Came {
            first: came.first,
            earliest: number(left.base + (came.earliest + 1) * left.picos + soonest - varies),
            latest: number(left.base + (came.latest + 2) * left.picos + picos_up(&step.wait) + varies),
        })
    }

    /// Bits of a flow that may come to a hop in a cycle.
    fn in_a_cycle(&self, hop: usize) -> Option<Rational> {
        let came = self.came[hop]?;
        let cycles = self.cycles(came.first)?;
        let window = &Rational::integer(came.latest - came.earliest + 1) * &cycles.most;
        let during = &window + self.shifts[came.first].as_ref()?;
        let (flow, _) = self.at(hop);
        let bits = flow.arrival.iter().map(|one| &one.burst + &(&one.rate * &during)).min()?;
        if flow.shortest_frame != flow.longest_frame || flow.longest_frame.signum() <= 0 {
            return Some(bits);
        }
        // Whole frames.
        let frames = rounded((&bits / &flow.longest_frame).to_f64_up().floor());
        Some(&flow.longest_frame * &Rational::integer(frames))
    }

    /// The time for which the queues of a node are empty at the end of each cycle, or why they may not be.
    fn spare_of(&self, values: &Values<Rational>, node: usize) -> Result<Rational, Diagnostic> {
        let own = &self.layout.nodes[node];
        let hops: Vec<usize> = own.groups.iter().flat_map(|group| group.hops.iter().copied()).collect();
        let Some(cycles) = hops.first().and_then(|hop| self.cycles(*hop)) else { return Ok(Rational::ZERO) };
        let bits = hops.iter().try_fold(Rational::ZERO, |sum, hop| Some(&sum + &self.in_a_cycle(*hop)?));
        let line = values.line(self.layout, node);
        let lost = &(&line.latency + &cycles.guard) * &line.rate;
        let whole = &(&cycles.least * &line.rate) - &lost;
        let gap = Rational::integer(GAP);
        let mut room = Some(&whole - &(values.blocking(node) + &gap));
        let above = own.higher.iter().map(|above| values.departure(self.layout, *above, &self.shifts));
        for taken in above.chain([values.reserved(node).cloned()].into_iter().filter(Option::is_some)) {
            let taken = taken.and_then(|taken| {
                let during = |one: &crate::curve::Bucket<Rational>| &one.burst + &(&one.rate * &cycles.most);
                taken.buckets().iter().map(during).min()
            });
            room = room.zip(taken).map(|(room, taken)| &room - &taken);
        }
        let server = &self.model.servers[own.server];
        let (comes, goes) = (bits.as_ref(), room.as_ref().map(|room| room.clone().max(Rational::ZERO)));
        if let Some((comes, goes)) = comes.zip(goes.as_ref())
            && comes <= goes
        {
            return Ok(&(goes - comes) / &line.rate);
        }
        let told = |bits: Option<&Rational>| {
            bits.map_or_else(|| "any number of".to_owned(), |bits| format!("{:.0}", bits.to_f64_up()))
        };
        let limit = goes.map_or_else(String::new, |goes| format!("{:.0} bit", goes.to_f64_down().floor()));
        let message = format!(
            "{} bit may come to its cyclic queues in a cycle, more than it surely sends in the next one beside other traffic",
            told(comes)
        );
        let cure = "lengthen the cycle, send less in these classes or above them, or begin the cycles of each switch as much later \
                    as frames take to it";
        Err(problem(server.line, &format!("server \"{}\"", server.name), &message, &limit, cure))
    }

    fn ends(&self) -> Ends {
        let flows = self.model.flows.iter().enumerate();
        let end = |index: usize, flow: &Flow, target: &crate::model::Target| {
            let hops = flow.path(target.last).into_iter().map(|step| self.layout.first[index] + step);
            let hops: Vec<usize> = hops.collect();
            hops.iter().any(|hop| self.came[*hop].is_some()).then_some(())?;
            Some(&self.along(&hops)? + &target.wait)
        };
        flows.map(|(index, flow)| flow.targets.iter().map(|to| end(index, flow, to)).collect()).collect()
    }

    /// Greatest time from a call until a frame has passed these hops.
    fn along(&self, hops: &[usize]) -> Option<Rational> {
        let mut late = Rational::ZERO;
        // Arrival at the first of cyclic queues.
        let mut begun = Rational::ZERO;
        for hop in hops {
            late = &late + &self.at(*hop).1.wait;
            let node = self.layout.hops[*hop].node;
            let Some((came, cycles)) = self.came[*hop].zip(self.cycles(*hop)) else {
                late = &late + self.delays[node].as_ref()?;
                continue;
            };
            let spare = &self.spare[node];
            let within = &late + &(&(&Rational::integer(2) * &cycles.most) - spare);
            if came.first == *hop {
                (begun, late) = (late, within);
                continue;
            }
            let first = self.cycles(came.first)?;
            let last = cycles.base + (came.latest + 2) * cycles.picos + cycles.deviation;
            let whole = Rational::new(last - (first.base - first.deviation), PICOS_PER_SECOND);
            late = (&begun + &(&whole - spare)).min(within);
        }
        Some(late)
    }
}
