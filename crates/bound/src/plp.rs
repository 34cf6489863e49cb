//! Bounds of FIFO networks by linear programmes of polynomial size (Bouillard, Performance Evaluation 153, 2022).
//!
//! The network is cut into trees: of each server the link to the next server in the order of the file stays, the others
//! are cut. Where a flow is cut it begins anew, with a burst that a programme bounds. In a tree rooted at the last server
//! of a piece every server has as many dates as it is far from the root, and two; a date at one server is the date at the
//! next at which what had come by then has left, which is what serving in order means. Delays known from total and
//! separated flow analysis are rows of the programme, so it is never above them.

use std::collections::BTreeMap;

use crate::curve::{Arrival, Bucket};
use crate::model::Model;
use crate::nodes::Layout;
use crate::programme::{Programme, Scaled};
use crate::rational::Rational;
use crate::tfa::{self, Settings, Shift, Total, Values};

/// Programmes a solver is given at a time.
const AT_A_TIME: usize = 12;

/// Rounds around cycles.
const MOST_ROUNDS: usize = 100;

/// Solves programmes side by side: the multipliers of their rows, or nothing.
pub type Solver<'a> = dyn FnMut(&Scaled) -> Option<Vec<f64>> + 'a;

/// Why a network is not analysed so.
pub(crate) struct Unfit(pub(crate) String);

/// A part of a flow that stays on links that are not cut.
#[derive(Debug)]
struct Piece {
    /// Its hops in order.
    hops: Vec<usize>,
    /// The server it was cut behind; none of the beginning of a flow.
    from: Option<usize>,
    /// What it brings, once that is known.
    arrival: Option<Arrival<Rational>>,
}

/// What is asked of a tree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Aim {
    Delay,
    Burst,
}

/// A programme to be solved: a piece up to one of its hops.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
struct Task {
    piece: usize,
    length: usize,
    aim: Aim,
}

struct Analysis<'a> {
    model: &'a Model,
    layout: &'a Layout,
    settings: Settings,
    total: &'a Total<Rational>,
    separated: Option<(Values<Rational>, Total<Rational>)>,
    /// The server behind each on the link that stays.
    next: Vec<Option<usize>>,
    pieces: Vec<Piece>,
    /// The piece of each hop and where in it.
    place: Vec<(usize, usize)>,
    /// Pieces at each server, with the position of the hop.
    at: Vec<Vec<(usize, usize)>>,
    proved: usize,
    unproved: usize,
}

/// Delays of targets, and how many of the programmes were proved.
pub(crate) struct Found {
    pub(crate) ends: Vec<Vec<Option<Rational>>>,
    pub(crate) proved: usize,
    pub(crate) unproved: usize,
}

/// Analyses a network.
pub(crate) fn analyse(
    model: &Model,
    layout: &Layout,
    settings: Settings,
    total: &Total<Rational>,
    solve: &mut Solver<'_>,
) -> Result<Found, Unfit> {
    if layout.nodes.iter().any(|node| !node.higher.is_empty()) {
        return Err(Unfit("plp knows no priorities, and servers have several classes".to_owned()));
    }
    if model.servers.iter().any(|server| !server.rules.is_empty()) {
        return Err(Unfit("plp knows no shapers or gates, and servers have some".to_owned()));
    }
    if model.servers.iter().any(|server| server.reserved.is_some()) {
        return Err(Unfit("plp knows no windows, and a schedule keeps some".to_owned()));
    }
    let apart = Settings { grouping: false, shift: Shift::LeftOver, ..settings };
    let separated = tfa::analyse::<Rational>(model, layout, apart).ok();
    let mut analysis = Analysis {
        model,
        layout,
        settings,
        total,
        separated: separated.map(|total| (Values::of(model, layout, apart), total)),
        next: kept_links(model, layout),
        pieces: Vec::new(),
        place: vec![(0, 0); layout.hops.len()],
        at: vec![Vec::new(); model.servers.len()],
        proved: 0,
        unproved: 0,
    };
    analysis.cut();
    analysis.bursts(solve);
    let ends = analysis.delays(solve);
    Ok(Found { ends, proved: analysis.proved, unproved: analysis.unproved })
}

