//! The streams of live interfaces, followed on a thread of their own.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use pyo3::prelude::*;
use wg_capture::Interface;
use wg_capture::streams::{Second, Streams};
use wg_capture::taps::TroubleReport;
use wg_net::{PacketRing, RETIRE_MS, interface_named, is_running, line_rate};

use crate::error::NativeError;

/// Bytes of a frame that are looked at: all, as some protocols have their number at its end.
const SNAP: u32 = 1 << 16;
/// Pause when all rings are empty.
const PAUSE: Duration = Duration::from_millis(2);
/// Rounds of the rings between two looks at the state of the sockets.
const ROUNDS: u32 = 64;
/// Wait after the end for the kernel to pass on partly filled blocks.
const LAST_LOOK: Duration = Duration::from_millis(3 * RETIRE_MS as u64);

/// What reader and caller share.
#[derive(Default)]
struct Shared {
    streams: Mutex<Streams>,
    /// Stretches of the watch that end before it, each with accounts of its own.
    stretches: Mutex<Vec<Stretch>>,
    stopped: AtomicBool,
    /// Interface and reason of an early end.
    ended: Mutex<Option<(String, String)>>,
}

/// Streams since a turn.
#[derive(Default)]
struct Stretch {
    streams: Streams,
    /// Frames that each tap had dropped when it began.
    dropped_before: Vec<u64>,
    /// Frames that each tap has dropped since the watch began.
    dropped: Vec<u64>,
}

impl Stretch {
    fn begin(interfaces: &[String], dropped: Vec<u64>) -> Self {
        let mut streams = Streams::default();
        for name in interfaces {
            streams.watch(&Interface::live(name, line_rate(name)));
        }
        streams.until(now());
        Self { streams, dropped_before: dropped.clone(), dropped }
    }

    fn dropped(&mut self, tap: u16, dropped: u64) {
        let place = usize::from(tap);
        self.dropped[place] = dropped;
        self.streams.dropped(tap, dropped.saturating_sub(self.dropped_before[place]));
    }
}

/// Live interfaces whose streams are followed until `stop`.
#[pyclass]
pub struct Watch {
    interfaces: Vec<String>,
    shared: Arc<Shared>,
    reader: Option<JoinHandle<()>>,
}

#[pymethods]
impl Watch {
    /// Begins to follow the streams of these interfaces, and those of so many stretches besides. Raises NativeError.
    #[new]
    #[pyo3(signature = (interfaces, stretches = 0))]
    fn new(interfaces: Vec<String>, stretches: usize) -> PyResult<Self> {
        let mut streams = Streams::default();
        let mut rings = Vec::new();
        for name in &interfaces {
            let ring = ring(name).map_err(NativeError::new_err)?;
            rings.push((streams.watch(&Interface::live(name, line_rate(name))), name.clone(), ring));
        }
        streams.until(now());
        let begin = || Stretch::begin(&interfaces, vec![0; interfaces.len()]);
        let stretches = Mutex::new(std::iter::repeat_with(begin).take(stretches).collect());
        let shared = Arc::new(Shared { streams: Mutex::new(streams), stretches, ..Shared::default() });
        let own = Arc::clone(&shared);
        let reader =
            std::thread::Builder::new().name("watch".to_owned()).spawn(move || follow(rings, &own))?;
        Ok(Self { interfaces, shared, reader: Some(reader) })
    }

    /// Ends a stretch and begins it anew: what came in it, as `second`. Raises NativeError.
    ///
    /// A frame belongs to the stretch in which it is read from the ring, milliseconds after it came.
    fn turn(&self, py: Python<'_>, number: usize) -> PyResult<String> {
        py.detach(|| {
            let mut stretches = locked(&self.shared.stretches);
            let Some(stretch) = stretches.get_mut(number) else {
                return Err(NativeError::new_err(format!("there is no stretch {number}")));
            };
            let begin = Stretch::begin(&self.interfaces, stretch.dropped.clone());
            let mut ended = std::mem::replace(stretch, begin);
            drop(stretches);
            ended.streams.until(now());
            text(&ended.streams.second(self.troubles(), false))
        })
    }

