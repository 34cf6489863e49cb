//! The clock programs of one session: started together, read in one stream, ended together.

use std::collections::VecDeque;
use std::fs;
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use wg_frame::time::WallNanos;
use wg_net::clock;

use super::ClockError;
use super::linuxptp::{self, PACKAGE, Settings};
use super::program::{self, Listen, Program};
use crate::proto;

/// Greatest number of lines kept for observers; PTP prints some per second.
const MOST_LINES: usize = 4_096;
/// Time limit of a program that is run to its end.
const ANSWER: Duration = Duration::from_secs(5);
const CHRONY: [&str; 3] = ["-n", "-c", "tracking"];

/// Maps `CLOCK_REALTIME` to the clock shown here: a test facility may plant another clock.
pub type Shown = Arc<dyn Fn(WallNanos) -> WallNanos + Send + Sync>;

/// Output of the programs.
#[derive(Default)]
pub struct Output {
    lines: Mutex<Lines>,
    more: Notify,
    over: AtomicBool,
}

#[derive(Default)]
struct Lines {
    kept: VecDeque<proto::ClockProgramLine>,
    last: u64,
}

impl Output {
    fn add(&self, program: &str, text: &str, gone: bool, shown: &Shown) {
        let realtime_less_monotonic_ns = shown(clock::realtime()).get() - clock::monotonic();
        let mut lines = lock(&self.lines);
        lines.last += 1;
        let sequence = lines.last;
        lines.kept.push_back(proto::ClockProgramLine {
            sequence,
            program: program.into(),
            text: text.into(),
            realtime_less_monotonic_ns,
            gone,
        });
        if lines.kept.len() > MOST_LINES {
            lines.kept.pop_front();
        }
        drop(lines);
        self.more.notify_one();
    }

    /// The stored lines after the one with this number.
    pub fn after(&self, sequence: u64) -> Vec<proto::ClockProgramLine> {
        lock(&self.lines).kept.iter().filter(|line| line.sequence > sequence).cloned().collect()
    }

    /// Whether no more lines can come.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Waits until there may be more lines, the output is over, or `most` has passed.
    pub async fn more(&self, most: Duration) {
        let _ = tokio::time::timeout(most, self.more.notified()).await;
    }

    fn end(&self) {
        self.over.store(true, Ordering::Release);
        self.more.notify_one();
    }
}

/// The programs of a session. They end when this is dropped.
pub struct ClockPrograms {
    /// Settings of the programs.
    pub settings: Settings,
    /// Output of the programs.
    pub output: Arc<Output>,
    programs: Mutex<Vec<Program>>,
    folder: PathBuf,
}

impl ClockPrograms {
    /// Starts the programs, with their sockets in `folder`. Blocks until they run.
    ///
    /// # Errors
    /// A program is missing or cannot be started, or the interface's clock cannot be set; none runs then.
    pub fn start(settings: Settings, folder: &Path, shown: Shown) -> Result<Self, ClockError> {
        let ptp4l = program::find("ptp4l", PACKAGE)?;
        enter(folder)?;
        let made =
            Self { output: Arc::default(), programs: Mutex::default(), folder: folder.to_owned(), settings };
        let settings = &made.settings;
        let phc2sys = settings.has_phc2sys().then(|| program::find("phc2sys", PACKAGE)).transpose()?;
        if phc2sys.is_some() && settings.server {
            set_once(settings, folder)?;
        }
        let input = settings.ptp4l(&made.socket("ptp4l"));
        made.begin("ptp4l", &ptp4l, &linuxptp::ptp4l(), input, &shown)?;
        if let Some(phc2sys) = phc2sys {
            made.begin("phc2sys", &phc2sys, &settings.phc2sys(), String::new(), &shown)?;
        }
        Ok(made)
    }

    fn begin(
        &self,
        name: &'static str,
        program: &Path,
        arguments: &[String],
        input: String,
        shown: &Shown,
    ) -> Result<(), ClockError> {
        let (output, shown) = (Arc::clone(&self.output), Arc::clone(shown));
        let listen: Listen = Box::new(move |text, gone| output.add(name, text, gone, &shown));
        let program = Program::start(name, program, arguments, &self.folder, input, listen)?;
        lock(&self.programs).push(program);
        Ok(())
    }