/// Of each server the link to the next server of a higher number stays, where all that takes it waits alike.
fn kept_links(model: &Model, layout: &Layout) -> Vec<Option<usize>> {
    let mut links: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (index, hop) in layout.hops.iter().enumerate() {
        if let Some(before) = hop.before {
            let ends = (layout.nodes[layout.hops[before].node].server, layout.nodes[hop.node].server);
            links.entry(ends).or_default().push(index);
        }
    }
    let step =
        |hop: usize| &model.flows[layout.hops[hop].flow].steps[hop - layout.first[layout.hops[hop].flow]];
    let mut next = vec![None; model.servers.len()];
    for ((from, to), hops) in links {
        let alike =
            hops.iter().all(|hop| step(*hop).variation.is_zero() && step(*hop).wait == step(hops[0]).wait);
        // In the order of the map the first that fits is the next.
        if to > from && alike && next[from].is_none() {
            next[from] = Some(to);
        }
    }
    next
}

impl Analysis<'_> {
    fn server(&self, hop: usize) -> usize {
        self.layout.nodes[self.layout.hops[hop].node].server
    }

    fn step(&self, hop: usize) -> &crate::model::Step {
        let flow = self.layout.hops[hop].flow;
        &self.model.flows[flow].steps[hop - self.layout.first[flow]]
    }

    fn cut(&mut self) {
        for hop in 0..self.layout.hops.len() {
            let server = self.server(hop);
            let before = self.layout.hops[hop].before;
            let stays = before.filter(|before| self.next[self.server(*before)] == Some(server));
            let place = match stays {
                Some(before) => {
                    let (piece, position) = self.place[before];
                    // Of a flow that goes two ways only one is a link that stays, so a piece never branches.
                    self.pieces[piece].hops.push(hop);
                    (piece, position + 1)
                }
                None => {
                    let from = before.map(|before| self.server(before));
                    let curve = self.model.flows[self.layout.hops[hop].flow].arrival.clone();
                    let variation = self.step(hop).variation.clone();
                    let arrival = before.is_none().then(|| Arrival::new(curve).delayed(&variation));
                    self.pieces.push(Piece { hops: vec![hop], from, arrival });
                    (self.pieces.len() - 1, 0)
                }
            };
            self.place[hop] = place;
            self.at[server].push(place);
        }
    }

    /// Bursts of all pieces that begin at a cut, round by round: those first that depend on none.
    fn bursts(&mut self, solve: &mut Solver<'_>) {
        let cut: Vec<(usize, usize)> = (0..self.pieces.len())
            .filter(|piece| self.pieces[*piece].from.is_some())
            .filter_map(|piece| Some((piece, self.layout.hops[self.pieces[piece].hops[0]].before?)))
            .collect();
        let mut open = cut;
        while !open.is_empty() {
            let ready = |(_, before): &(usize, usize)| self.is_known(self.server(*before));
            let (now, later): (Vec<_>, Vec<_>) = open.iter().copied().partition(ready);
            if now.is_empty() {
                self.around(&later, solve);
                return;
            }
            let solved = self.burst_programmes(&now, solve);
            for ((piece, _), burst) in now.into_iter().zip(solved) {
                let found = burst.map(|burst| self.begun_with(piece, burst));
                self.pieces[piece].arrival = found.or_else(|| self.shifted(piece));
            }
            open = later;
        }
    }

    fn burst_programmes(&mut self, cuts: &[(usize, usize)], solve: &mut Solver<'_>) -> Vec<Option<Rational>> {
        let task = |(_, before): &(usize, usize)| {
            let (piece, position) = self.place[*before];
            Task { piece, length: position + 1, aim: Aim::Burst }
        };
        let tasks: Vec<Task> = cuts.iter().map(task).collect();
        self.solve(&tasks, solve)
    }

    /// The curve of a piece that is cut off with a burst.
    fn begun_with(&self, piece: usize, burst: Rational) -> Arrival<Rational> {
        let hop = self.pieces[piece].hops[0];
        let rate = self.model.flows[self.layout.hops[hop].flow].rate().clone();
        Arrival::bucket(burst, rate).delayed(&self.step(hop).variation)
    }

    /// Around cycles: total and separated flow analysis have proved how much flows are shifted there. With bursts that hold
    /// programmes find bursts that hold and are less, again and again; each is rounded up so that fractions stay short.
    fn around(&mut self, cuts: &[(usize, usize)], solve: &mut Solver<'_>) {
        for (piece, _) in cuts {
            self.pieces[*piece].arrival = self.shifted(*piece);
        }
        for _ in 0..MOST_ROUNDS {
            let solved = self.burst_programmes(cuts, solve);
            let mut moved = false;
            for ((piece, _), burst) in cuts.iter().zip(solved) {
                let rounded = burst.and_then(|burst| Rational::from_f64(burst.to_f64_up()));
                let Some(found) = rounded.map(|burst| self.begun_with(*piece, burst)) else { continue };
                let known =
                    self.pieces[*piece].arrival.as_ref().map(|known| known.sustained().burst.to_f64_up());
                let less = found.sustained().burst.to_f64_up();
                if known.is_none_or(|known| less < known * (1.0 - 1e-13)) {
                    self.pieces[*piece].arrival = Some(found);
                    moved = true;
                }
            }
            if !moved {
                break;
            }
        }
    }

    /// What a piece brings by total or separated flow analysis, whichever shifts it less.
    fn shifted(&self, piece: usize) -> Option<Arrival<Rational>> {
        let hop = self.pieces[piece].hops[0];
        let curve = self.model.flows[self.layout.hops[hop].flow].arrival.clone();
        let apart = self.separated.as_ref().and_then(|(_, total)| total.shifts[hop].as_ref());
        let least = self.total.shifts[hop].iter().chain(apart).min()?;
        Some(Arrival::new(curve).delayed(least))
    }

    /// Whether all that comes to a server, and to those before it in its tree, is known.
    fn is_known(&self, root: usize) -> bool {
        self.tree(root)
            .iter()
            .all(|server| self.at[*server].iter().all(|(piece, _)| self.pieces[*piece].arrival.is_some()))
    }

    /// The servers whose links that stay lead to `root`, each before the next; `root` last.
    fn tree(&self, root: usize) -> Vec<usize> {
        let mut servers = vec![root];
        let mut at = 0;
        while at < servers.len() {
            let to = servers[at];
            let before = (0..self.next.len())
                .filter(|server| self.next[*server] == Some(to) && !self.at[*server].is_empty());
            servers.extend(before);
            at += 1;
        }
        servers.reverse();
        servers
    }

    fn delays(&mut self, solve: &mut Solver<'_>) -> Vec<Vec<Option<Rational>>> {
        // The pieces on the way to each target, and how much of each.
        let mut ways: Vec<Vec<Vec<Task>>> = Vec::new();
        let mut tasks: BTreeMap<Task, Option<Rational>> = BTreeMap::new();
        for (index, flow) in self.model.flows.iter().enumerate() {
            let mut of_flow = Vec::new();
            for target in &flow.targets {
                let mut way = Vec::new();
                let mut hop = Some(self.layout.first[index] + target.last);
                while let Some(last) = hop {
                    let (piece, position) = self.place[last];
                    let task = Task { piece, length: position + 1, aim: Aim::Delay };
                    tasks.insert(task, None);
                    way.push(task);
                    hop = self.layout.hops[self.pieces[piece].hops[0]].before;
                }
                of_flow.push(way);
            }
            ways.push(of_flow);
        }
        let list: Vec<Task> = tasks.keys().copied().collect();
        let solved = self.solve(&list, solve);
        for (task, found) in list.into_iter().zip(solved) {
            let total = self.total_delay(task);
            let least = match (found, total) {
                (Some(found), Some(total)) => Some(found.min(total)),
                (found, total) => found.or(total),
            };
            tasks.insert(task, least);
        }
        let mut ends = Vec::new();
        for ((index, flow), of_flow) in self.model.flows.iter().enumerate().zip(ways) {
            let mut of_targets = Vec::new();
            for (target, way) in flow.targets.iter().zip(of_flow) {
                let waits = flow.path(target.last).into_iter().map(|step| &flow.steps[step].wait);
                let waits = waits.fold(target.wait.clone(), |sum, wait| &sum + wait);
                let sum = way.iter().try_fold(waits, |sum, task| Some(&sum + tasks[task].as_ref()?));
                of_targets.push(sum);
            }
            debug_assert!(index < self.model.flows.len());
            ends.push(of_targets);
        }
        ends
    }

    fn total_delay(&self, task: Task) -> Option<Rational> {
        let hops = &self.pieces[task.piece].hops[..task.length];
        hops.iter().try_fold(Rational::ZERO, |sum, hop| {
            Some(&sum + self.total.bounds[self.layout.hops[*hop].node].delay.as_ref()?)
        })
    }

    /// What the programmes prove, of each task.
    fn solve(&mut self, tasks: &[Task], solve: &mut Solver<'_>) -> Vec<Option<Rational>> {
        let mut all = Vec::with_capacity(tasks.len());
        for some in tasks.chunks(AT_A_TIME) {
            let programmes: Vec<Option<Programme>> = some.iter().map(|task| self.programme(*task)).collect();
            let mut scaled = Scaled::default();
            for programme in programmes.iter().flatten() {
                programme.append_to(&mut scaled);
            }
            let multipliers = solve(&scaled);
            let mut at = 0;
            for programme in programmes {
                let Some(programme) = programme else {
                    all.push(None);
                    continue;
                };
                let end = at + programme.rows.len();
                let own = multipliers.as_ref().and_then(|all| all.get(at..end));
                at = end;
                // Rows and objective were scaled; which rows bind does not depend on that.
                let proved = own.and_then(|own| programme.proved(own)).or_else(|| {
                    // One that a solver gives up in company may be solved alone.
                    let mut alone = Scaled::default();
                    programme.append_to(&mut alone);
                    solve(&alone).and_then(|own| programme.proved(&own))
                });
                self.proved += usize::from(proved.is_some());
                self.unproved += usize::from(proved.is_none());
                all.push(proved);
            }
        }
        all
    }

    fn programme(&self, task: Task) -> Option<Programme> {
        let own = &self.pieces[task.piece].hops[..task.length];
        let root = self.server(*own.last()?);
        let mut tree = Tree::of(self, root)?;
        tree.times(self);
        for (piece, first) in tree.pieces.clone() {
            tree.arrivals(self, piece, first);
        }
        tree.services(self, task.aim);
        if self.settings.grouping {
            tree.shaping(self);
        }
        tree.known_delays(self);
        tree.aim(self, task);
        Some(tree.programme)
    }
}

