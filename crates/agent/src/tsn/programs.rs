//! Programs of the host that make settings: located only in system folders, and started without a shell and with a
//! fixed environment.

use std::path::PathBuf;
use std::process::{Command as Process, Output, Stdio};
use std::time::Duration;

use wg_plan::host_tsn::commands::{Command, Program};

/// Folders used by the distributions; the PATH of the environment is ignored.
const FOLDERS: [&str; 4] = ["/usr/sbin", "/sbin", "/usr/bin", "/bin"];

/// Runner of commands.
pub(super) trait Programs {
    /// Runs a command and returns its output.
    ///
    /// # Errors
    /// The reason for the failure, as a sentence.
    fn run(&self, command: &Command) -> Result<String, String>;

    /// Complete output regardless of success, for usage texts that some programs print as an error.
    fn said(&self, command: &Command) -> String {
        self.run(command).unwrap_or_else(|refusal| refusal)
    }

    /// Waits for a slow operation.
    fn pause(&self, length: Duration) {
        std::thread::sleep(length);
    }
}

/// Programs of this host.
pub(super) struct Tools;

/// Path of a program on this host.
pub(super) fn found(program: Program) -> Option<PathBuf> {
    FOLDERS.iter().map(|folder| PathBuf::from(folder).join(program.name())).find(|path| path.is_file())
}

impl Tools {
    fn output(command: &Command) -> Result<Output, String> {
        let name = command.program.name();
        let package = match command.program {
            Program::Tc => "iproute2",
            Program::Ethtool => "ethtool",
        };
        let path = found(command.program)
            .ok_or_else(|| format!("this host has no program {name}; install the package {package}"))?;
        Process::new(path)
            .args(&command.arguments)
            .env_clear()
            .env("LC_ALL", "C")
            .stdin(Stdio::null())
            .output()
            .map_err(|error| format!("{name} cannot be started: {error}"))
    }
}

impl Programs for Tools {
    fn said(&self, command: &Command) -> String {
        let both = |done: Output| [done.stdout, done.stderr].concat();
        Self::output(command)
            .map_or_else(|refusal| refusal, |done| String::from_utf8_lossy(&both(done)).into_owned())
    }

    fn run(&self, command: &Command) -> Result<String, String> {
        let done = Self::output(command)?;
        let said = String::from_utf8_lossy(&done.stderr);
        // tc continues if its arguments do not fit in a message, and sends only a part.
        if done.status.success() && !said.contains("ERROR") {
            return Ok(String::from_utf8_lossy(&done.stdout).into_owned());
        }
        Err(explained(command, &said))
    }
}

/// Explanation of a program's error, with the remedy if known.
pub(super) fn explained(command: &Command, said: &str) -> String {
    let kind = kind_of(command);
    let module = |prefix: &str, what: &str| {
        format!(
            "its kernel has no {what} {kind}; load the module {prefix}_{kind}, or use a kernel with CONFIG_NET_{}_{}",
            prefix.to_uppercase(),
            kind.to_uppercase()
        )
    };
    let said_so = |part: &str| said.contains(part);
    if said_so("qdisc kind is unknown") {
        return module("sch", "queue discipline");
    }
    if said_so("TC classifier not found") {
        return "its kernel has no filter flower; load the module cls_flower, or use a kernel with CONFIG_NET_CLS_FLOWER"
            .into();
    }
    if said_so("TC action module") || said_so("action not found") {
        return format!(
            "its kernel lacks an action of `{}`; load act_skbedit, act_vlan, act_police and act_gate",
            command.line()
        );
    }
    let merges = command.arguments.iter().any(|argument| argument.ends_with("-mm"));
    if merges && said_so("bad command line") {
        return "its ethtool knows no MAC merge layer; install 6.3 or later".into();
    }
    if said_so("\"fp\"") {
        return "its tc knows no preemptable classes (fp); install iproute2 6.4 or later".into();
    }
    let line = said.lines().map(str::trim).find(|line| !line.is_empty()).unwrap_or("no reason given");
    let line = line.trim_start_matches("Error: ").trim_end_matches('.');
    let cure = if said_so("does not support preemption") || (merges && said_so("Operation not supported")) {
        "; the card or its driver cannot preempt: write preemptable=\"off\", or use another card"
    } else if said_so("Multi-queue device") || said_so("exceeds maximum") || said_so("queues") {
        "; its interface has too few transmit queues"
    } else if said_so("PTP clock") || said_so("offload") || said_so("Operation not supported") {
        "; the card or its driver cannot do it: write offload=\"off\", or use another card"
    } else if said_so("Operation not permitted") || said_so("permission") {
        "; the agent needs CAP_NET_ADMIN"
    } else {
        ""
    };
    format!("{line}{cure} (`{}`)", command.line())
}

/// Queue discipline that a command concerns.
fn kind_of(command: &Command) -> &str {
    let known = ["taprio", "mqprio", "cbs", "etf", "clsact"];
    let named = command.arguments.iter().map(String::as_str).find(|argument| known.contains(argument));
    match named {
        Some("clsact") => "ingress",
        named => named.unwrap_or("of that kind"),
    }
}