    /// Path of a socket relative to the programs' working folder, because paths of sockets must be short.
    fn socket(&self, program: &str) -> String {
        format!("{program}-{}", self.settings.interface)
    }

    /// Names of the programs that were started.
    pub fn names(&self) -> Vec<String> {
        lock(&self.programs).iter().map(|program| program.name.into()).collect()
    }

    /// Output of pmc about ptp4l; empty if it has no answer. Blocks.
    pub fn ask(&self) -> String {
        let own = self.socket("pmc");
        let arguments = self.settings.pmc(&self.socket("ptp4l"), &own);
        let said = program::find("pmc", PACKAGE)
            .and_then(|pmc| program::answer(&pmc, &arguments, &self.folder, ANSWER))
            .map(|(_, said)| said);
        drop(fs::remove_file(self.folder.join(own)));
        said.unwrap_or_default()
    }

    /// Ends the programs in reverse order. Blocks for some seconds at most.
    pub fn stop(&self) {
        let mut programs = std::mem::take(&mut *lock(&self.programs));
        while let Some(mut program) = programs.pop() {
            program.stop();
        }
        self.output.end();
        for program in ["ptp4l", "pmc"] {
            drop(fs::remove_file(self.folder.join(self.socket(program))));
        }
        // Another session may have its sockets there.
        drop(fs::remove_dir(&self.folder));
    }
}

impl Drop for ClockPrograms {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Output of chronyc about the system clock; empty if chronyd does not answer. Blocks.
///
/// # Errors
/// The program is not installed.
pub fn ask_chrony() -> Result<String, ClockError> {
    let chronyc = program::find("chronyc", "chrony")?;
    let arguments = CHRONY.map(str::to_owned);
    let said = program::answer(&chronyc, &arguments, Path::new("/"), ANSWER);
    Ok(said.ok().filter(|(done, _)| *done).map(|(_, said)| said).unwrap_or_default())
}

fn set_once(settings: &Settings, folder: &Path) -> Result<(), ClockError> {
    let phc_ctl = program::find("phc_ctl", PACKAGE)?;
    let (done, said) = program::answer(&phc_ctl, &settings.phc_ctl(), folder, ANSWER)?;
    if done {
        return Ok(());
    }
    let why = said.trim().lines().last().unwrap_or("phc_ctl failed");
    Err(ClockError::Host(format!(
        "the clock of {} cannot be set: {why}; an interface without a clock needs timestamps=\"software\"",
        settings.interface
    )))
}

/// Creates and checks a folder of this user alone.
fn enter(folder: &Path) -> Result<(), ClockError> {
    use std::os::unix::fs::MetadataExt;
    let cannot = |why: String| ClockError::Host(format!("{}: {why}", folder.display()));
    match fs::DirBuilder::new().mode(0o700).create(folder) {
        Err(error) if error.kind() != std::io::ErrorKind::AlreadyExists => {
            return Err(cannot(error.to_string()));
        }
        _ => {}
    }
    let found = fs::symlink_metadata(folder).map_err(|error| cannot(error.to_string()))?;
    let own = rustix::process::geteuid().as_raw();
    if found.is_dir() && found.uid() == own && found.mode() & 0o077 == 0 {
        return Ok(());
    }
    Err(cannot("it must be a folder of this user alone, with mode 700".into()))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_numbered_and_the_oldest_go_first() {
        let output = Output::default();
        let shown: Shown = Arc::new(|time| time);
        for number in 0..=MOST_LINES {
            output.add("ptp4l", &number.to_string(), false, &shown);
        }
        let all = output.after(0);
        assert_eq!((all.len(), all[0].sequence, all[0].text.as_str()), (MOST_LINES, 2, "1"));
        assert_eq!(output.after(MOST_LINES as u64).len(), 1);
        assert!(!output.is_over());
    }

    #[test]
    fn a_folder_of_others_is_not_entered() {
        let folder = std::env::temp_dir().join(format!("wiregauge-entered-{}", std::process::id()));
        enter(&folder).unwrap();
        enter(&folder).unwrap();
        let open = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(&folder, open).unwrap();
        let refused = enter(&folder).unwrap_err().to_string();
        fs::remove_dir(&folder).unwrap();
        assert!(refused.contains("with mode 700"), "{refused}");
    }
}