/// A tree and its programme.
struct Tree {
    programme: Programme,
    root: usize,
    /// How far each server is from the root.
    depth: BTreeMap<usize, usize>,
    /// Dates of each server: variables.
    dates: BTreeMap<usize, Vec<usize>>,
    /// Pieces and the first server of each within the tree.
    pieces: Vec<(usize, usize)>,
    /// What of each piece has come at the dates of its first server: variables; the last is where it is counted from.
    come: BTreeMap<usize, Vec<Option<usize>>>,
    time_scale: f64,
    data_scale: f64,
}

fn one() -> Rational {
    Rational::ONE
}

fn minus(value: &Rational) -> Rational {
    -value
}

impl Tree {
    fn of(analysis: &Analysis<'_>, root: usize) -> Option<Self> {
        let servers = analysis.tree(root);
        let mut tree = Self {
            programme: Programme::default(),
            root,
            depth: BTreeMap::new(),
            dates: BTreeMap::new(),
            pieces: Vec::new(),
            come: BTreeMap::new(),
            time_scale: 1.0,
            data_scale: 1.0,
        };
        let mut data = 0.0;
        let mut time = 0.0;
        for server in servers.iter().rev() {
            let depth = if *server == root { 0 } else { tree.depth[&analysis.next[*server]?] + 1 };
            tree.depth.insert(*server, depth);
            for (piece, position) in &analysis.at[*server] {
                if *position == 0 {
                    data += analysis.pieces[*piece].arrival.as_ref()?.sustained().burst.to_f64_up();
                    tree.pieces.push((*piece, *server));
                }
            }
            let node = analysis.layout.nodes.iter().position(|node| node.server == *server)?;
            time += analysis.total.bounds[node].delay.as_ref()?.to_f64_up();
        }
        tree.data_scale = if data > 0.0 { data } else { 1.0 };
        tree.time_scale = if time > 0.0 { time } else { 1.0 };
        for server in &servers {
            let dates =
                (0..tree.depth[server] + 2).map(|_| tree.programme.variable(tree.time_scale)).collect();
            tree.dates.insert(*server, dates);
        }
        for (piece, first) in tree.pieces.clone() {
            let count = tree.depth[&first] + 2;
            let variables =
                (0..count).map(|k| (k + 1 < count).then(|| tree.programme.variable(tree.data_scale)));
            let variables = variables.collect();
            tree.come.insert(piece, variables);
        }
        Some(tree)
    }