    /// What came so far, `wg_capture::streams::Second` as JSON. Raises NativeError.
    fn second(&self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| self.told(true))
    }

    /// Whether an interface went away or down, so that nothing comes any more.
    fn has_ended(&self) -> bool {
        locked(&self.shared.ended).is_some()
    }

    /// Ends it; what came, as `second`. Raises NativeError.
    fn stop(&mut self, py: Python<'_>) -> PyResult<String> {
        py.detach(|| {
            if self.reader.is_some() {
                locked(&self.shared.streams).until(now());
            }
            self.shared.stopped.store(true, Ordering::Release);
            if self.reader.take().is_some_and(|reader| reader.join().is_err()) {
                return Err(NativeError::new_err("the thread that reads the frames failed"));
            }
            self.told(false)
        })
    }
}

impl Watch {
    fn told(&self, is_open: bool) -> PyResult<String> {
        let mut streams = locked(&self.shared.streams);
        if is_open {
            streams.until(now());
        }
        // Frames wait in the ring only as long as the report is gathered, not until it is text.
        let second = streams.second(self.troubles(), is_open);
        drop(streams);
        text(&second)
    }

    fn troubles(&self) -> Vec<TroubleReport> {
        let ended = locked(&self.shared.ended).clone();
        let trouble = |(file, what)| TroubleReport { file, what, count: 1, ends_the_file: true };
        ended.map(trouble).into_iter().collect()
    }
}

fn text(second: &Second) -> PyResult<String> {
    serde_json::to_string(second).map_err(|error| NativeError::new_err(error.to_string()))
}

fn ring(name: &str) -> Result<PacketRing, String> {
    let interface = interface_named(name).map_err(|error| error.to_string())?;
    let ring = PacketRing::capture(&interface, SNAP, false).map_err(|error| error.to_string())?;
    if !is_running(name).map_err(|error| error.to_string())? {
        return Err(format!("interface '{name}' is down or has no carrier; ip link set {name} up"));
    }
    ring.see_all(&interface)
        .map_err(|error| format!("interface '{name}' does not receive frames to other stations: {error}"))?;
    Ok(ring)
}

/// The time of the kernel's timestamps.
fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
}

fn locked<T>(shared: &Mutex<T>) -> MutexGuard<'_, T> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn follow(mut rings: Vec<(u16, String, PacketRing)>, shared: &Shared) {
    let mut room = Vec::new();
    while !shared.stopped.load(Ordering::Acquire) {
        for _ in 0..ROUNDS {
            if !read(&mut rings, shared, &mut room) {
                break;
            }
        }
        for (tap, name, ring) in &mut rings {
            if let Err(error) = checked(*tap, name, ring, shared) {
                *locked(&shared.ended) = Some((name.clone(), format!("no frames any more: {error}")));
                return;
            }
        }
        std::thread::sleep(PAUSE);
    }
    std::thread::sleep(LAST_LOOK);
    while read(&mut rings, shared, &mut room) {}
    for (tap, name, ring) in &mut rings {
        // What it dropped until the last look stays counted.
        drop(checked(*tap, name, ring, shared));
    }
}

/// Takes the next block of each ring; whether there was one.
fn read(rings: &mut [(u16, String, PacketRing)], shared: &Shared, room: &mut Vec<u8>) -> bool {
    let mut has_any = false;
    for (tap, _, ring) in rings {
        let mut streams = locked(&shared.streams);
        let mut stretches = locked(&shared.stretches);
        has_any |= ring
            .read(|frame| {
                let (bytes, length) = frame.with_tag(room);
                streams.take(*tap, frame.timestamp_ns, bytes, length);
                for stretch in &mut *stretches {
                    stretch.streams.take(*tap, frame.timestamp_ns, bytes, length);
                }
            })
            .is_some();
    }
    has_any
}

fn checked(tap: u16, name: &str, ring: &mut PacketRing, shared: &Shared) -> io::Result<()> {
    let (_, dropped) = ring.statistics()?;
    locked(&shared.streams).dropped(tap, dropped);
    for stretch in &mut *locked(&shared.stretches) {
        stretch.dropped(tap, dropped);
    }
    ring.check()?;
    match is_running(name) {
        Ok(true) => Ok(()),
        Ok(false) => Err(io::Error::other("the interface is down or has lost its carrier")),
        Err(error) => Err(io::Error::other(error)),
    }
}
