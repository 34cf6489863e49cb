//! Total flow analysis: each node bounds the delay of all its traffic together, and a flow's bound is the sum over its
//! path. The departures of a node are its arrivals, earlier by that delay.

use crate::fixed_point;
use crate::knowledge;
use crate::model::Model;
use crate::nodes::Layout;
use crate::number::Number;
use crate::rational::Rational;
use crate::values::{Bound, Settings, Values};

/// Result for a network.
pub(crate) struct Total<N> {
    /// Bounds of each node.
    pub bounds: Vec<Bound<N>>,
    /// Greatest shift of a flow before each hop; `None`: unbounded.
    pub shifts: Vec<Option<N>>,
}

impl<N> Total<N> {
    /// The result for a network about which nothing is proved.
    pub(crate) fn nothing(layout: &Layout) -> Self {
        let bounds = layout.nodes.iter().map(|_| Bound::none()).collect();
        Self { bounds, shifts: layout.hops.iter().map(|_| None).collect() }
    }
}

impl<N: Number> Total<N> {
    /// The minimum of both bounds of each node. A buffer counts as full only if both analyses say so.
    pub(crate) fn lessened(&mut self, other: Self) {
        for (own, other) in self.bounds.iter_mut().zip(other.bounds) {
            own.delay = knowledge::lesser(own.delay.take(), other.delay);
            own.backlog = knowledge::lesser(own.backlog.take(), other.backlog);
            own.full &= other.full;
        }
    }
}

/// No fixed point can be proved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct NoFixedPoint {
    /// Indices of the servers that depend on one another.
    pub servers: Vec<usize>,
}

/// Analyses a network.
pub(crate) fn analyse<N: Number>(
    model: &Model,
    layout: &Layout,
    settings: Settings,
) -> Result<Total<N>, NoFixedPoint> {
    let values: Values<N> = Values::of(model, layout, settings);
    let mut shifts = values.start(layout);
    let mut bounds = vec![Bound::none(); layout.nodes.len()];
    for together in &layout.order {
        if let [node] = together[..] {
            let (bound, service) = values.bound(layout, node, &shifts);
            for (hop, here) in values.shift(layout, node, &shifts, (&bound, service.as_ref())) {
                pass_on(&values, layout, hop, here.as_ref(), &mut shifts);
            }
            bounds[node] = bound;
            continue;
        }
        let solved = fixed_point::solve(model, layout, settings, together, &exact(&shifts))
            .ok_or_else(|| NoFixedPoint { servers: servers(layout, together) })?;
        for (hop, shift) in solved {
            shifts[hop] = Some(N::of(&shift));
        }
        for node in together {
            let (bound, service) = values.bound(layout, *node, &shifts);
            for (hop, here) in values.shift(layout, *node, &shifts, (&bound, service.as_ref())) {
                let leaving: Vec<usize> = layout.hops[hop].after.clone();
                for after in leaving.into_iter().filter(|after| !together.contains(&layout.hops[*after].node))
                {
                    shifts[after] = values.carried(after, shifts[hop].as_ref(), here.as_ref());
                }
            }
            bounds[*node] = bound;
        }
    }
    Ok(Total { bounds, shifts })
}

/// Exact values of shifts: the upper bound of enclosures.
pub(crate) fn exact<N: Number>(shifts: &[Option<N>]) -> Vec<Option<Rational>> {
    let value = |shift: &N| shift.exact().or_else(|| Rational::from_f64(shift.upper()));
    shifts.iter().map(|shift| shift.as_ref().and_then(value)).collect()
}

fn pass_on<N: Number>(
    values: &Values<N>,
    layout: &Layout,
    hop: usize,
    here: Option<&N>,
    shifts: &mut [Option<N>],
) {
    for after in &layout.hops[hop].after {
        shifts[*after] = values.carried(*after, shifts[hop].as_ref(), here);
    }
}

fn servers(layout: &Layout, nodes: &[usize]) -> Vec<usize> {
    let mut servers: Vec<usize> = nodes.iter().map(|node| layout.nodes[*node].server).collect();
    servers.dedup();
    servers
}
