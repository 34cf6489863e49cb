//! Certificates: the premises of a network and every step of its bounds in exact fractions, for a checker that shares no
//! code with the analyses.
//!
//! The checker evaluates each step again from the stated values and accepts greater delays, bursts and shifts, never
//! lesser ones; so a certificate needs only values that hold together, not the way on which they were found.

use serde::Serialize;

use crate::analysis::total_delays;
use crate::certificate_premises::{Line, Piece, Premises, lines, pieces, plain_slopes};
use crate::knowledge;
use crate::method::{Choice, Method};
use crate::model::{Model, Multiplexing};
use crate::nodes::Layout;
use crate::number::Enclosure;
use crate::question::Refusal;
use crate::rational::Rational;
use crate::regulators::regulated;
use crate::rules::Rule;
use crate::separate;
use crate::tfa::{self, Total, exact};
use crate::values::{Settings, Shift, Values};

/// What a checker needs to see that bounds hold.
#[derive(Clone, Debug, Serialize)]
pub struct Certificate {
    /// Whether frames are received completely before they are forwarded.
    pub packetizer: bool,
    /// The network.
    pub premises: Premises,
    /// Delays of servers and arrivals of flows that hold together.
    pub analyses: Vec<Together>,
    /// Curves of the traffic of several steps at one server together, by analysis.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sets: Vec<Vec<SetStep>>,
    /// How the bound of each target follows from them.
    pub proofs: Vec<Proof>,
}

/// One set of values that hold together.
#[derive(Clone, Debug, Serialize)]
pub struct Together {
    /// Order of service: `fifo` or `arbitrary`.
    pub multiplexing: &'static str,
    /// Whether the traffic of one link is limited by that link.
    pub grouping: bool,
    /// By what a server shifts a flow: `delay` or `left-over`.
    pub shift: &'static str,
    /// Flows of which only some buckets are used: the flow and the indices of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<(usize, Vec<usize>)>,
    /// Steps of each class of each server.
    pub nodes: Vec<NodeStep>,
    /// For each flow and step: the time by which its arrival curve is earlier there than where it enters; null:
    /// unbounded.
    pub shifts: Vec<Vec<Option<String>>>,
}

/// Steps of one class of one server.
#[derive(Clone, Debug, Serialize)]
pub struct NodeStep {
    /// Name of the server.
    pub server: String,
    /// Class there; a lower number is served first.
    pub class: u8,
    /// Arrivals of all its flows together; null: unbounded.
    pub arrival: Option<Vec<Line>>,
    /// Service left to the class; null: nothing.
    pub service: Option<Vec<Piece>>,
    /// What the class sends of a line at most, for classes below one with a rule of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub departure: Option<Vec<Line>>,
    /// Longest delay; null: unbounded.
    pub delay: Option<String>,
    /// Greatest backlog in bits; null: unbounded.
    pub backlog: Option<String>,
    /// Values here that rest on a theorem and are not steps: `service`, `departure`, `delay`, `backlog`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub assumed: Vec<&'static str>,
    /// That theorem.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub theorem: Option<&'static str>,
}

/// Traffic of several steps of flows at one server together.
#[derive(Clone, Debug, Serialize)]
pub struct SetStep {
    /// Flows, each with its step there.
    pub of: Vec<(usize, usize)>,
    /// Their arrival curve.
    pub arrival: Vec<Line>,
}

/// How the bound of one target follows.
#[derive(Clone, Debug, Serialize)]
pub struct Proof {
    /// Indices of the flow and of its target.
    pub of: (usize, usize),
    /// Name of the flow.
    pub flow: String,
    /// Name of the target.
    pub target: String,
    /// The steps.
    #[serde(flatten)]
    pub way: Way,
    /// Time from the call to the release by the regulator in front of the flow.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub released: Option<String>,
    /// The bound; null: none.
    pub delay: Option<String>,
}

/// Steps from an analysis to the bound of a target.
#[derive(Clone, Debug, Serialize)]
pub struct Way {
    /// `sum` of the delays of its servers, or the left-over services of its `path`.
    pub by: &'static str,
    /// Indices of the analyses with the delays of servers: the least counts.
    pub analyses: Vec<usize>,
    /// Index of the analysis with the arrivals of flows, for a path.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<usize>,
    /// Index of the sets with the arrivals of flows together, in its place.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sets: Option<usize>,
    /// Left-over service at each server of the path.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left: Vec<Vec<Piece>>,
}

impl Default for Way {
    fn default() -> Self {
        Self { by: "sum", analyses: Vec::new(), arrivals: None, sets: None, left: Vec::new() }
    }
}

const SHAPED: &str =
    "credit-based shaper (IEEE Std 802.1Q-2022, 8.6.8.2; Daigmorte, Boyer, Zhao 2018, theorem 2)";
const GATED: &str = "gates (IEEE Std 802.1Q-2022, 8.6.8.4): the bucket of the closed intervals of a cycle";
const CYCLIC: &str =
    "cyclic queuing (IEEE Std 802.1Q-2022, Annex T): what comes in a cycle leaves in the next one";

