//! Running a command in its own namespaces, so that nothing it creates outlives it.
//!
//! Three processes: the caller (outside), the init of a new PID namespace (inside, process 1), and the command. However
//! the outer one ends, the kernel kills process 1 (parent-death signal), with it every process of the namespace, and
//! with these every namespace, interface and mount that they held. Cleaning up in user space was not taken: it does not
//! happen after SIGKILL.
//!
//! Signals: a process group that owns the terminal stays the same, so that Ctrl-C reaches the command directly and
//! once; any other caller gets a separate group and forwards signals, so that one to the whole outer group (as
//! `timeout` sends it) also arrives once.

use std::ffi::{CString, NulError};
use std::fs;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::path::Path;

use crate::sys::{check, short, socket};

/// The cure if user namespaces are refused.
pub const ROOTLESS_CURE: &str = "run as root, or allow user namespaces: \
    sysctl kernel.unprivileged_userns_clone=1 or kernel.apparmor_restrict_unprivileged_userns=0";

/// Reason why a command could not be enclosed.
#[derive(Debug, thiserror::Error)]
pub enum EncloseError {
    /// The kernel refused the namespaces.
    #[error("cannot create namespaces: {source}; {ROOTLESS_CURE}")]
    Namespaces {
        /// Error of the kernel.
        source: io::Error,
    },
    /// A command with a zero byte.
    #[error("the command contains a zero byte")]
    Command(#[from] NulError),
    /// No command.
    #[error("there is no command to enclose")]
    Nothing,
    /// Any other error.
    #[error("cannot enclose the command: {what}: {source}")]
    Other {
        /// The operation that failed.
        what: &'static str,
        /// Error of the kernel.
        source: io::Error,
    },
}

fn other(what: &'static str) -> impl Fn(io::Error) -> EncloseError {
    move |source| EncloseError::Other { what, source }
}

const FORWARDED: [libc::c_int; 4] = [libc::SIGINT, libc::SIGTERM, libc::SIGHUP, libc::SIGQUIT];
/// Exit code of an init that could not set up the inside; the reason is on standard error.
const CANNOT: u8 = 3;

/// Runs `command` enclosed and returns its exit code (128 + signal if one killed it). With `rootless`, or without
/// root's rights, it uses a user namespace in which the caller is root.
///
/// To be called while the process has one thread.
///
/// # Errors
/// See [`EncloseError`]; the command has then not run.
pub fn run(command: &[String], rootless: bool) -> Result<u8, EncloseError> {
    let arguments =
        command.iter().map(|word| CString::new(word.as_bytes())).collect::<Result<Vec<_>, _>>()?;
    if arguments.is_empty() {
        return Err(EncloseError::Nothing);
    }
    let user = rootless || !crate::host::is_root();
    let shares_terminal = owns_terminal();
    let signals = Signals::block().map_err(other("blocking signals"))?;
    unshare(user).map_err(|source| EncloseError::Namespaces { source })?;
    let (alive, keep) = pipe().map_err(other("creating a pipe"))?;
    // SAFETY: the process has one thread (documented), so the child may go on as ordinary code.
    let init = check(unsafe { libc::fork() }).map_err(other("fork"))?;
    if init == 0 {
        drop(keep);
        let code = match inside(&arguments, &signals, shares_terminal, &alive) {
            Ok(code) => code,
            Err(error) => {
                eprintln!("wiregauge-agent: {error}");
                CANNOT
            }
        };
        std::process::exit(i32::from(code));
    }
    drop(alive);
    // A command in the terminal's own group has received the terminal's signal already.
    let code = signals.mind(init, |from_kernel| !(from_kernel && shares_terminal));
    drop(keep);
    code.map_err(other("waiting for the command"))
}

/// Whether the kernel grants the namespaces, with or without a user namespace; tried in a child process.
///
/// # Errors
/// The refusal.
pub fn can_unshare(user: bool) -> io::Result<()> {
    in_child(|| unshare(user))
}

/// Tries an operation in a child, which then ends, and its effects with it.
pub(crate) fn in_child(what: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    // SAFETY: the child only makes the calls of `what` (unshare; mlockall and limits; reading and writing its own files
    // under /proc) and _exit; all of that is allowed after a fork of a process whose other threads hold no lock these
    // need.
    let child = check(unsafe { libc::fork() })?;
    if child == 0 {
        let code = what().map_or_else(|e| e.raw_os_error().unwrap_or(libc::EPERM), |()| 0);
        // SAFETY: ends the child without running the parent's exit handlers.
        unsafe { libc::_exit(code) };
    }
    match wait_for(child)? {
        0 => Ok(()),
        code => Err(io::Error::from_raw_os_error(i32::from(code))),
    }
}

/// Whether packet sockets may be opened.
///
/// # Errors
/// The refusal.
pub fn can_open_packet_socket() -> io::Result<()> {
    socket(libc::AF_PACKET, libc::SOCK_RAW, 0).map(drop)
}

fn unshare(user: bool) -> io::Result<()> {
    // SAFETY: neither takes an argument nor can fail.
    let (uid, gid) = unsafe { (libc::geteuid(), libc::getegid()) };
    let wanted = libc::CLONE_NEWPID | libc::CLONE_NEWNS | libc::CLONE_NEWNET;
    // SAFETY: takes no pointers. The process has one thread, as a new user namespace demands.
    check(unsafe { libc::unshare(wanted | if user { libc::CLONE_NEWUSER } else { 0 }) })?;
    if user {
        fs::write("/proc/self/setgroups", "deny")?;
        fs::write("/proc/self/uid_map", format!("0 {uid} 1"))?;
        fs::write("/proc/self/gid_map", format!("0 {gid} 1"))?;
    }
    Ok(())
}

/// Process 1: sets up the inside, starts the command, reaps all children, ends when the command does.
fn inside(
    arguments: &[CString],
    signals: &Signals,
    shares_terminal: bool,
    alive: &OwnedFd,
) -> Result<u8, EncloseError> {
    // SAFETY: an integer argument only.
    check(unsafe { libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) }).map_err(other("prctl"))?;
    if hung_up(alive) {
        // The outer process ended before the parent-death signal was set.
        return Ok(CANNOT);
    }
    if !shares_terminal {
        // SAFETY: takes no pointers.
        check(unsafe { libc::setpgid(0, 0) }).map_err(other("setpgid"))?;
    }
    mounts()?;
    raise_loopback().map_err(other("raising the loopback interface"))?;
    // SAFETY: process 1 has one thread, so the child may go on as ordinary code.
    let command = check(unsafe { libc::fork() }).map_err(other("fork"))?;
    if command == 0 {
        signals.restore();
        let error = execute(arguments);
        eprintln!("wiregauge-agent: cannot run {}: {error}", arguments[0].to_string_lossy().escape_debug());
        std::process::exit(if error.kind() == io::ErrorKind::NotFound { 127 } else { 126 });
    }
    signals.mind(command, |from_kernel| !from_kernel).map_err(other("waiting for the command"))
}

