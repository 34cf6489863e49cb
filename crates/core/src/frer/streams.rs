//! The functions of one system, by stream: replication where copies are made, elimination where they are removed.
//!
//! A frame of no stream here passes unchanged. Where it is numbered (7.4.1, 7.6) and split (7.7) it becomes a frame in
//! each member stream; where its member streams end, it passes individual recovery (7.5), if there is one, and sequence
//! recovery (7.4.2), and a frame that passes has its original addresses again.
//!
//! A system between talker and listener may do both and keep the number: where member streams join, sequence recovery
//! removes copies before they go on as one, and where they part, each gets a copy. A [`Relay`] states this for one
//! incoming stream; Annex C of the standard has networks of such systems.
//!
//! The tag is put into the frame as it is: one that was padded to the smallest frame stays padded, and is longer by the
//! whole tag. Systems that number frames before they are padded send shorter ones.

use alloc::boxed::Box;
use alloc::vec::Vec;

use wg_frame::ethernet::MacAddress;
use wg_frame::rtag::TAG_LEN;
use wg_frame::time::RunTime;

use super::generation::SequenceGenerator;
use super::latent::{LatentErrorConfig, LatentErrors};
use super::recovery::{Counters, Decision, Recovery, RecoveryConfig, RecoveryError};
use crate::cause::Cause;
use crate::frame::{Frame, Marks};

#[expect(clippy::cast_possible_truncation, reason = "6 bytes")]
const TAG: u16 = TAG_LEN as u16;

/// Null stream identification (6.4): how a stream is recognised.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct StreamId {
    /// Destination address.
    pub destination: MacAddress,
    /// VLAN, 0 of untagged frames.
    pub vlan: u16,
}

/// A stream that is replicated here.
#[derive(Clone, Debug)]
pub struct Replication {
    /// The stream as it arrives.
    pub stream: StreamId,
    /// Destination addresses of its member streams.
    pub members: Vec<MacAddress>,
}

/// A stream whose copies are eliminated here.
#[derive(Clone, Debug)]
pub struct Elimination {
    /// The stream as it goes on.
    pub stream: StreamId,
    /// Destination addresses of its member streams.
    pub members: Vec<MacAddress>,
    /// Sequence recovery.
    pub recovery: RecoveryConfig,
    /// Individual recovery of each member stream; `None`: none.
    pub individual: Option<RecoveryConfig>,
    /// Latent error detection; `None`: none.
    pub latent: Option<LatentErrorConfig>,
}

/// A member stream that is relayed, with the streams as which it leaves.
#[derive(Clone, Debug)]
pub struct Relay {
    /// The stream as it arrives.
    pub stream: StreamId,
    /// Destination addresses of the streams that leave.
    pub leaves: Vec<MacAddress>,
}

/// A table that cannot work: the plan's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum StreamTableError {
    /// Two functions for the same frames.
    #[error("two functions are for the stream to {:02x?} in VLAN {}; give each stream an address of its own", .0.destination.0, .0.vlan)]
    Twice(StreamId),
    /// A recovery function that cannot work.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
}

/// Decision on a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Handled {
    /// A frame that belongs to no stream here.
    Foreign,
    /// Replicated into these copies: see [`StreamTable::copy`].
    Copies(Copies),
    /// Relayed as these streams, or some of them: see [`StreamTable::relay`].
    Branches(Branches),
    /// Passed as this frame.
    Pass(Frame),
    /// Discarded for this reason.
    Discard(Cause),
}

/// The copies of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Copies {
    replication: u32,
    number: u16,
    count: u16,
}

impl Copies {
    /// Number of copies.
    pub const fn count(self) -> usize {
        self.count as usize
    }
}

/// The streams as which a frame is relayed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Branches {
    relay: u32,
    count: u16,
}

impl Branches {
    /// Number of streams.
    pub const fn count(self) -> usize {
        self.count as usize
    }
}

/// Function applied to the frames of a stream.
#[derive(Clone, Copy, Debug)]
enum Function {
    Replicate(u32),
    Eliminate { elimination: u32, member: u32 },
    Relay(u32),
}

#[derive(Debug)]
struct Replicator {
    members: Box<[MacAddress]>,
    generator: SequenceGenerator,
}

#[derive(Debug)]
struct Eliminator {
    stream: StreamId,
    /// Frames received, by member stream.
    came: Box<[u64]>,
    individual: Box<[Recovery]>,
    recovery: Recovery,
    latent: Option<LatentErrors>,
}

/// A stream that leaves a relay.
#[derive(Clone, Copy, Debug)]
struct Branch {
    destination: MacAddress,
    /// The junction it leaves by, and the index of the incoming member; `None`: no other stream leaves as it.
    junction: Option<(u32, u32)>,
}

