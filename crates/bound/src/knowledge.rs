//! Less knowledge of the same network: what a method finds with a bucket left out bounds the network too.
//!
//! Methods choose which bucket of a flow to reckon with, and a choice that is the best at one server need not be the best
//! of the whole, so that a bound could grow by what one knows more. A flow that keeps the minimum of buckets keeps every part of
//! them: the least bound over the parts is a bound, and to know more only adds parts.

use core::cmp::Ordering;

use crate::curve::Bucket;
use crate::model::Model;
use crate::rational::Rational;

/// Most analyses of one network where all parts are looked at: five flows with two buckets each.
const MOST_PARTS: usize = 243;
/// Most flows with several buckets of which each bucket is left out alone.
const MOST_SINGLE: usize = 64;

/// The network with buckets of its flows left out, in every way or, of many, one at a time and the ends of all curves alone.
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

/// One of all ways; none where it leaves nothing out.
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

/// Of every flow its least bucket in an order.
fn only(model: &Model, order: impl Fn(&Line, &Line) -> Ordering) -> Model {
    let mut part = model.clone();
    for flow in &mut part.flows {
        let least = flow.arrival.iter().min_by(|a, b| order(a, b)).cloned();
        flow.arrival = least.into_iter().collect();
    }
    part
}

/// The lesser of two bounds, where there is any.
pub(crate) fn lesser<N: crate::number::Number>(one: Option<N>, other: Option<N>) -> Option<N> {
    match (one, other) {
        (Some(one), Some(other)) => Some(if other.compare(&one) == Ordering::Less { other } else { one }),
        (one, other) => one.or(other),
    }
}
