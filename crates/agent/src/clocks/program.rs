//! A program of the host: found in system folders, started without a shell, read line by line, ended.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use wg_net::realtime;

use super::ClockError;

/// The only folders searched for programs: a user's PATH is ignored.
const FOLDERS: [&str; 6] = ["/usr/sbin", "/usr/bin", "/sbin", "/bin", "/usr/local/sbin", "/usr/local/bin"];
/// Time limit for a program's orderly end.
const PATIENCE: Duration = Duration::from_secs(2);
const LOOK: Duration = Duration::from_millis(10);
/// Greatest length of a stored line, bytes.
const LONGEST_LINE: usize = 500;
/// Greatest length of the output of a program that is run to its end, bytes.
const LONGEST_ANSWER: u64 = 64 << 10;

/// Path of a program.
///
/// # Errors
/// The program is in no folder; the error names its package.
pub fn find(name: &str, package: &str) -> Result<PathBuf, ClockError> {
    let places = FOLDERS.iter().map(|folder| Path::new(folder).join(name));
    places.into_iter().find(|place| place.is_file()).ok_or_else(|| {
        ClockError::Host(format!(
            "the program {name} is not installed; install the package {package} (apt install {package}), or leave it out \
             of <synchronise>"
        ))
    })
}

/// A command that inherits nothing from this process but its working folder.
fn command(program: &Path, arguments: &[String], folder: &Path) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).env_clear().env("LC_ALL", "C").current_dir(folder);
    command
}

/// Runs a program to its end, for at most `most`; returns whether it succeeded, and its output.
///
/// # Errors
/// The program cannot be started, or does not end.
pub fn answer(
    program: &Path,
    arguments: &[String],
    folder: &Path,
    most: Duration,
) -> Result<(bool, String), ClockError> {
    let cannot = |why: &dyn std::fmt::Display| ClockError::Host(format!("{}: {why}", program.display()));
    let (mut reader, writer) = std::io::pipe().map_err(|e| cannot(&e))?;
    let mut command = command(program, arguments, folder);
    let both = writer.try_clone().map_err(|e| cannot(&e))?;
    command.stdin(Stdio::null()).stdout(writer).stderr(both);
    let mut child = realtime::die_with_this_thread(&mut command).spawn().map_err(|e| cannot(&e))?;
    // Dropping it closes this process's ends of the pipe.
    drop(command);
    let end = Instant::now() + most;
    let status = loop {
        match child.try_wait().map_err(|e| cannot(&e))? {
            Some(status) => break status,
            None if Instant::now() > end => {
                drop(child.kill());
                drop(child.wait());
                return Err(cannot(&format!("it did not end within {} s", most.as_secs())));
            }
            None => std::thread::sleep(LOOK),
        }
    };
    let mut said = Vec::new();
    reader.by_ref().take(LONGEST_ANSWER).read_to_end(&mut said).map_err(|e| cannot(&e))?;
    Ok((status.success(), String::from_utf8_lossy(&said).into_owned()))
}

/// A program that runs until it is ended.
#[derive(Debug)]
pub struct Program {
    /// Name of the program.
    pub name: &'static str,
    child: Arc<Mutex<Option<Child>>>,
    stopped: Arc<AtomicBool>,
    listener: Option<JoinHandle<()>>,
}

/// Called with each line, or, with `true`, with the reason why the program ended by itself.
pub type Listen = Box<dyn Fn(&str, bool) + Send>;

impl Program {
    /// Starts the program, with `input` on its standard input. It dies with this process.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn start(
        name: &'static str,
        program: &Path,
        arguments: &[String],
        folder: &Path,
        input: String,
        listen: Listen,
    ) -> Result<Self, ClockError> {
        let cannot =
            |why: &dyn std::fmt::Display| ClockError::Host(format!("{name} cannot be started: {why}"));
        let command = command(program, arguments, folder);
        let (child, stopped) = (Arc::new(Mutex::new(None)), Arc::new(AtomicBool::new(false)));
        let (tell, told) = mpsc::channel();
        let thread = std::thread::Builder::new().name(name.into());
        let (kept, over) = (Arc::clone(&child), Arc::clone(&stopped));
        // The kernel kills the program with the thread that started it: this one lives as long as the program.
        let listener = thread.spawn(move || match begin(command, &input) {
            Ok((child, reader)) => {
                *lock(&kept) = Some(child);
                let _ = tell.send(Ok(()));
                hear(name, reader, &kept, &over, &listen);
            }
            Err(error) => drop(tell.send(Err(error))),
        });
        let listener = listener.map_err(|e| cannot(&e))?;
        match told.recv() {
            Ok(Ok(())) => Ok(Self { name, child, stopped, listener: Some(listener) }),
            Ok(Err(error)) => Err(cannot(&error)),
            Err(_) => Err(cannot(&"its thread failed; this is a defect of wiregauge")),
        }
    }

    /// Ends the program in good order, or by force. Blocks for two seconds at most.
    pub fn stop(&mut self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.signal(Signal::TERM);
        let end = Instant::now() + PATIENCE;
        while self.listener.as_ref().is_some_and(|listener| !listener.is_finished()) {
            if Instant::now() > end {
                self.signal(Signal::KILL);
                break;
            }
            std::thread::sleep(LOOK);
        }
        if let Some(listener) = self.listener.take() {
            drop(listener.join());
        }
    }

    /// Sends a signal while the program has not been waited for, so that its process ID is still its own.
    fn signal(&self, signal: Signal) {
        let child = lock(&self.child);
        let pid = child.as_ref().and_then(|child| Pid::from_raw(i32::try_from(child.id()).ok()?));
        if let Some(pid) = pid {
            let _ = kill_process(pid, signal);
        }
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.stop();
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn begin(mut command: Command, input: &str) -> std::io::Result<(Child, std::io::PipeReader)> {
    let (reader, writer) = std::io::pipe()?;
    command.stdin(Stdio::piped()).stdout(writer.try_clone()?).stderr(writer);
    let mut child = realtime::die_with_this_thread(&mut command).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read it reports that itself.
        let _ = stdin.write_all(input.as_bytes());
    }
    Ok((child, reader))
}