fn execute(arguments: &[CString]) -> io::Error {
    let mut pointers: Vec<*const libc::c_char> = arguments.iter().map(|word| word.as_ptr()).collect();
    pointers.push(std::ptr::null());
    // SAFETY: an array of terminated strings that ends with null; all of it lives until the call replaces the process.
    unsafe { libc::execvp(pointers[0], pointers.as_ptr()) };
    io::Error::last_os_error()
}

fn mounts() -> Result<(), EncloseError> {
    let plain = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    mount(None, "/", None, libc::MS_REC | libc::MS_PRIVATE).map_err(other("making mounts private"))?;
    mount(Some("proc"), "/proc", Some("proc"), plain).map_err(other("mounting /proc"))?;
    // Without this mount /sys shows the outer interfaces; nothing here reads them there.
    let _ = mount(Some("sysfs"), "/sys", Some("sysfs"), plain);
    let named = Path::new("/run/netns");
    if fs::create_dir_all(named).is_err() {
        mount(Some("tmpfs"), "/run", Some("tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)
            .map_err(other("mounting /run"))?;
        fs::create_dir_all(named).map_err(other("creating /run/netns"))?;
    }
    mount(Some("tmpfs"), "/run/netns", Some("tmpfs"), plain).map_err(other("mounting /run/netns"))
}

fn mount(source: Option<&str>, target: &str, kind: Option<&str>, flags: libc::c_ulong) -> io::Result<()> {
    let text = |s: &str| CString::new(s).map_err(io::Error::other);
    let source = source.map(text).transpose()?;
    let target = text(target)?;
    let kind = kind.map(text).transpose()?;
    let pointer = |s: &Option<CString>| s.as_ref().map_or(std::ptr::null(), |s| s.as_ptr());
    // SAFETY: every pointer is null or a terminated string that lives across the call; no data is given.
    let done =
        unsafe { libc::mount(pointer(&source), target.as_ptr(), pointer(&kind), flags, std::ptr::null()) };
    check(done).map(drop)
}

fn raise_loopback() -> io::Result<()> {
    let socket = socket(libc::AF_INET, libc::SOCK_DGRAM, 0)?;
    // SAFETY: an ifreq of zeroes is valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    request.ifr_name[0] = b'l'.cast_signed();
    request.ifr_name[1] = b'o'.cast_signed();
    request.ifr_ifru.ifru_flags = short((libc::IFF_UP | libc::IFF_RUNNING) as i64).cast_signed();
    // SAFETY: `request` is a live ifreq with a terminated name, which the call only reads.
    check(unsafe { libc::ioctl(socket.as_fd().as_raw_fd(), libc::SIOCSIFFLAGS as _, &raw const request) })
        .map(drop)
}

/// Whether this process group is the foreground group of its terminal.
fn owns_terminal() -> bool {
    let Ok(terminal) = fs::File::open("/dev/tty") else { return false };
    // SAFETY: takes a live descriptor and no pointers.
    unsafe { libc::tcgetpgrp(terminal.as_raw_fd()) == libc::getpgrp() }
}

fn pipe() -> io::Result<(OwnedFd, OwnedFd)> {
    let mut ends = [-1; 2];
    // SAFETY: the call fills the two integers of `ends`.
    check(unsafe { libc::pipe2(ends.as_mut_ptr(), libc::O_CLOEXEC) })?;
    // SAFETY: both were just created and nobody else owns them.
    Ok(unsafe { (OwnedFd::from_raw_fd(ends[0]), OwnedFd::from_raw_fd(ends[1])) })
}

fn hung_up(alive: &OwnedFd) -> bool {
    let mut polled = libc::pollfd { fd: alive.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: one live entry; does not wait.
    unsafe { libc::poll(&raw mut polled, 1, 0) };
    polled.revents & libc::POLLHUP != 0
}

fn wait_for(child: libc::pid_t) -> io::Result<u8> {
    let mut status = 0;
    loop {
        // SAFETY: the call fills the integer `status`.
        match check(unsafe { libc::waitpid(child, &raw mut status, 0) }) {
            Ok(_) => return Ok(code_of(status)),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

fn code_of(status: libc::c_int) -> u8 {
    let code = if libc::WIFEXITED(status) { libc::WEXITSTATUS(status) } else { 128 + libc::WTERMSIG(status) };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Signals that are blocked and handled one by one.
struct Signals {
    waited_for: libc::sigset_t,
    before: libc::sigset_t,
}

impl Signals {
    fn block() -> io::Result<Self> {
        // SAFETY: sigset_t is integers; sigemptyset makes both well formed before use, sigaddset is given valid
        // numbers, and sigprocmask reads one and fills the other.
        unsafe {
            let mut set: libc::sigset_t = std::mem::zeroed();
            let mut before: libc::sigset_t = std::mem::zeroed();
            libc::sigemptyset(&raw mut set);
            libc::sigemptyset(&raw mut before);
            for signal in FORWARDED.into_iter().chain([libc::SIGCHLD]) {
                libc::sigaddset(&raw mut set, signal);
            }
            check(libc::sigprocmask(libc::SIG_BLOCK, &raw const set, &raw mut before))?;
            Ok(Self { waited_for: set, before })
        }
    }

    fn restore(&self) {
        // SAFETY: `before` was filled by sigprocmask.
        unsafe { libc::sigprocmask(libc::SIG_SETMASK, &raw const self.before, std::ptr::null_mut()) };
    }

    /// Reaps children and forwards signals to `child` until it has ended; returns its exit code. `forward` decides,
    /// given whether the kernel itself (a terminal) sent the signal.
    fn mind(&self, child: libc::pid_t, forward: impl Fn(bool) -> bool) -> io::Result<u8> {
        loop {
            // SAFETY: siginfo_t is integers and is filled by the call.
            let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
            // SAFETY: both point to live values.
            let signal = unsafe { libc::sigwaitinfo(&raw const self.waited_for, &raw mut info) };
            if signal == libc::SIGCHLD {
                let mut status = 0;
                loop {
                    // SAFETY: the call fills the integer `status`.
                    let reaped = unsafe { libc::waitpid(-1, &raw mut status, libc::WNOHANG) };
                    if reaped == child {
                        return Ok(code_of(status));
                    }
                    if reaped <= 0 {
                        break;
                    }
                }
            } else if signal > 0 {
                if forward(info.si_code == libc::SI_KERNEL) {
                    // SAFETY: takes no pointers; `child` has not been reaped, so the number is still its.
                    unsafe { libc::kill(child, signal) };
                }
            } else {
                let error = io::Error::last_os_error();
                if error.kind() != io::ErrorKind::Interrupted {
                    return Err(error);
                }
            }
        }
    }
}
