//! AS6802 devices.

use wg_core::as6802::{
    Behaviour, CompressionMaster, ControlRepr, ControlType, EndSystem, Integrity, Output, Parameters, Role,
    State, Thresholds, TransparentClock,
};
use wg_core::clock::LocalTime;
use wg_frame::time::Span;

use crate::input::Input;

enum Core {
    End(EndSystem),
    Compression(CompressionMaster),
}

fn parameters(input: &mut Input<'_>) -> Parameters {
    let faulty_masters = input.byte() % 3;
    let masters = 2 * faulty_masters + 1 + input.byte() % 4;
    Parameters {
        integrity: if input.one_in(2) { Integrity::High } else { Integrity::Standard },
        domain: 0,
        priority: 0,
        integration_cycle: Span::from_micros(200 + i64::from(input.byte())),
        cycles: 1 + u32::from(input.byte() % 4),
        precision: Span::from_nanos(1 + i64::from(input.byte())),
        max_transmission_delay: Span::from_micros(1 + i64::from(input.byte() % 32)),
        calculation_overhead: Span::from_nanos(i64::from(input.byte())),
        frame_time: Span::from_nanos(6_720),
        masters,
        faulty_masters,
        channels: 1 + input.byte() % 3,
        thresholds: Thresholds::of(masters, faulty_masters),
        stable_cycles: u32::from(input.byte() % 4),
        unstable_cycles: u32::from(input.byte() % 4),
    }
}

/// No sequence of frames, deadlines and restarts makes a device panic, stop, or do what its role and state forbid.
#[expect(clippy::too_many_lines, reason = "a body is read beside its oracle")]
pub(crate) fn body(data: &[u8]) {
    let mut input = Input(data);
    let parameters = parameters(&mut input);
    if parameters.check().is_err() {
        return;
    }
    let by = Span::from_nanos(i64::from(input.byte()) * 100);
    let behaviour = match input.byte() % 5 {
        0 => Behaviour::Early(by),
        1 => Behaviour::Late(by),
        2 => Behaviour::Silent,
        3 => Behaviour::Inconsistent(by),
        _ => Behaviour::Correct,
    };
    let own = u32::from(input.byte()) % u32::from(parameters.masters);
    let role = if input.one_in(3) { Role::Client } else { Role::Master(own as u8) };
    let is_compression = input.one_in(2);
    let mut time = LocalTime::ZERO;
    let mut core = if is_compression {
        Core::Compression(CompressionMaster::new(parameters, time))
    } else {
        Core::End(EndSystem::new(parameters, role, behaviour, time))
    };
    let (mut state, mut members) = (State::Integrate, 0);
    while !input.is_done() {
        let deadline = match &core {
            Core::End(core) => core.next_deadline(),
            Core::Compression(core) => core.next_deadline(),
        };
        match input.byte() % 16 {
            0 => match &mut core {
                Core::End(core) => core.handle_restart(time),
                Core::Compression(core) => core.handle_restart(time),
            },
            // A driver that comes when it was asked to, or a little later.
            1..8 if deadline < time + Span::from_millis(1_000) => {
                time = time.max(deadline)
                    + Span::from_picos(if input.one_in(4) { input.step(100).abs() } else { 0 });
                match &mut core {
                    Core::End(core) => core.handle_deadline(time),
                    Core::Compression(core) => core.handle_deadline(time),
                }
                let next = match &core {
                    Core::End(core) => core.next_deadline(),
                    Core::Compression(core) => core.next_deadline(),
                };
                assert!(next > time, "it did not do what was due");
            }
            _ => {
                time = time + Span::from_picos(input.step(100).abs());
                let control_type = match input.byte() % 4 {
                    0 => ControlType::Coldstart,
                    1 => ControlType::ColdstartAcknowledge,
                    _ => ControlType::Integration,
                };
                let frame = ControlRepr {
                    integration_cycle: u32::from(input.byte() % 5),
                    membership: if input.one_in(8) { 1 << own } else { u32::from(input.byte()) },
                    sync_priority: u8::from(input.one_in(16)),
                    sync_domain: u8::from(input.one_in(16)),
                    control_type,
                    transparent_clock: TransparentClock::from_delay(Span::from_nanos(
                        input.below(33_000) as i64
                    ))
                    .expect("positive"),
                };
                match &mut core {
                    Core::End(core) => core.handle_frame(time, usize::from(input.byte() % 4), frame),
                    Core::Compression(core) => core.handle_frame(time, frame),
                }
            }
        }
        loop {
            let output = match &mut core {
                Core::End(core) => core.poll_output(),
                Core::Compression(core) => core.poll_output(),
            };
            match output {
                None => break,
                Some(Output::State(next)) => {
                    assert_ne!(next, state, "a change is one");
                    let of_compression =
                        matches!(next, State::AcknowledgeEnabled | State::WaitForIntegration);
                    let of_end = matches!(next, State::Flood | State::WaitForCycleStartColdstart);
                    assert!(if is_compression { !of_end } else { !of_compression }, "{next:?}");
                    assert!(
                        is_compression
                            || role != Role::Client
                            || next.is_synchronised()
                            || next == State::Integrate
                    );
                    state = next;
                }
                Some(Output::Membership(next)) => {
                    assert_ne!(next, members, "a change is one");
                    members = next;
                }
                Some(Output::Send { channel, frame }) => {
                    assert!(is_compression && channel == 0 || channel < usize::from(parameters.channels));
                    assert_eq!(frame.transparent_clock, TransparentClock(0));
                    assert!(
                        is_compression || (role == Role::Master(own as u8) && frame.membership == 1 << own)
                    );
                    assert!(is_compression || behaviour != Behaviour::Silent);
                }
                Some(Output::Clock { position }) => {
                    assert!((Span::ZERO..parameters.cluster_cycle()).contains(&position), "{position}");
                }
                Some(Output::Clique(_)) => {}
            }
        }
        let (now, membership) = match &core {
            Core::End(core) => (core.state(), core.membership()),
            Core::Compression(core) => (core.state(), core.membership()),
        };
        assert_eq!((now, membership), (state, members), "it told all that changed");
        assert!(state.is_cyclic() || members == 0, "{state:?} with members {members:#x}");
    }
}