/// Writes the steps of the bounds of a network by one method, in fractions.
///
/// # Errors
/// [`Refusal`], if there is no answer.
pub fn certify(model: &Model, choice: Choice) -> Result<Certificate, Refusal> {
    model.check().map_err(Refusal::Input)?;
    let layout = Layout::of(model);
    let mut writer = Writer { model, layout: &layout, choice, analyses: Vec::new(), sets: Vec::new() };
    let proofs = match choice.method {
        Method::Sfa => writer.separated(),
        _ => writer.total(),
    };
    Ok(Certificate {
        packetizer: choice.settings.packetizer,
        premises: Premises::of(model),
        analyses: writer.analyses,
        sets: writer.sets,
        proofs,
    })
}

struct Writer<'a> {
    model: &'a Model,
    layout: &'a Layout,
    choice: Choice,
    analyses: Vec<Together>,
    sets: Vec<Vec<SetStep>>,
}

impl Writer<'_> {
    /// The network, and it with less knowledge of its flows.
    fn parts(&self) -> Vec<Model> {
        let fits = |part: &Model| part.loads().iter().all(|load| *load <= Rational::ONE);
        let parts = knowledge::parts(self.model).into_iter().filter(fits);
        core::iter::once(self.model.clone()).chain(parts).collect()
    }

    fn of_servers(&self) -> Settings {
        match self.choice.settings.multiplexing {
            Multiplexing::Fifo => Settings { shift: Shift::Delay, ..self.choice.settings },
            Multiplexing::Arbitrary => self.choice.settings,
        }
    }

    /// Total flow analysis. With rounding, shifts are those of doubles, rounded up, and each server is bounded from them in
    /// fractions: so these stay short.
    fn analysed(&self, part: &Model, settings: Settings) -> Option<Total<Rational>> {
        if !self.choice.rounded || !self.layout.is_feed_forward() {
            return tfa::analyse(part, self.layout, settings).ok();
        }
        let shifts = exact(&tfa::analyse::<Enclosure>(part, self.layout, settings).ok()?.shifts);
        let values: Values<Rational> = Values::of(part, self.layout, settings);
        let bounds = (0..self.layout.nodes.len()).map(|node| values.bound(self.layout, node, &shifts).0);
        Some(Total { bounds: bounds.collect(), shifts })
    }

    fn total(&mut self) -> Vec<Proof> {
        let settings = self.of_servers();
        let mut best: Option<Total<Rational>> = None;
        for part in self.parts() {
            let Some(total) = self.analysed(&part, settings) else { continue };
            let is_less = |best: &Total<Rational>| {
                best.bounds.iter().zip(&total.bounds).any(|(known, found)| {
                    less(found.delay.as_ref(), known.delay.as_ref())
                        || less(found.backlog.as_ref(), known.backlog.as_ref())
                })
            };
            if best.as_ref().is_none_or(is_less) {
                self.analyses.push(self.together(&part, settings, &total));
                match &mut best {
                    Some(best) => best.lessened(total),
                    None => best = Some(total),
                }
            }
        }
        let best = best.unwrap_or_else(|| Total::nothing(self.layout));
        let ends = total_delays(self.model, self.layout, &best);
        let all: Vec<usize> = (0..self.analyses.len()).collect();
        self.proofs(&ends, |_, _| Way { analyses: all.clone(), ..Way::default() })
    }

    fn separated(&mut self) -> Vec<Proof> {
        let mut ends: Vec<Vec<Option<Rational>>> =
            self.model.flows.iter().map(|flow| vec![None; flow.targets.len()]).collect();
        let mut ways: Vec<Vec<Way>> =
            self.model.flows.iter().map(|flow| vec![Way::default(); flow.targets.len()]).collect();
        for part in self.parts() {
            let total = tfa::analyse::<Rational>(&part, self.layout, self.of_servers()).ok();
            let Ok((found, sets)) = separate::ways(&part, self.layout, self.choice, total.as_ref()) else {
                continue;
            };
            let mut steps: Option<Way> = None;
            for (of, left, delay) in found {
                let end = &mut ends[of.0][of.1];
                if !less(Some(&delay), end.as_ref()) {
                    continue;
                }
                *end = Some(delay);
                if steps.is_none() {
                    steps = self.path(&part, total.as_ref(), &sets);
                }
                let left = left.iter().map(|one| pieces(one.pieces())).collect();
                ways[of.0][of.1] = Way { left, ..steps.clone().unwrap_or_default() };
            }
        }
        self.proofs(&ends, |flow, target| ways[flow][target].clone())
    }

    /// Adds the steps on which left-over services rest: those by delays, and the arrivals of flows, together or one by one.
    fn path(
        &mut self,
        part: &Model,
        total: Option<&Total<Rational>>,
        sets: &[separate::Set<Rational>],
    ) -> Option<Way> {
        let (settings, own) = (self.of_servers(), self.choice.settings);
        let of_total = total.filter(|_| own.grouping || settings != own).map(|total| {
            self.analyses.push(self.together(part, settings, total));
            self.analyses.len() - 1
        });
        if own.grouping {
            let of = |hop: &usize| {
                let flow = self.layout.hops[*hop].flow;
                (flow, hop - self.layout.first[flow])
            };
            let set = |(hops, curve): &separate::Set<Rational>| SetStep {
                of: hops.iter().map(of).collect(),
                arrival: lines(curve.buckets()),
            };
            let sets = sets.iter().map(set).collect();
            self.sets.push(sets);
            let sets = Some(self.sets.len() - 1);
            return Some(Way { by: "path", analyses: vec![of_total?], sets, ..Way::default() });
        }
        let alone = tfa::analyse::<Rational>(part, self.layout, own).ok()?;
        self.analyses.push(self.together(part, own, &alone));
        let arrivals = self.analyses.len() - 1;
        let analyses = vec![of_total.unwrap_or(arrivals)];
        Some(Way { by: "path", analyses, arrivals: Some(arrivals), ..Way::default() })
    }

    fn proofs(&self, ends: &[Vec<Option<Rational>>], way: impl Fn(usize, usize) -> Way) -> Vec<Proof> {
        let starts = regulated(self.model, self.choice.settings.multiplexing, ends).starts;
        let mut found = Vec::new();
        for (index, flow) in self.model.flows.iter().enumerate() {
            let released = flow.regulator.as_ref().map(|_| starts[index].as_ref());
            for (position, target) in flow.targets.iter().enumerate().filter(|(_, target)| !target.goes_on) {
                let end = ends[index][position].as_ref().filter(|_| !target.unbounded);
                let delay = end.zip(starts[index].as_ref()).map(|(end, start)| (end + start).to_string());
                found.push(Proof {
                    of: (index, position),
                    flow: flow.name.clone(),
                    target: target.name.clone(),
                    way: way(index, position),
                    released: released.flatten().map(ToString::to_string),
                    delay,
                });
            }
        }
        found
    }

    /// The steps of one analysis.
    fn together(&self, part: &Model, settings: Settings, total: &Total<Rational>) -> Together {
        let values: Values<Rational> = Values::of(part, self.layout, settings);
        let nodes = (0..self.layout.nodes.len()).map(|node| self.node(&values, node, total)).collect();
        let shifts = self.model.flows.iter().zip(&self.layout.first).map(|(flow, first)| {
            let own = &total.shifts[*first..first + flow.steps.len()];
            own.iter().map(|shift| shift.as_ref().map(ToString::to_string)).collect()
        });
        let kept = self.model.flows.iter().zip(&part.flows).enumerate();
        let kept = kept.filter(|(_, (all, some))| all.arrival.len() != some.arrival.len());
        let buckets = kept.map(|(index, (all, some))| {
            let stays = |bucket: &usize| some.arrival.contains(&all.arrival[*bucket]);
            (index, (0..all.arrival.len()).filter(stays).collect())
        });
        Together {
            multiplexing: settings.multiplexing.name(),
            grouping: settings.grouping,
            shift: if settings.shift == Shift::Delay { "delay" } else { "left-over" },
            buckets: buckets.collect(),
            nodes,
            shifts: shifts.collect(),
        }
    }

    fn node(&self, values: &Values<Rational>, node: usize, total: &Total<Rational>) -> NodeStep {
        let (own, bound) = (&self.layout.nodes[node], &total.bounds[node]);
        let arrival = values.aggregate(self.layout, node, &total.shifts);
        let service = values.service(self.layout, node, &total.shifts);
        let slopes = plain_slopes(&self.model.servers[own.server]);
        let rule = values.rule(node);
        let departure = rule.and_then(|_| values.departure(self.layout, node, &total.shifts));
        let mut assumed = Vec::new();
        let by_theorem = rule.filter(|_| slopes.is_empty());
        if by_theorem.is_some() {
            assumed.extend(["service", "departure"]);
        }
        if matches!(rule, Some(Rule::Cyclic(_))) {
            assumed.push("delay");
        }
        NodeStep {
            server: self.model.servers[own.server].name.clone(),
            class: own.class,
            arrival: arrival.map(|arrival| lines(arrival.buckets())),
            service: service.map(|service| pieces(service.pieces())),
            departure: departure.map(|departure| lines(departure.buckets())),
            delay: bound.delay.as_ref().map(ToString::to_string),
            backlog: bound.backlog.as_ref().map(ToString::to_string),
            assumed,
            theorem: by_theorem.map(|rule| match rule {
                Rule::Shaped(_) => SHAPED,
                Rule::Gated(_) => GATED,
                Rule::Cyclic(_) => CYCLIC,
            }),
        }
    }
}

/// Whether there is a bound and none that is as small.
fn less(found: Option<&Rational>, known: Option<&Rational>) -> bool {
    found.is_some_and(|found| known.is_none_or(|known| found < known))
}