/// The replication, elimination and relay functions of one system.
#[derive(Debug, Default)]
pub struct StreamTable {
    /// Functions in ascending order of stream.
    functions: Box<[(StreamId, Function)]>,
    replicators: Box<[Replicator]>,
    eliminators: Box<[Eliminator]>,
    relays: Box<[Box<[Branch]>]>,
    junctions: Box<[Eliminator]>,
}

/// Counters of an elimination function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Eliminated {
    /// The stream.
    pub stream: StreamId,
    /// Frames received, by member stream.
    pub came: Vec<u64>,
    /// Counters of individual recovery, by member stream; empty without it.
    pub individual: Vec<Counters>,
    /// Counters of sequence recovery.
    pub recovery: Counters,
    /// Number of latent errors and instant of the first; `None`: no latent error detection.
    pub latent: Option<(u64, Option<RunTime>)>,
}

impl StreamTable {
    /// The functions of a system.
    ///
    /// # Errors
    /// [`StreamTableError`] for the first that cannot work.
    #[expect(clippy::cast_possible_truncation, reason = "fewer than there are addresses for")]
    pub fn new(
        replications: Vec<Replication>,
        eliminations: Vec<Elimination>,
    ) -> Result<Self, StreamTableError> {
        let mut functions = Vec::new();
        let (mut replicators, mut eliminators) = (Vec::new(), Vec::new());
        for Replication { stream, members } in replications {
            functions.push((stream, Function::Replicate(replicators.len() as u32)));
            let members = members.into_boxed_slice();
            replicators.push(Replicator { members, generator: SequenceGenerator::new() });
        }
        for config in eliminations {
            let elimination = eliminators.len() as u32;
            for (member, &destination) in (0..).zip(&config.members) {
                let id = StreamId { destination, vlan: config.stream.vlan };
                functions.push((id, Function::Eliminate { elimination, member }));
            }
            eliminators.push(Eliminator::new(config)?);
        }
        let mut table = Self {
            functions: functions.into(),
            replicators: replicators.into(),
            eliminators: eliminators.into(),
            ..Self::default()
        };
        table.sort()?;
        Ok(table)
    }

    /// As [`new`](Self::new), with relays: `junctions` are eliminations after which frames keep number and tag.
    ///
    /// # Errors
    /// [`StreamTableError`] for the first that cannot work.
    #[expect(clippy::cast_possible_truncation, reason = "fewer than there are addresses for")]
    pub fn with_relays(
        mut self,
        junctions: Vec<Elimination>,
        relays: Vec<Relay>,
    ) -> Result<Self, StreamTableError> {
        let leaving = |leaves: MacAddress, comes: StreamId| {
            let mut found = (0..).zip(&junctions);
            found.find_map(|(number, Elimination { stream, members, .. })| {
                let is_it = stream.destination == leaves && stream.vlan == comes.vlan;
                let member = members.iter().position(|member| *member == comes.destination);
                is_it.then_some((number, member? as u32))
            })
        };
        let mut functions = self.functions.to_vec();
        let mut branches: Vec<Box<[Branch]>> = Vec::new();
        for Relay { stream, leaves } in relays {
            functions.push((stream, Function::Relay(branches.len() as u32)));
            let branch = |destination| Branch { destination, junction: leaving(destination, stream) };
            branches.push(leaves.into_iter().map(branch).collect());
        }
        (self.functions, self.relays) = (functions.into(), branches.into());
        self.junctions = junctions.into_iter().map(Eliminator::new).collect::<Result<_, _>>()?;
        self.sort()?;
        Ok(self)
    }

