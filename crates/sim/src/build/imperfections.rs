//! Imperfections of nodes: host events, frames of switches, timestamp errors.

use wg_core::frame::{Frame, Marks, TrafficClass};
use wg_frame::ethernet::MacAddress;
use wg_frame::time::RunTime;
use wg_plan::random::{Purpose, Stream};
use wg_plan::{Network, NodeIndex, NodeKind, OwnFrames, Run};

use super::places::{Ports, position};
use crate::error::SimError;
use crate::imperfections::{Decision, OwnFrameSource, RecurringEvent, TimestampErrors};
use crate::message::Message;
use crate::models::Draws;
use crate::world::{CoreIndex, World};

/// The group address of a spanning tree's frames, which no bridge forwards (IEEE Std 802.1Q-2022, 8.6.3).
const NEAREST_BRIDGE: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0x00, 0x00, 0x00]);

impl World {
    pub(super) fn build_imperfections(
        &mut self,
        network: &Network,
        run: &Run,
        ports: &Ports,
    ) -> Result<(), SimError> {
        for (index, node) in (0..).zip(&network.nodes) {
            if let Some(model) = &node.timestamps {
                let errors = TimestampErrors::new(model, index, run.seed)?;
                self.nodes[usize::from(index)].timestamps = Some(Box::new(errors));
            }
            for (place, event) in (0..).zip(&node.events) {
                let CoreIndex::Host(host) = self.nodes[usize::from(index)].place else {
                    return Err(SimError::plan(format!("node {index} has an event and is no end system")));
                };
                self.hosts[host as usize].extra_mut().events.push(self.events.len());
                self.events.push(RecurringEvent::new(event, index, place, run.seed)?);
            }
            if let NodeKind::Switch(model) = &node.kind {
                for frames in &model.own_frames {
                    self.add_own_frames(index, frames, &ports[usize::from(index)]);
                }
                if !model.drawn_delay.is_none() {
                    let draws = Draws::new(&model.drawn_delay)?;
                    for &(_, out) in &ports[usize::from(index)] {
                        let into = out ^ 1;
                        let chance = Stream::new(run.seed, Purpose::SwitchDelay, into as u32);
                        let draws = draws.clone();
                        let decision = Decision { draws, chance, last: RunTime::from_picos(i64::MIN / 2) };
                        self.extra(network, into).decision = Some(decision);
                    }
                }
            }
        }
        let exact = self.nodes.iter().all(|node| node.timestamps.is_none());
        self.is_exact = exact && self.clocked.is_empty();
        Ok(())
    }

    fn add_own_frames(&mut self, node: NodeIndex, frames: &OwnFrames, own: &[(u16, usize)]) {
        let CoreIndex::Switch(switch) = self.nodes[usize::from(node)].place else { return };
        let all = || own.iter().map(|(number, _)| *number);
        let chosen: Vec<u16> = if frames.ports.is_empty() { all().collect() } else { frames.ports.clone() };
        let frame = Frame {
            destination: NEAREST_BRIDGE,
            source: self.addresses[usize::from(node)],
            length: frames.length,
            vlan: 0,
            virtual_link: 0,
            sequence: 0,
            handle: Message::OWN.handle(),
            priority: frames.priority,
            class: TrafficClass::BestEffort,
            network: wg_core::frame::NetworkId::A,
            marks: Marks::none(),
        };
        self.own_frames.push(OwnFrameSource {
            switch: switch as usize,
            node,
            ports: chosen.into_iter().map(|number| position(own, number)).collect(),
            frame,
            period: frames.period,
            next: RunTime::ZERO + frames.offset,
        });
    }
}