    /// The date `index` behind a server: at the next one, or when the root's first has left, which is zero.
    fn after(&self, analysis: &Analysis<'_>, server: usize, index: usize) -> Option<usize> {
        if server == self.root {
            return None;
        }
        let next = analysis.next[server]?;
        self.dates[&next].get(index).copied()
    }

    fn times(&mut self, analysis: &Analysis<'_>) {
        for (server, depth) in self.depth.clone() {
            let dates = self.dates[&server].clone();
            for u in 0..=depth {
                self.programme
                    .at_most([(Some(dates[u + 1]), one()), (Some(dates[u]), minus(&one()))], Rational::ZERO);
                let behind = self.after(analysis, server, u);
                self.programme.at_most([(Some(dates[u]), one()), (behind, minus(&one()))], Rational::ZERO);
            }
        }
    }

    fn arrivals(&mut self, analysis: &Analysis<'_>, piece: usize, first: usize) {
        let (dates, come) = (self.dates[&first].clone(), self.come[&piece].clone());
        let Some(arrival) = &analysis.pieces[piece].arrival else { return };
        for u in 0..dates.len() {
            for v in u + 1..dates.len() {
                for Bucket { burst, rate } in arrival.buckets() {
                    let row = [
                        (come[u], one()),
                        (come[v], minus(&one())),
                        (Some(dates[u]), minus(rate)),
                        (Some(dates[v]), rate.clone()),
                    ];
                    self.programme.at_most(row, burst.clone());
                }
            }
            if u + 1 < dates.len() {
                self.programme.at_most([(come[u + 1], one()), (come[u], minus(&one()))], Rational::ZERO);
            }
        }
    }