/// Reads a program's output until it has ended.
fn hear(
    name: &str,
    reader: std::io::PipeReader,
    child: &Mutex<Option<Child>>,
    stopped: &AtomicBool,
    listen: &Listen,
) {
    let mut last = String::new();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
        line.truncate(LONGEST_LINE);
        let text = String::from_utf8_lossy(&line).trim_end().to_owned();
        if !text.is_empty() {
            listen(&text, false);
            last = text;
        }
        line.clear();
    }
    let status = loop {
        // The lock is released between checks so that the program can be stopped.
        let ended = match lock(child).as_mut().map(Child::try_wait) {
            Some(Ok(None)) => None,
            Some(Ok(ended)) => Some(ended),
            _ => Some(None),
        };
        match ended {
            Some(status) => break status,
            None => std::thread::sleep(LOOK),
        }
    };
    *lock(child) = None;
    if !stopped.load(Ordering::Relaxed) {
        let last = if last.is_empty() { "it said nothing" } else { &last };
        listen(&format!("{name} {}: {last}", how(status)), true);
    }
}

fn how(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    let code = status.and_then(|status| status.code());
    let signal = status.and_then(|status| status.signal());
    match (code, signal) {
        (Some(code), _) => format!("ended with code {code}"),
        (None, Some(signal)) => format!("was killed by signal {signal}"),
        (None, None) => "ended".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn started(script: &str, input: &str) -> (Program, mpsc::Receiver<(String, bool)>) {
        let (tell, told) = mpsc::channel();
        let tell = Mutex::new(tell);
        let listen: Listen = Box::new(move |text, gone| drop(lock(&tell).send((text.into(), gone))));
        let arguments = ["-c", script].map(str::to_owned);
        let program =
            Program::start("sh", Path::new("/bin/sh"), &arguments, Path::new("/"), input.into(), listen);
        (program.expect("there is a shell"), told)
    }

    #[test]
    fn a_program_is_heard_and_ended_and_says_nothing_of_it() {
        let (mut program, told) = started("cat; echo there >&2; exec sleep 60", "here\n");
        assert_eq!(told.recv().unwrap(), ("here".into(), false));
        assert_eq!(told.recv().unwrap(), ("there".into(), false));
        let pid = lock(&program.child).as_ref().unwrap().id();
        program.stop();
        assert!(told.recv().is_err(), "a program that was stopped is not told to be gone");
        assert!(!Path::new(&format!("/proc/{pid}")).exists());
    }

    #[test]
    fn a_program_that_does_not_heed_is_killed() {
        let (mut program, told) = started("trap '' TERM; echo on; while :; do sleep 0.1; done", "");
        assert_eq!(told.recv().unwrap().0, "on");
        let begun = Instant::now();
        program.stop();
        assert!(begun.elapsed() >= PATIENCE);
    }

    #[test]
    fn a_program_that_ends_is_told_in_its_own_words() {
        let (_program, told) = started("echo no clock; exit 7", "");
        assert_eq!(told.recv().unwrap(), ("no clock".into(), false));
        assert_eq!(told.recv().unwrap(), ("sh ended with code 7: no clock".into(), true));
        let (_program, told) = started("kill -9 $$", "");
        assert_eq!(told.recv().unwrap(), ("sh was killed by signal 9: it said nothing".into(), true));
    }

    #[test]
    fn an_answer_is_what_was_printed_and_whether_it_went_well() {
        let asked = |script: &str, most| {
            answer(Path::new("/bin/sh"), &["-c".into(), script.into()], Path::new("/"), most)
        };
        assert_eq!(asked("echo $HOME:$LC_ALL", PATIENCE).unwrap(), (true, ":C\n".into()));
        assert_eq!(asked("echo no >&2; exit 1", PATIENCE).unwrap(), (false, "no\n".into()));
        let silent = asked("sleep 60", Duration::from_millis(50)).unwrap_err().to_string();
        assert!(silent.contains("did not end"), "{silent}");
    }

    #[test]
    fn a_program_that_is_missing_is_named_with_its_package() {
        let missing = find("no-such-program", "linuxptp").unwrap_err().to_string();
        assert!(
            missing.starts_with("the program no-such-program is not installed; install the package linuxptp")
        );
        assert!(find("sh", "dash").is_ok());
    }
}
