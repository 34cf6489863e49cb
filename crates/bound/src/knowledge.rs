//! Bounds from less knowledge: the bound of a method without one of the buckets also bounds the network.
//!
//! Methods choose which bucket of a flow to use, and the best choice at one server need not be the best for the
//! network, so that a bound could grow with more knowledge. A flow within the minimum of buckets is within every subset
//! of them: the least bound over the subsets is a bound, and more knowledge only adds subsets.

use core::cmp::Ordering;

use crate::curve::Bucket;
use crate::model::Model;
use crate::rational::Rational;

/// Greatest number of analyses of one network when all subsets are tried: five flows with two buckets each.
const MOST_PARTS: usize = 243;
/// Greatest number of flows with several buckets of which each bucket is left out separately.
const MOST_SINGLE: usize = 64;

/// The network with buckets of its flows left out, in every way or, if there are too many, one at a time and only the
/// ends of all curves.
pub(crate) fn parts(model: &Model) -> Vec<Model> {
    let bent: Vec<usize> =
        (0..model.flows.len()).filter(|flow| model.flows[*flow].arrival.len() > 1).collect();
    if bent.is_empty() {
        return Vec::new();
    }
    let ways = |flow: usize| {
        let buckets = u32::try_from(model.flows[flow].arrival.len()).ok()?;
        1_usize.checked_shl(buckets)?.checked_sub(1)
    };
    let all = bent.iter().try_fold(1_usize, |all, flow| all.checked_mul(ways(*flow)?));
    match all.filter(|all| *all <= MOST_PARTS) {
        Some(all) => (0..all).filter_map(|number| numbered(model, &bent, number)).collect(),
        None => some(model, &bent),
    }
}

/// One of all subsets; `None` if nothing is left out.
fn numbered(model: &Model, bent: &[usize], mut number: usize) -> Option<Model> {
    let (mut part, mut is_less) = (model.clone(), false);
    for flow in bent {
        let buckets = &mut part.flows[*flow].arrival;
        let ways = (1_usize << buckets.len()) - 1;
        let bits = number % ways + 1;
        number /= ways;
        is_less |= bits != ways;
        let mut index = 0;
        buckets.retain(|_| {
            index += 1;
            bits >> (index - 1) & 1 == 1
        });
    }
    is_less.then_some(part)
}

fn some(model: &Model, bent: &[usize]) -> Vec<Model> {
    let by_rate = |a: &Line, b: &Line| a.rate.cmp(&b.rate).then(a.burst.cmp(&b.burst));
    let by_burst = |a: &Line, b: &Line| a.burst.cmp(&b.burst).then(a.rate.cmp(&b.rate));
    let mut found = vec![only(model, by_rate), only(model, by_burst)];
    if bent.len() <= MOST_SINGLE {
        for flow in bent {
            for bucket in 0..model.flows[*flow].arrival.len() {
                let mut part = model.clone();
                part.flows[*flow].arrival.remove(bucket);
                found.push(part);
            }
        }
    }
    found
}

type Line = Bucket<Rational>;

/// For every flow only its least bucket in an order.
fn only(model: &Model, order: impl Fn(&Line, &Line) -> Ordering) -> Model {
    let mut part = model.clone();
    for flow in &mut part.flows {
        let least = flow.arrival.iter().min_by(|a, b| order(a, b)).cloned();
        flow.arrival = least.into_iter().collect();
    }
    part
}

/// The minimum of two bounds, as far as there are any.
pub(crate) fn lesser<N: crate::number::Number>(one: Option<N>, other: Option<N>) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.compare(&one) == Ordering::Less { other } else { one }),
        (one, other) => one.or(other),
    }
}