    fn sort(&mut self) -> Result<(), StreamTableError> {
        self.functions.sort_by_key(|(stream, _)| *stream);
        match self.functions.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            Some(pair) => Err(StreamTableError::Twice(pair[0].0)),
            None => Ok(()),
        }
    }

    /// Whether it has no function.
    pub fn is_empty(&self) -> bool {
        self.functions.is_empty()
    }

    /// Applies the function of its stream to a frame whose last bit came at `now`.
    pub fn handle_frame(&mut self, now: RunTime, frame: &Frame) -> Handled {
        let id = StreamId { destination: frame.destination, vlan: frame.vlan };
        let Ok(at) = self.functions.binary_search_by_key(&id, |(stream, _)| *stream) else {
            return Handled::Foreign;
        };
        match self.functions[at].1 {
            Function::Replicate(replication) => {
                let replicator = &mut self.replicators[replication as usize];
                #[expect(clippy::cast_possible_truncation, reason = "a stream has few member streams")]
                let count = replicator.members.len() as u16;
                Handled::Copies(Copies { replication, number: replicator.generator.next_number(), count })
            }
            Function::Eliminate { elimination, member } => {
                self.eliminators[elimination as usize].handle_frame(now, member as usize, frame)
            }
            Function::Relay(relay) => {
                #[expect(clippy::cast_possible_truncation, reason = "a flow has few member streams")]
                let count = self.relays[relay as usize].len() as u16;
                Handled::Branches(Branches { relay, count })
            }
        }
    }

    /// Copy `at`, below the [count](Copies::count), of `frame`.
    ///
    /// Panics if there is no such copy.
    pub fn copy(&self, copies: Copies, at: usize, frame: &Frame) -> Frame {
        Frame {
            destination: self.replicators[copies.replication as usize].members[at],
            sequence: copies.number,
            length: frame.length.saturating_add(TAG),
            marks: frame.marks.with(Marks::R_TAG),
            ..*frame
        }
    }

    /// Decides on `frame`, whose last bit came at `now`, in branch `at`, below the [count](Branches::count): it passes,
    /// with its number, or is discarded. To be called once for each branch.
    ///
    /// Panics if there is no such branch.
    pub fn relay(&mut self, now: RunTime, branches: Branches, at: usize, frame: &Frame) -> Handled {
        let Branch { destination, junction } = self.relays[branches.relay as usize][at];
        if let Some((junction, member)) = junction {
            let decision = self.junctions[junction as usize].decide(now, member as usize, frame);
            if let Some(cause) = cause_of(decision) {
                return Handled::Discard(cause);
            }
        }
        Handled::Pass(Frame { destination, ..*frame })
    }

    /// The system restarts: numbers begin anew and any number is accepted next. Counters stay.
    pub fn handle_restart(&mut self) {
        self.replicators.iter_mut().for_each(|replicator| replicator.generator.handle_reset());
        for eliminator in self.eliminators.iter_mut().chain(&mut self.junctions) {
            eliminator.individual.iter_mut().for_each(Recovery::handle_restart);
            eliminator.recovery.handle_restart();
        }
    }

    /// Counters of its elimination functions up to `now`, in the order they were given.
    pub fn eliminated(&mut self, now: RunTime) -> Vec<Eliminated> {
        let eliminators = self.eliminators.iter_mut();
        eliminators.map(|eliminator| eliminator.eliminated(now)).collect()
    }

    /// Counters of its junctions up to `now`, in the order they were given.
    pub fn joined(&mut self, now: RunTime) -> Vec<Eliminated> {
        self.junctions.iter_mut().map(|junction| junction.eliminated(now)).collect()
    }
}

/// Reason why a frame is discarded; `None`: it passes.
const fn cause_of(decision: Decision) -> Option<Cause> {
    match decision {
        Decision::Pass => None,
        Decision::Repeated => Some(Cause::SecondCopy),
        Decision::Rogue => Some(Cause::Rogue),
        Decision::Tagless => Some(Cause::Integrity),
    }
}

impl Eliminator {
    fn new(config: Elimination) -> Result<Self, RecoveryError> {
        let Elimination { stream, members, recovery, individual, latent } = config;
        let own = |config: RecoveryConfig| Recovery::new(RecoveryConfig { individual: true, ..config });
        let individual = individual.map(|config| members.iter().map(|_| own(config)).collect());
        Ok(Self {
            stream,
            came: members.iter().map(|_| 0).collect(),
            individual: individual.transpose()?.unwrap_or_default(),
            recovery: Recovery::new(recovery)?,
            latent: latent.map(LatentErrors::new),
        })
    }

    fn handle_frame(&mut self, now: RunTime, member: usize, frame: &Frame) -> Handled {
        if let Some(cause) = cause_of(self.decide(now, member, frame)) {
            return Handled::Discard(cause);
        }
        let tagged = frame.marks.has(Marks::R_TAG);
        Handled::Pass(Frame {
            destination: self.stream.destination,
            sequence: 0,
            length: if tagged { frame.length - TAG } else { frame.length },
            marks: frame.marks.without(Marks::R_TAG),
            ..*frame
        })
    }

    fn decide(&mut self, now: RunTime, member: usize, frame: &Frame) -> Decision {
        self.test(now);
        self.came[member] += 1;
        let number = frame.marks.has(Marks::R_TAG).then_some(frame.sequence);
        let decision = match self.individual.get_mut(member) {
            None => Decision::Pass,
            Some(recovery) => recovery.handle_frame(now, number),
        };
        match decision {
            Decision::Pass => self.recovery.handle_frame(now, number),
            discarded => discarded,
        }
    }

    /// Runs latent error detection, before the counters change.
    fn test(&mut self, now: RunTime) {
        if let Some(latent) = &mut self.latent {
            let Counters { passed, discarded, .. } = self.recovery.counters();
            latent.advance(now, passed, discarded);
        }
    }

    fn eliminated(&mut self, now: RunTime) -> Eliminated {
        self.test(now);
        self.recovery.advance(now);
        self.individual.iter_mut().for_each(|recovery| recovery.advance(now));
        Eliminated {
            stream: self.stream,
            came: self.came.to_vec(),
            individual: self.individual.iter().map(Recovery::counters).collect(),
            recovery: self.recovery.counters(),
            latent: self.latent.as_ref().map(|latent| (latent.signalled(), latent.first())),
        }
    }
}