    /// Pieces that pass a server of the tree.
    fn passing<'a>(&'a self, analysis: &'a Analysis<'_>, server: usize) -> impl Iterator<Item = usize> + 'a {
        analysis.at[server].iter().map(|(piece, _)| *piece).filter(|piece| self.come.contains_key(piece))
    }

    fn services(&mut self, analysis: &Analysis<'_>, aim: Aim) {
        for (server, depth) in self.depth.clone() {
            let last = self.dates[&server][depth + 1];
            let behind = self.after(analysis, server, depth);
            let whole = analysis.settings.packetizer && (server != self.root || aim == Aim::Burst);
            let longest = self
                .passing(analysis, server)
                .map(|piece| {
                    &analysis.model.flows[analysis.layout.hops[analysis.pieces[piece].hops[0]].flow]
                        .longest_frame
                })
                .max()
                .cloned()
                .unwrap_or_default();
            let frame = if whole { longest } else { Rational::ZERO };
            for service in &analysis.model.servers[server].service {
                let mut row: Vec<(Option<usize>, Rational)> = Vec::new();
                for piece in self.passing(analysis, server) {
                    let come = &self.come[&piece];
                    row.push((come[depth], minus(&one())));
                    row.push((come[depth + 1], one()));
                }
                row.push((behind, service.rate.clone()));
                row.push((Some(last), minus(&service.rate)));
                let limit = &(&service.rate * &service.latency) + &frame;
                self.programme.at_most(row, limit);
            }
        }
    }

    /// What comes over one link comes no faster than that; also behind a cut.
    fn shaping(&mut self, analysis: &Analysis<'_>) {
        for server in self.depth.keys().copied().collect::<Vec<_>>() {
            let mut groups: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
            for (piece, position) in &analysis.at[server] {
                let from = match position {
                    0 => analysis.pieces[*piece].from,
                    _ => Some(analysis.server(analysis.pieces[*piece].hops[position - 1])),
                };
                if let Some(from) = from.filter(|_| self.come.contains_key(piece)) {
                    groups.entry(from).or_default().push(*piece);
                }
            }
            for (from, pieces) in groups {
                let Some(capacity) = &analysis.model.servers[from].capacity else { continue };
                let frames = pieces.iter().map(|piece| {
                    &analysis.model.flows[analysis.layout.hops[analysis.pieces[*piece].hops[0]].flow]
                        .longest_frame
                });
                let frame = if analysis.settings.packetizer { frames.max().cloned() } else { None };
                let dates = self.dates[&server].clone();
                for u in 0..dates.len() {
                    for v in u + 1..dates.len() {
                        let mut row: Vec<(Option<usize>, Rational)> = Vec::new();
                        for piece in &pieces {
                            row.push((self.come[piece][u], one()));
                            row.push((self.come[piece][v], minus(&one())));
                        }
                        row.push((Some(dates[u]), minus(capacity)));
                        row.push((Some(dates[v]), capacity.clone()));
                        self.programme.at_most(row, frame.clone().unwrap_or_default());
                    }
                }
            }
        }
    }

    /// Rows that say that from `first` to behind `last` takes at most `delay`.
    fn takes(&mut self, analysis: &Analysis<'_>, (first, last): (usize, usize), delay: &Rational) {
        let from = self.dates[&first].clone();
        // As many dates as the server behind `last` has: one more than `last` is far from the root.
        for (k, date) in from.iter().enumerate().take(self.depth[&last] + 1) {
            let behind = self.after(analysis, last, k);
            self.programme.at_most([(behind, one()), (Some(*date), minus(&one()))], delay.clone());
        }
    }

    fn known_delays(&mut self, analysis: &Analysis<'_>) {
        for server in self.depth.keys().copied().collect::<Vec<_>>() {
            let node = analysis.layout.nodes.iter().position(|node| node.server == server);
            if let Some(delay) = node.and_then(|node| analysis.total.bounds[node].delay.clone()) {
                self.takes(analysis, (server, server), &delay);
            }
        }
        let Some((values, total)) = &analysis.separated else { return };
        for (piece, first) in self.pieces.clone() {
            let within = analysis.pieces[piece]
                .hops
                .iter()
                .take_while(|hop| self.depth.contains_key(&analysis.server(**hop)));
            let hops: Vec<usize> = within.copied().collect();
            let last = analysis.server(hops[hops.len() - 1]);
            let delay = crate::separate::in_order(values, analysis.layout, total, &hops);
            if let Some(delay) = delay {
                self.takes(analysis, (first, last), &delay);
            }
        }
    }

    fn aim(&mut self, analysis: &Analysis<'_>, task: Task) {
        let first = analysis.server(analysis.pieces[task.piece].hops[0]);
        let dates = self.dates[&first].clone();
        if task.aim == Aim::Delay {
            self.programme.objective = vec![(dates[0], minus(&one()))];
            return;
        }
        // What has come when the root's first date has left, and has not left.
        let now = self.programme.variable(self.data_scale);
        let come = self.come[&task.piece].clone();
        let Some(arrival) = &analysis.pieces[task.piece].arrival else { return };
        for (date, come) in dates.iter().zip(&come) {
            for Bucket { burst, rate } in arrival.buckets() {
                let row = [(Some(now), one()), (*come, minus(&one())), (Some(*date), rate.clone())];
                self.programme.at_most(row, burst.clone());
            }
        }
        self.programme.objective = vec![(now, one())];
        if let Some(before) = come[0] {
            self.programme.objective.push((before, minus(&one())));
        }
    }
}
